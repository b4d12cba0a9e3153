"""How a host name becomes addresses: the operator's own list first, then name servers.

What always holds: one question at a time per name, whoever asks; an answer is used as long as its TTL says
(0: by those who were waiting for it, and no one later), at most `LONGEST_TTL`, and a failure for
`negative_ttl`; no more than `in_flight` questions are younger than a second; every question ends within
`timeout`, with addresses or a typed error. Where a name has several addresses, their order is the host's own
and stays the same however the server turns them, so that kept connections serve and a host belongs to one
address. What the operator lists (crawl.listed) is never asked about. An IP address is its own answer.

c-ares asks, repeats over the configured servers and over TCP, and caches by TTL as well; what it lacks is
here. It judges no address (crawl.egress does) and opens no connection to one.
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
from typing import Any, Final

import aiodns

from crawl import policy
from crawl.errors import CrawlError
from crawl.listed import Listed, literal
from crawl.outcomes import Outcome

__all__ = ["LONGEST_TTL", "ResolveError", "Resolved", "Resolver"]

#: no answer is trusted longer than this (seconds), whatever its TTL: a day, like a copy of robots.txt. A name
#: that moves must be found again, and a lie must end
LONGEST_TTL: Final = 86_400.0
#: RFC 2181 8: a TTL with the highest bit set counts as 0
_TTL_BITS: Final = 2**31
#: addresses of one name that are used; an answer over TCP has room for thousands
_MOST_ADDRESSES: Final = 32
#: aliases followed from one name
_MOST_ALIASES: Final = 16
#: names remembered; the oldest go first
_REMEMBERED: Final = 200_000
#: c-ares repeats a question to a server that was quick before after so many seconds, then after twice as many
_FIRST_TRY: Final = 0.25
#: seconds after which an open question lets another one begin: silent servers hold nobody up for long
_YOUNG: Final = 1.0
#: questions asked over a connection of their own at once: each takes a thread and an inotify instance
_ALONE: Final = 16
#: RFC 1035, RFC 2308: the name or the record does not exist; everything else may pass
_NO_SUCH: Final = frozenset(
    {
        aiodns.error.ARES_ENOTFOUND,
        aiodns.error.ARES_ENODATA,
        aiodns.error.ARES_EBADNAME,
        aiodns.error.ARES_EBADQUERY,
    }
)


class ResolveError(CrawlError):
    """A name has no address now. `args` = (outcome, detail); `cached` and `ms` as of `Resolved`."""

    def __init__(self, outcome: Outcome, detail: str, *, cached: bool = False, ms: float = 0.0) -> None:
        super().__init__(outcome, detail)
        self.cached = cached
        self.ms = ms

    @property
    def outcome(self) -> Outcome:
        """DNS_FAILURE (there is none) or DNS_TIMEOUT (it may pass)."""
        return Outcome(self.args[0])

    @property
    def detail(self) -> str:
        """What the name server, or its silence, said."""
        return str(self.args[1])


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
        self._servers = list(dns.servers)
        self._timeout = dns.timeout.total_seconds()
        self._negative = dns.negative_ttl.total_seconds()
        self._ahead = dns.prefetch
        self._listed = Listed(dns)
        self._open = asyncio.Semaphore(dns.in_flight)
        self._alone = asyncio.Semaphore(_ALONE)
        self._kept: dict[str, _Kept] = {}
        self._flights: dict[str, asyncio.Task[Resolved]] = {}
        self._asking: aiodns.DNSResolver | None = None

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
        if self._asking is not None:
            await self._asking.close()
            self._asking = None

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
            query = asyncio.create_task(self._query(host))
            try:
                await asyncio.wait([query], timeout=min(limit, _YOUNG))
            except asyncio.CancelledError:
                query.cancel()
                raise
        try:
            found = await asyncio.wait_for(query, limit - min(limit, _YOUNG))
        except TimeoutError:
            detail = f"no answer in {limit:g} s"
            raise self._failed(host, started, Outcome.DNS_TIMEOUT, detail) from None
        except aiodns.error.DNSError as error:
            code, detail = error.args[0], str(error.args[-1])
            outcome = Outcome.DNS_FAILURE if code in _NO_SUCH else Outcome.DNS_TIMEOUT
            raise self._failed(host, started, outcome, detail) from None
        if not found.addresses:
            raise self._failed(host, started, Outcome.DNS_FAILURE, found.end)
        return self._answered(host, started, found)

    def _answered(self, host: str, started: float, found: _Found) -> Resolved:
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

    def _failed(self, host: str, started: float, outcome: Outcome, detail: str) -> ResolveError:
        self._keep(host, ResolveError(outcome, detail, cached=True), self._negative)
        return ResolveError(outcome, detail, ms=(self._clock() - started) * 1e3)

    async def _query(self, host: str) -> _Found:
        """What the name servers say, asked again alone where nonsense came.

        Questions share a connection, and c-ares ends all of them when one answer over it is no message: a
        name whose server has nonsense sent must cost no other name its answer.
        """
        if self._asking is None:
            self._asking = self._channel()
        try:
            return await self._either(self._asking, host)
        except aiodns.error.DNSError as error:
            if error.args[0] != aiodns.error.ARES_EBADRESP:
                raise
        async with self._alone:
            channel = self._channel()
            try:
                return await self._either(channel, host)
            finally:
                await channel.close()

    def _channel(self) -> aiodns.DNSResolver:
        tries = _tries(self._timeout)
        return aiodns.DNSResolver(nameservers=self._servers or None, timeout=2.0, tries=tries)

    async def _either(self, asking: aiodns.DNSResolver, host: str) -> _Found:
        """IPv4 addresses, IPv6 ones where there is no other."""
        found = await self._addresses(asking, host, "A")
        return found if found.addresses else await self._addresses(asking, host, "AAAA")

    @staticmethod
    async def _addresses(asking: aiodns.DNSResolver, host: str, kind: str) -> _Found:
        try:
            return _followed(host, (await asking.query_dns(host, kind)).answer)
        except aiodns.error.DNSError as error:
            if error.args[0] == aiodns.error.ARES_ENODATA:  # the name exists, and may have the other kind
                return _Found((), 0.0, "the name has no address")
            raise


@dataclass(frozen=True, slots=True)
class _Found:
    """What an answer says of a name: addresses, the shortest TTL on the way, and where the way ends."""

    addresses: tuple[str, ...]
    ttl: float
    end: str


def _followed(host: str, records: Iterable[Any]) -> _Found:
    """The addresses of a name or of what it is an alias of, as far as the answer leads (RFC 1034 3.6.2).

    Addresses of other names in the answer are nobody's business. The shortest life on the way counts.
    """
    aliases: dict[str, str] = {}
    addresses: dict[str, list[str]] = {}
    lives: dict[str, float] = {}
    for record in records:
        owner = record.name.rstrip(".").lower()
        if (alias := getattr(record.data, "cname", None)) is not None:
            aliases.setdefault(owner, alias.rstrip(".").lower())
        elif (address := getattr(record.data, "addr", None)) is not None:
            addresses.setdefault(owner, []).append(address)
        else:
            continue
        lives[owner] = min(lives.get(owner, inf), float(record.ttl) if record.ttl < _TTL_BITS else 0.0)
    way = [host.rstrip(".").lower()]
    while way[-1] not in addresses and way[-1] in aliases and len(way) <= _MOST_ALIASES:
        way.append(aliases[way[-1]])
    if way[-1] in addresses:
        return _Found(tuple(addresses[way[-1]]), min(lives[name] for name in way), "")
    if way[-1] in aliases:
        return _Found((), 0.0, "its aliases come to no end")
    end = f"an alias of {way[-1]}, which has no address" if len(way) > 1 else "the name has no address"
    return _Found((), 0.0, end)


def _rank(host: str, address: str) -> bytes:
    """The place of an address among those of its host (rendezvous hashing, Thaler and Ravishankar 1998)."""
    return blake2b(f"{host} {address}".encode(), digest_size=8).digest()


def _tries(timeout: float) -> int:
    """How often c-ares must be ready to ask so that it does not give up before `timeout` does.

    A server that was quick so far is asked again after a quarter of a second, and only then after longer
    waits: with two tries a name that takes a second to resolve would never be.
    """
    tries = 1
    while _FIRST_TRY * (2**tries - 1) < timeout and tries < 10:
        tries += 1
    return tries
