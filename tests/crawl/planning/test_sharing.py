"""The clock of joined hosts, foreseen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from crawl.planning.capacity import Clocks, clocks, rows_of
from crawl.planning.forecast import chains
from crawl.planning.sharing import join
from crawl.policy import Politeness, Settings
from crawl.politeness.clock import HostState
from crawl.politeness.joined import Groups
from crawl.schema import HOSTS

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ["a.test", "b.test", "c.test"]


def joined(
    groups: dict[str, tuple[str, ...]], window_s: float = 10.0, **columns: dict[str, Any]
) -> tuple[Clocks, Clocks]:
    """Clocks of three hosts, each one's own and as the groups have it; `columns` of `hosts` by name."""
    manners = Politeness(min_delay=timedelta(seconds=1), factor=0.0, groups=groups)
    settings = Settings(politeness=manners)
    states = [
        replace(HostState.new(name, name, 1), latency_ema_ms=0.0, **columns.get(name[0], {}))
        for name in [*NAMES, "d.test"]
    ]
    hosts = pa.Table.from_pylist([state.to_row(1) for state in states], schema=HOSTS)
    none = np.zeros(3, dtype=np.int64)
    own = clocks(
        NAMES,
        rows_of(NAMES, hosts),
        robots_requests=none,
        settings=settings,
        now=NOW,
        started_at=NOW,
        window_s=window_s,
    )
    found = join(
        NAMES,
        own,
        Groups(groups),
        hosts,
        robots_requests=none,
        settings=settings,
        started_at=NOW,
        window_s=window_s,
    )
    return own, found


def test_without_groups_every_host_is_a_line_of_its_own() -> None:
    own, found = joined({})
    assert own is found
    assert found.line.tolist() == [0, 1, 2]


def test_joined_hosts_have_the_capacity_of_one_at_the_pace_of_the_slowest() -> None:
    _, found = joined({"news": ("a.test", "b.test")}, b={"robots_delay_ms": 2_000.0})
    assert found.line.tolist() == [0, 0, 2]
    assert found.line_step_s.tolist() == [2.0, 2.0, 1.0]
    assert found.line_capacity.tolist() == [5, 5, 10]
    assert chains(found, np.array([2, 2, 2])).tolist() == [6.0, 6.0, 1.0]


def test_what_members_were_left_with_holds_for_all_but_not_the_back_off_of_one_that_is_dead() -> None:
    left = {"next_allowed_at": NOW + timedelta(seconds=4), "delay_ms": 4_000.0}
    dead = {"next_allowed_at": NOW + timedelta(hours=1), "delay_ms": 3.6e6, "backoff_until": NOW}
    _, found = joined({"news": ("a.test", "d.test")}, d=left)  # d is not asked for in this round
    assert found.line_wait_s.tolist() == [4.0, 0.0, 0.0]
    _, found = joined({"news": ("a.test", "d.test")}, 100.0, d=dead)
    assert found.line_wait_s.tolist() == [60.0, 0.0, 0.0]
    _, found = joined({"news": ("a.test", "d.test")}, 100.0, d={**dead, "slowed_ms": 2_000.0})
    assert (found.line_wait_s[0], found.line_capacity[0]) == (3_600.0, 0)


def test_a_long_crawl_delay_of_one_makes_all_slow() -> None:
    _, found = joined({"news": ("a.test", "b.test")}, b={"robots_delay_ms": 61_000.0})
    assert found.slow.tolist() == [True, True, False]
