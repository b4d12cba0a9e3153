"""Turns in real time: an agenda of hosts driven by one timer, inside a window and under a lease.

What always holds: no turn is given before its time (the host's, and that of the hosts joined with it), after
the deadline, or while `permit` says no; of joined hosts one at a time has its turn. A host that waits for
something else than a time (its address, room at its address) is parked: it holds no slot, and the run goes on
for it. Real times are those of the monotonic clock, anchored once, so that a step of the system clock
shortens no gap.
What a turn is good for is the caller's affair; an error in it ends the whole run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Protocol

from crawl.errors import CrawlError
from crawl.fetching.hostqueue import HostQueue
from crawl.fetching.lines import Lines
from crawl.politeness.joined import Joined

__all__ = ["SLICE", "Clock", "LeaseLost", "Turns"]

#: added to every gap: rounding to microseconds must not make a request early
_SAFETY: Final = 0.001
#: how often lease and window are looked at while nothing else happens (seconds)
_TICK: Final = 0.5
#: turns in one go before the loop may do something else
_BATCH: Final = 256
#: … and seconds: a robots.txt can be made of rules that take long to match
SLICE: Final = 0.05
#: what a host waited for that tells more than that the window was too short
_TELLING: Final = frozenset({"backoff", "retry_after", "crawl_delay", "address"})


class LeaseLost(CrawlError):
    """The right to ask this group's hosts lapsed and did not come back; open transfers were dropped."""


class Clock(Protocol):
    """Real time, and seconds that never go back."""

    def now(self) -> datetime:
        """Real time, UTC."""

    def monotonic(self) -> float:
        """Seconds from some fixed point."""


class Turns:
    """Gives turns to hosts until none has work, the window closes, or the lease is lost."""

    #: makes the host's next request; must see to it that `release` is called in the end
    turn: Callable[[HostQueue, float], None]
    #: called when a host whose time had come gets no turn after all
    missed: Callable[[HostQueue, float], None]
    #: called every now and then
    tick: Callable[[], None]
    #: called when the lease lapses: drop what is under way
    lapse: Callable[[], None]
    #: whether to go on although nobody has work: a tick may bring some
    waits: Callable[[float], bool] = staticmethod(lambda now: False)

    def __init__(
        self, slots: int, clock: Clock, deadline: float, permit: Callable[[], bool], lease_s: float
    ) -> None:
        """`deadline`: on `clock.monotonic`. `lease_s`: how long a lapsed lease may take to come back."""
        self._agenda: Lines[HostQueue, Joined] = Lines(slots, lambda queue: queue.joined, self._opens)
        self._clock = clock
        self._seconds: Callable[[], float] = clock.monotonic
        self._deadline = deadline
        self._permit = permit
        self._lease_s = lease_s
        self._parked: dict[HostQueue, str] = {}  # and what they wait for
        self._called: dict[HostQueue, str] = {}  # parked until a moment that is known by now
        self._lapsed_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._soon: asyncio.Handle | None = None
        self._ticking: asyncio.Handle | None = None
        #: hosts that may not be asked before the deadline, and why
        self.late: dict[str, str] = {}
        self.ended = False
        self.missed = lambda queue, now: None
        self._wall0 = clock.now()
        self._mono0 = clock.monotonic()
        self._wall_at, self._wall = self._mono0, self._wall0  # the last moment that was asked for

    @property
    def in_flight(self) -> int:
        """Hosts whose turn it is."""
        return self._agenda.granted

    def waiting(self) -> dict[str, int]:
        """Hosts that wait, by what they wait for.

        That is the rule of their gap (`none`: their first turn) or what `park` was told.
        """
        rules = (self._called.get(queue, queue.state.gap_rule) for queue in self._agenda.waiters())
        return dict(Counter(rules) + Counter(self._parked.values()))

    @property
    def seconds_left(self) -> float:
        """Until the window closes."""
        return max(0.0, self._deadline - self.monotonic())

    def monotonic(self) -> float:
        """Seconds now."""
        return self._seconds()

    def wall(self, at: float) -> datetime:
        """Real time of a moment of the monotonic clock."""
        if at != self._wall_at:
            self._wall_at, self._wall = at, self._wall0 + timedelta(0, at - self._mono0)
        return self._wall

    def due(self, queue: HostQueue) -> float:
        """When the host may be asked, on the monotonic clock."""
        at = self._at(queue.state.next_allowed_at)
        return at if queue.joined is None else max(at, self._opens(queue.joined))

    def _opens(self, joined: Joined) -> float:
        return self._at(joined.allowed_at)

    def _at(self, allowed: datetime | None) -> float:
        if allowed is None:
            return self._mono0
        return self._mono0 + (allowed - self._wall0).total_seconds() + _SAFETY

    async def run(self) -> None:
        """Gives turns until it is over. Raises LeaseLost, and whatever was given to `fail`."""
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._ticking = self._loop.call_soon(self._tick)
        try:
            await self._over
        finally:
            self.ended = True
            for handle in (self._ticking, self._timer, self._soon):
                if handle is not None:
                    handle.cancel()

    def fail(self, error: BaseException) -> None:
        """Ends the run with this error."""
        if not self._over.done():
            self._over.set_exception(error)

    def enlist(self, queue: HostQueue, *, others: bool = True) -> None:
        """Puts a host with work on the agenda, unless it may not be asked before the deadline.

        `others`: with those of its lanes that may go on beside this one.
        """
        if queue and queue not in self._agenda and queue not in self._parked:
            at = self.due(queue)
            if at < self._deadline and not queue.shut:
                self._agenda.put(queue, at)
            else:
                self._is_late(queue, queue.state.gap_rule)
        if queue.lanes is not None and others:
            for lane in queue.lanes.open(queue):
                self.enlist(lane, others=False)

    def _is_late(self, queue: HostQueue, what: str) -> None:
        rule = what if what in _TELLING else "window"
        self.late[queue.state.host] = "circuit_open" if queue.state.circuit == "open" else rule

    def release(self, queue: HostQueue, *, again: bool = True) -> None:
        """The host's turn is over; it waits for the next one if it has work, unless told otherwise."""
        self._agenda.release(queue)
        if again:
            self.enlist(queue)

    def park(self, queue: HostQueue, what: str) -> None:
        """The host's turn is over, and it waits for no time but for `what`, until `wake` or `call`."""
        self._agenda.release(queue)
        self._parked[queue] = what

    def wake(self, queue: HostQueue) -> None:
        """What a parked host waited for is there: it waits for its turn again."""
        if self._parked.pop(queue, None) is not None:
            self.enlist(queue)

    def call(self, queue: HostQueue, at: float) -> bool:
        """A parked host may go at `at`. False: its own time comes later than that, or the deadline first."""
        what = self._parked.pop(queue, None)
        if what is None:
            return False
        if at >= self._deadline:
            self._is_late(queue, what)
            return False
        if self.due(queue) > at:
            self.enlist(queue)
            return False
        self._called[queue] = what
        self._agenda.put(queue, at)
        return True

    def go_on(self) -> None:
        """To be called after `release` and `enlist`, outside a turn: sees to the next turn."""
        if self._agenda.granted or self._agenda.waiting:
            self._schedule(self._agenda.next_at())
        else:
            self._schedule(self._mono0)

    def give(self) -> None:
        """`go_on`, with those turns given at once that are due."""
        if self._lapsed_at is None:
            self._pump()

    def _tick(self) -> None:
        self._ticking = self._loop.call_later(_TICK, self._tick)
        try:
            self.tick()
        except Exception as error:  # noqa: BLE001 - a callback of the loop has nobody above it
            self.fail(error)
        self._pump()

    def _schedule(self, at: float | None) -> None:
        """Have turns given when `at` has come."""
        if at is None or self._soon is not None or self._lapsed_at is not None or self.ended:
            return
        wait = at - self.monotonic()
        if wait <= 0:
            self._soon = self._loop.call_soon(self._pump)
        elif self._timer is None or at < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = at
            self._timer = self._loop.call_later(wait, self._timed)

    def _timed(self) -> None:
        self._timer = None
        self._pump()

    def _pump(self) -> None:
        """Gives turns to every host whose time has come."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self.ended:
            return
        try:
            self._give_turns()
        except Exception as error:  # noqa: BLE001 - a callback of the loop has nobody above it
            self.fail(error)

    def _give_turns(self) -> None:
        until = self.monotonic() + SLICE
        for _ in range(_BATCH):
            now = self.monotonic()
            if now > until or not self._may_go_on(now):
                break
            queue = self._agenda.claim(now)
            if queue is None:
                break
            self._called.pop(queue, None)
            if self.due(queue) > now:  # it was told to wait longer while it waited
                self.release(queue)
                self.missed(queue, now)
            else:
                self.turn(queue, now)
        if self._agenda.granted or self._agenda.waiting:
            self._schedule(self._agenda.next_at())
        elif not self._parked and not self._over.done() and not self._waits():
            self._over.set_result(None)

    def _waits(self) -> bool:
        now = self.monotonic()
        return now < self._deadline and self.waits(now)

    def _may_go_on(self, now: float) -> bool:
        """Whether anything may be dispatched now; acts on a closed window and on a lapsed lease."""
        if now >= self._deadline:
            for waiting in (self._parked, self._called):
                for queue, what in waiting.items():
                    self._is_late(queue, what)
                waiting.clear()
            self._agenda.clear()
            return False
        if self._permit():
            self._lapsed_at = None
            return True
        if self._lapsed_at is None:
            self._lapsed_at = now
            self.lapse()
        elif now - self._lapsed_at >= self._lease_s:
            self.fail(LeaseLost("the lease on this host group lapsed; what was asked is in the journal"))
        return False
