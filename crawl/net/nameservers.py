"""Asks name servers for the addresses of one name, through c-ares.

What always holds: whatever servers send, there is an answer or a typed error within the limit given; nonsense
that is sent for one name costs no other name its answer; a server that was quick so far may take its time
over one name. It keeps nothing (crawl.net.dns does) and judges no address.

c-ares repeats a question over the configured servers, and over TCP where an answer was cut. Two things it
does to questions are undone here (docs/decisions/021-names.md has the figures): it takes an answer that is no
message for a broken connection and ends every question on it, and it asks a quick server again after a
quarter of a second, listening for answers to the last try alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import aiodns

from crawl.errors import CrawlError
from crawl.outcomes import Outcome

__all__ = ["YOUNG", "Found", "NameServers", "ResolveError"]

#: RFC 2181 8: a TTL with the highest bit set counts as 0
_TTL_BITS: Final = 2**31
#: aliases followed from one name
_MOST_ALIASES: Final = 16
#: seconds after which a question is a slow one
YOUNG: Final = 1.0
#: c-ares asks a server that was quick before again after so many seconds, then after twice as many
_FIRST_TRY: Final = 0.25
#: questions with a connection of their own at once, slow ones, and those that met nonsense: a thread each
_OWN: Final = 8
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
    """A name has no address now. `args` = (outcome, detail); `cached` and `ms` as of `dns.Resolved`."""

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


@dataclass(frozen=True, slots=True)
class Found:
    """What an answer says of a name: addresses, the shortest TTL on the way, and where the way ends."""

    addresses: tuple[str, ...]
    ttl: float
    end: str


class NameServers:
    """The servers of one event loop: `host:port` each, none for those of the system.

    `patience`: seconds that no question takes longer than.
    """

    def __init__(self, servers: Sequence[str], patience: float) -> None:
        self._servers = list(servers)
        self._patience = patience
        self._shared: aiodns.DNSResolver | None = None
        self._slow = asyncio.Semaphore(_OWN)
        self._alone = asyncio.Semaphore(_OWN)

    async def close(self) -> None:
        """Closes the sockets."""
        if self._shared is not None:
            await self._shared.close()
            self._shared = None

    async def ask(self, host: str, limit: float) -> Found:
        """IPv4 addresses, IPv6 ones where there is no other.

        Raises ResolveError, after `limit` seconds at the latest.
        """
        try:
            async with asyncio.timeout(limit):
                found = await self._ask(host, limit)
        except TimeoutError:
            raise ResolveError(Outcome.DNS_TIMEOUT, f"no answer in {limit:g} s") from None
        except aiodns.error.DNSError as error:
            code, detail = error.args[0], str(error.args[-1])
            outcome = Outcome.DNS_FAILURE if code in _NO_SUCH else Outcome.DNS_TIMEOUT
            raise ResolveError(outcome, detail) from None
        if not found.addresses:
            raise ResolveError(Outcome.DNS_FAILURE, found.end)
        return found

    async def _ask(self, host: str, limit: float) -> Found:
        if self._shared is None:
            self._shared = self._channel(2.0, self._patience)
        asked = asyncio.create_task(_either(self._shared, host))
        try:
            await asyncio.wait([asked], timeout=YOUNG)
            if not asked.done() and not self._slow.locked():
                async with self._slow:  # asked once more, by somebody who waits for one answer all the time
                    return await self._beside(host, asked, self._channel(limit, 0.0))
            await asyncio.wait([asked])
            if not _spoilt(asked):
                return asked.result()
            async with self._alone:
                return await self._beside(host, asked, self._channel(2.0, limit))
        finally:
            _drop(asked)

    async def _beside(self, host: str, asked: asyncio.Task[Found], channel: aiodns.DNSResolver) -> Found:
        """Asks again over a connection of its own; the first answer that tells anything counts."""
        alone = asyncio.create_task(_either(channel, host))
        waiting = {task for task in (asked, alone) if not task.done()}
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if _tells(task):
                        return task.result()
            return alone.result()
        finally:
            _drop(alone)
            await channel.close()

    def _channel(self, first_s: float, limit: float) -> aiodns.DNSResolver:
        """A connection: `first_s` until a server that nothing is known of is asked again."""
        return aiodns.DNSResolver(nameservers=self._servers or None, timeout=first_s, tries=_tries(limit))


def _error(task: asyncio.Task[Found]) -> Any:
    """The code of the error that a task ended with; None where it has a result."""
    error = task.exception()
    return error.args[0] if isinstance(error, aiodns.error.DNSError) else error


def _spoilt(task: asyncio.Task[Found]) -> bool:
    """What came, for this name or another one, was no message."""
    return bool(_error(task) == aiodns.error.ARES_EBADRESP)


def _tells(task: asyncio.Task[Found]) -> bool:
    error = _error(task)
    return error is None or error in _NO_SUCH or not isinstance(error, int)


def _drop(task: asyncio.Task[Found]) -> None:
    """Nobody waits for it any more, whatever it ends with."""
    if not task.done():
        task.cancel()
    elif not task.cancelled():
        task.exception()


async def _either(asking: aiodns.DNSResolver, host: str) -> Found:
    found = await _addresses(asking, host, "A")
    return found if found.addresses else await _addresses(asking, host, "AAAA")


async def _addresses(asking: aiodns.DNSResolver, host: str, kind: str) -> Found:
    try:
        return _followed(host, (await asking.query_dns(host, kind)).answer)
    except aiodns.error.DNSError as error:
        if error.args[0] == aiodns.error.ARES_ENODATA:  # the name exists, and may have the other kind
            return Found((), 0.0, "the name has no address")
        raise


def _followed(host: str, records: Iterable[Any]) -> Found:
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
        return Found(tuple(addresses[way[-1]]), min(lives[name] for name in way), "")
    if way[-1] in aliases:
        return Found((), 0.0, "its aliases come to no end")
    end = f"an alias of {way[-1]}, which has no address" if len(way) > 1 else "the name has no address"
    return Found((), 0.0, end)


def _tries(timeout: float) -> int:
    """How often c-ares must be ready to ask so that it does not give up before `timeout` does.

    A server that was quick so far is asked again after a quarter of a second, and only then after longer
    waits: with two tries a name that takes a second to resolve would never be.
    """
    tries = 1
    while _FIRST_TRY * (2**tries - 1) < timeout and tries < 10:
        tries += 1
    return tries
