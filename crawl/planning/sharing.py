"""Joined hosts in a plan: what the one clock of a group allows in a window, as columns over hosts.

What always holds: the requests of all members together, each followed by the longest gap of any member, start
within the window; what an earlier round left the group to be spared holds before the first. It is the rule of
`crawl.politeness.joined`, foreseen. This module chooses no URL and reads no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from crawl.columns import Ints
from crawl.planning.capacity import Clocks, public
from crawl.policy import Settings
from crawl.politeness.clock import HostState
from crawl.politeness.joined import Groups, Joined

__all__ = ["join"]


def join(
    names: Sequence[str],
    clock: Clocks,
    groups: Groups,
    hosts: pa.Table,
    *,
    robots_requests: Ints,
    settings: Settings,
    started_at: datetime,
    window_s: float,
) -> Clocks:
    """The clocks of these hosts (`names`, in the order of `clock`) with those of joined hosts made one.

    `hosts` (HOSTS) has every known member, asked for in this round or not.
    """
    if not groups:
        return clock
    members: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        if (group := groups.of(name)) is not None:
            members.setdefault(group, []).append(i)
    left = _left(groups, hosts, settings)
    line, wait, step = clock.line.copy(), clock.line_wait_s.copy(), clock.line_step_s.copy()
    capacity, slow = clock.line_capacity.copy(), clock.slow.copy()
    for group, at in members.items():
        line[at] = at[0]
        allowed = left[group].allowed_at if group in left else None
        wait[at] = 0.0 if allowed is None else max(0.0, (allowed - started_at).total_seconds())
        step[at] = clock.step_s[at].max()
        fits = int(np.ceil(max(window_s - wait[at[0]], 0.0) / step[at[0]]))
        capacity[at] = max(fits - int(robots_requests[at].sum()), 1) if fits else 0
        slow[at] = clock.slow[at].any()
    return replace(clock, line=line, line_wait_s=wait, line_step_s=step, line_capacity=capacity, slow=slow)


def _left(groups: Groups, hosts: pa.Table, settings: Settings) -> dict[str, Joined]:
    """Each group's clock as earlier rounds left it."""
    found: dict[str, Joined] = {}
    known: Any = hosts["host"].to_pylist()
    of = [(i, group) for i, name in enumerate(known) if (group := groups.of(name))]
    rows = hosts.take(pa.array([i for i, _ in of], pa.int64())).to_pylist()
    outside = public(
        [row["host"] for row in rows],
        [row["addresses"] for row in rows],
        settings.egress,
        settings.dns,
        settings.politeness,
    )
    for (_, group), row, is_public in zip(of, rows, outside, strict=True):
        clock = found.setdefault(group, Joined(group))
        clock.adopt(HostState.from_row(row), settings.politeness, public=bool(is_public))
    return found
