"""A host that may have several requests open, by the operator's word: as many lanes, each with a clock.

A lane is a queue of its own on the agenda, but all of a host share what is to be asked. What always holds:
each lane keeps the whole rule (its next request starts no earlier than the end of its last one plus the gap
in force), and what is learnt of the host on one holds on all: its latency and addresses, its Crawl-delay, a
back-off, an answer 429 or 503, an open circuit. A host that states a Crawl-delay, or whose last answer was a
fault, is asked on one lane at a time: nothing starts while anything is open, nor before the wait is over.
What was under way when a fault came in was sent before anybody knew: it counts as that fault if it fails as
well, and clears nothing if it does not.
It asks nothing, writes nothing and reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from crawl.fetching.hostqueue import HostQueue
from crawl.policy import Politeness
from crawl.politeness.clock import HOST_FAULTS, HostState
from crawl.records import Fetch

__all__ = ["Lanes", "folded", "lanes_of"]

_MS: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class _Wait:
    """No lane is asked before `until`: the end of a request and a gap of `delay_ms` by `rule`."""

    until: datetime
    delay_ms: float
    rule: str


class Lanes:
    """The lanes of one host in one round: `first`, which has its state and what to ask, and more like it."""

    def __init__(self, first: HostQueue, number: int) -> None:
        first.lanes, first.lane = self, 0
        #: all of them, by number
        self.all = [first]
        for lane in range(1, number):
            shared = HostQueue(first.state, first.robots, first.hops, first.planned, first.delays)
            shared.lanes, shared.lane = self, lane
            self.all.append(shared)
        self._under_way: dict[HostQueue, Sequence[int]] = {}
        self._last_end: datetime | None = None
        self._wait: _Wait | None = None
        #: the end of the newest fault, and what was known before it
        self._fault_end: datetime | None = None
        self._before: dict[str, Any] = {}

    @property
    def narrow(self) -> bool:
        """One request at a time: the host states a Crawl-delay, or its last answer was a fault."""
        return _narrow(self.all[0].state)

    def open(self, lane: HostQueue) -> Sequence[HostQueue]:
        """The lanes that may go on when `lane` may."""
        return (lane,) if self.narrow else self.all

    def admits(self) -> bool:
        """Whether a lane may begin a request now, as far as that depends on the others."""
        return not self._under_way or not self.narrow

    def of(self, record: Fetch) -> HostQueue:
        """The lane on which a request was made."""
        return self.all[record.lane or 0]

    def began(self, lane: HostQueue, keys: Sequence[int]) -> None:
        """A request of this lane is under way; `keys`: what is to be forgotten should it be given up."""
        self._under_way[lane] = keys

    def ended(self, lane: HostQueue) -> Sequence[int]:
        """It is not under way any more: what `began` was told."""
        return self._under_way.pop(lane, ())

    def settling(self, lane: HostQueue) -> Callable[..., None]:
        """`HostQueue.settle` of a lane, for all of them."""
        return partial(self._settle, lane)

    def _settle(
        self, lane: HostQueue, record: Fetch, policy: Politeness, *, public: bool, unit: float, fault: bool
    ) -> None:
        self.ended(lane)
        before, was_narrow = lane.state, self.narrow
        failed = fault and record.outcome in HOST_FAULTS
        late = self._fault_end is not None and record.started_at < self._fault_end
        if failed and late:  # it is the same fault once more
            lane.state = before.but(**self._before)
        lane.settle(record, policy, public=public, unit=unit, fault=fault)
        if late:
            lane.state = lane.state.but(**_worse(before, lane.state) if failed else _trouble(before))
        elif failed:
            self._fault_end, self._before = record.finished_at, _trouble(before)
        self._last_end = record.finished_at
        wait, state = self._wait, lane.state
        if wait is not None and _earlier(state, wait):  # it was told while this was under way
            longer = (wait.until - record.finished_at) / _MS
            state = lane.state = state.but(next_allowed_at=wait.until, delay_ms=longer, gap_rule=wait.rule)
        if (was_narrow or _narrow(state)) and state.next_allowed_at is not None:
            self._all_wait(_Wait(state.next_allowed_at, state.delay_ms, state.gap_rule))
        self.tell(lane)

    def delayed(self, lane: HostQueue) -> None:
        """The host obeys another robots.txt: its Crawl-delay counts from the last end on any lane."""
        ms = lane.state.robots_delay_ms
        if ms and self._last_end is not None:
            self._all_wait(_Wait(self._last_end + ms * _MS, ms, "crawl_delay"))
            self._hold(lane)
        self.tell(lane)

    def tell(self, lane: HostQueue) -> None:
        """All lanes know what this one knows; each keeps its own times where it need not wait longer."""
        for other in self.all:
            if other is not lane:
                own = other.state
                other.state = lane.state.but(
                    next_allowed_at=own.next_allowed_at, delay_ms=own.delay_ms, gap_rule=own.gap_rule
                )
                self._hold(other)
                other.answered, other.shut, other.faults = lane.answered, lane.shut, lane.faults

    def _all_wait(self, wait: _Wait) -> None:
        if self._wait is None or self._wait.until < wait.until:
            self._wait = wait

    def _hold(self, lane: HostQueue) -> None:
        wait, state = self._wait, lane.state
        if wait is not None and _earlier(state, wait):
            longer = max(state.delay_ms, wait.delay_ms)  # both are over by then
            lane.state = state.but(next_allowed_at=wait.until, delay_ms=longer, gap_rule=wait.rule)

    def folded(self) -> HostQueue:
        """One queue that tells what all lanes taught: no lane of a later round is asked before its time."""
        state = self.all[0].state
        allowed = [lane.state.next_allowed_at for lane in self.all if lane.state.next_allowed_at is not None]
        ended = [lane.last_end for lane in self.all if lane.last_end is not None]
        if ended and allowed:
            # whichever lane asks next, it records the longest gap that any of them was left with
            longest = max(lane.state.delay_ms for lane in self.all if lane.last_end is not None)
            state = state.but(next_allowed_at=max(*allowed, max(ended) + longest * _MS), delay_ms=longest)
        elif allowed:
            state = state.but(next_allowed_at=max(allowed))
        whole = HostQueue(state, touched=any(lane.touched for lane in self.all))
        for lane in self.all:
            whole.pages += lane.pages
            whole.conditional += lane.conditional
            whole.unchanged += lane.unchanged
            whole.spans += lane.spans
            whole.excess_ms += lane.excess_ms
        return whole


def folded(queue: HostQueue) -> HostQueue:
    """The queue of a host, its lanes made one."""
    return queue if queue.lanes is None else queue.lanes.folded()


def lanes_of(queue: HostQueue) -> Sequence[HostQueue]:
    """All queues of a host."""
    return (queue,) if queue.lanes is None else queue.lanes.all


def _narrow(state: HostState) -> bool:
    return bool(state.robots_delay_ms or state.consecutive_errors) or state.circuit != "closed"


def _earlier(state: HostState, wait: _Wait) -> bool:
    return state.next_allowed_at is None or state.next_allowed_at < wait.until


def _trouble(state: HostState) -> dict[str, Any]:
    """What a fault changes, besides the host's next time."""
    return {
        "consecutive_errors": state.consecutive_errors,
        "circuit": state.circuit,
        "backoff_until": state.backoff_until,
        "slowed_ms": state.slowed_ms,
    }


def _worse(one: HostState, other: HostState) -> dict[str, Any]:
    """The worse of what two faults at a time left behind."""
    untils = [state.backoff_until for state in (one, other) if state.backoff_until is not None]
    slowed = [state.slowed_ms for state in (one, other) if state.slowed_ms is not None]
    return {"backoff_until": max(untils, default=None), "slowed_ms": max(slowed, default=None)}
