"""Where a host's next request goes: its name resolved, its addresses judged, one of them pinned.

What always holds: only an address that the guard permits is ever pinned, with its port, whatever else the
same answer says; an answer serves the requests of the turn it was asked for, and later ones while its TTL
lasts; a host whose name is being resolved holds no slot. What was learnt of a name goes into its host's row.
It sends nothing, and leaves it to the transport to judge the address once more on the connection itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import replace
from math import isfinite
from typing import Any, Final

from crawl.fetching.hostqueue import HostQueue
from crawl.fetching.turns import Turns
from crawl.net.dns import Resolved, ResolveError, Resolver
from crawl.net.egress import Guard
from crawl.remembered import remembered

__all__ = ["Addressing"]

#: refused addresses that are told by name
_TOLD: Final = 8
#: names are asked for so long before their host's turn comes (seconds): longer, and short-lived answers are
#: gone by then
_AHEAD: Final = 30.0


class Addressing:
    """The names of one group's hosts. `patience`: seconds that a request may take, its name included."""

    def __init__(self, resolver: Resolver, guard: Guard, turns: Turns, patience: float) -> None:
        self._resolver = resolver
        self._guard = guard
        self._turns = turns
        self._patience = patience
        self._fresh: dict[HostQueue, Resolved | ResolveError] = {}  # answers that wait for their host's turn
        self._noted: dict[HostQueue, Resolved] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Drops open questions."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def prefetch(self, queues: Iterable[HostQueue]) -> None:
        """Has the names of these hosts resolved before their turn comes, the next ones due first."""
        waiting = sorted(queues, key=self._turns.due)
        self._start(self._resolver.prefetch(self._soon(waiting)))

    def _soon(self, waiting: list[HostQueue]) -> Iterator[str]:
        for queue in waiting:
            if self._turns.due(queue) > self._turns.monotonic() + _AHEAD:
                return
            yield queue.state.host

    def known(self, queue: HostQueue) -> Resolved | ResolveError | None:
        """What the host's name leads to, for this turn; None if somebody must be asked: `look_up`."""
        found = self._fresh.pop(queue, None) or self._resolver.known(queue.state.host)
        if isinstance(found, Resolved) and isfinite(found.expires) and self._noted.get(queue) is not found:
            self._noted[queue] = found
            until = self._turns.wall(found.expires)
            if (queue.state.addresses, queue.state.addresses_expire_at) != (found.addresses, until):
                queue.state = replace(queue.state, addresses=found.addresses, addresses_expire_at=until)
                queue.touched = True
                if queue.lanes is not None:
                    queue.lanes.tell(queue)
        return found

    def keep(self, queue: HostQueue, found: Resolved | ResolveError) -> None:
        """The turn was not used after all: the answer serves the next one, however soon it expires."""
        self._fresh[queue] = found

    def look_up(self, queue: HostQueue) -> None:
        """Ends the host's turn, and has it take another one when its name is resolved, or is not."""
        self._turns.park(queue, "name")
        self._start(self._resolve(queue))

    def pin(self, queue: HostQueue, origin: str, found: Resolved) -> tuple[str | None, str | None]:
        """The address to ask: the host's next permitted one after as many faults; and a note.

        Without one that is permitted the note says which were refused, else what of the answer was not used.
        """
        port = _port(origin)
        if len(found.addresses) == 1 and self._guard.permits_port(found.addresses[0], port):
            return found.addresses[0], found.note
        permitted = [ip for ip in found.addresses if self._guard.permits_port(ip, port)]
        if len(permitted) == len(found.addresses):
            return permitted[queue.faults % len(permitted)], found.note
        others = [ip for ip in found.addresses if ip not in permitted]
        refused = ", ".join(f"{ip} port {port}" if self._guard.permits(ip) else ip for ip in others[:_TOLD])
        if len(others) > _TOLD:
            refused += f" and {len(others) - _TOLD} more"
        if not permitted:
            return None, refused
        note = f"{found.note}; {refused} refused" if found.note else f"{refused} refused"
        return permitted[queue.faults % len(permitted)], note

    async def _resolve(self, queue: HostQueue) -> None:
        try:
            self._fresh[queue] = await self._resolver.resolve(queue.state.host, within=self._patience)
        except ResolveError as error:
            self._fresh[queue] = error
        self._turns.wake(queue)
        self._turns.go_on()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._turns.fail(error)  # a task of its own has nobody above it


@remembered(65_536)
def _port(origin: str) -> int:
    """Port of an origin."""
    scheme, _, rest = origin.partition("://")
    name, colon, port = rest.rpartition(":")
    if colon and port.isdigit() and name:
        return int(port)
    return 443 if scheme == "https" else 80
