"""How a host name becomes addresses: the operator's own list first, then name servers.

What always holds: one question at a time per name, whoever asks; answers are kept as long as their TTL says
and failures for `negative_ttl` (c-ares keeps answers by their TTL as well); what the operator lists (like
/etc/hosts, with wildcards and ranges) is never asked about. An IP address is its own answer. It judges no
address (crawl.egress does) and opens no connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from types import TracebackType
from typing import Final

import aiodns

from crawl import policy
from crawl.errors import CrawlError, SettingsError
from crawl.outcomes import Outcome

__all__ = ["ResolveError", "Resolved", "Resolver"]

#: no answer is trusted longer than this, nor asked for again sooner
_LONGEST: Final = 86_400.0
_SHORTEST: Final = 5.0
#: names remembered; the oldest go first
_REMEMBERED: Final = 200_000
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
    """A name has no address now. `args` = (outcome, detail)."""

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
    """Addresses of one name: at least one, in the order to try them."""

    addresses: tuple[str, ...]
    ttl_s: float
    cached: bool
    ms: float


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
        self._exact, self._suffixes = _listed(dns)
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
            self._keep(host, local, _LONGEST)
        return local

    def remember(self, host: str, addresses: Iterable[str], ttl_s: float) -> None:
        """Takes over an answer that is still good for `ttl_s` seconds; what the operator lists stands."""
        addresses = tuple(addresses)
        if addresses and ttl_s > 0 and self.known(host) is None:
            ttl_s = min(ttl_s, _LONGEST)
            self._keep(host, Resolved(addresses=addresses, ttl_s=ttl_s, cached=True, ms=0.0), ttl_s)

    async def resolve(self, host: str) -> Resolved:
        """Addresses of `host` (lower-case, ASCII). Raises ResolveError."""
        answer = self.known(host)
        if answer is None:
            flight = self._flights.get(host)
            if flight is None:
                flight = self._flights[host] = asyncio.create_task(self._ask(host))
                flight.add_done_callback(lambda _: self._flights.pop(host, None))
            # shielded: one asker that gives up must not take the answer from the others
            return await asyncio.shield(flight)
        if isinstance(answer, ResolveError):
            raise ResolveError(*answer.args)
        return answer

    def _keep(self, host: str, answer: Resolved | ResolveError, seconds: float) -> None:
        self._kept.pop(host, None)
        while len(self._kept) >= _REMEMBERED:
            del self._kept[next(iter(self._kept))]
        self._kept[host] = _Kept(self._clock() + seconds, answer)

    def _local(self, host: str) -> Resolved | None:
        bare = host.removeprefix("[").removesuffix("]")
        try:
            address = str(ipaddress.ip_address(bare))
        except ValueError:
            listed = self._exact.get(host)
            name = host
            while listed is None and (dot := name.find(".")) >= 0:
                name = name[dot + 1 :]
                listed = self._suffixes.get(name)
            if listed is None:
                # RFC 6761: never asked of a name server
                if host != "localhost" and not host.endswith(".localhost"):
                    return None
                listed = ipaddress.ip_network("127.0.0.1")
            address = _spread(host, listed)
        return Resolved(addresses=(address,), ttl_s=_LONGEST, cached=True, ms=0.0)

    async def _ask(self, host: str) -> Resolved:
        started = self._clock()
        try:
            async with asyncio.timeout(self._timeout):
                answer, ttl = await self._query(host)
        except TimeoutError:
            raise self._failed(host, Outcome.DNS_TIMEOUT, f"no answer in {self._timeout:g} s") from None
        except aiodns.error.DNSError as error:
            code, detail = error.args[0], str(error.args[-1])
            outcome = Outcome.DNS_FAILURE if code in _NO_SUCH else Outcome.DNS_TIMEOUT
            raise self._failed(host, outcome, detail) from None
        if not answer:
            raise self._failed(host, Outcome.DNS_FAILURE, "the name has no address")
        ttl = min(max(ttl, _SHORTEST), _LONGEST)
        ms = (self._clock() - started) * 1e3
        resolved = Resolved(addresses=answer, ttl_s=ttl, cached=False, ms=ms)
        self._keep(host, replace(resolved, cached=True, ms=0.0), ttl)
        return resolved

    def _failed(self, host: str, outcome: Outcome, detail: str) -> ResolveError:
        error = ResolveError(outcome, detail)
        self._keep(host, error, self._negative)
        return error

    async def _query(self, host: str) -> tuple[tuple[str, ...], float]:
        """IPv4 addresses, IPv6 ones where there is no other, and the shortest TTL on the way."""
        if self._asking is None:
            self._asking = aiodns.DNSResolver(nameservers=self._servers or None, timeout=2.0, tries=2)
        try:
            found = await self._addresses(self._asking, host, "A")
        except aiodns.error.DNSError as error:
            if error.args[0] != aiodns.error.ARES_ENODATA:
                raise
            found = (), 0.0
        return found if found[0] else await self._addresses(self._asking, host, "AAAA")

    @staticmethod
    async def _addresses(asking: aiodns.DNSResolver, host: str, kind: str) -> tuple[tuple[str, ...], float]:
        result = await asking.query_dns(host, kind)
        # CNAMEs stand in the same answer; the shortest life of the chain counts
        addresses = tuple(record.data.addr for record in result.answer if hasattr(record.data, "addr"))
        return addresses, float(min((record.ttl for record in result.answer), default=0))


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _listed(dns: policy.Dns) -> tuple[dict[str, _Network], dict[str, _Network]]:
    """`[dns] hosts` as exact names and as suffixes (of `*.suffix`)."""
    exact: dict[str, _Network] = {}
    suffixes: dict[str, _Network] = {}
    for name, text in dns.hosts.items():
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            raise SettingsError(f"[dns] hosts: {name!r} leads to {text!r}, no address or range") from None
        if name.startswith("*."):
            suffixes[name[2:].lower()] = network
        else:
            exact[name.lower()] = network
    return exact, suffixes


def _spread(host: str, network: _Network) -> str:
    """The host's own address in the range: the same on every machine, the first and last left out."""
    room = network.num_addresses - 2
    if room <= 0:
        return str(network.network_address)
    place = int.from_bytes(blake2b(host.encode(), digest_size=8).digest()[:4], "big") % room
    return str(network.network_address + 1 + place)
