from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

import pyarrow as pa

from crawl.merging import retirement, visited
from crawl.policy import Recrawl
from crawl.schema import REJECTS, SEEN, VISITS
from tests.crawl.urlrows import NOW, ROUND, SETTINGS, fetched, row, url_of, visit

# -------------------------------------------------------------------------------------------------


def retire_table(counts: Mapping[str, int]) -> pa.Table:
    return pa.table(
        {"host": list(counts), "count": list(counts.values()), "example": [f"http://{h}/" for h in counts]},
        schema=pa.schema({"host": pa.string(), "count": pa.int64(), "example": pa.string()}),
    )


def test_a_round_that_would_retire_a_fifth_of_a_host_is_held_back_and_says_so() -> None:
    parts = pa.concat_tables([retire_table({"a": 15, "b": 30, "d": 19}), retire_table({"a": 15, "c": 30})])
    held = retirement.hold(
        parts,
        {"a": 100, "b": 150, "c": 40, "d": 19},
        Recrawl(),
        policy_version="p1",
        round=ROUND,
        day=date(2025, 5, 1),
    )
    assert {"a", "c"} == held.hosts
    assert REJECTS == held.rejects.schema
    told = {(r["host"], r["stage"], r["reason"], r["count"]) for r in held.rejects.to_pylist()}
    assert {("a", "merge", "retire_guard", 30), ("c", "merge", "retire_guard", 30)} == told


def test_retiring_counts_the_live_pages_a_round_would_make_gone() -> None:
    seen_gone = {"last_outcome": "NOT_FOUND", "gone_sightings": 2, "gone_since": NOW - timedelta(days=2)}
    rows = [
        fetched(1, **seen_gone),
        fetched(4, **seen_gone),
        row(2, **seen_gone),
        fetched(3),
        fetched(6, **seen_gone),
    ]
    visits = [visit(key, "NOT_FOUND", http_status=404) for key in (1, 2, 3, 4, 5)]
    found = retirement.retiring(
        pa.Table.from_pylist(rows, SEEN), pa.Table.from_pylist(visits, VISITS), settings=SETTINGS, now=NOW
    )
    assert [{"host": "b.one.test", "count": 2, "example": url_of(1)}] == found.to_pylist()


def test_only_hosts_with_many_pages_to_retire_need_their_live_pages_counted() -> None:
    assert ["a"] == retirement.suspects(retire_table({"a": 20, "b": 19}), Recrawl())
    assert [] == retirement.suspects(retirement.NOTHING_RETIRED, Recrawl())


def test_a_wall_in_front_of_a_host_is_guarded_like_absence() -> None:
    refused = {"last_outcome": "FORBIDDEN", "attempts": 1, "last_checked_at": NOW - timedelta(days=2)}
    rows = [fetched(1, **refused), fetched(4, **refused), fetched(3)]
    visits = [visit(key, "FORBIDDEN", http_status=403) for key in (1, 3, 4)]
    found = retirement.retiring(
        pa.Table.from_pylist(rows, SEEN), pa.Table.from_pylist(visits, VISITS), settings=SETTINGS, now=NOW
    )
    assert [{"host": "b.one.test", "count": 2, "example": url_of(1)}] == found.to_pylist()
    after = visited.after(
        pa.Table.from_pylist(rows, SEEN),
        pa.Table.from_pylist([visits[0], visits[2], visits[1]], VISITS),
        held={"b.one.test"},
        settings=SETTINGS,
        policy_version="p1",
        now=NOW,
        round=ROUND,
    )
    assert ["FETCHED"] * 3 == after["state"].to_pylist()
    assert ["retire_guard", "retire_guard", None] == after["reason"].to_pylist()
