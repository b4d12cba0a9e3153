"""The column form of the host rules against the rule for one host."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.outcomes import Outcome
from crawl.planning.capacity import _fits, clocks, gaps, public, recovery, rows_of
from crawl.policy import Dns, Egress, Politeness, Settings
from crawl.politeness.clock import HostState, after, gap
from crawl.schema import HOSTS

THEN = datetime(2025, 1, 1, tzinfo=UTC)


@hypothesis(max_examples=100, deadline=None)
@given(
    latency=st.floats(0, 100),
    robots=st.none() | st.floats(0, 500),
    outside=st.booleans(),
    floor=st.sampled_from([0.0, 0.02, 1.0]),
    factor=st.sampled_from([0.0, 10.0]),
)
def test_gaps_are_those_of_the_rule_for_one_host(
    latency: float, robots: float | None, outside: bool, floor: float, factor: float
) -> None:
    policy = Politeness(min_delay=timedelta(seconds=floor), factor=factor)
    state = HostState(
        host_key=1,
        host="a.test",
        domain="a.test",
        next_allowed_at=THEN,
        latency_ema_ms=latency * 1000,
        robots_delay_ms=None if robots is None else robots * 1000,
    )
    expected, _ = gap(state, timedelta(seconds=latency), policy, public=outside)
    found = gaps(
        np.array([latency]),
        robots_delay_s=np.array([np.nan if robots is None else robots]),
        public=np.array([outside]),
        policy=policy,
    )
    assert pytest.approx(expected.total_seconds(), abs=2e-5) == found[0]


@pytest.mark.parametrize("slowed_ms", [None, 1_100.0, 2_000.0, 60_000.0])
@pytest.mark.parametrize("steps", [0, 1, 5, 100])
def test_the_time_a_rate_takes_to_come_back_is_foreseen(slowed_ms: float | None, steps: int) -> None:
    policy = Politeness(min_delay=timedelta(seconds=1), factor=0.0)
    state = HostState(
        host_key=1, host="a.test", domain="a.test", next_allowed_at=THEN, slowed_ms=slowed_ms, addresses=()
    )
    spent = 0.0
    for _ in range(steps):
        state = after(
            state,
            finished_at=THEN,
            duration=timedelta(0),
            outcome=Outcome.OK,
            retry_after_ms=None,
            status=200,
            policy=policy,
            public=False,
            unit=0.0,
        )
        spent += state.delay_ms / 1000 - 1.0
    found = recovery(np.array([(slowed_ms or 1_000.0) / 1000]), np.array([1.0]), np.array([steps]))
    assert pytest.approx(spent, abs=1e-3) == found[0]


@hypothesis(max_examples=60, deadline=None)
@given(seconds=st.floats(0, 2_000), slowed=st.floats(1, 300), latency=st.floats(0, 0.1))
def test_as_many_requests_fit_as_start_in_time(seconds: float, slowed: float, latency: float) -> None:
    usual, step = np.array([1.0]), np.array([1.0 + latency])
    count = _fits(np.array([seconds]), step, np.array([slowed]), usual)

    def start(number: int) -> float:
        steps = np.array([number])
        return float(number * step[0] + recovery(np.array([slowed]), usual, steps)[0])

    assert count[0] <= 1 or start(int(count[0]) - 1) <= seconds + 5  # durations between long gaps aside
    assert start(int(count[0])) >= seconds - 1e-6


def test_a_host_is_public_unless_all_we_know_of_it_is_allowed() -> None:
    egress = Egress(allow=("127.0.0.0/8", "fd00::/8"))
    dns = Dns(hosts={"*.test": "127.1.0.0/16", "out.test": "192.0.2.7", "bad.example": "no address"})
    quick = Politeness(min_delay=timedelta(milliseconds=20))
    cases = {
        "a.test": (None, False),  # by the list of names
        "out.test": (None, True),  # one of its names leads outside
        "b.test": (["192.0.2.1"], True),  # what was resolved counts more than the list
        "c.example": (["127.0.0.1", "192.0.2.1"], True),
        "d.example": (["fd00::1"], False),
        "127.0.0.9": (None, False),
        "[fd00::2]": (None, False),
        "8.8.8.8": (None, True),
        "e.example": (None, True),
        "bad.example": (None, True),
    }
    found = public(list(cases), [known for known, _ in cases.values()], egress, dns, quick)
    assert {name: told for name, (_, told) in cases.items()} == dict(zip(cases, found.tolist(), strict=True))


def test_above_the_public_floor_nobody_asks() -> None:
    assert public(["a.test"], [["127.0.0.1"]], Egress(allow=("127.0.0.0/8",)), Dns(), Politeness())[0]


def test_a_host_with_lanes_has_as_many_clocks_but_for_one_that_states_a_crawl_delay() -> None:
    names = ["a.test", "b.test", "c.test", "d.test"]
    rows = [HostState.new(name, name, 1).to_row(1) | {"latency_ema_ms": 100.0} for name in names]
    rows[2]["robots_delay_ms"] = 1_000.0
    rows[3]["circuit"] = "open"
    found = clocks(
        names,
        rows_of(names, pa.Table.from_pylist(rows, schema=HOSTS)),
        robots_requests=np.ones(4, dtype=np.int64),
        settings=Settings(politeness=Politeness(in_flight=dict.fromkeys(names[1:], 4), factor=0.0)),
        now=THEN,
        started_at=THEN,
        window_s=110.0,
    )
    assert found.lanes.tolist() == [1, 4, 1, 4]
    assert found.capacity.tolist() == [99, 399, 99, 1]
    assert found.canary.tolist() == [False, False, False, True]
