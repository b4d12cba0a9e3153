from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.policy import Politeness
from crawl.politeness.addresscap import Cap, of, pinned, unplanned

POLICY = Politeness()


@pytest.mark.parametrize(
    ("domains", "in_flight", "delay_s"),
    [(0, 4, 0.25), (1, 4, 0.25), (100, 4, 0.25), (150, 6, 0.25 / 1.5), (400, 16, 0.0625)],
)
def test_an_address_that_carries_more_may_carry_proportionally_more(
    domains: int, in_flight: int, delay_s: float
) -> None:
    assert of(POLICY, domains) == Cap(in_flight=in_flight, delay_s=delay_s)


def test_there_is_a_bound_whatever_it_carries() -> None:
    assert of(POLICY, 10**9) == of(POLICY, 800) == Cap(in_flight=32, delay_s=0.03125)


@hypothesis(max_examples=60, deadline=None)
@given(
    domains=st.integers(0, 10_000),
    groups=st.integers(1, 64),
    most=st.integers(1, 50),
    delay=st.floats(0.01, 10),
)
def test_groups_together_start_no_more_than_one_would(
    domains: int, groups: int, most: int, delay: float
) -> None:
    policy = Politeness(address_in_flight=most, address_delay=timedelta(seconds=delay))
    whole = of(policy, domains)
    part = whole.divided(groups)
    assert groups / part.delay_s == pytest.approx(1 / whole.delay_s)
    assert part.in_flight >= 1
    assert groups * part.in_flight <= max(whole.in_flight, groups)


def test_an_address_no_plan_knows_is_shared_with_groups_that_may_know_it_too() -> None:
    assert unplanned(POLICY, 0) == unplanned(POLICY, 1) == Cap(in_flight=4, delay_s=0.25)
    assert unplanned(POLICY, 2) == Cap(in_flight=2, delay_s=0.5)
    assert unplanned(POLICY, 50) == Cap(in_flight=1, delay_s=1.0), "no slower than a host's own gap"


def test_the_first_permitted_address_is_the_one_that_is_asked() -> None:
    assert pinned(["10.0.0.1", "192.0.2.1", "192.0.2.2"], lambda ip: ip != "10.0.0.1") == "192.0.2.1"
    assert pinned([], lambda ip: True) is None
    assert pinned(["10.0.0.1"], lambda ip: False) is None
