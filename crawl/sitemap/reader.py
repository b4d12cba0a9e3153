"""Reads sitemaps and feeds: which URLs they name, and what they say of each.

    found = read(body, "https://example.org/sitemap.xml", content_type="application/xml")
    found.kind      # urlset, index, rss, atom, text, or none
    for entry in found.entries: entry.loc, entry.lastmod, entry.changefreq, entry.priority
    found.error     # why something is missing, else None

What always holds: nothing raises on any body; no more than `most_bytes` are decoded and `most_urls` entries
read, and hitting either is told; a compressed body may end early, and what came before counts; locations come
absolute, canonical and without fragment; only http and https. Entries are columns: an entry's object is made
when somebody iterates.
What is no sitemap (a page of HTML under its address, say) has kind `none`: links in it are no entries.

Lenient where a reader can know what is meant, and silent about nothing: `skipped` counts what was left out.
A location without a scheme that begins with a name of the site itself (`www.example.org/a`), or is one bare
word, is left out as `no_scheme`, not resolved to a path nobody meant; what holds a byte that is no character
is left out too.

Sources: sitemaps.org protocol 0.9 (50 MB, 50,000 URLs, text form, index), RSS 2.0, RSS 1.0, RFC 4287 (Atom).
Which of these URLs a sitemap may speak for is `crawl.sitemap.submission`'s question.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, overload

from crawl import url as urls
from crawl.dates import lastmod
from crawl.html import charset
from crawl.net.content import TOO_LARGE, Decoder
from crawl.sitemap import xml as sitemapxml
from crawl.sitemap.announced import CHANGEFREQ, DEFAULT_PRIORITY

__all__ = ["CHANGEFREQ", "MOST_BYTES", "MOST_URLS", "Entries", "Entry", "Sitemap", "read"]

#: sitemaps.org: a sitemap is at most 50 MB uncompressed and holds at most 50,000 URLs
MOST_BYTES: Final = 52_428_800
MOST_URLS: Final = 50_000
#: gzip around gzip (a `.gz` file sent with Content-Encoding: gzip), and once more
_LAYERS: Final = 3
_LINE: Final = re.compile(rb"[^\r\n]+")
_STEP: Final = 65_536


class Entry(NamedTuple):
    """One URL of a sitemap, and what the sitemap says of it."""

    loc: str  # canonical
    lastmod: datetime | None  # UTC
    changefreq: str | None  # one of CHANGEFREQ
    priority: float | None  # 0 to 1; 0.5 where what stands there is none
    alternates: tuple[str, ...]  # canonical URLs of the same page in other languages


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries(Sequence[Entry]):
    """Entries as parallel lists, in the order of the file; iterating makes an `Entry` of each."""

    loc: Sequence[str]
    lastmod: Sequence[int | None]  # microseconds since 1970, UTC
    changefreq: Sequence[str | None]
    priority: Sequence[float | None]
    alternates: Sequence[tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.loc)

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Entry]: ...
    def __getitem__(self, at: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        when = self.lastmod[at]
        return Entry(
            self.loc[at],
            None if when is None else _time(when),
            self.changefreq[at],
            self.priority[at],
            self.alternates[at],
        )

    def __iter__(self) -> Iterator[Entry]:
        return (self[at] for at in range(len(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitemap:
    """What a body said. `error`, a reason code, tells that something is missing; what there is counts.

    empty · html · not_a_sitemap · encoding_truncated · encoding_corrupt · encoding_members (of gzip) ·
    too_large (decoded bytes) · too_many_urls · xml_cut (the root element is not closed) · xml_entities (it
    declares entities of its own; they are left out, not expanded).
    """

    kind: str  # urlset, index, rss, atom, text or none
    entries: Entries
    error: str | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)  # entries left out, by reason


def read(
    body: bytes,
    url: str,
    content_type: str | None = None,
    *,
    most_bytes: int = MOST_BYTES,
    most_urls: int = MOST_URLS,
) -> Sitemap:
    """What a sitemap or feed says. `body`: as served, HTTP's own codings undone; `url`: for relative ones.

    Never raises on what a server sent.
    """
    document, fault = _decoded(body, most_bytes)
    _, document = _characters(document, content_type)
    if not document.strip(b" \t\r\n\0"):
        return _nothing(fault or "empty")
    root = sitemapxml.find_root(document)
    if root is not None:
        return _of_xml(document, *root, url, fault, most_urls)
    return _of_text(document, url, fault, most_urls)


# --- bytes --------------------------------------------------------------------------------------------------


def _decoded(body: bytes, most: int) -> tuple[bytes, str | None]:
    """The body with gzip undone, told by its first bytes, whatever it is called; and what was wrong."""
    fault = None
    for _ in range(_LAYERS):
        if body[:2] != b"\x1f\x8b":
            break
        decoder = Decoder("gzip", most)
        pieces = []
        for at in range(0, len(body), _STEP):  # in pieces: what precedes a broken one counts
            pieces.append(decoder.feed(body[at : at + _STEP]))
            if decoder.stopped():
                break
        decoder.finish()
        body = b"".join(pieces)
        fault = fault or decoder.fault
    if len(body) > most:
        body, fault = body[:most], fault or TOO_LARGE
    return body, "too_large" if fault == TOO_LARGE else fault


def _characters(document: bytes, content_type: str | None) -> tuple[str, bytes]:
    """The document in UTF-8. UTF-16 without a mark is told by its first character (XML 1.0, appendix F)."""
    if document[:2] in (b"<\0", b"h\0"):
        document = b"\xff\xfe" + document
    elif document[:2] in (b"\0<", b"\0h"):
        document = b"\xfe\xff" + document
    return charset.to_utf8(document, content_type)


# --- the forms ----------------------------------------------------------------------------------------------


def _of_xml(document: bytes, kind: str, root: int, base: str, fault: str | None, most: int) -> Sitemap:
    found = sitemapxml.read(document, kind, root, most)
    if found.base:
        base = urls.canonical_many([found.base], base)[0] or base
    error = "xml_entities" if found.entities else None
    if not found.whole:
        error = "too_many_urls" if found.more else "xml_cut"
    skipped = Counter({"no_location": found.without})
    strict = kind in ("urlset", "index")
    locs = _resolved(found.loc, base, skipped, site=_site(base) if strict else None)
    kept = [at for at, loc in enumerate(locs) if loc is not None]
    entries = Entries(
        loc=[loc for loc in locs if loc is not None],
        lastmod=[_date(found.lastmod[at]) for at in kept],
        changefreq=[_frequency(found.changefreq[at]) for at in kept],
        priority=[_priority(found.priority[at]) for at in kept],
        alternates=[_alternates(found.alternates[at], base) for at in kept],
    )
    return Sitemap(kind=kind, entries=entries, error=fault or error, skipped=+skipped)


def _of_text(document: bytes, base: str, fault: str | None, most: int) -> Sitemap:
    """One URL a line (sitemaps.org, text file). What does not begin with one is no sitemap at all."""
    head = document[:1_000].lstrip(b" \t\r\n")
    if head[:1] == b"<":
        return _nothing(fault or ("html" if sitemapxml.is_html(document) else "not_a_sitemap"))
    if head[:4].lower() != b"http" or b":" not in head[:6]:
        return _nothing(fault or "not_a_sitemap")
    lines: list[str] = []
    more = False
    for found in _LINE.finditer(document):
        line = found[0].strip()
        if not line or line[:1] == b"#":
            continue
        if len(lines) == most:
            more = True
            break
        lines.append(line.decode("utf-8", "replace"))
    if fault in ("encoding_truncated", "encoding_corrupt", "too_large") and not document.endswith(
        (b"\n", b"\r")
    ):
        del lines[-1:]  # its end is missing, and nobody can tell how much
    skipped = Counter[str]()
    locs = [loc for loc in _resolved(lines, base, skipped, site="") if loc is not None]
    nothing = [None] * len(locs)
    entries = Entries(
        loc=locs, lastmod=nothing, changefreq=nothing, priority=nothing, alternates=[()] * len(locs)
    )
    if not locs:
        return _nothing(fault or "not_a_sitemap")
    return Sitemap(
        kind="text", entries=entries, error=fault or ("too_many_urls" if more else None), skipped=+skipped
    )


def _nothing(error: str) -> Sitemap:
    none = Entries(loc=(), lastmod=(), changefreq=(), priority=(), alternates=())
    return Sitemap(kind="none", entries=none, error=error)


# --- fields -------------------------------------------------------------------------------------------------


def _resolved(
    texts: Sequence[str], base: str, skipped: Counter[str], *, site: str | None
) -> list[str | None]:
    """Canonical URLs; None for what is left out, which `skipped` counts.

    `site`: the domain of the sitemap, where a location must be absolute and may lack its scheme by mistake;
    empty where nothing but an absolute URL is one; None where a location may be relative (feeds).
    """
    found: list[str | None] = list(urls.canonical_many(texts, base))
    for at, text in enumerate(texts):
        reason = None
        if "\ufffd" in text:
            reason = "bad_characters"
        elif found[at] is None:
            reason = "url_invalid"
        elif site is not None and text[:4].lower() != "http" and _schemeless(text, site):
            reason = "no_scheme"
        if reason is not None:
            found[at] = None
            skipped[reason] += 1
    return found


def _schemeless(text: str, site: str) -> bool:
    """Whether a location seems to begin with a host, its scheme forgotten, or is no path either."""
    if not site:
        return True
    name, slash, _ = text.strip().partition("/")
    name = name.lower()
    return name == site or name.endswith("." + site) or not (slash or "?" in name)


def _site(base: str) -> str:
    return urls.domain(urls.host(base)) if base.startswith("http") else ""


def _date(text: str | None) -> int | None:
    return None if text is None else lastmod.micros(text)


def _time(micros: int) -> datetime:
    whole, part = divmod(micros, 1_000_000)
    return datetime.fromtimestamp(whole, UTC).replace(microsecond=part)


def _frequency(text: str | None) -> str | None:
    word = text.lower() if text else None
    return word if word in CHANGEFREQ else None


def _priority(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return DEFAULT_PRIORITY
    return value if math.isfinite(value) and 0.0 <= value <= 1.0 else DEFAULT_PRIORITY


def _alternates(texts: tuple[str, ...], base: str) -> tuple[str, ...]:
    if not texts:
        return ()
    return tuple(loc for loc in urls.canonical_many(texts, base) if loc is not None)
