"""The life of a URL: every state against every outcome."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.lifecycle import MOVES, NEVER, Moved, State, next_state, next_states, spent
from crawl.outcomes import TABLE, Outcome
from crawl.policy import Recrawl, Retry

DAY = 86_400_000_000
RETRY, RECRAWL = Retry(), Recrawl()
HOST = [o for o, rule in TABLE.items() if rule.against == "host"]
URL = [o for o, rule in TABLE.items() if rule.against == "url"]
ABSENT = [Outcome.NOT_FOUND, Outcome.GONE]


def test_the_table_is_total() -> None:
    assert set(MOVES) == {(s, o) for s in State for o in Outcome}


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("used_up", [False, True])
def test_every_move_obeys_the_rules(state: State, outcome: Outcome, used_up: bool) -> None:
    after = next_state(state, outcome, spent=used_up)
    rule = TABLE[outcome]
    # patience matters for faults of the URL alone
    if rule.against != "url":
        assert after is next_state(state, outcome, spent=not used_up)
    # an end is reached only by the URL's own faults, and only when patience is spent
    if after is State.GONE and state is not State.GONE:
        assert outcome in ABSENT
        assert used_up
    if after is State.TERMINAL and state is not State.TERMINAL:
        assert rule.against == "url"
        assert rule.final is State.TERMINAL
        assert used_up
    if after is State.BLOCKED and state is not State.BLOCKED:
        assert not rule.asked
        assert rule.final is State.BLOCKED
    if after is State.QUARANTINED and state is not State.QUARANTINED:
        assert rule.final is State.QUARANTINED
    # nobody is discovered twice
    if after is State.DISCOVERED:
        assert state is State.DISCOVERED
        assert not rule.asked
    # an answer always counts, whatever was believed before
    if outcome in (Outcome.OK, Outcome.REDIRECT):
        assert after is State.FETCHED


@pytest.mark.parametrize("outcome", HOST)
def test_a_fault_of_the_host_moves_no_page_that_ever_answered(outcome: Outcome) -> None:
    for used_up in (False, True):
        assert next_state(State.FETCHED, outcome, spent=used_up) is State.FETCHED


def test_an_unreachable_robots_file_moves_nothing() -> None:
    for state in State:
        assert next_state(state, Outcome.ROBOTS_UNREACHABLE) is state


def test_robots_block_whatever_is_alive() -> None:
    alive = [State.DISCOVERED, State.FETCHED, State.FAILED_RETRYABLE, State.BLOCKED, State.QUARANTINED]
    assert {next_state(s, Outcome.ROBOTS_DENIED) for s in alive} == {State.BLOCKED}


@pytest.mark.parametrize("outcome", [Outcome.SERVER_ERROR, Outcome.TIMEOUT, Outcome.MALFORMED])
def test_a_page_that_answered_once_survives_any_number_of_server_errors(outcome: Outcome) -> None:
    assert next_state(State.FETCHED, outcome, spent=True) is State.FETCHED


def one(
    state: State,
    outcome: Outcome,
    *,
    last: Outcome | None = None,
    attempts: int = 0,
    sightings: int = 0,
    since: int = NEVER,
    confirmed: int = 0,
    now: int = 0,
) -> Moved:
    return next_states(
        [state],
        [outcome],
        last_outcomes=[last],
        attempts=np.array([attempts], np.int32),
        gone_sightings=np.array([sightings], np.int32),
        gone_since=np.array([since], np.int64),
        confirmed=np.array([confirmed], np.int64),
        now=now,
        retry=RETRY,
        recrawl=RECRAWL,
    )


def story(*events: tuple[Outcome, float], state: State = State.FETCHED) -> list[str]:
    """States after each (outcome, day)."""
    last: Outcome | None = Outcome.OK if state is State.FETCHED else None
    attempts, sightings, since, confirmed, states = 0, 0, NEVER, 0, []
    for outcome, day in events:
        now = int(day * DAY)
        moved = one(
            state,
            outcome,
            last=last,
            attempts=attempts,
            sightings=sightings,
            since=since,
            confirmed=confirmed,
            now=now,
        )
        state, last = State(moved.states[0].as_py()), outcome
        attempts, sightings, since = (
            int(moved.attempts[0]),
            int(moved.gone_sightings[0]),
            int(moved.gone_since[0]),
        )
        if TABLE[outcome].against == "none" and TABLE[outcome].asked:
            confirmed = now
        states.append(state.value)
    return states


def test_a_404_page_is_gone_at_the_third_sighting_over_a_day() -> None:
    n = Outcome.NOT_FOUND
    assert story((n, 7), (n, 7.5), (n, 8)) == ["FETCHED", "FETCHED", "GONE"]
    assert story((n, 7), (n, 7.1), (n, 7.2), (n, 7.3), (n, 8)) == ["FETCHED"] * 4 + ["GONE"]


def test_a_410_page_is_gone_at_the_second_sighting_over_a_day() -> None:
    g = Outcome.GONE
    assert story((g, 7), (g, 8)) == ["FETCHED", "GONE"]
    assert story((g, 7), (g, 7.9)) == ["FETCHED", "FETCHED"]


def test_an_answer_takes_back_the_evidence() -> None:
    n, ok = Outcome.NOT_FOUND, Outcome.OK
    assert story((n, 7), (n, 8), (ok, 9), (n, 10), (n, 11), (n, 12))[-2:] == ["FETCHED", "GONE"]
    assert story((n, 7), (n, 8), (Outcome.NOT_MODIFIED, 9), (n, 10), (n, 11))[-1] == "FETCHED"


def test_faults_of_the_host_neither_add_to_the_evidence_nor_take_it_back() -> None:
    n, t = Outcome.NOT_FOUND, Outcome.CONNECT_TIMEOUT
    assert story((n, 7), (t, 8), (t, 9), (n, 10))[-1] == "FETCHED"
    assert story((n, 7), (t, 8), (n, 9), (n, 10))[-1] == "GONE"


def test_a_gone_page_that_answers_is_alive_again() -> None:
    n = Outcome.NOT_FOUND
    assert story((n, 1), (n, 2), (n, 3), (Outcome.OK, 60))[-2:] == ["GONE", "FETCHED"]


@given(
    st.lists(st.sampled_from(HOST), min_size=1, max_size=12),
    st.sampled_from([State.FETCHED, State.DISCOVERED]),
)
@settings(max_examples=100)
def test_no_outage_ends_a_url_and_one_fault_of_its_own_after_it_neither(
    outage: list[Outcome], state: State
) -> None:
    events = [(outcome, float(day)) for day, outcome in enumerate([*outage, Outcome.SERVER_ERROR], 3)]
    ends = {State.GONE, State.TERMINAL, State.BLOCKED, State.QUARANTINED}
    assert not set(story(*events, state=state)) & ends


def test_a_url_that_never_answered_is_given_up_after_five_server_errors_over_a_day() -> None:
    s = Outcome.SERVER_ERROR
    quick = story(*[(s, 0.01 * i) for i in range(8)], state=State.DISCOVERED)
    assert set(quick) == {"FAILED_RETRYABLE"}
    slow = story(*[(s, 0.3 * i) for i in range(5)], state=State.DISCOVERED)
    assert slow == ["FAILED_RETRYABLE"] * 4 + ["TERMINAL"]


def test_a_decision_not_to_ask_is_no_failure() -> None:
    moved = one(
        State.FETCHED, Outcome.ROBOTS_DENIED, last=Outcome.TIMEOUT, attempts=3, sightings=1, since=5, now=9
    )
    assert (moved.attempts[0], moved.gone_sightings[0], moved.gone_since[0]) == (3, 1, 5)


def test_what_is_no_state_is_refused() -> None:
    with pytest.raises(ValueError, match="DISCOVERED"):
        next_states(
            ["LOST"],
            ["OK"],
            last_outcomes=[None],
            attempts=np.zeros(1, np.int32),
            gone_sightings=np.zeros(1, np.int32),
            gone_since=np.zeros(1, np.int64),
            confirmed=np.zeros(1, np.int64),
            now=0,
            retry=RETRY,
            recrawl=RECRAWL,
        )


_ROW = st.tuples(
    st.sampled_from(list(State)),
    st.sampled_from(list(Outcome)),
    st.none() | st.sampled_from(list(Outcome)),
    st.integers(0, 6),
    st.integers(0, 4),
    st.sampled_from([NEVER, 0, DAY, 2 * DAY]),
    st.sampled_from([0, DAY, 2 * DAY]),
)


@given(st.lists(_ROW, max_size=20))
@settings(max_examples=100)
def test_columns_move_as_single_urls_do(
    rows: list[tuple[State, Outcome, Outcome | None, int, int, int, int]],
) -> None:
    now = 2 * DAY
    moved = next_states(
        [r[0].value for r in rows],
        [r[1].value for r in rows],
        last_outcomes=[None if r[2] is None else r[2].value for r in rows],
        attempts=np.array([r[3] for r in rows], np.int32),
        gone_sightings=np.array([r[4] for r in rows], np.int32),
        gone_since=np.array([r[5] for r in rows], np.int64),
        confirmed=np.array([r[6] for r in rows], np.int64),
        now=now,
        retry=RETRY,
        recrawl=RECRAWL,
    )
    for i, (state, outcome, _, _, _, _, confirmed) in enumerate(rows):
        since = int(moved.gone_since[i])
        used_up = spent(
            outcome,
            attempts=int(moved.attempts[i]),
            unconfirmed=timedelta(microseconds=now - confirmed),
            gone_sightings=int(moved.gone_sightings[i]),
            gone_for=timedelta(0) if since == NEVER else timedelta(microseconds=now - since),
            retry=RETRY,
            recrawl=RECRAWL,
        )
        assert moved.states[i].as_py() == next_state(state, outcome, spent=used_up).value
