"""Which address a host is asked at, judged without a network; the rest is tested through the fetch stage."""

from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from typing import cast

import pytest

from crawl import policy
from crawl.fetching.addressing import Addressing
from crawl.fetching.hostqueue import HostQueue
from crawl.fetching.turns import Turns
from crawl.net.dns import Resolved, ResolveError, Resolver
from crawl.net.egress import Guard
from crawl.outcomes import Outcome
from crawl.politeness.clock import HostState

WALL = datetime(2026, 3, 1, tzinfo=UTC)
GOOD, BETTER = "93.184.216.34", "1.1.1.1"


class Clock:
    def now(self) -> datetime:
        return WALL

    def monotonic(self) -> float:
        return 100.0


def addressing(**hosts: str) -> Addressing:
    resolver = Resolver(policy.Dns(hosts={name.replace("_", "."): at for name, at in hosts.items()}))
    turns = Turns(1, Clock(), 1e6, lambda: True, 1.0)
    return Addressing(resolver, Guard(policy.Egress()), turns, inf)


def answer(*addresses: str, note: str | None = None, expires: float = 160.0) -> Resolved:
    return Resolved(addresses=addresses, ttl_s=60, expires=expires, cached=False, ms=1.0, note=note)


@pytest.fixture
def queue() -> HostQueue:
    return HostQueue(HostState.new("a.test", "a.test", 1))


def test_only_permitted_addresses_are_pinned_and_the_others_told(queue: HostQueue) -> None:
    pin = addressing().pin
    assert pin(queue, "http://a.test", answer(GOOD)) == (GOOD, None)
    assert pin(queue, "http://a.test", answer("10.0.0.1", GOOD, "::1")) == (GOOD, "10.0.0.1, ::1 refused")
    assert pin(queue, "http://a.test", answer("10.0.0.1", "::1")) == (None, "10.0.0.1, ::1")


def test_of_many_refused_addresses_some_are_told(queue: HostQueue) -> None:
    many = [f"10.0.0.{i}" for i in range(20)]
    told = ", ".join(many[:8]) + " and 12 more"
    assert addressing().pin(queue, "http://a.test", answer(*many)) == (None, told)
    assert addressing().pin(queue, "http://a.test", answer(*many, GOOD)) == (GOOD, f"{told} refused")


def test_a_port_that_may_not_be_asked_is_told_with_its_address(queue: HostQueue) -> None:
    pin = addressing().pin
    assert pin(queue, "http://a.test:25", answer(GOOD, "10.0.0.1")) == (None, f"{GOOD} port 25, 10.0.0.1")
    assert pin(queue, "https://a.test:8443", answer(GOOD)) == (GOOD, None)


def test_what_the_resolver_left_out_stands_beside_what_was_refused(queue: HostQueue) -> None:
    pin = addressing().pin
    assert pin(queue, "http://a.test", answer(GOOD, note="cut")) == (GOOD, "cut")
    assert pin(queue, "http://a.test", answer(GOOD, "::1", note="cut")) == (GOOD, "cut; ::1 refused")


def test_after_a_fault_the_next_permitted_address_is_asked(queue: HostQueue) -> None:
    found = answer(GOOD, "10.0.0.1", BETTER)
    pins = []
    for queue.faults in range(4):
        pins.append(addressing().pin(queue, "http://a.test", found)[0])
    assert pins == [GOOD, BETTER, GOOD, BETTER]


def test_what_is_kept_serves_the_next_turn_once_and_goes_into_the_hosts_row(queue: HostQueue) -> None:
    made = addressing()
    assert made.known(queue) is None
    made.keep(queue, answer(GOOD, expires=160.0))
    assert cast(Resolved, made.known(queue)).addresses == (GOOD,)
    assert queue.touched
    assert queue.state.addresses == (GOOD,)
    assert queue.state.addresses_expire_at == WALL.replace(minute=1), "60 s from now"
    assert made.known(queue) is None
    before = queue.state
    made.keep(queue, ResolveError(Outcome.DNS_TIMEOUT, "no answer"))
    assert isinstance(made.known(queue), ResolveError)
    assert queue.state is before, "what is known of it stands"


def test_what_the_operator_lists_is_no_news_for_the_hosts_row(queue: HostQueue) -> None:
    queue.state = replace(queue.state, addresses=(BETTER,))
    assert cast(Resolved, addressing(a_test=GOOD).known(queue)).addresses == (GOOD,)
    assert not queue.touched
