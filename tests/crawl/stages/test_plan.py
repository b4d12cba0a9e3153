"""Plan against a slow reference that thinks in single URLs and hosts."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.policy import Egress, Fetching, Planning, Politeness, Settings
from crawl.schema import FRONTIER, HOSTS, ROBOTS, SEEN
from crawl.stages import plan

NOW = datetime(2025, 5, 1, 12, tzinfo=UTC)
REAL = datetime(2025, 3, 1, 8, tzinfo=UTC)
DAY = date(2025, 5, 1)
FAST = Settings(
    egress=Egress(allow=("127.0.0.0/8",)),
    politeness=Politeness(min_delay=timedelta(seconds=1), factor=0.0),
)


def due_row(key: int, host: str = "a.test", **columns: Any) -> dict[str, Any]:
    domain = ".".join(host.split(".")[-2:])
    return {
        "url_key": key,
        "url": f"http://{host}/{key}",
        "origin": f"http://{host}",
        "host": host,
        "domain": domain,
        "state": "DISCOVERED",
        "last_outcome": None,
        "robots_version": None,
        "policy_version": "p1",
        "tier": "discovery",
        "score": 0.5,
        "eligible_since": NOW,
        "next_fetch_at": NOW,
    } | columns


def host_row(host: str = "a.test", **columns: Any) -> dict[str, Any]:
    return {"host": host, "circuit": "closed", "latency_ema_ms": 0.0, "budget": 50_000} | columns


def robots_row(origin: str, *, valid: bool = True, version: str = "r1") -> dict[str, Any]:
    until = NOW + timedelta(hours=1 if valid else -1)
    return {"origin": origin, "version": version, "valid_until": until}


def table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def due_table(rows: list[dict[str, Any]]) -> pa.Table:
    return table(rows, pa.schema([SEEN.field(name) for name in plan.DUE]))


def select(
    due: list[dict[str, Any]],
    hosts: list[dict[str, Any]] | None = None,
    robots: list[dict[str, Any]] | None = None,
    settings: Settings = FAST,
    **options: Any,
) -> plan.Plan:
    if hosts is None:
        hosts = [host_row(name) for name in sorted({row["host"] for row in due})]
    if robots is None:
        robots = [robots_row(origin) for origin in sorted({row["origin"] for row in due})]
    given = {"window_s": 600.0, "groups": 2, "round": 7, "policy_version": "p1"} | options
    return plan.select(
        due_table(due),
        table(hosts, HOSTS),
        robots=table(robots, ROBOTS),
        settings=settings,
        now=NOW,
        started_at=REAL,
        day=DAY,
        **given,
    )


def planned(made: plan.Plan) -> list[dict[str, Any]]:
    return [row for row in made.frontier.to_pylist() if row["group"] >= 0]


def cuts(made: plan.Plan) -> dict[tuple[str, str], tuple[int, float]]:
    return {
        (row["host"], row["reason"]): (row["count"], row["score"])
        for row in made.frontier.to_pylist()
        if row["group"] < 0
    }


def test_a_host_gets_as_many_urls_as_its_clock_allows_and_the_rest_is_counted() -> None:
    made = select([due_row(k, score=k / 100) for k in range(20)], window_s=5.0)
    assert [19, 18, 17, 16, 15] == [row["url_key"] for row in planned(made)]
    assert {("a.test", "host_capacity"): (15, 0.15)} == cuts(made)
    assert [0.0, 1000.0, 2000.0, 3000.0, 4000.0] == [row["predicted_start_ms"] for row in planned(made)]


def test_a_host_with_lanes_gets_as_many_urls_as_all_its_clocks_allow() -> None:
    lanes = replace(FAST, politeness=replace(FAST.politeness, in_flight={"a.test": 4}))
    made = select([due_row(k) for k in range(20)], window_s=2.0, settings=lanes)
    starts = [row["predicted_start_ms"] for row in planned(made)]
    assert [round(start, -3) for start in starts] == [0.0] * 4 + [1000.0] * 4
    assert made.predicted.seconds == 1.0
    assert cuts(made)["a.test", "host_capacity"][0] == 12
    told = [host_row(robots_delay_ms=1_000.0)]
    assert len(planned(select([due_row(k) for k in range(20)], told, window_s=2.0, settings=lanes))) == 2


def test_a_robots_request_takes_a_place_on_the_clock() -> None:
    made = select([due_row(k) for k in range(20)], robots=[], window_s=5.0)
    assert 4 == len(planned(made))
    assert 1 == made.predicted.robots
    assert 1000.0 == planned(made)[0]["predicted_start_ms"]


def test_tiers_come_before_scores_and_discovery_stands_where_its_score_puts_it() -> None:
    made = select(
        [
            due_row(1, tier="low", score=0.99),
            due_row(2, tier="discovery", score=0.75),
            due_row(3, tier="high", score=0.55),
            due_row(4, tier="discovery", score=0.55),
        ]
    )
    assert [2, 3, 4, 1] == [row["url_key"] for row in planned(made)]


def test_who_waits_longer_goes_first_then_the_smaller_key() -> None:
    early = NOW - timedelta(days=1)
    made = select([due_row(3), due_row(2), due_row(9, eligible_since=early)])
    assert [9, 2, 3] == [row["url_key"] for row in planned(made)]


def test_a_host_backing_off_past_the_window_gets_nothing() -> None:
    made = select([due_row(1)], [host_row(backoff_until=REAL + timedelta(hours=1))])
    assert [] == planned(made)
    assert {("a.test", "host_backoff"): (1, 0.5)} == cuts(made)
    assert "nothing" == made.predicted.cap


def test_a_host_backing_off_within_the_window_has_less_time() -> None:
    made = select(
        [due_row(k) for k in range(9)], [host_row(backoff_until=REAL + timedelta(seconds=7))], window_s=10.0
    )
    assert 3 == len(planned(made))
    assert 7000.0 == planned(made)[0]["predicted_start_ms"]


def test_an_open_circuit_gets_one_canary() -> None:
    made = select(
        [due_row(1), due_row(2)], [host_row(circuit="open", backoff_until=REAL + timedelta(seconds=5))]
    )
    assert [(1, "canary")] == [(row["url_key"], row["reason"]) for row in planned(made)]
    assert {("a.test", "circuit_open"): (1, 0.5)} == cuts(made)


def test_a_paused_host_gets_nothing_and_says_so() -> None:
    paused = pa.table({"host": ["b.test", "a.test"], "count": [4, 1], "score": [0.1, 0.5]})
    made = select([due_row(2, "c.test")], paused=paused)
    assert [2] == [row["url_key"] for row in planned(made)]
    assert {("a.test", "paused"): (1, 0.5), ("b.test", "paused"): (4, 0.1)} == cuts(made)
    assert 5 == made.predicted.left_out


def test_a_host_whose_delay_is_longer_than_the_window_is_still_asked_once() -> None:
    made = select([due_row(1), due_row(2)], [host_row(robots_delay_ms=3_600_000.0)])
    assert [1] == [row["url_key"] for row in planned(made)]


def test_the_day_budget_counts_by_planning_time() -> None:
    rows = [due_row(k) for k in range(5)]
    spent = host_row(budget=10, budget_day=DAY, urls_on_budget_day=8)
    assert {("a.test", "host_budget"): (3, 0.5)} == cuts(select(rows, [spent]))
    yesterday = host_row(budget=10, budget_day=DAY - timedelta(days=1), urls_on_budget_day=8)
    assert {} == cuts(select(rows, [yesterday]))


def test_the_round_cap_keeps_the_best_of_all_hosts() -> None:
    settings = Settings(planning=Planning(urls=2), politeness=FAST.politeness)
    made = select(
        [due_row(1, score=0.1), due_row(2, "b.test", score=0.3), due_row(3, "b.test", score=0.2)],
        settings=settings,
    )
    assert {2, 3} == {row["url_key"] for row in planned(made)}
    assert {("a.test", "round_cap"): (1, 0.1)} == cuts(made)


def test_reasons_tell_new_from_due_and_retry() -> None:
    states = {1: "DISCOVERED", 2: "FETCHED", 3: "FAILED_RETRYABLE", 4: "GONE", 5: "QUARANTINED"}
    failed = due_row(6, state="FETCHED", last_outcome="TIMEOUT")
    made = select([*(due_row(k, state=s) for k, s in states.items()), failed])
    assert {1: "new", 2: "due", 3: "retry", 4: "revisit", 5: "recheck", 6: "retry"} == {
        row["url_key"]: row["reason"] for row in planned(made)
    }


def blocked(key: int, **columns: Any) -> dict[str, Any]:
    later = NOW + timedelta(days=60)
    denied = {
        "state": "BLOCKED",
        "last_outcome": "ROBOTS_DENIED",
        "robots_version": "r1",
        "next_fetch_at": later,
    }
    return due_row(key) | denied | columns


def test_what_robots_blocked_waits_while_the_same_copy_is_valid() -> None:
    made = select([blocked(1), blocked(2)])
    assert 0 == len(made.frontier) == made.predicted.left_out


def test_a_new_robots_copy_frees_what_the_old_one_blocked() -> None:
    made = select([blocked(1), blocked(2)], robots=[robots_row("http://a.test", version="r2")])
    assert [1, 2] == [row["url_key"] for row in planned(made)]


def test_an_aged_robots_copy_is_asked_for_again_by_one_row() -> None:
    aged = [robots_row("http://a.test", valid=False)]
    made = select([blocked(2), blocked(1)], robots=aged)
    assert [(1, "recheck")] == [(row["url_key"], row["reason"]) for row in planned(made)]
    made = select([blocked(2), blocked(1), due_row(3)], robots=aged)
    assert [3] == [row["url_key"] for row in planned(made)]
    assert 1 == made.predicted.robots


def test_what_is_due_by_its_date_is_looked_at_whatever_blocked_it() -> None:
    assert [1] == [row["url_key"] for row in planned(select([blocked(1, next_fetch_at=NOW)]))]


def test_what_settings_blocked_waits_until_they_change() -> None:
    row = blocked(1, last_outcome="SCOPE_DENIED", robots_version=None)
    assert [] == planned(select([row]))
    assert [1] == [row["url_key"] for row in planned(select([row], policy_version="p2"))]


def test_hosts_of_one_domain_and_hosts_joined_by_the_operator_share_a_group() -> None:
    names = ["a.one.test", "b.one.test", "c.two.test", "d.three.test", "e.four.test"]
    hosts = [host_row(name) for name in names]
    joined = {"shared": (hosts[2]["host"], hosts[4]["host"])}
    settings = replace(FAST, politeness=replace(FAST.politeness, groups=joined))
    made = select([due_row(k, name) for k, name in enumerate(names)], hosts, settings=settings, groups=5)
    group = {row["host"]: row["group"] for row in planned(made)}
    assert group["a.one.test"] == group["b.one.test"]
    assert group["c.two.test"] == group["e.four.test"]
    assert 3 == len(set(group.values()))


def test_groups_are_balanced_longest_first() -> None:
    sizes = {"a.test": 7, "b.test": 5, "c.test": 4, "d.test": 4}
    rows = [due_row(1000 * ord(h[0]) + k, h) for h, n in sizes.items() for k in range(n)]
    made = select(rows)
    pages = {group.group: group.pages for group in made.predicted.groups}
    assert [9, 11] == sorted(pages.values())


def test_the_prediction_names_the_host_that_caps_the_round() -> None:
    rows = [due_row(k) for k in range(10)] + [due_row(100, "b.test")]
    predicted = select(rows, [host_row(latency_ema_ms=500.0), host_row("b.test")]).predicted
    assert "host" == predicted.cap
    assert ("a.test", 10, pytest.approx(9 * 1.5 + 0.5)) == (
        predicted.caps[0].host,
        predicted.caps[0].requests,
        predicted.seconds,
    )
    assert pytest.approx(1 / 1.5) == predicted.caps[0].per_second
    assert predicted.seconds == predicted.to_dict()["seconds"]


def test_a_first_request_that_takes_longer_and_gaps_that_were_longer_count_in_the_prediction() -> None:
    slow = Settings(egress=FAST.egress, politeness=Politeness(min_delay=timedelta(seconds=1), factor=10.0))
    facts = {"latency_ema_ms": 50.0, "first_ms": 300.0, "excess_ms": 200.0}
    predicted = select([due_row(k) for k in range(5)], [host_row(**facts)], settings=slow).predicted
    # 0.3 s and ten times as long; then three times 1 s + 0.2 s + 0.05 s; then the last answer
    assert predicted.seconds == pytest.approx(3.3 + 3 * 1.25 + 0.05)
    predicted = select([due_row(1)], [host_row(**facts)], settings=slow).predicted
    assert predicted.seconds == pytest.approx(0.3)


def test_the_work_of_one_worker_caps_many_quick_hosts() -> None:
    rows = [due_row(k, f"h{k}.x{k}.test") for k in range(400)]
    predicted = select(rows, groups=1).predicted
    assert "work" == predicted.cap


def test_a_host_inside_an_allowed_range_has_no_public_floor() -> None:
    swift = Settings(
        egress=Egress(allow=("127.0.0.0/8",)),
        politeness=Politeness(min_delay=timedelta(milliseconds=10), factor=0.0),
    )
    rows = [due_row(k, h) for h in ("a.test", "b.test") for k in range(1000 if h == "a.test" else 2000, 2100)]
    hosts = [host_row(addresses=["127.0.0.3"]), host_row("b.test", addresses=["192.0.2.1"])]
    made = select(rows, hosts, settings=swift, window_s=2.0)
    per_host = defaultdict(int)
    for row in planned(made):
        per_host[row["host"]] += 1
    assert {"a.test": 200, "b.test": 10} == per_host


def test_nothing_due_gives_an_empty_plan() -> None:
    made = select([])
    assert FRONTIER == made.frontier.schema
    assert 0 == len(made.frontier) == len(made.chosen)
    assert 0.0 == made.predicted.seconds


# --- against the reference
# -----------------------------------------------------------------------------------

hosts_drawn = st.fixed_dictionaries(
    {
        "latency_ema_ms": st.sampled_from([0.0, 250.0, 500.0]),
        "robots_delay_ms": st.sampled_from([None, 500.0, 4000.0]),
        "circuit": st.sampled_from(["closed", "closed", "open"]),
        "backoff_until": st.sampled_from(
            [None, REAL - timedelta(1), REAL + timedelta(seconds=4), REAL + timedelta(1)]
        ),
        "budget": st.sampled_from([50_000, 3]),
    }
)
NAMES = ("a.one.test", "b.one.test", "c.two.test", "d.three.test")
rows_drawn = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["critical", "high", "medium", "low"]),
        st.sampled_from([0.1, 0.4, 0.8]),
        st.sampled_from([NOW, NOW - timedelta(hours=2)]),
    ),
    max_size=40,
)


def reference(
    rows: list[dict[str, Any]], hosts: dict[str, dict[str, Any]], window: float, most: int
) -> list[int]:
    """Keys planned, thought out one host at a time."""
    tiers = ["critical", "high", "medium", "low"]

    def better(row: dict[str, Any]) -> tuple[Any, ...]:
        return tiers.index(row["tier"]), -row["score"], row["eligible_since"], row["url_key"]

    kept: list[dict[str, Any]] = []
    for name, host in hosts.items():
        latency = host["latency_ema_ms"] / 1000
        step = max(1.0, (host["robots_delay_ms"] or 0) / 1000) + latency
        wait = max(0.0, ((host["backoff_until"] or REAL) - REAL).total_seconds())
        capacity = max(0, math.ceil((window - wait) / step))
        capacity = min(capacity, host["budget"], 1 if host["circuit"] == "open" else capacity)
        kept += sorted((row for row in rows if row["host"] == name), key=better)[:capacity]
    return sorted(row["url_key"] for row in sorted(kept, key=better)[:most])


def test_what_somebody_asked_for_again_is_planned_before_its_date() -> None:
    early = NOW + timedelta(days=80)
    rows = [
        due_row(1, state="GONE", last_outcome="NOT_FOUND", next_fetch_at=early),
        due_row(2, state="TERMINAL", last_outcome="FORBIDDEN", next_fetch_at=early),
        due_row(3, state="BLOCKED", last_outcome="SCOPE_DENIED", next_fetch_at=early),
    ]
    assert {row["url_key"]: row["reason"] for row in planned(select(rows))} == {1: "revisit", 2: "revisit"}


def test_a_domain_is_in_one_group_with_those_in_which_its_robots_txt_lies() -> None:
    """Whether anything of them is planned or not; what concerns no planned origin joins nothing."""
    rows = [due_row(key, host) for key, host in enumerate(("a.test", "b.test", "c.test", "d.test"))]
    elsewhere = {
        "http://a.test": ["gone.test", "d.test"],
        "http://b.test": ["gone.test"],
        "http://x.c.test": ["a.test"],
    }
    robots = [
        robots_row(origin) | {"elsewhere": elsewhere.get(origin)}
        for origin in ("http://a.test", "http://b.test", "http://c.test", "http://d.test", "http://x.c.test")
    ]
    group = {row["host"]: row["group"] for row in planned(select(rows, robots=robots, groups=4))}
    assert group["a.test"] == group["b.test"] == group["d.test"] != group["c.test"]


def test_a_robots_copy_that_ends_within_the_window_costs_a_request() -> None:
    def request_count(how: str, window_s: float) -> int:
        robots = [robots_row("http://a.test") | {"how": how}]
        return select([due_row(1)], robots=robots, window_s=window_s).predicted.robots

    assert request_count("fetched", 600.0) == 0
    assert request_count("fetched", 3600.0) == 1
    assert request_count("unreachable", 3600.0) == 0


@hypothesis(max_examples=80, deadline=None)
@given(
    drawn=rows_drawn,
    facts=st.lists(hosts_drawn, min_size=4, max_size=4),
    window=st.sampled_from([3.0, 10.0]),
    most=st.sampled_from([5, 1000]),
    chance=st.randoms(use_true_random=False),
    groups=st.integers(1, 4),
)
def test_a_plan_is_what_the_reference_says_whatever_the_order_of_rows(
    drawn: list[tuple[Any, ...]],
    facts: list[dict[str, Any]],
    window: float,
    most: int,
    chance: Any,
    groups: int,
) -> None:
    rows = [
        due_row(key, host, tier=tier, score=score, eligible_since=since)
        for key, (host, tier, score, since) in enumerate(drawn)
    ]
    hosts = {name: host_row(name) | fact for name, fact in zip(NAMES, facts, strict=True)}
    settings = Settings(planning=Planning(urls=most), politeness=FAST.politeness, fetching=Fetching())

    def run(due: list[dict[str, Any]], known: list[dict[str, Any]]) -> plan.Plan:
        robots = [robots_row(f"http://{name}") for name in NAMES]
        return select(due, known, robots, settings, window_s=window, groups=groups)

    made = run(rows, list(hosts.values()))
    assert reference(rows, hosts, window, most) == made.chosen["url_key"].to_pylist()

    found = planned(made)
    assert len(rows) == len(found) + sum(count for count, _ in cuts(made).values())
    assert len(rows) - len(found) == made.predicted.left_out
    owner = defaultdict(set)
    places = defaultdict(list)
    for row in found:
        owner[".".join(row["host"].split(".")[-2:])].add(row["group"])
        places[row["group"]].append(row["position"])
    assert all(len(groups_of) == 1 for groups_of in owner.values())
    assert all(list(range(len(order))) == order for order in places.values())

    shuffled, turned = list(rows), list(hosts.values())
    chance.shuffle(shuffled)
    chance.shuffle(turned)
    assert made.frontier.equals(run(shuffled, turned).frontier)
