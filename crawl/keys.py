"""Keys: 64-bit names of URLs, hosts and texts, made with the lake's secret.

A URL's key is 16 bits of its domain, then 48 bits of its key form, so that a domain's URLs lie in one range
(`Keyer.domain_range`); a host's key begins with the same 16 bits. Keys are signed, as the tables hold them.

What always holds: the same secret and rules give the same keys on every machine; without the secret nobody
can make two URLs collide on purpose (keyed BLAKE2b, RFC 7693). Expected collisions among n URLs in domains of
n_d URLs each: n^2/2^65 + sum of n_d^2/2^49.
What it does not do: it keeps no secret safe beyond refusing to be pickled or printed; each process reads it
itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt

from crawl.errors import UsageError
from crawl.policy import Identity
from crawl.url import domain, key_form, split_many

__all__ = ["Keyer"]

_DOMAINS_KEPT: Final = 262_144
_LOW48: Final = (1 << 48) - 1


class Keyer:
    """Makes keys with one secret under one set of identity rules. Not pickled: a secret does not travel."""

    __slots__ = ("_chain", "_domain", "_host", "_identity", "_prefixes", "_text", "_url")

    def __init__(self, secret: bytes, identity: Identity = Identity()) -> None:  # noqa: B008 - a frozen value
        """`secret`: 16 to 64 bytes. Raises UsageError for another length."""
        if not 16 <= len(secret) <= 64:
            raise UsageError(f"a lake's secret has 16 to 64 bytes, this one {len(secret)}")
        self._identity = identity
        # `person` keeps the uses apart: a host never gets the hash of a text that reads the same
        self._domain = blake2b(key=secret, digest_size=2, person=b"domain")
        self._url = blake2b(key=secret, digest_size=6, person=b"url")
        self._host = blake2b(key=secret, digest_size=6, person=b"host")
        self._text = blake2b(key=secret, digest_size=8, person=b"text")
        self._chain = blake2b(key=secret, digest_size=8, person=b"chain")
        self._prefixes: dict[str, bytes] = {}

    def url_keys(self, urls: Sequence[str], domains: Sequence[str]) -> npt.NDArray[np.int64]:
        """Keys of canonical URLs; `domains` are theirs (`crawl.url.split_many`), in the same order."""
        fresh = self._url.copy
        prefixes = {name: self._prefix(name) for name in set(domains)}
        identity = self._identity
        altered = bool(identity.strip_slash or identity.strip_www)
        parts = []
        for url, name in zip(urls, domains, strict=True):
            if altered or "?" in url or "%" in url:  # else the key form is the URL itself
                url = key_form(url, identity)
            state = fresh()
            state.update(url.encode())
            parts.append(prefixes[name])
            parts.append(state.digest())
        return np.frombuffer(b"".join(parts), dtype=">i8").astype(np.int64)

    def url_key(self, url: str) -> int:
        """Key of one canonical URL."""
        return int(self.url_keys([url], split_many([url])[2])[0])

    def host_key(self, host: str) -> int:
        """Key of a host; it lies in its domain's range."""
        return _signed(self._prefix(domain(host)) + _digest(self._host, host.encode()))

    def document_key(self, text: str) -> int:
        """Key of a text: equal texts have equal keys."""
        return _signed(_digest(self._text, text.encode("utf-8", "surrogatepass")))

    def chain_id(self, url_key: int, round: int) -> int:
        """Name of the redirect chain that begins at that URL in that round."""
        return _signed(_digest(self._chain, b"%d %d" % (url_key, round)))

    def domain_range(self, domain: str) -> tuple[int, int]:
        """Smallest and largest key a URL of that domain can have, both included."""
        low = _signed(self._prefix(domain) + bytes(6))
        return low, low + _LOW48

    def _prefix(self, name: str) -> bytes:
        found = self._prefixes.get(name)
        if found is None:
            if len(self._prefixes) >= _DOMAINS_KEPT:
                self._prefixes.clear()  # as cheap to make again as to keep in order
            found = self._prefixes[name] = _digest(self._domain, name.encode())
        return found

    def __repr__(self) -> str:
        return f"Keyer(secret=<hidden>, identity={self._identity!r})"

    def __reduce__(self) -> NoReturn:
        raise UsageError("a Keyer holds the lake's secret and is not pickled: make one where it is needed")


def _digest(state: blake2b, data: bytes) -> bytes:
    fresh = state.copy()
    fresh.update(data)
    return fresh.digest()


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)
