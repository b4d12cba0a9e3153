"""Second tries of a round: which failures get one, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crawl.fetching.hostqueue import HostQueue
from crawl.fetching.secondtries import SecondTries
from crawl.outcomes import TABLE, Outcome
from crawl.policy import Retry
from crawl.politeness.clock import HostState
from tests.crawl.fetching.test_chains import ask
from tests.crawl.fetching.test_robotswatch import NOW, record

SECOND = timedelta(seconds=1)


def queue(**changes: Any) -> HostQueue:
    return HostQueue(HostState.new("a.test", "a.test", 1), **{"answered": True, **changes})


def failed(outcome: Outcome, tries: SecondTries, host: HostQueue, **changes: Any) -> None:
    page = ask("http://a.test/x")
    told = replace(record(page, outcome, None), kind="page", **changes)
    tries.consider(told, lambda one: replace(page, attempt=one.attempt + 1), host, 0.5)


def test_a_try_falls_due_after_its_rules_delay_which_doubles() -> None:
    for attempt, wait in ((1, 60), (2, 120), (3, 240), (4, 480)):
        tries, host = SecondTries(Retry()), queue()
        failed(Outcome.RESET, tries, host, attempt=attempt)
        assert tries.due(NOW + (wait - 1) * SECOND) == []
        assert tries.due(NOW + wait * SECOND) == [host]
        assert [one.attempt for one in host.hops] == [attempt + 1]
        assert tries.due(NOW + wait * SECOND) == []


def test_attempts_end_where_the_rule_or_the_operator_says() -> None:
    for attempts, last in ((5, 5), (2, 2)):
        tries, host = SecondTries(Retry(attempts=attempts)), queue()
        failed(Outcome.RESET, tries, host, attempt=last)
        assert tries.due(NOW + timedelta(days=9)) == []


@pytest.mark.parametrize("outcome", [o for o in Outcome if not TABLE[o].in_round])
def test_what_a_server_said_is_not_asked_twice_in_a_round(outcome: Outcome) -> None:
    tries = SecondTries(Retry())
    failed(outcome, tries, queue())
    assert tries.due(NOW + timedelta(days=9)) == []


def test_what_came_in_part_is_not_asked_twice_in_a_round() -> None:
    tries = SecondTries(Retry())
    failed(Outcome.RESET, tries, queue(), bytes=7, truncated=True)
    assert tries.due(NOW + timedelta(days=9)) == []


def test_a_host_that_says_nothing_or_is_shut_off_is_left_to_the_next_round() -> None:
    shut = replace(queue().state, circuit="open")
    for host in (queue(answered=False), HostQueue(shut, answered=True)):
        tries = SecondTries(Retry(patience=timedelta(hours=1)))
        failed(Outcome.RESET, tries, host)
        assert not tries.worth_waiting(NOW)
        assert tries.due(NOW + timedelta(days=9)) == []
        assert not host.hops


def test_patience_says_how_long_a_try_is_worth_waiting_for() -> None:
    tries = SecondTries(Retry(patience=30 * SECOND))
    failed(Outcome.RESET, tries, queue())
    assert not tries.worth_waiting(NOW + 29 * SECOND)
    assert tries.worth_waiting(NOW + 30 * SECOND)
    assert not SecondTries(Retry()).worth_waiting(NOW)
