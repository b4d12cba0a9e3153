"""What follows from an outcome."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawl.outcomes import TABLE, Outcome, brings_page, delay, from_status, limit
from crawl.policy import Retry
from crawl.state import State
from tests import outcomespage

RETRY = Retry()


def test_every_outcome_has_a_rule() -> None:
    assert set(TABLE) == set(Outcome)


def test_a_fault_of_the_host_never_ends_a_url() -> None:
    for outcome, rule in TABLE.items():
        if rule.against == "host":
            assert rule.final is State.FAILED_RETRYABLE, outcome
            assert rule.retry, outcome


@pytest.mark.parametrize(
    ("outcome", "base", "attempts"),
    [
        (Outcome.DNS_TIMEOUT, 30, 5),
        (Outcome.RESET, 60, 5),
        (Outcome.SERVER_ERROR, 300, 5),
        (Outcome.RATE_LIMITED, 600, 5),
        (Outcome.TIMEOUT, 120, 5),
        (Outcome.FORBIDDEN, 600, 2),
        (Outcome.REFUSED, 300, 3),
        (Outcome.MALFORMED, 86_400, 1),
    ],
)
def test_bases_and_attempts_are_the_documented_ones(outcome: Outcome, base: float, attempts: int) -> None:
    assert (TABLE[outcome].base.total_seconds(), TABLE[outcome].attempts) == (base, attempts)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Outcome.OK),
        (204, Outcome.OK),
        (301, Outcome.REDIRECT),
        (304, Outcome.NOT_MODIFIED),
        (305, Outcome.BAD_REDIRECT),
        (308, Outcome.REDIRECT),
        (401, Outcome.FORBIDDEN),
        (404, Outcome.NOT_FOUND),
        (408, Outcome.UNAVAILABLE),
        (410, Outcome.GONE),
        (418, Outcome.CLIENT_ERROR),
        (429, Outcome.RATE_LIMITED),
        (500, Outcome.SERVER_ERROR),
        (503, Outcome.UNAVAILABLE),
        (599, Outcome.SERVER_ERROR),
        (100, Outcome.MALFORMED),
        (999, Outcome.MALFORMED),
        (0, Outcome.MALFORMED),
        (-1, Outcome.MALFORMED),
    ],
)
def test_a_status_has_an_outcome(status: int, outcome: Outcome) -> None:
    assert from_status(status) is outcome


def test_delays_double_up_to_the_cap() -> None:
    rule = TABLE[Outcome.DNS_TIMEOUT]
    waits = [delay(rule, n, RETRY, 0.5).total_seconds() for n in range(4)]
    assert waits == [30, 60, 120, 240]
    assert delay(TABLE[Outcome.SERVER_ERROR], 3, RETRY, 0.5) == timedelta(minutes=32)


def test_jitter_is_a_quarter_either_way_and_retry_after_a_lower_bound() -> None:
    rule = TABLE[Outcome.RESET]
    assert delay(rule, 0, RETRY, 0.0) == timedelta(seconds=45)
    assert delay(rule, 0, RETRY, 0.999).total_seconds() == pytest.approx(75, abs=0.1)
    assert delay(rule, 0, RETRY, 0.5, timedelta(hours=2)) == timedelta(hours=2)


def test_used_up_attempts_leave_one_try_a_day() -> None:
    assert delay(TABLE[Outcome.REFUSED], 2, RETRY, 0.5) == timedelta(days=1)
    assert delay(TABLE[Outcome.REFUSED], 10**6, RETRY, 0.5) == timedelta(days=1)


def test_absence_takes_at_least_a_day_of_sightings() -> None:
    first, second = (delay(TABLE[Outcome.NOT_FOUND], n, RETRY, 0.5) for n in (0, 1))
    assert first + second >= timedelta(days=1)
    assert delay(TABLE[Outcome.GONE], 0, RETRY, 0.5) == timedelta(days=1)


def test_the_operator_may_ask_for_fewer_attempts_but_not_for_more() -> None:
    assert limit(TABLE[Outcome.TIMEOUT], Retry(attempts=2)) == 2
    assert limit(TABLE[Outcome.FORBIDDEN], Retry(attempts=9)) == 2


@given(st.sampled_from(list(Outcome)), st.integers(0, 10**9), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_never_negative_and_never_beyond_what_the_rule_says(
    o: Outcome, n: int, unit: float
) -> None:
    wait = delay(TABLE[o], n, RETRY, unit)
    assert timedelta(0) <= wait <= 1.25 * max(RETRY.cap, TABLE[o].base, TABLE[o].over)


@pytest.mark.parametrize(
    ("status", "brings"),
    [
        (200, True),
        (203, True),
        (299, True),
        (201, False),
        (204, False),
        (206, False),
        (304, False),
        (404, False),
    ],
)
def test_some_successes_bring_a_page(status: int, brings: bool) -> None:
    assert brings_page(status) is brings
    assert not brings_page(None)


def test_the_page_about_outcomes_says_what_the_code_does() -> None:
    page = outcomespage.PAGE.read_text(encoding="utf-8")
    shown = page.partition(outcomespage.BEGIN)[2].partition(outcomespage.END)[0]
    assert shown == outcomespage.table(), "run python -m tests.outcomespage"
