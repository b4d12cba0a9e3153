"""The column form of the host rules against the rule for one host."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.capacity import gaps, public, recovery
from crawl.outcomes import Outcome
from crawl.policy import Dns, Egress, Politeness
from crawl.politeness import HostState, after, gap

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


def test_the_time_a_rate_takes_to_come_back_is_foreseen() -> None:
    policy = Politeness(min_delay=timedelta(seconds=1), factor=0.0)
    slowed, gaps_of = [np.nan, 2.0, 64.0], np.array([1.0, 1.0, 1.0])
    found = recovery(np.array(slowed), gaps_of, policy)
    for ms, extra in zip(slowed, found, strict=True):
        state = HostState(
            host_key=1,
            host="a.test",
            domain="a.test",
            next_allowed_at=THEN,
            slowed_ms=None if np.isnan(ms) else ms * 1000,
        )
        spent = 0.0
        for _ in range(12):
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
        assert pytest.approx(spent, abs=1e-4) == extra


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
