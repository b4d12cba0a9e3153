"""When a URL is asked again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.outcomes import TABLE, Outcome, delay
from crawl.policy import Recrawl, Retry
from crawl.recrawl import micros, resting, retries, schedule, unit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Recrawl()
HOUR, DAY = 3_600.0, 86_400.0


def plan(previous: float, *, changed: bool, first: bool = False, key: int = 1) -> tuple[float, float]:
    """Interval, and seconds until the next fetch."""
    interval, at = schedule(
        url_key=np.array([key], np.int64),
        now=NOW,
        previous_interval_s=np.array([previous]),
        changed=np.array([changed]),
        first=np.array([first]),
        policy=POLICY,
    )
    return float(interval[0]), (int(at[0]) - micros(NOW)) / 1e6


def test_change_halves_and_sameness_doubles() -> None:
    assert plan(4 * DAY, changed=True)[0] == 2 * DAY
    assert plan(4 * DAY, changed=False)[0] == 8 * DAY


def test_the_interval_stays_between_floor_and_ceiling() -> None:
    assert plan(HOUR, changed=True)[0] == HOUR
    assert plan(80 * DAY, changed=False)[0] == 90 * DAY


def test_the_first_content_starts_at_a_week() -> None:
    assert plan(0.0, changed=True, first=True)[0] == 7 * DAY
    assert plan(float("nan"), changed=False)[0] == 7 * DAY
    assert plan(3 * DAY, changed=True, first=True)[0] == 7 * DAY


def test_jitter_is_a_tenth_either_way_and_comes_from_the_key() -> None:
    waits = np.array([plan(DAY, changed=False, key=k)[1] for k in range(-200, 200)])
    assert waits.min() >= 0.9 * 2 * DAY
    assert waits.max() <= 1.1 * 2 * DAY + 1e-6
    assert np.ptp(waits) > 0.15 * 2 * DAY
    assert plan(DAY, changed=False, key=7) == plan(DAY, changed=False, key=7)


@given(st.floats(0, 1e9), st.booleans(), st.booleans(), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=100)
def test_no_date_is_in_the_past(previous: float, changed: bool, first: bool, key: int) -> None:
    interval, wait = plan(previous, changed=changed, first=first, key=key)
    assert wait > 0
    assert HOUR <= interval <= 90 * DAY


def test_neighbouring_keys_get_unrelated_chances() -> None:
    units = unit(np.arange(10_000, dtype=np.int64), 0)
    assert 0 <= units.min()
    assert units.max() < 1
    assert abs(units.mean() - 0.5) < 0.02
    assert abs(np.corrcoef(units[:-1], units[1:])[0, 1]) < 0.05


def test_gone_and_denied_urls_rest_for_the_longest_interval() -> None:
    at = resting(url_key=np.array([1, 2], np.int64), now=NOW, policy=POLICY)
    assert ((at - micros(NOW)) / 1e6 >= 81 * DAY).all()
    assert retry(Outcome.ROBOTS_DENIED, 1) == pytest.approx((int(at[0]) - micros(NOW)) / 1e6)


def retry(outcome: Outcome, attempts: int, *, key: int = 1, retry_after_ms: float = float("nan")) -> float:
    at = retries(
        url_key=np.array([key], np.int64),
        now=NOW,
        outcomes=[outcome.value],
        attempts=np.array([attempts], np.int32),
        retry_after_ms=np.array([retry_after_ms]),
        retry=Retry(),
        recrawl=POLICY,
    )
    return (int(at[0]) - micros(NOW)) / 1e6


@given(
    st.sampled_from(list(Outcome)),
    st.integers(1, 40),
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(0, 1e8),
)
@settings(max_examples=100)
def test_columns_wait_as_single_urls_do(
    outcome: Outcome, attempts: int, key: int, asks: float | None
) -> None:
    rule = TABLE[outcome]
    got = retry(outcome, attempts, key=key, retry_after_ms=float("nan") if asks is None else asks)
    assert got > 0
    if rule.retry:
        chance = float(unit(np.array([key], np.int64), attempts)[0]) if attempts <= 21 else None
        if chance is not None:
            least = timedelta(milliseconds=asks or 0)
            assert got == pytest.approx(
                delay(rule, attempts - 1, Retry(), chance, least).total_seconds(), abs=2e-6
            )
        assert got >= (asks or 0) / 1_000
