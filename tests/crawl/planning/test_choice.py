"""What is chosen where hosts share clocks, or ask for long Crawl-delays (the rest: test_plan)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from crawl.policy import Planning, Settings
from crawl.stages.plan import Plan
from tests.crawl.stages.test_plan import FAST, cuts, due_row, host_row, planned, select

SLOW = 120_000.0


def joining(**groups: tuple[str, ...]) -> Settings:
    return replace(FAST, politeness=replace(FAST.politeness, groups=groups))


def counts(made: Plan) -> dict[str, int]:
    return dict(Counter(row["host"] for row in planned(made)))


def rows(hosts: dict[str, int], **columns: Any) -> list[dict[str, Any]]:
    return [
        due_row(1000 * number + k, host, **columns)
        for number, (host, count) in enumerate(sorted(hosts.items()))
        for k in range(count)
    ]


def test_joined_hosts_are_given_together_what_one_clock_allows_the_best_first() -> None:
    due = [*rows({"a.test": 20}), *(row | {"score": 0.9} for row in rows({"b.test": 4, "c.test": 1})[:4])]
    due = [row | {"url_key": key} for key, row in enumerate(due)]
    made = select(due, settings=joining(news=("a.test", "b.test")), window_s=6.0)
    assert counts(made) == {"a.test": 2, "b.test": 4}
    # six at most of each by its own clock, six of both by theirs
    assert {key: count for key, (count, _) in cuts(made).items()} == {
        ("a.test", "group_capacity"): 4,
        ("a.test", "host_capacity"): 14,
    }
    starts = sorted(row["predicted_start_ms"] for row in planned(made))
    assert starts == [0.0, 1_000.0, 2_000.0, 3_000.0, 4_000.0, 5_000.0]
    assert made.predicted.seconds == 5.0


def test_a_domain_goes_where_a_group_goes_that_one_of_its_hosts_may_be_in() -> None:
    due = [due_row(1, "a.test"), due_row(2, "www.b.test"), due_row(3, "c.test"), due_row(4, "d.test")]
    made = select(due, settings=joining(news=("a.test", "x.b.test")), groups=4)
    group = {row["host"]: row["group"] for row in planned(made)}
    assert group["a.test"] == group["www.b.test"]
    assert len(set(group.values())) == 3


def test_no_round_waits_for_a_host_that_asks_for_a_long_crawl_delay() -> None:
    hosts = [host_row("a.test"), host_row("slow.test", robots_delay_ms=SLOW)]
    made = select(rows({"a.test": 200, "slow.test": 9}), hosts)
    assert counts(made) == {"a.test": 200, "slow.test": 2}  # two minutes apart, beside 200 s of the other's
    assert cuts(made)["slow.test", "long_crawl_delay"][0] == 3
    assert cuts(made)["slow.test", "host_capacity"][0] == 4
    made = select(rows({"a.test": 3, "slow.test": 9}), hosts)
    assert counts(made)["slow.test"] == 1


def test_where_nobody_else_is_due_a_long_crawl_delay_holds_nobody_up() -> None:
    made = select(rows({"slow.test": 9}), [host_row("slow.test", robots_delay_ms=SLOW)])
    assert counts(made) == {"slow.test": 5}


def test_when_a_round_is_full_a_long_crawl_delay_comes_last() -> None:
    hosts = [host_row("a.test"), host_row("slow.test", robots_delay_ms=SLOW)]
    due = [*rows({"a.test": 5}), due_row(9_999, "slow.test", tier="critical")]
    made = select(due, hosts, settings=replace(FAST, planning=Planning(urls=5)))
    assert counts(made) == {"a.test": 5}
    assert cuts(made) == {("slow.test", "round_cap"): (1, 0.5)}


def test_what_a_sitemap_says_orders_the_pages_of_its_host_and_gives_it_nothing_over_others() -> None:
    said = [(0.1, "daily"), (0.9, "never"), (None, "hourly"), (0.9, "daily"), (None, None)]
    due = [
        due_row(key, "a.test", sitemap_priority=worth, changefreq=often)
        for key, (worth, often) in enumerate(said)
    ]
    due += [due_row(10 + key, "b.test") for key in range(5)]
    made = select(due, settings=replace(FAST, planning=Planning(urls=5)))
    assert {row["url_key"] for row in planned(made)} == {
        0,
        1,
        2,
        3,
        4,
    }  # by key, as if nobody had said anything
    made = select(due[:5], window_s=3.0)
    assert [row["url_key"] for row in planned(made)] == [3, 1, 2]
