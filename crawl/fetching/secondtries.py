"""Second tries within a round: which failures are worth one, and when each falls due.

What always holds: only connections that failed (`Rule.in_round` of crawl.outcomes) before a body came are
tried again in the round, each no sooner than its rule's delay and no more often than its rule allows, and
only of a host that gave some answer in this round and whose circuit is closed: a host that says nothing at
all is left to the next round's canary. A try that never falls due costs nothing: the URL has its outcome and
its next date.
Time is an argument; it sends nothing. However many tries a round makes, it gives one visit of the URL.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from crawl.fetching.hostqueue import Ask, HostQueue
from crawl.outcomes import TABLE, Outcome, delay, limit
from crawl.policy import Retry
from crawl.records import Fetch

__all__ = ["SecondTries"]

_IN_ROUND: Final = frozenset(outcome.value for outcome, rule in TABLE.items() if rule.in_round)


class SecondTries:
    """The tries of a task that have not fallen due."""

    def __init__(self, policy: Retry) -> None:
        self._policy = policy
        self._heap: list[tuple[datetime, int, Ask, HostQueue]] = []
        self._number = 0

    def consider(self, record: Fetch, again: Callable[[Fetch], Ask], queue: HostQueue, unit: float) -> None:
        """`record` ended; `again` of it would ask the same once more. `unit` in [0, 1) is chance."""
        # a body that came in part is parsed as it is: a second one would count its links twice
        if record.outcome not in _IN_ROUND or record.bytes > 0:
            return
        rule = TABLE[Outcome(record.outcome)]
        if record.attempt >= limit(rule, self._policy):
            return
        asked_for = timedelta(milliseconds=record.retry_after_ms or 0)
        at = record.finished_at + delay(rule, record.attempt - 1, self._policy, unit, asked_for)
        self._number += 1
        heapq.heappush(self._heap, (at, self._number, again(record), queue))

    def due(self, now: datetime) -> list[HostQueue]:
        """Hosts that got a try whose time has come (real time), each as often as it got one."""
        woken = []
        while self._heap and self._heap[0][0] <= now:
            _, _, ask, queue = heapq.heappop(self._heap)
            if queue.answered and queue.state.circuit == "closed":
                queue.hops.append(ask)
                woken.append(queue)
        return woken

    def worth_waiting(self, now: datetime) -> bool:
        """Whether a try falls due within the patience that the operator gave."""
        while self._heap:
            at, _, _, queue = self._heap[0]
            if queue.answered and queue.state.circuit == "closed":
                return at - now <= self._policy.patience
            heapq.heappop(self._heap)
        return False
