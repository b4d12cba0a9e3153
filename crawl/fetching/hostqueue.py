"""What one host is still to be asked in this round, in order, and what its last requests taught.

First robots.txt requests (they decide about the rest), then hops of redirects and second tries, then the
plan. What always holds: nothing is dropped silently; the caller's `wanted` decides what need not be asked
any more; a host whose circuit is open gets one request a round (its canary), and goes on if that succeeds. It
keeps no time of its own: when the host may be asked is `state.next_allowed_at`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from crawl.outcomes import BY_VALUE, Outcome
from crawl.policy import Politeness
from crawl.politeness.clock import PUSHED_BACK, HostState, after, excess, gap
from crawl.politeness.joined import Joined
from crawl.quickrecord import quickrecord
from crawl.records import Fetch, Planned

if TYPE_CHECKING:
    from crawl.fetching.lanes import Lanes

__all__ = ["Ask", "HostQueue"]

_MS = timedelta(milliseconds=1)


@quickrecord
class Ask:
    """One request to make: a page, sitemap, feed or robots.txt, with what its record needs."""

    kind: str
    url: str
    url_key: int
    origin: str
    host: str
    domain: str
    chain_id: int
    hop: int = 0
    attempt: int = 1
    depth: int = 0
    referrer_key: int | None = None
    planned: bool = False
    etag: str | None = None
    last_modified: str | None = None
    known_hash: str | None = None
    parsed_before: bool = False


@dataclass(slots=True, eq=False)
class HostQueue:
    """The host's requests still to make. Identity is the object: one per host (or lane) and round."""

    state: HostState
    robots: deque[Ask] = field(default_factory=deque)
    hops: deque[Ask] = field(default_factory=deque)
    planned: deque[Planned] = field(default_factory=deque)
    #: Crawl-delay by origin, in ms; the longest holds for the host
    delays: dict[str, float | None] = field(default_factory=dict)
    #: something was learnt about the host in this round
    touched: bool = False
    #: requests of this round but for robots.txt, and those of them that were conditional and answered 304
    pages: int = 0
    conditional: int = 0
    unchanged: int = 0
    #: connects that failed: which of its addresses comes next
    faults: int = 0
    last_end: datetime | None = None
    #: gaps after all requests of this round but the first, and what they were longer than they had to be (ms)
    spans: int = 0
    excess_ms: float = 0.0
    #: it gave some answer in this round
    answered: bool = False
    #: the circuit was open, and this round's canary failed: the host is left alone until the next round
    shut: bool = False
    #: the clock that it shares with others, None for one of its own
    joined: Joined | None = None
    #: of a host that may have several requests open: all its lanes, and which of them this is
    lanes: Lanes | None = None
    lane: int | None = None

    def __bool__(self) -> bool:
        return bool(self.robots or self.hops or self.planned)

    def next(
        self,
        wanted: Callable[[Ask | Planned], bool],
        blocked: Callable[[str], bool],
    ) -> Ask | Planned | None:
        """Takes out the next thing to ask. None: nothing is left, or what comes next waits for robots.txt."""
        while self.robots:
            ask = self.robots.popleft()
            if wanted(ask):
                return ask
        for queue in (self.hops, self.planned):
            while queue:
                item = queue[0]
                if not wanted(item):
                    queue.popleft()
                elif blocked(item.origin):
                    return None
                else:
                    queue.popleft()
                    return item
        return None

    def put_back(self, ask: Ask) -> None:
        """`ask` was not made after all: it comes first again."""
        (self.robots if ask.kind == "robots" else self.hops).appendleft(ask)

    def settle(self, record: Fetch, policy: Politeness, *, public: bool, unit: float, fault: bool) -> None:
        """Learns from a finished request. `fault` False: its failure says nothing about the host."""
        duration = record.finished_at - record.started_at
        state = self.state
        if fault:
            was_open = state.circuit != "closed"
            self.state = after(
                state,
                finished_at=record.finished_at,
                duration=duration,
                outcome=BY_VALUE[record.outcome],
                retry_after_ms=record.retry_after_ms,
                status=record.status,
                policy=policy,
                public=public,
                unit=unit,
                first=self.last_end is None,
            )
            self.shut = was_open and self.state.circuit != "closed"
            if was_open and not self.shut and record.kind == "robots":
                # that robots.txt can be read says little of the pages: one of them is the canary
                self.state = replace(
                    self.state, circuit=state.circuit, consecutive_errors=state.consecutive_errors
                )
        else:
            wait, rule = gap(state, duration, policy, public=public)
            allowed = record.finished_at + wait
            self.state = replace(state, next_allowed_at=allowed, delay_ms=wait / _MS, gap_rule=rule)
        if self.joined is not None:
            wait, _ = gap(self.state, duration, policy, public=public)
            if fault and record.outcome in PUSHED_BACK:
                wait = self.state.delay_ms * _MS
            self.joined.asked(self.state, record.finished_at, wait)
        if record.outcome in (Outcome.REFUSED, Outcome.CONNECT_TIMEOUT):
            self.faults += 1
        if self.last_end is not None and record.status is not None:
            self.spans += 1
            self.excess_ms += excess(state, duration, policy, public=public) / _MS
        self.last_end = record.finished_at
        self.answered |= record.status is not None
        self.touched = True
        if record.kind != "robots":
            self.pages += 1
            if record.request_validators is not None:
                self.conditional += 1
                self.unchanged += record.outcome == Outcome.NOT_MODIFIED

    def delay(self, origin: str, seconds: float | None) -> None:
        """The robots.txt of `origin` asks for so many seconds between requests (None: says nothing)."""
        self.delays[origin] = None if seconds is None else seconds * 1e3
        longest = max((ms for ms in self.delays.values() if ms is not None), default=None)
        state = self.state
        if longest != state.robots_delay_ms:
            state = replace(state, robots_delay_ms=longest)
            self.touched = True
        if self.last_end is not None and longest is not None and longest > state.delay_ms:
            allowed = self.last_end + longest * _MS
            if state.next_allowed_at is None or allowed > state.next_allowed_at:
                state = replace(state, next_allowed_at=allowed, delay_ms=longest, gap_rule="crawl_delay")
        self.state = state
        if self.joined is not None:
            self.joined.delay(state)

    def pace(self) -> float | None:
        """By how much gaps are longer than they have to be, on average over rounds (ms); None: not known."""
        before = self.state.excess_ms
        if not self.spans:
            return before
        # a round counts by its requests: ten weigh as much as all before them, or as knowing of none
        before = before or 0.0
        return before + (self.excess_ms / self.spans - before) * self.spans / (self.spans + 10)

    def hold(self, until: datetime) -> None:
        """Leave the host, and those joined with it, alone until then, whatever it was before."""
        if self.joined is not None:
            self.joined.hold(until)
        allowed = self.state.next_allowed_at
        if allowed is None or allowed < until:
            self.state = replace(self.state, next_allowed_at=until)
