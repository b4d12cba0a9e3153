"""How long a host is left alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl import schema
from crawl.outcomes import Outcome
from crawl.policy import Politeness
from crawl.politeness.clock import HOST_FAULTS, HostState, after, circuit_at, excess, gap, retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Politeness()


def new() -> HostState:
    return HostState.new("a.test", "a.test", 7)


def asked(
    state: HostState,
    outcome: Outcome = Outcome.OK,
    *,
    at: datetime = NOW,
    took: float = 0.1,
    status: int | None = 200,
    retry_after_ms: float | None = None,
    policy: Politeness = POLICY,
    public: bool = True,
    unit: float = 0.0,
) -> HostState:
    return after(
        state,
        finished_at=at,
        duration=timedelta(seconds=took),
        outcome=outcome,
        retry_after_ms=retry_after_ms,
        status=status,
        policy=policy,
        public=public,
        unit=unit,
    )


def seconds(
    state: HostState, took: float | None, policy: Politeness = POLICY, *, public: bool = True
) -> tuple[float, str]:
    wait, rule = gap(state, None if took is None else timedelta(seconds=took), policy, public=public)
    return wait.total_seconds(), rule


# --- the gap ---


def test_the_gap_is_the_largest_of_floor_factor_and_crawl_delay() -> None:
    assert seconds(new(), 0.05) == (1.0, "floor")
    assert seconds(new(), 0.4) == (4.0, "factor")
    assert seconds(replace(new(), robots_delay_ms=7_000.0), 0.4) == (7.0, "crawl_delay")
    assert seconds(replace(new(), robots_delay_ms=2_000.0), 0.4) == (4.0, "factor")


def test_a_host_never_asked_needs_no_gap() -> None:
    assert seconds(new(), None) == (0.0, "none")


def test_the_factor_has_a_cap_and_crawl_delay_has_none() -> None:
    assert seconds(new(), 100.0) == (60.0, "factor")
    assert seconds(replace(new(), robots_delay_ms=600_000.0), 100.0) == (600.0, "crawl_delay")


def test_public_hosts_have_a_floor_that_no_setting_lowers() -> None:
    none = Politeness(min_delay=timedelta(0), factor=0.0)
    assert seconds(new(), 1.0, none) == (0.2, "floor")
    assert seconds(new(), 1.0, none, public=False) == (0.0, "floor")


def test_a_host_that_became_slow_is_asked_once_in_five_seconds() -> None:
    slow = replace(new(), latency_ema_ms=5_001.0)
    assert seconds(slow, 0.1) == (5.0, "factor")


def test_after_a_resume_the_last_gap_in_force_stands_in() -> None:
    state = asked(new(), took=0.7)
    assert seconds(state, None) == (7.0, "factor")


def test_the_dry_run_of_three_hosts_on_one_thread() -> None:
    """Gap = 10 x the last download, from its end: six fetches of a, b and c in 5.0 s."""
    policy = Politeness(min_delay=timedelta(0), factor=10.0)
    takes, left = {"a": 0.4, "b": 0.2, "c": 1.0}, {"a": 2, "b": 3, "c": 1}
    hosts = {name: HostState.new(name, name, i) for i, name in enumerate(takes)}
    clock, busy, log = 0.0, 0.0, []
    while any(left.values()):
        ready = {n: ((hosts[n].next_allowed_at or NOW) - NOW).total_seconds() for n in takes if left[n]}
        name = min(ready, key=lambda n: (max(ready[n], clock), n))
        start = max(clock, ready[name])
        clock = start + takes[name]
        busy += takes[name]
        left[name] -= 1
        log.append((name, round(start, 3)))
        end = NOW + timedelta(seconds=clock)
        hosts[name] = asked(hosts[name], at=end, took=takes[name], policy=policy, public=False)
    assert log == [("a", 0.0), ("b", 0.4), ("c", 0.6), ("b", 2.6), ("a", 4.4), ("b", 4.8)]
    assert (round(clock, 3), round(busy, 3), round(100 * busy / clock)) == (5.0, 2.4, 48)


# --- after a request ---


def test_the_next_request_is_allowed_one_gap_after_the_end() -> None:
    state = asked(new(), took=0.4)
    assert state.next_allowed_at == NOW + timedelta(seconds=4)
    assert (state.delay_ms, state.gap_rule, state.latency_ema_ms) == (4_000.0, "factor", 400.0)
    assert asked(state, took=0.9).latency_ema_ms == pytest.approx(500.0)


def test_faults_double_the_back_off_and_open_the_circuit_at_the_third() -> None:
    state, waits = new(), []
    for _ in range(14):
        state = asked(state, Outcome.CONNECT_TIMEOUT, took=0.0, status=None)
        assert state.next_allowed_at is not None
        waits.append((state.next_allowed_at - NOW).total_seconds())
        assert state.circuit == ("open" if state.consecutive_errors >= 3 else "closed")
    assert waits[:4] == [2.0, 4.0, 8.0, 16.0]
    assert waits[-1] == 3_600.0
    assert state.gap_rule == "backoff"
    assert asked(state, Outcome.NOT_FOUND, status=404).circuit == "closed"
    assert asked(state, Outcome.NOT_FOUND, status=404).backoff_until is None


def test_an_open_circuit_lets_one_canary_through_after_its_back_off() -> None:
    state = new()
    for _ in range(3):
        state = asked(state, Outcome.REFUSED, status=None)
    assert circuit_at(state, NOW) == "open"
    assert circuit_at(state, NOW + timedelta(seconds=8)) == "half_open"
    assert circuit_at(new(), NOW) == "closed"


def test_retry_after_is_kept_up_to_a_day_on_429_and_5xx_only() -> None:
    def wait(outcome: Outcome, status: int, ms: float) -> tuple[float, str]:
        state = asked(new(), outcome, status=status, retry_after_ms=ms)
        assert state.next_allowed_at is not None
        return (state.next_allowed_at - NOW).total_seconds(), state.gap_rule

    assert wait(Outcome.RATE_LIMITED, 429, 60_000.0) == (60.0, "retry_after")
    assert wait(Outcome.UNAVAILABLE, 503, 1e15) == (86_400.0, "retry_after")
    assert wait(Outcome.OK, 200, 60_000.0) == (1.0, "floor")
    assert wait(Outcome.RATE_LIMITED, 429, 100.0) == (2.0, "backoff")


def test_chance_only_lengthens_a_back_off() -> None:
    least, most = (asked(new(), Outcome.REFUSED, status=None, unit=u).delay_ms for u in (0.0, 0.999))
    assert 2_000 == least < most < 2_500


def paces(state: HostState, count: int, took: float = 0.05) -> list[float]:
    """Gaps in seconds after so many successes."""
    found = []
    for _ in range(count):
        state = asked(state, took=took)
        found.append(round(state.delay_ms / 1_000, 2))
    return found


def test_an_answer_429_halves_the_rate_and_each_success_makes_the_gap_a_tenth_shorter() -> None:
    state = asked(asked(new(), took=0.05), Outcome.RATE_LIMITED, took=0.05, status=429)
    assert state.slowed_ms == 2_000.0
    assert paces(state, 8) == [1.8, 1.62, 1.46, 1.31, 1.18, 1.06, 1.0, 1.0]


def test_a_host_that_was_down_for_days_is_asked_as_before_within_minutes() -> None:
    state = new()
    for _ in range(20):
        state = asked(state, Outcome.UNAVAILABLE, took=0.05, status=503)
    assert state.slowed_ms == 60_000.0
    gaps = paces(state, 40)
    assert gaps[0] == 54.0
    assert gaps == sorted(gaps, reverse=True)
    assert sum(gaps) < 600
    assert gaps[-2:] == [1.0, 1.0]
    assert asked(asked(state, Outcome.REFUSED, status=None), Outcome.NOT_FOUND, status=404).slowed_ms


def test_a_host_that_may_be_asked_without_a_gap_slows_down_and_comes_back_too() -> None:
    none = Politeness(min_delay=timedelta(0), factor=0.0)
    state = asked(new(), Outcome.RATE_LIMITED, status=429, policy=none, public=False)
    gaps = []
    for _ in range(30):
        state = asked(state, policy=none, public=False)
        gaps.append(state.delay_ms)
    assert gaps[0] == 180.0
    assert gaps == sorted(gaps, reverse=True)
    assert (gaps[-1], state.slowed_ms) == (0.0, None)


def test_a_fault_never_brings_the_next_request_nearer() -> None:
    slow = asked(new(), took=4.0)
    assert (slow.delay_ms, slow.gap_rule) == (40_000.0, "factor")
    pushed = asked(slow, Outcome.RATE_LIMITED, took=0.01, status=429)
    assert (pushed.delay_ms, pushed.gap_rule) == (80_000.0, "slowed")
    told = asked(new(), Outcome.UNAVAILABLE, status=503, retry_after_ms=300_000.0)
    again = asked(told, Outcome.UNAVAILABLE, status=503)
    assert (again.delay_ms, again.gap_rule) == (300_000.0, "retry_after")


@given(st.lists(st.sampled_from(sorted(HOST_FAULTS)), min_size=1, max_size=8), st.floats(0, 30))
@settings(max_examples=100)
def test_until_a_success_the_gap_only_grows(faults: list[Outcome], took: float) -> None:
    state, before = asked(new(), took=took), 0.0
    for outcome in faults:
        state = asked(state, outcome, took=0.01, status=None)
        assert state.delay_ms >= before
        before = state.delay_ms


def test_the_first_request_of_a_round_says_little_of_those_that_follow() -> None:
    def first(state: HostState, took: float) -> HostState:
        return after(
            state,
            finished_at=NOW,
            duration=timedelta(seconds=took),
            outcome=Outcome.OK,
            retry_after_ms=None,
            status=200,
            policy=POLICY,
            public=True,
            unit=0.0,
            first=True,
        )

    state = first(new(), 0.5)
    assert (state.first_ms, state.latency_ema_ms) == (500.0, 500.0)  # until something better is known
    state = first(asked(state, took=0.1), 1.0)
    assert (state.first_ms, state.latency_ema_ms) == (600.0, 100.0)
    assert state.delay_ms == 10_000.0  # the gap after it is that of any other


def test_what_a_gap_is_longer_than_it_has_to_be() -> None:
    def over(took: float, state: HostState) -> float:
        return excess(state, timedelta(seconds=took), POLICY, public=True).total_seconds()

    assert (over(0.05, new()), over(0.4, new())) == (0.0, 3.0)
    assert over(0.4, replace(new(), robots_delay_ms=3_500.0)) == 0.5
    assert over(100.0, new()) == 59.0


_EVENTS = st.tuples(st.sampled_from(list(Outcome)), st.floats(0, 100), st.none() | st.floats(0, 1e12))


@given(st.lists(_EVENTS, max_size=8), st.booleans())
@settings(max_examples=100)
def test_no_request_is_allowed_before_the_gap_is_over(
    story: list[tuple[Outcome, float, float | None]], public: bool
) -> None:
    state, at = replace(new(), robots_delay_ms=1_500.0), NOW
    for outcome, took, asks in story:
        status = 503 if outcome in HOST_FAULTS else 200
        state = asked(state, outcome, at=at, took=took, status=status, retry_after_ms=asks, public=public)
        wait, _ = gap(state, timedelta(seconds=took), POLICY, public=public)
        assert state.next_allowed_at is not None
        assert state.next_allowed_at >= at + max(wait, timedelta(seconds=1.5))
        assert state.delay_ms == pytest.approx((state.next_allowed_at - at) / timedelta(milliseconds=1))
        at = state.next_allowed_at


# --- rows ---


def test_a_host_is_a_row_of_the_table() -> None:
    state = replace(asked(new(), Outcome.REFUSED, status=None), addresses=("127.0.0.1",))
    row = state.to_row(3)
    assert set(row) == set(schema.HOSTS.names)
    assert row["round"] == 3
    assert HostState.from_row(row) == state


def test_a_row_read_back_knows_which_rule_was_in_force() -> None:
    for state in (
        new(),
        asked(new(), took=0.4),
        asked(replace(new(), robots_delay_ms=9_000.0)),
        asked(new(), Outcome.REFUSED, status=None),
        asked(asked(new(), Outcome.RATE_LIMITED, status=429)),
    ):
        assert HostState.from_row(state.to_row(1)).gap_rule == state.gap_rule


# --- Retry-After ---


@given(st.text(max_size=40))
@settings(max_examples=100)
def test_any_retry_after_is_a_wait_or_nothing(value: str) -> None:
    got = retry_after(value, NOW)
    assert got is None or got >= 0
