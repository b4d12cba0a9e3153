"""What the lanes of one host tell each other, and what stays each lane's own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.fetching.hostqueue import HostQueue
from crawl.fetching.lanes import Lanes, folded, lanes_of
from crawl.policy import Politeness
from crawl.politeness.clock import HostState
from crawl.records import Fetch

NOW = datetime(2026, 3, 1, tzinfo=UTC)
S = timedelta(seconds=1)
POLITE = Politeness(min_delay=1 * S, factor=2.0, backoff_base=4 * S)


def lanes(number: int = 3, **state: Any) -> Lanes:
    return Lanes(HostQueue(HostState.new("a.test", "a.test", 1).but(**state)), number)


def at(moment: datetime | None) -> float | None:
    """Seconds from NOW."""
    return None if moment is None else (moment - NOW).total_seconds()


def times(of: Lanes) -> list[float | None]:
    return [at(lane.state.next_allowed_at) for lane in of.all]


def request(lane: int, start: float, end: float, outcome: str = "OK", **more: Any) -> Fetch:
    """A request of this lane; times in seconds from NOW."""
    status = {"OK": 200, "NOT_FOUND": 404, "RATE_LIMITED": 429, "SERVER_ERROR": 500}.get(outcome)
    values: dict[str, Any] = {"kind": "page", "required_gap_ms": 0.0, **more}
    return Fetch(
        url="http://a.test/1",
        url_key=1,
        origin="http://a.test",
        host="a.test",
        domain="a.test",
        attempt=1,
        chain_id=1,
        hop=0,
        started_at=NOW + start * S,
        finished_at=NOW + end * S,
        gap_rule="none",
        total_ms=(end - start) * 1e3,
        outcome=outcome,
        policy_version="p",
        status=status,
        lane=lane,
        **values,
    )


def end(of: Lanes, lane: int, start: float, end: float, outcome: str = "OK", **more: Any) -> None:
    """A request of this lane ends."""
    record = request(lane, start, end, outcome, **more)
    of.settling(of.all[lane])(record, POLITE, public=False, unit=0.0, fault=True)


def test_lanes_share_what_is_to_be_asked_and_begin_with_the_state_of_their_host() -> None:
    of = lanes(latency_ema_ms=70.0)
    first, *others = of.all
    assert [lane.lane for lane in of.all] == [0, 1, 2]
    for other in others:
        assert (other.planned is first.planned, other.hops is first.hops) == (True, True)
        assert (other.robots is first.robots, other.delays is first.delays) == (True, True)
        assert other.state.latency_ema_ms == 70.0
    assert list(lanes_of(first)) == of.all
    assert of.of(request(2, 0, 1)) is of.all[2]
    alone = HostQueue(first.state)
    assert (list(lanes_of(alone)), folded(alone)) == ([alone], alone)


def test_each_lane_keeps_its_own_gap_and_all_learn_how_long_the_host_takes() -> None:
    of = lanes()
    end(of, 0, 0, 1)
    end(of, 1, 0, 3)
    assert times(of) == [3.0, 9.0, None]
    assert [lane.state.delay_ms for lane in of.all] == [2_000.0, 6_000.0, 0.0]
    assert len({lane.state.latency_ema_ms for lane in of.all}) == 1
    assert all(lane.answered for lane in of.all)
    assert list(of.open(of.all[0])) == of.all


def test_an_answer_429_cools_all_lanes_those_under_way_included() -> None:
    of = lanes()
    end(of, 0, 0, 0.5)
    of.began(of.all[1], ())
    of.began(of.all[2], ())
    end(of, 2, 0, 1, "RATE_LIMITED", retry_after_ms=30_000.0)
    assert times(of) == [31.0, 31.0, 31.0]
    assert [lane.state.gap_rule for lane in of.all] == ["retry_after"] * 3
    assert {lane.state.slowed_ms for lane in of.all} == {of.all[2].state.slowed_ms}
    end(of, 1, 0, 2)  # sent before anybody knew: clears nothing
    assert times(of) == [31.0, 31.0, 31.0]
    assert of.all[1].state.delay_ms == 29_000.0
    assert {lane.state.consecutive_errors for lane in of.all} == {1}
    assert {at(lane.state.backoff_until) for lane in of.all} == {31.0}
    assert of.all[0].state.slowed_ms is not None


def test_faults_at_one_time_count_as_one_and_the_longest_wait_holds() -> None:
    of = lanes()
    for lane in of.all:
        of.began(lane, ())
    end(of, 0, 0, 1, "RATE_LIMITED")
    slowed = of.all[0].state.slowed_ms
    end(of, 1, 0, 1.5, "RATE_LIMITED", retry_after_ms=20_000.0)
    end(of, 2, 0, 2, "TIMEOUT")
    for lane in of.all:
        assert (lane.state.consecutive_errors, lane.state.circuit) == (1, "closed")
        # the gap that an answer on another lane made is one that no fault shortens
        assert at(lane.state.next_allowed_at) == 22.0
        assert at(lane.state.backoff_until) == 21.5
        # doubled once: of the longer of the two gaps
        assert (slowed, lane.state.slowed_ms) == (4_000.0, 6_000.0)


def test_after_a_fault_one_lane_asks_and_the_others_follow_a_gap_after_its_success() -> None:
    of = lanes()
    for lane in of.all:
        of.began(lane, ())
    end(of, 0, 0, 1, "SERVER_ERROR")
    assert not of.admits()  # two are still under way
    end(of, 1, 0, 1.2)
    end(of, 2, 0, 1.4)
    assert of.admits()
    assert list(of.open(of.all[1])) == [of.all[1]]
    of.began(of.all[1], ())
    assert not of.admits()
    end(of, 1, 9, 10)
    assert of.admits()
    assert list(of.open(of.all[1])) == of.all
    assert times(of) == [12.0, 12.0, 12.0]


def test_the_circuit_opens_for_all_and_a_canary_that_fails_shuts_all() -> None:
    of = lanes()
    end(of, 0, 0, 1, "TIMEOUT")
    end(of, 1, 10, 11, "TIMEOUT")
    end(of, 2, 30, 31, "TIMEOUT")
    assert {lane.state.circuit for lane in of.all} == {"open"}
    assert not any(lane.shut for lane in of.all)
    end(of, 0, 100, 101, "TIMEOUT")
    assert all(lane.shut for lane in of.all)


def test_the_circuit_closes_for_all_when_its_canary_succeeds_and_robots_txt_is_none() -> None:
    of = lanes(circuit="open", consecutive_errors=3, backoff_until=NOW)
    end(of, 1, 1, 2, kind="robots")
    assert {(lane.state.circuit, lane.state.consecutive_errors) for lane in of.all} == {("open", 3)}
    end(of, 2, 5, 6)
    assert {(lane.state.circuit, lane.state.consecutive_errors) for lane in of.all} == {("closed", 0)}


def test_a_crawl_delay_counts_from_the_last_end_on_any_lane_and_leaves_one_request_at_a_time() -> None:
    of = lanes()
    end(of, 0, 0, 1)
    end(of, 1, 0, 2)
    of.all[0].delay("http://a.test", 10.0)
    of.delayed(of.all[0])
    assert times(of) == [12.0, 12.0, 12.0]
    assert {lane.state.gap_rule for lane in of.all} == {"crawl_delay"}
    of.began(of.all[2], ())
    assert not of.admits()
    end(of, 2, 12, 12.5)
    assert times(of) == [22.5, 22.5, 22.5]
    assert of.admits()
    of.all[1].delay("http://a.test", None)
    of.delayed(of.all[1])
    assert list(of.open(of.all[1])) == of.all


def test_what_a_lane_learns_of_addresses_the_others_are_told() -> None:
    of = lanes()
    of.all[1].state = of.all[1].state.but(addresses=("192.0.2.7",))
    of.tell(of.all[1])
    assert {lane.state.addresses for lane in of.all} == {("192.0.2.7",)}


def test_a_request_given_up_says_what_is_to_be_forgotten() -> None:
    of = lanes()
    of.began(of.all[0], (7,))
    assert (of.ended(of.all[0]), of.ended(of.all[0])) == ((7,), ())


def test_one_row_tells_what_all_lanes_taught_so_that_no_lane_comes_early_in_the_next_round() -> None:
    of = lanes()
    end(of, 0, 0, 3)
    end(of, 1, 0, 1)
    end(of, 1, 8, 8.5)
    whole = folded(of.all[2])
    assert (whole.pages, whole.spans, whole.touched) == (3, 1, True)
    # six seconds after the first, from the end of the last
    assert (at(whole.state.next_allowed_at), whole.state.delay_ms) == (14.5, 6_000.0)
    assert whole.pace() == pytest.approx(0.0)


def test_of_lanes_that_asked_nothing_the_row_is_the_one_before() -> None:
    of = lanes(next_allowed_at=NOW, delay_ms=20.0)
    whole = folded(of.all[0])
    assert (whole.touched, whole.state) == (False, of.all[0].state)
    assert folded(lanes().all[0]).state.next_allowed_at is None


# --- any requests in any order ------------------------------------------------------------------------------

#: what Retry-After says where one is sent
OUTCOMES = {"OK": 0.0, "NOT_FOUND": 0.0, "TIMEOUT": 0.0, "SERVER_ERROR": 3.0, "RATE_LIMITED": 8.0}
OFTEN = ["OK", "OK", "OK", "RATE_LIMITED", *OUTCOMES]


def played(rounds: list[list[tuple[float, str, bool]]], number: int) -> list[Fetch | None]:
    """Requests of some rounds, each begun as early as may be: (duration, outcome, with Retry-After)."""
    state, now = HostState.new("a.test", "a.test", 1), 0.0
    made: list[Fetch | None] = []
    for asked in rounds:
        of = Lanes(HostQueue(state), number)
        under_way: list[Fetch] = []

        def settle(until: float, of: Lanes = of, under_way: list[Fetch] = under_way) -> None:
            for record in sorted(under_way, key=lambda one: one.finished_at):
                if record.finished_at <= NOW + until * S:
                    under_way.remove(record)
                    lane = of.all[record.lane or 0]
                    of.settling(lane)(record, POLITE, public=False, unit=0.5, fault=True)

        for duration, outcome, told in asked:
            while True:
                free = [lane for lane in of.all if lane.lane not in {r.lane for r in under_way}]
                start = min((max(at(lane.state.next_allowed_at) or 0.0, now) for lane in free), default=1e9)
                first = min((at(r.finished_at) or 0.0 for r in under_way), default=1e9)
                if first <= start or not of.admits():
                    now = max(now, first)
                    settle(now)
                    continue
                lane = min(free, key=lambda lane: max(at(lane.state.next_allowed_at) or 0.0, now))
                break
            now = start
            wait = OUTCOMES[outcome] if told else 0.0
            record = replace(
                request(lane.lane or 0, now, now + duration, outcome),
                required_gap_ms=0.0 if lane.state.next_allowed_at is None else lane.state.delay_ms,
                retry_after_ms=wait * 1e3 if wait else None,
            )
            of.began(lane, ())
            under_way.append(record)
            made.append(record)
        settle(1e8)
        now = max([now, *(at(r.finished_at) or 0.0 for r in made if r)])
        state = folded(of.all[0]).state
        made.append(None)  # the round is over
    return made


@hypothesis(max_examples=100, deadline=None)
@given(
    rounds=st.lists(
        st.lists(
            st.tuples(
                st.floats(0.01, 9).map(lambda s: round(s, 3)),
                st.sampled_from(OFTEN),
                st.booleans(),
            ),
            min_size=3,
            max_size=12,
        ),
        min_size=1,
        max_size=3,
    ),
    number=st.integers(2, 4),
)
@example(rounds=[[(1.0, "RATE_LIMITED", False), (2.0, "OK", False), (1.0, "OK", False)]], number=2)
def test_no_request_of_any_lane_comes_before_its_time(
    rounds: list[list[tuple[float, str, bool]]], number: int
) -> None:
    before: list[Fetch] = []
    of_round: list[Fetch] = []
    for record in played(rounds, number):
        if record is None:
            before, of_round = before + of_round, []
            continue
        own = [r for r in of_round if r.lane == record.lane] or before
        for other in own:
            assert record.started_at >= other.finished_at + record.required_gap_ms * 1e-3 * S
        for other in own[-1:]:
            least = max(1.0, 2 * (other.finished_at - other.started_at).total_seconds())
            least = max(least, (other.retry_after_ms or 0.0) / 1e3)
            assert record.required_gap_ms >= least * 1e3 - 1
        for other in [*before, *of_round]:
            if other.finished_at <= record.started_at:
                wait = max(
                    (other.retry_after_ms or 0.0) / 1e3, 8.0 if other.outcome == "RATE_LIMITED" else 0.0
                )
                assert record.started_at >= other.finished_at + wait * S
        of_round.append(record)
    every = before + of_round
    for one in every:
        assert sum(r.started_at <= one.started_at < r.finished_at for r in every) <= number
