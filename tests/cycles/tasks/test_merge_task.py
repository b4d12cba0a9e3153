"""Merging over a real lake, range by range."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crawl.policy import Recrawl, Storage
from crawl.schema import HOSTS, ROBOTS
from cycles.tasks import claim, merge_task, plan_task
from lake import files, runs, snapshot, sql
from tests.cycles import smallround
from tests.cycles.smallround import KEYER, NOW, REAL, SETTINGS, key, link, visit
from tests.lake import rows

HOME = "http://a.one.test/"
PAGES = [f"{HOME}p{number}" for number in range(12)]


@pytest.fixture
def lake(tmp_path: Path) -> smallround.Lake:
    made = smallround.new(tmp_path / "lake")
    made.seed(HOME)
    return made


def first_round(lake: smallround.Lake) -> dict[str, Any]:
    return lake.play(([visit(HOME)], [link(HOME, page) for page in PAGES]))


def test_a_round_leaves_a_row_for_everything_met_and_an_event_for_what_is_new(lake: smallround.Lake) -> None:
    merged = first_round(lake)
    seen = lake.seen()
    assert {HOME, *PAGES} == set(seen)
    assert ("FETCHED", "seed", 0, key(HOME) ^ 1) == (
        seen[HOME]["state"],
        seen[HOME]["found_by"],
        seen[HOME]["depth"],
        seen[HOME]["document_key"],
    )
    assert {("DISCOVERED", "link", 1, key(HOME))} == {
        (seen[page]["state"], seen[page]["found_by"], seen[page]["depth"], seen[page]["first_referrer_key"])
        for page in PAGES
    }
    assert {"attempted": 1, "fetched": 1, "discovered": 13, "linked": 12} == merged["counts"]
    assert [("new", key(HOME))] == [(row["kind"], row["url_key"]) for row in lake.table("outbox")]
    assert {key(page): 1 for page in PAGES} == {
        row["url_key"]: row["in_links"] for row in lake.table("signals")
    }


def test_a_known_url_that_is_linked_to_again_gets_signals_and_no_row(lake: smallround.Lake) -> None:
    first_round(lake)
    merged = lake.play(
        ([visit(PAGES[0], depth=1)], [link(PAGES[0], HOME, depth=2), link(PAGES[0], PAGES[1], depth=2)])
    )
    assert (0, 1) == (merged["counts"]["discovered"], merged["counts"]["attempted"])
    second = [row for row in lake.table("seen") if row["round"] == 2]
    assert [PAGES[0]] == [row["url"] for row in second]
    assert sorted([key(HOME), key(PAGES[1])]) == sorted(
        row["url_key"] for row in lake.table("signals") if row["round"] == 2
    )


def test_a_hop_to_a_known_url_that_was_not_planned_finds_its_row(lake: smallround.Lake) -> None:
    first_round(lake)
    later = NOW + timedelta(days=30)
    context = lake.context(later)
    plan = plan_task.make(context)
    hop = visit(HOME, "NOT_MODIFIED", http_status=304, planned=False, referrer_key=key(PAGES[0]), depth=1)
    # the plan holds the page alone, as if the home page had been cut
    rows_planned = files.read_work(lake.store, context.work.path("planned.parquet"))
    kept = rows_planned.filter(pa.array([row != key(HOME) for row in rows_planned["url_key"].to_pylist()]))
    files.write_work(lake.store, context.work.path("planned.parquet"), kept)
    fetched = lake.fetched(
        context, ([visit(PAGES[0], "REDIRECT", http_status=301, redirect_to_key=key(HOME)), hop], [])
    )
    lake.commit(context, plan, lake.merge(context, plan, fetched))
    assert ("NOT_MODIFIED", 2, key(HOME) ^ 1) == (
        lake.seen()[HOME]["last_outcome"],
        lake.seen()[HOME]["crawl_count"],
        lake.seen()[HOME]["document_key"],
    )
    assert key(HOME) == lake.seen()[PAGES[0]]["redirect_to_key"]


def plain(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in found), key=repr)


def test_ranges_of_any_size_and_links_in_any_files_give_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    links = [link(HOME, page) for page in PAGES] + [link(PAGES[1], page, depth=2) for page in PAGES[3:]]
    visits = [visit(HOME), visit(PAGES[1], planned=False, referrer_key=key(HOME), depth=0)]
    for name, most, piece in (("whole", 1_000, 1_000), ("cut", 5, 2)):
        made = smallround.new(tmp_path / name)
        made.settings = replace(SETTINGS, storage=Storage(merge_rows=most))
        made.seed(HOME)
        monkeypatch.setattr(merge_task, "_PIECE", piece)
        parts = (
            [(visits, links)]
            if name == "whole"
            else [(visits[:1], links[7:]), ([], links[:7]), (visits[1:], [])]
        )
        made.play(*parts)
        made.play(
            ([visit(page, "NOT_FOUND", http_status=404) for page in PAGES[:4]], []), now=NOW + timedelta(1)
        )
        found.append({table: plain(made.table(table)) for table in ("seen", "signals", "outbox")})
        seen_files = snapshot.latest(made.store).files("seen")
        assert (len(seen_files) == 2) == (name == "whole")
    assert found[0] == found[1]


def test_links_that_waited_are_merged_with_those_of_their_round(lake: smallround.Lake) -> None:
    lake.play(([visit(HOME)], [link(HOME, PAGES[0])]), merge_links=False)
    assert {HOME} == set(lake.seen())
    lake.play(([], [link(HOME, PAGES[1])]))
    assert {HOME, PAGES[0], PAGES[1]} == set(lake.seen())
    assert {2} == {row["round"] for row in lake.table("signals")}
    lake.play(([], []))
    assert {2} == {row["round"] for row in lake.table("signals")}


def test_a_range_that_was_merged_stays_merged(lake: smallround.Lake) -> None:
    context = lake.context()
    plan = plan_task.make(context)
    fetched = lake.fetched(context, ([visit(HOME)], [link(HOME, PAGES[0])]))
    assert lake.merge(context, plan, fetched) == lake.merge(context, plan, fetched)


def test_a_round_that_would_retire_much_of_a_host_is_held_back(lake: smallround.Lake) -> None:
    first_round(lake)
    lake.settings = replace(SETTINGS, recrawl=Recrawl(retire_least=5))
    lake.play(([visit(page, depth=1) for page in PAGES], []))
    now = NOW
    for _ in range(3):
        now += timedelta(days=40)
        gone = [visit(page, "NOT_FOUND", http_status=404, depth=1) for page in PAGES]
        context = lake.context(now)
        plan = plan_task.make(context)
        merged = lake.merge(context, plan, lake.fetched(context, (gone, [])))
        lake.commit(context, plan, merged)
    assert {"FETCHED"} == {lake.seen()[page]["state"] for page in PAGES}
    assert {"retire_guard"} == {lake.seen()[page]["reason"] for page in PAGES}
    told = files.read_work(lake.store, merged["rejects"][0]).to_pylist()
    assert [("merge", "retire_guard", "a.one.test", 12)] == [
        (row["stage"], row["reason"], row["host"], row["count"]) for row in told
    ]
    assert ["new"] == sorted({row["kind"] for row in lake.table("outbox")})


def test_the_same_pages_one_by_one_are_retired_with_an_event(lake: smallround.Lake) -> None:
    lake.play(([visit(HOME)], []))
    for days in (40, 80, 120):
        lake.play(([visit(HOME, "NOT_FOUND", http_status=404)], []), now=NOW + timedelta(days=days))
    assert "GONE" == lake.seen()[HOME]["state"]
    assert ["deleted", "new"] == sorted(row["kind"] for row in lake.table("outbox"))


def test_the_lake_holds_its_invariants_after_some_rounds(lake: smallround.Lake) -> None:
    first_round(lake)
    lake.play(([visit(page, depth=1) for page in PAGES[:6]], []))
    lake.play(
        ([visit(page, "NOT_MODIFIED", http_status=304) for page in PAGES[:6]], []), now=NOW + timedelta(30)
    )
    names = (
        "one-newest-row",
        "one-row-per-round",
        "next-fetch-ahead",
        "states",
        "one-event",
        "event-url",
        "planned-once",
    )
    bounds = {"one-row-per-round": {"lo": -(2**63), "hi": 2**63 - 1}, "one-newest-row": {}}
    with sql.connect(lake.store, snapshot.latest(lake.store), NOW) as reader:
        for name in names:
            question = sql.text(f"check-{name}")
            given = bounds.get(name) or ({"lo": -(2**63), "hi": 2**63 - 1} if "$lo" in question else {})
            assert [] == reader.query(f"check-{name}", **given).to_pylist(), name


def test_clocks_and_robots_copies_of_all_groups_become_files(lake: smallround.Lake) -> None:
    context = lake.context()
    for group, host in enumerate(("b.test", "a.test")):
        clock = rows.table(
            "hosts", host_key=[KEYER.host_key(host)], host=[host], circuit=["closed"], round=[1]
        )
        clock = clock.set_column(
            clock.schema.get_field_index("pending_count"),
            HOSTS.field("pending_count"),
            pa.nulls(1, pa.int64()),
        )
        copies = rows.table("robots", origin=[f"http://{host}"], round=[1]) if group else ROBOTS.empty_table()
        files.write_work(lake.store, claim.folder(context.work, group, "hosts.parquet"), clock)
        files.write_work(lake.store, claim.folder(context.work, group, "robots.parquet"), copies)
    entries = merge_task.host_files(context, [0, 1])
    assert ["hosts", "robots"] == [entry.table for entry in entries]
    assert runs.Name(0, 1, 1) == runs.parse(entries[0].path)
    clocks = files.read(lake.store, entries[0]).to_pylist()
    assert sorted(KEYER.host_key(host) for host in ("a.test", "b.test")) == [
        row["host_key"] for row in clocks
    ]
    assert {0} == {row["pending_count"] for row in clocks}
    assert [] == merge_task.host_files(context, [])


def test_real_times_do_not_reach_the_rows_of_seen(lake: smallround.Lake) -> None:
    lake.play(([visit(HOME, fetched_at=REAL + timedelta(hours=5))], []))
    assert {NOW} == {lake.seen()[HOME][name] for name in ("fetched_at", "parsed_at", "last_checked_at")}


def test_a_loop_is_found_with_what_earlier_rounds_know(lake: smallround.Lake) -> None:
    one, two, three = (f"http://{name}.test/" for name in ("one", "two", "three"))
    lake.seed(one, two, three)

    def moved(source: str, target: str) -> dict[str, Any]:
        return visit(source, "REDIRECT", http_status=302, redirect_to_key=key(target))

    def outcomes() -> dict[str, str]:
        return {url: row["last_outcome"] for url, row in lake.seen().items() if url != HOME}

    lake.play(([moved(one, two), visit(two), moved(three, one)], []))
    assert outcomes() == {one: "REDIRECT", two: "OK", three: "REDIRECT"}
    lake.play(([moved(two, one)], []), now=NOW + timedelta(days=9))
    assert outcomes() == {one: "REDIRECT", two: "REDIRECT_LOOP", three: "REDIRECT"}
    lake.play(([moved(one, two)], []), ([moved(three, one)], []), now=NOW + timedelta(days=10))
    assert outcomes() == {one: "REDIRECT_LOOP", two: "REDIRECT_LOOP", three: "REDIRECT"}
