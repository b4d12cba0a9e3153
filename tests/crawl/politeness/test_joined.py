"""Hosts with one clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crawl.policy import Politeness
from crawl.politeness.clock import HostState
from crawl.politeness.joined import Groups, Joined

NOW = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = Politeness(min_delay=timedelta(seconds=1), factor=0.0)


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def member(host: str = "a.test", **columns: object) -> HostState:
    return replace(HostState.new(host, host, 1), **columns)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("a.test", "news"),
        ("www.a.test", None),
        ("b.test", "news"),
        ("x.y.b.test", "news"),
        ("xb.test", None),
        ("shop.c.test", "shops"),
        ("c.test", None),
        ("127.0.0.1", "shops"),
        ("", None),
    ],
)
def test_a_host_is_named_or_lies_below_a_name(host: str, group: str | None) -> None:
    groups = Groups({"news": ["a.test", "*.b.test"], "shops": ["shop.c.test", "127.0.0.1"]})
    assert groups.of(host) == group


def test_a_domain_is_near_the_groups_that_its_hosts_may_be_in() -> None:
    groups = Groups({"news": ["a.test", "*.x.b.test"], "shops": ["shop.b.test"]})
    assert (list(groups.near("b.test")), list(groups.near("c.test"))) == (["news", "shops"], [])
    assert groups
    assert not Groups({})


def test_the_next_request_to_any_member_waits_for_the_gap_of_the_last_to_whichever() -> None:
    clock = Joined("news")
    assert (clock.gap_ms, clock.allowed_at) == (0.0, None)
    clock.asked(member("a.test"), NOW, s(1))
    clock.asked(member("b.test"), NOW + s(1.5), s(3))
    assert (clock.allowed_at, clock.gap_ms) == (NOW + s(4.5), 3_000.0)


def test_the_longest_crawl_delay_of_a_member_holds_for_all_until_it_is_taken_back() -> None:
    clock = Joined("news")
    clock.asked(member("a.test"), NOW, s(1))
    clock.delay(member("b.test", robots_delay_ms=7_000.0))
    assert (clock.allowed_at, clock.gap_ms) == (NOW + s(7), 7_000.0)
    clock.asked(member("a.test"), NOW + s(8), s(1))
    assert clock.allowed_at == NOW + s(15)
    clock.delay(member("b.test"))
    clock.asked(member("a.test"), NOW + s(16), s(1))
    assert clock.allowed_at == NOW + s(17)


def test_what_a_member_that_pushed_back_must_be_spared_all_are_spared() -> None:
    clock = Joined("news")
    clock.asked(member("a.test", slowed_ms=4_000.0), NOW, s(60))
    assert clock.allowed_at == NOW + s(60)
    clock.asked(member("b.test"), NOW + s(60), s(1))
    assert clock.allowed_at == NOW + s(64)


def test_a_group_goes_on_where_its_members_were_left() -> None:
    clock = Joined("news")
    clock.adopt(member("new.test"), POLICY, public=True)
    assert clock.allowed_at is None
    polite = member("a.test", next_allowed_at=NOW + s(2), delay_ms=2_000.0)
    clock.adopt(polite, POLICY, public=True)
    assert clock.allowed_at == NOW + s(2)
    dead = member(
        "b.test", next_allowed_at=NOW + s(3_600), delay_ms=3_600_000.0, backoff_until=NOW + s(3_600)
    )
    clock.adopt(dead, POLICY, public=True)
    assert clock.allowed_at == NOW + s(60)  # the others are spared the cap of a gap, not its back-off
    pushed = replace(dead, host="c.test", slowed_ms=1_000.0)
    clock.adopt(pushed, POLICY, public=True)
    assert clock.allowed_at == NOW + s(3_600)
