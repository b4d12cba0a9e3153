"""How a host name becomes addresses: the operator's own list first, then name servers.

What always holds: one question at a time per name, whoever asks; an answer is used as long as its TTL says
(0: by those who were waiting for it, and no one later), at most `LONGEST_TTL`, and a failure for
`negative_ttl`; no more than `in_flight` questions are younger than a second; every question ends within
`timeout`, with addresses or a typed error. Where a name has several addresses, their order is the host's own
and stays the same however the server turns them, so that kept connections serve and a host belongs to one
address. What the operator lists (crawl.net.listed) is never asked about. An IP address is its own answer.

Name servers are asked by crawl.net.nameservers; c-ares, below that, caches by TTL as well. It judges no
address (crawl.net.egress does) and opens no connection to one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import inf
from types import TracebackType
from typing import Final

from crawl import policy
from crawl.net.listed import Listed, literal
from crawl.net.nameservers import YOUNG, Found, NameServers, ResolveError

__all__ = ["LONGEST_TTL", "ResolveError", "Resolved", "Resolver"]

#: no answer is trusted longer than this (seconds), whatever its TTL: a day, like a copy of robots.txt. A name
#: that moves must be found again, and a lie must end
LONGEST_TTL: Final = 86_400.0
#: addresses of one name that are used; an answer over TCP has room for thousands
_MOST_ADDRESSES: Final = 32
#: names remembered; the oldest go first
_REMEMBERED: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Addresses of one name: at least one, in the order to try them.

    `expires`: when it must be asked again, on the resolver's clock (infinite for what nobody was asked). `ms`
    and `cached` (answered from memory): how this answer was got, both None for an address, which is its own.
    `note`: what of the server's answer was not used.
    """

    addresses: tuple[str, ...]
    ttl_s: float
    expires: float
    cached: bool | None
    ms: float | None
    note: str | None = None


@dataclass(slots=True)
class _Kept:
    until: float
    answer: Resolved | ResolveError


class Resolver:
    """Resolves names for one event loop. `clock` gives monotonic seconds."""

    def __init__(self, dns: policy.Dns, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises SettingsError for an address or range in `[dns] hosts` that is none."""
        self._clock = clock
        self._timeout = dns.timeout.total_seconds()
        self._negative = dns.negative_ttl.total_seconds()
        self._ahead = dns.prefetch
        self._listed = Listed(dns)
        self._open = asyncio.Semaphore(dns.in_flight)
        self._kept: dict[str, _Kept] = {}
        self._flights: dict[str, asyncio.Task[Resolved]] = {}
        self._asking = NameServers(dns.servers, self._timeout)

    async def __aenter__(self) -> Resolver:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Drops open questions and the sockets behind them."""
        for flight in self._flights.values():
            flight.cancel()
        await asyncio.gather(*self._flights.values(), return_exceptions=True)
        await self._asking.close()

    def known(self, host: str) -> Resolved | ResolveError | None:
        """The answer at hand without asking anybody, None where somebody must be asked."""
        kept = self._kept.get(host)
        if kept is not None and self._clock() < kept.until:
            return kept.answer
        local = self._local(host)
        if local is not None:
            self._keep(host, local, inf)
        return local

    def remember(self, host: str, addresses: Iterable[str], ttl_s: float) -> None:
        """Takes over an answer that is still good for `ttl_s` seconds; what the operator lists stands."""
        addresses = tuple(addresses)
        if addresses and ttl_s > 0 and self.known(host) is None:
            ttl_s = min(ttl_s, LONGEST_TTL)
            until = self._clock() + ttl_s
            answer = Resolved(addresses=addresses, ttl_s=ttl_s, expires=until, cached=True, ms=0.0)
            self._keep(host, answer, ttl_s)

    async def resolve(self, host: str, *, within: float = inf) -> Resolved:
        """Addresses of `host` (lower-case, ASCII). Raises ResolveError.

        `within`: seconds this question may take, where `timeout` allows more.
        """
        answer = self.known(host)
        if answer is None:
            flight = self._flights.get(host)
            if flight is None:
                flight = self._flights[host] = asyncio.create_task(self._ask(host, within))
                flight.add_done_callback(lambda _: self._flights.pop(host, None))
            # shielded: one asker that gives up must not take the answer from the others
            return await asyncio.shield(flight)
        if isinstance(answer, ResolveError):
            raise ResolveError(answer.outcome, answer.detail, cached=True)
        return answer

    async def prefetch(self, hosts: Iterable[str]) -> None:
        """Asks for names that will be needed soon, in this order, a few at a time.

        What comes of it is kept for those who need it, failures too. `hosts` is drawn from as questions are
        answered.
        """
        rest = iter(hosts)

        async def some() -> None:
            for host in rest:
                if self.known(host) is None:
                    with suppress(ResolveError):
                        await self.resolve(host)

        await asyncio.gather(*(some() for _ in range(self._ahead)))

    def _keep(self, host: str, answer: Resolved | ResolveError, seconds: float) -> None:
        self._kept.pop(host, None)
        if seconds <= 0:
            return
        while len(self._kept) >= _REMEMBERED:
            del self._kept[next(iter(self._kept))]
        self._kept[host] = _Kept(self._clock() + seconds, answer)

    def _local(self, host: str) -> Resolved | None:
        own = literal(host)
        if own is not None:
            return Resolved(addresses=(own,), ttl_s=inf, expires=inf, cached=None, ms=None)
        listed = self._listed.address(host)
        if listed is None:
            return None
        return Resolved(addresses=(listed,), ttl_s=inf, expires=inf, cached=True, ms=0.0)

    async def _ask(self, host: str, within: float) -> Resolved:
        limit = min(self._timeout, within)
        async with self._open:
            started = self._clock()
            question = asyncio.create_task(self._asking.ask(host, limit))
            try:
                await asyncio.wait([question], timeout=YOUNG)
            except asyncio.CancelledError:
                question.cancel()
                raise
        try:  # a slow one lets another begin: silent servers hold nobody up for long
            return self._answered(host, started, await question)
        except ResolveError as error:
            self._keep(host, ResolveError(error.outcome, error.detail, cached=True), self._negative)
            error.ms = (self._clock() - started) * 1e3
            raise

    def _answered(self, host: str, started: float, found: Found) -> Resolved:
        notes = []
        addresses = sorted(dict.fromkeys(found.addresses), key=lambda address: _rank(host, address))
        if len(addresses) > _MOST_ADDRESSES:
            notes.append(f"{_MOST_ADDRESSES} of {len(addresses)} addresses used")
        ttl = found.ttl
        if ttl > LONGEST_TTL:
            notes.append(f"TTL {ttl:.0f} s cut to {LONGEST_TTL:.0f} s")
            ttl = LONGEST_TTL
        now = self._clock()
        resolved = Resolved(
            addresses=tuple(addresses[:_MOST_ADDRESSES]),
            ttl_s=ttl,
            expires=now + ttl,
            cached=False,
            ms=(now - started) * 1e3,
            note="; ".join(notes) or None,
        )
        self._keep(host, replace(resolved, cached=True, ms=0.0), ttl)
        return resolved


def _rank(host: str, address: str) -> bytes:
    """The place of an address among those of its host (rendezvous hashing, Thaler and Ravishankar 1998)."""
    return blake2b(f"{host} {address}".encode(), digest_size=8).digest()
