"""How long a plan will take and what caps it: arithmetic over hosts and groups, and the records that tell it.

What always holds: hosts wait side by side, so a group takes the longer of its longest chain of waits and of
all its work one after the other; a round takes what its slowest group takes. It promises nothing about what
servers will do, and chooses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from crawl.columns import Column, Floats, Ints, among
from crawl.outcomes import Outcome
from crawl.planning.capacity import Clocks, recovery
from crawl.policy import Politeness

__all__ = ["PAGE_COST_S", "Cap", "Group", "Prediction", "chains", "predict", "troubled", "work"]

#: one worker's time for a page, fetched and parsed: what bounds a group of many hosts
PAGE_COST_S: Final = 0.003
#: slowest hosts that a prediction names
_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """A host that holds the round up: its chain of waits is long."""

    host: str
    requests: int
    seconds: float
    per_second: float  # how fast its clock lets it go


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Prediction for one host group."""

    group: int
    hosts: int
    pages: int
    chain_s: float  # the longest chain of waits
    work_s: float  # its requests one after the other
    host: str  # whose chain that is

    @property
    def seconds(self) -> float:
        """From the start of fetching until its last answer."""
        return max(self.chain_s, self.work_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the plan will take, and what caps it."""

    seconds: float
    pages: int
    robots: int  # requests for robots.txt
    left_out: int
    cap: str  # 'nothing', 'host' (its clock), 'address' (that hosts share) or 'work' (one worker's speed)
    caps: tuple[Cap, ...]  # the slowest hosts, slowest first
    groups: tuple[Group, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def chains(clock: Clocks, requests: Ints) -> Floats:
    """Seconds until each host's last answer, 0 where nothing is asked.

    Joined hosts wait for each other, and so do those at one public address. Of a host with lanes, each takes
    its part of the requests, and no such host is joined with others.
    """
    gaps = np.maximum(requests - 1, 0)
    steps = gaps // clock.lanes
    own = clock.wait_s + steps * clock.step_s + np.where(steps > 0, clock.extra_s, 0.0)
    own += recovery(clock.slowed_s, clock.usual_s, gaps) / clock.lanes
    of_line = np.bincount(clock.line, requests, len(requests))[clock.line]
    shared = clock.line_wait_s + np.maximum(of_line - 1, 0) // clock.lanes * clock.line_step_s
    of_spot = np.bincount(clock.spot, requests, len(requests))[clock.spot]
    crowded = np.maximum(of_spot - 1, 0) * clock.spot_step_s
    longest = np.maximum(np.maximum(own, shared), crowded)
    return np.where(requests > 0, longest + np.where(steps > 0, clock.latency_s, clock.first_s), 0.0)


#: answers of a page that make its host wait, and that it will likely give again
_REPEATED: Final = tuple(o.value for o in (Outcome.UNAVAILABLE, Outcome.RATE_LIMITED, Outcome.SERVER_ERROR))


def troubled(clock: Clocks, host: Ints, last_outcome: Column, policy: Politeness) -> Clocks:
    """The clocks with the back-off that planned rows (by host, and how they ended last) will cost again."""
    again = host[among(last_outcome, _REPEATED) >= 0]
    if not len(again):
        return clock
    once = 2 * policy.backoff_base.total_seconds() * 1.125  # one error, and chance in the middle
    seconds = np.bincount(again, minlength=len(clock.step_s)) * once
    return replace(clock, extra_s=clock.extra_s + seconds)


def work(clock: Clocks, requests: Ints, in_flight: int) -> Floats:
    """Seconds each host adds to its group: a worker's time, or its share of the transfers open at once."""
    seconds: Floats = requests.astype(np.float64) * np.maximum(PAGE_COST_S, clock.latency_s / in_flight)
    return seconds


def predict(
    names: Sequence[str],
    clock: Clocks,
    *,
    pages: Ints,
    asks: Ints,
    group: Ints,
    in_flight: int,
    left_out: int,
) -> Prediction:
    """Add up a plan. All arrays run over hosts; `group` is -1 where nothing of a host is planned."""
    requests = np.where(pages > 0, pages + asks, 0)
    chain_s, work_s = chains(clock, requests), work(clock, requests, in_flight)
    groups = []
    for number in np.unique(group[group >= 0]).tolist():
        members = np.flatnonzero(group == number)
        slowest = int(members[np.argmax(chain_s[members])])
        groups.append(
            Group(
                group=number,
                hosts=len(members),
                pages=int(pages[members].sum()),
                chain_s=float(chain_s[slowest]),
                work_s=float(work_s[members].sum()),
                host=names[slowest],
            )
        )
    longest = max(groups, key=lambda one: one.seconds, default=None)
    cap = "nothing" if longest is None else "host" if longest.chain_s >= longest.work_s else "work"
    alone = chains(replace(clock, spot_step_s=np.zeros(len(requests))), requests)
    if cap == "host" and longest is not None and alone[names.index(longest.host)] < longest.chain_s:
        cap = "address"
    slowest_first = np.lexsort((np.arange(len(names)), -chain_s))[:_NAMED].tolist()
    return Prediction(
        seconds=longest.seconds if longest else 0.0,
        pages=int(pages.sum()),
        robots=int(asks[pages > 0].sum()),
        left_out=left_out,
        cap=cap,
        caps=tuple(
            Cap(
                host=names[i],
                requests=int(requests[i]),
                seconds=float(chain_s[i]),
                per_second=float(clock.lanes[i] / clock.step_s[i]),
            )
            for i in slowest_first
            if requests[i]
        ),
        groups=tuple(groups),
    )
