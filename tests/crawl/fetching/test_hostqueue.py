from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crawl.fetching.hostqueue import Ask, HostQueue
from crawl.policy import Politeness
from crawl.politeness.clock import HostState
from crawl.records import Fetch, Planned

NOW = datetime(2026, 3, 1, tzinfo=UTC)
POLITE = Politeness(min_delay=timedelta(seconds=1), factor=0.0)


def planned(key: int, origin: str = "http://a.test") -> Planned:
    return Planned(
        url_key=key,
        url=f"{origin}/{key}",
        origin=origin,
        host="a.test",
        domain="a.test",
        position=key,
        depth=0,
    )


def ask(key: int, kind: str = "page") -> Ask:
    return Ask(
        kind=kind,
        url=f"http://a.test/{key}",
        url_key=key,
        origin="http://a.test",
        host="a.test",
        domain="a.test",
        chain_id=key,
    )


def queue() -> HostQueue:
    return HostQueue(HostState.new("a.test", "a.test", 1))


def ended(outcome: str = "OK", status: int | None = 200, kind: str = "page") -> Fetch:
    return Fetch(
        kind=kind,
        url="http://a.test/1",
        url_key=1,
        origin="http://a.test",
        host="a.test",
        domain="a.test",
        attempt=1,
        chain_id=1,
        hop=0,
        started_at=NOW,
        finished_at=NOW + timedelta(seconds=2),
        required_gap_ms=0.0,
        gap_rule="none",
        total_ms=2000.0,
        outcome=outcome,
        policy_version="p",
        status=status,
    )


def test_robots_come_first_then_hops_then_the_plan_and_what_is_not_wanted_is_left_out() -> None:
    host = queue()
    host.planned.extend([planned(1), planned(2), planned(3)])
    host.hops.append(ask(10))
    host.robots.append(ask(20, "robots"))
    order = []
    while (item := host.next(lambda i: i.url_key != 2, lambda origin: False)) is not None:
        order.append(item.url_key)
    assert order == [20, 10, 1, 3]
    assert not host


def test_a_blocked_origin_holds_pages_but_not_robots() -> None:
    host = queue()
    host.planned.append(planned(1))
    assert host.next(lambda i: True, lambda origin: True) is None
    host.robots.append(ask(20, "robots"))
    found = host.next(lambda i: True, lambda origin: True)
    assert found is not None
    assert found.url_key == 20
    assert host


def test_what_is_put_back_comes_first_again() -> None:
    host = queue()
    host.planned.append(planned(1))
    host.put_back(ask(9))
    host.put_back(ask(8, "robots"))
    keys = [host.next(lambda i: True, lambda origin: False) for _ in range(3)]
    assert [item.url_key for item in keys if item] == [8, 9, 1]


def test_a_request_teaches_the_gap_and_counts() -> None:
    host = queue()
    host.settle(ended(), POLITE, public=False, unit=0.0, fault=True)
    assert host.state.next_allowed_at == NOW + timedelta(seconds=3)
    assert (host.pages, host.touched, host.last_end) == (1, True, NOW + timedelta(seconds=2))
    host.settle(ended(kind="robots"), POLITE, public=False, unit=0.0, fault=True)
    assert host.pages == 1


def test_a_fault_that_says_nothing_about_the_host_costs_one_gap_only() -> None:
    host = queue()
    host.settle(ended("RESET", None), POLITE, public=False, unit=0.0, fault=False)
    assert host.state.consecutive_errors == 0
    assert host.state.next_allowed_at == NOW + timedelta(seconds=3)
    host.settle(ended("REFUSED", None), POLITE, public=False, unit=0.0, fault=True)
    assert (host.state.consecutive_errors, host.faults) == (1, 1)


def test_a_round_tells_by_how_much_its_gaps_were_longer_than_they_had_to_be() -> None:
    quick = Politeness(min_delay=timedelta(seconds=1), factor=2.0)
    host = queue()
    assert host.pace() is None
    for _ in range(11):
        host.settle(ended(), quick, public=False, unit=0.0, fault=True)
    # twice two seconds, beyond one; not after the first
    assert (host.spans, host.excess_ms, host.pace()) == (10, 30_000.0, 1_500.0)
    host.state = replace(host.state, excess_ms=1_000.0)
    assert host.pace() == 2_000.0
    assert host.state.first_ms == 2_000.0


def test_an_open_circuit_gets_one_canary_a_round_and_closes_if_it_succeeds() -> None:
    host = queue()
    for _ in range(3):
        host.settle(ended("REFUSED", None), POLITE, public=False, unit=0.0, fault=True)
    assert (host.state.circuit, host.shut) == ("open", False)
    host.settle(ended("RESET", None), POLITE, public=False, unit=0.0, fault=False)
    assert not host.shut  # a kept connection that had died is no canary
    half = HostQueue(host.state)
    half.settle(ended(kind="robots"), POLITE, public=False, unit=0.0, fault=True)
    assert (half.state.circuit, half.state.consecutive_errors, half.shut) == ("open", 3, False)
    recovered = HostQueue(half.state)
    recovered.settle(ended(), POLITE, public=False, unit=0.0, fault=True)
    assert (recovered.state.circuit, recovered.shut) == ("closed", False)
    host.settle(ended("REFUSED", None), POLITE, public=False, unit=0.0, fault=True)
    assert (host.state.circuit, host.shut) == ("open", True)


def test_a_crawl_delay_learnt_after_the_last_request_counts_from_its_end() -> None:
    host = queue()
    host.settle(ended(kind="robots"), POLITE, public=False, unit=0.0, fault=True)
    host.delay("http://a.test", 7.0)
    assert host.state.next_allowed_at == NOW + timedelta(seconds=9)
    assert (host.state.delay_ms, host.state.gap_rule) == (7000.0, "crawl_delay")
    host.delay("https://a.test", 3.0)
    assert host.state.robots_delay_ms == 7000.0
    host.delay("http://a.test", None)
    assert host.state.robots_delay_ms == 3000.0
    assert host.state.next_allowed_at == NOW + timedelta(seconds=9)


def test_holding_a_host_never_shortens_its_wait() -> None:
    host = queue()
    host.hold(NOW)
    host.hold(NOW - timedelta(seconds=5))
    assert host.state.next_allowed_at == NOW
