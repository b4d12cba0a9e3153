"""URLs: what is fetched, what is deduplicated, and whom a host belongs to.

canonical   the WHATWG serialisation without fragment: what goes on the wire.
key form    canonical minus differences that do not name another page: what `url_key` hashes.
domain      registrable domain of a host: the unit of ownership.

What always holds: only this module makes a `Url`; canonical(canonical(x)) == canonical(x); key forms are
fixed points too; a key form is never fetched; every host has a domain, never "". `RULES_VERSION` names the
rules of the key form.
What it does not do: it decides nothing about scope or limits (crawl.scope) and asks no server.

User info is kept in the canonical form, because `http://me@host/` names another resource than `http://host/`;
whether such a URL is fetched is not decided here: crawl.scope refuses it (this crawler logs in nowhere).

ada_url parses (WHATWG URL Standard). Most links of a page are plain (no escapes to make, no dot segments
left), and for those the answer is the base's directory and the text: `canonical_many` joins them itself,
which a property test holds equal to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from typing import Final, NewType

import ada_url
from publicsuffixlist import PSLFILE, PublicSuffixList

from crawl.errors import UrlError
from crawl.policy import Identity
from crawl.queryencoding import concerns, encode_query
from crawl.remembered import remembered

__all__ = [
    "MAX_CHARS",
    "RULES_VERSION",
    "Url",
    "bare_host",
    "canonical",
    "canonical_many",
    "domain",
    "host",
    "is_public_suffix",
    "key_form",
    "origin",
    "psl_hash",
    "split_many",
    "without_fragment",
]

#: an absolute http(s) URL in WHATWG serialisation without fragment; only `canonical` and `canonical_many`
#: make one
Url = NewType("Url", str)

#: version of the key form's rules; a change applies to URLs met afterwards
RULES_VERSION: Final = 1

#: longest URL this module returns; servers must support 8,000 octets (RFC 9110 4.1), the crawl's own limit is
#: lower
MAX_CHARS: Final = 8_192


# --- canonical ----------------------------------------------------------------------------------------------


def canonical(text: str, base: str | None = None, encoding: str = "utf-8") -> Url:
    """The URL that `text` means, relative to `base`, in WHATWG serialisation without fragment.

    `encoding` is the label of the document's encoding: it rules the bytes of non-ASCII characters in the
    query (WHATWG URL, query state). Raises UrlError with one of the reasons
    url_invalid (no URL, or no host), url_scheme (neither http nor https), url_too_long (over `MAX_CHARS`).
    """
    if concerns(text, encoding):
        text = _scalar(text)
        if base is None or base.startswith("http"):  # the query encoding rules special schemes only
            text = encode_query(text, encoding)
    try:
        href = ada_url.join_url(base, text) if base is not None else ada_url.normalize_url(text)
    except ValueError:
        # `from None`: the parser says no more than that, and the text stands in our own error
        raise UrlError("url_invalid", text[:MAX_CHARS]) from None
    href = href.partition("#")[0]  # a serialised URL holds `#` nowhere but before its fragment
    if not href.startswith(("http://", "https://")):
        raise UrlError("url_scheme", text[:MAX_CHARS])
    if len(href) > MAX_CHARS:
        raise UrlError("url_too_long", text[:MAX_CHARS])
    return Url(href)


def canonical_many(texts: Sequence[str], base: str, encoding: str = "utf-8") -> list[Url | None]:
    """`canonical` of all links of one page whose base URL is `base`; None where there is nothing to fetch.

    The same answer as `canonical` one by one, for a fraction of the time.
    """
    join = _Joiner(base, encoding)
    known: dict[str, Url | None] = {}
    out: list[Url | None] = []
    for text in texts:
        ref = without_fragment(text)
        try:
            out.append(known[ref])
        except KeyError:
            url = known[ref] = join(ref)
            out.append(url)
    return out


def without_fragment(text: str) -> str:
    """A reference as written without its fragment, which names no other page.

    The first `#` begins it, whatever stands before. Where a space or control would be left at the end, the
    `#` stays: at the end of a reference a parser strips those, before a fragment it does not.
    """
    head, mark, _ = text.partition("#")
    return head + mark if mark and head and head[-1] <= " " else head


# What the path and query states of the standard pass unchanged. Missing on purpose: `'` (escaped in a query),
# `\` (a slash), `^` `|` `[` `]` (sets that moved between editions), and everything not ASCII.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./=&+,;:@!~*()$%-]*(?:\?[A-Za-z0-9_./=&+,;:@!~*()$%?-]*)?").fullmatch
_PLAIN_ORIGIN: Final = re.compile(r"https?://[a-z0-9.-]+(?::[0-9]+)?").fullmatch


class _Joiner:
    """Joins references to one base URL."""

    __slots__ = ("_base", "_directories", "_encoding", "_origin", "_self")

    def __init__(self, base: str, encoding: str) -> None:
        self._encoding = encoding
        self._base: str | None = base
        self._self: Url | None = None
        self._origin = ""
        self._directories: list[str] = []
        try:
            self._self = canonical(base)
        except UrlError:
            if not _parses(base):
                self._base = None  # no base at all: absolute links still count
            return
        self._origin = origin_prefix = "/".join(self._self.split("/", 3)[:3])
        path = self._self[len(origin_prefix) :].partition("?")[0]
        directory = path[: path.rindex("/") + 1]
        # [0] the base's directory, [1] its parent, … [-1] the root
        while True:
            self._directories.append(origin_prefix + directory)
            if directory == "/":
                break
            directory = directory[: directory.rindex("/", 0, -1) + 1]

    def __call__(self, ref: str) -> Url | None:
        """`ref` without fragment, joined."""
        if self._self is not None:
            if not ref:
                return self._self
            if _PLAIN(ref):
                joined = self._plain(ref)
                if joined is not None and len(joined) <= MAX_CHARS:
                    return Url(joined)
        try:
            return canonical(ref, self._base, self._encoding)
        except UrlError:
            return None

    def _plain(self, ref: str) -> str | None:
        """The join of a reference made of plain characters; None where the parser must decide."""
        if ref.startswith("/"):
            # `/.` and `/%` may begin a dot segment; `//` begins a host
            return None if "/." in ref or "/%" in ref or ref.startswith("//") else self._origin + ref
        if ":" in ref:
            return _absolute(ref)
        up = 0
        while ref.startswith("../"):
            ref = ref[3:]
            up += 1
        if ref[:1] in ".%?" or "/." in ref or "/%" in ref:
            return None
        return self._directories[min(up, len(self._directories) - 1)] + ref


def _absolute(ref: str) -> str | None:
    """`ref` itself where it is visibly canonical already."""
    parts = ref.split("/", 3)
    if len(parts) < 4 or parts[1] or "/." in parts[3] or "/%" in parts[3] or parts[3][:1] in (".", "%"):
        return None
    return ref if _is_origin("//".join((parts[0], parts[2]))) else None


@remembered(65_536)
def _is_origin(text: str) -> bool:
    """`text` is scheme and host (and port) as the parser would write them."""
    if not _PLAIN_ORIGIN(text):
        return False
    try:
        return bool(ada_url.normalize_url(text) == text + "/")
    except ValueError:
        return False


def _parses(text: str) -> bool:
    return bool(ada_url.check_url(_scalar(text)))


_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def _scalar(text: str) -> str:
    """Lone surrogates become U+FFFD, as in every USVString (WebIDL)."""
    return _SURROGATES.sub("\ufffd", text)


# --- parts --------------------------------------------------------------------------------------------------


def origin(url: str) -> str:
    """Scheme, host and port (unless the scheme's own) of a canonical URL: what a robots.txt speaks for."""
    return _parts(url.split("/", 3)[0], url.split("/", 3)[2])[0]


def host(url: str) -> str:
    """Host of a canonical URL: a lower-case ASCII name, an IPv4 address, or an IPv6 address in brackets."""
    return _parts(url.split("/", 3)[0], url.split("/", 3)[2])[1]


def split_many(urls: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Origins, hosts and domains of canonical URLs, as three lists of the same length."""
    found = [_parts(*url.split("/", 3)[:3:2]) for url in urls]
    return [f[0] for f in found], [f[1] for f in found], [f[2] for f in found]


@remembered(65_536)
def _parts(scheme: str, authority: str) -> tuple[str, str, str]:
    """Origin, host and domain."""
    place = authority.rpartition("@")[2]
    colon = place.rfind(":")
    name = place[:colon] if colon > place.rfind("]") else place
    return f"{scheme}//{place}", name, domain(name)


# --- domain -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _psl() -> PublicSuffixList:
    # accept_unknown: the list's default rule `*`; only_icann=False: its private section counts (github.io)
    return PublicSuffixList(accept_unknown=True, only_icann=False)


@lru_cache(maxsize=1)
def psl_hash() -> str:
    """SHA-256 of the bundled Public Suffix List, in hex: recorded in a lake, because domains depend on it."""
    with open(PSLFILE, "rb") as file:
        return sha256(file.read()).hexdigest()


@lru_cache(maxsize=262_144)
@remembered(262_144)
def domain(host: str) -> str:
    """Registrable domain of a host: its public suffix and one label more (private section included).

    An IP address and a host that is itself a public suffix are their own domain. Never empty for a non-empty
    host.
    """
    name = host.lower()
    if name.startswith("[") or name.rpartition(".")[2].isdigit() or ":" in name:
        return name  # the host parser lets a name end in a number only if it is an IPv4 address
    name = name.rstrip(".") or name
    return _psl().privatesuffix(name) or name


_NAME: Final = re.compile(r"\w(?:[\w-]*\w)?(?:\.\w(?:[\w-]*\w)?)*\.?|\[[0-9A-Fa-f:.]+\]")


def bare_host(text: str) -> str | None:
    """The host that a name alone means, as URLs have it: lower case, ASCII. None for anything more than a
    name or an address (scheme, port, path, comma, wildcard), or for nothing.
    """
    try:
        return host(canonical(f"http://{text}/")) if _NAME.fullmatch(text) else None
    except UrlError:
        return None


def is_public_suffix(host: str) -> bool:
    """Whether anybody may register a name right below it (com, co.uk), by the bundled list."""
    return _psl().publicsuffix(host, accept_unknown=False) == host


# --- key form -----------------------------------------------------------------------------------------------

_ESCAPE: Final = re.compile("%([0-9A-Fa-f]{2})?")
# RFC 3986 2.3
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NORMAL: Final = {
    f"{hi}{lo}": chr(int(hi + lo, 16)) if chr(int(hi + lo, 16)) in _UNRESERVED else f"%{hi}{lo}".upper()
    for hi in "0123456789abcdefABCDEF"
    for lo in "0123456789abcdefABCDEF"
}


def key_form(url: str, identity: Identity = Identity()) -> str:  # noqa: B008 - a frozen value
    """What makes two URLs one: `url` (canonical) without differences that name no other page.

    Always: escapes of unreserved characters decoded, hex digits upper case (RFC 3986 6.2.2.1-2), a stray `%`
    as `%25`; tracking parameters left out; empty parameters (`a=1&&b=2`) left out; parameters sorted by name,
    those of one name in their order.
    By the operator's word (`identity`), per origin, host or domain: a trailing slash, `www.`, session
    parameters.
    Never: http and https, `+` and `%20`, `?a` and `?a=`, `?` and none are not merged.
    """
    if "?" not in url and "%" not in url and not (identity.strip_slash or identity.strip_www):
        return url
    return _rules(identity)(url)


@lru_cache(maxsize=64)
def _rules(identity: Identity) -> Callable[[str], str]:
    return _KeyRules(identity)


class _KeyRules:
    """The rules of one `Identity`, compiled."""

    __slots__ = ("_exact", "_prefixes", "_scoped", "_slash", "_www")

    def __init__(self, identity: Identity) -> None:
        names = [*_tracking(), *identity.tracking, *identity.session]
        self._scoped: dict[str, frozenset[str]] = {}
        plain = []
        for name in (n.lower() for n in names):
            place, colon, rest = name.rpartition(":")
            if colon:
                self._scoped[place] = self._scoped.get(place, frozenset()) | {rest}
            else:
                plain.append(name)
        self._exact = frozenset(n for n in plain if not n.endswith("*"))
        self._prefixes = tuple(n[:-1] for n in plain if n.endswith("*"))
        self._slash = frozenset(o.rstrip("/") for o in identity.strip_slash)
        self._www = frozenset(identity.strip_www)

    def __call__(self, url: str) -> str:
        if "%" in url:
            url = _escapes(url)
        if self._www:
            url = self._without_www(url)
        path, question, query = url.partition("?")
        if self._slash and path.endswith("/") and path.count("/") > 3 and origin(path) in self._slash:
            path = path[:-1]
        if not query:
            return path + question
        kept = self._parameters(query, url)
        return f"{path}?{kept}" if kept else path

    def _parameters(self, query: str, url: str) -> str:
        scoped = self._scoped.get(host(url)) if self._scoped else None
        kept = []
        for pair in query.split("&"):
            name = pair.partition("=")[0]
            lower = name.lower()
            if not pair or lower in self._exact or lower.startswith(self._prefixes):
                continue
            if scoped is not None and lower in scoped:
                continue
            kept.append((name, pair))
        if len(kept) > 1:
            kept.sort(key=_by_name)
        return "&".join([pair for _, pair in kept])

    def _without_www(self, url: str) -> str:
        name = host(url)
        if name.startswith("www.") and domain(name) in self._www:
            return url.replace("//www.", "//", 1) if "@" not in url.split("/", 3)[2] else url
        return url


def _by_name(item: tuple[str, str]) -> str:
    return item[0]


def _escapes(url: str) -> str:
    """Unreserved escapes decoded, the others in upper case; a `%` that begins none is `%25`.

    The last is what RFC 3986 wants it to be, and keeps decoding from making a new escape (`%%34%31`).
    """
    return _ESCAPE.sub(_normal, url)


def _normal(match: re.Match[str]) -> str:
    digits = match[1]
    return _NORMAL[digits] if digits else "%25"


@lru_cache(maxsize=1)
def _tracking() -> tuple[str, ...]:
    text = resources.files("crawl").joinpath("data/tracking_parameters.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.split("\n") if line and not line.startswith("#"))
