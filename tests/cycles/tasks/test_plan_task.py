"""Planning over a real lake."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crawl.schema import HOSTS, ROBOTS
from cycles.tasks import plan_task
from lake import files, snapshot, sql
from tests.cycles import smallround
from tests.cycles.smallround import KEYER, NOW, REAL, key, link, visit
from tests.lake import lakes, rows

HOME = "http://a.one.test/"
OTHER = "http://b.two.test/"
MAP = "http://c.test/map.xml"


@pytest.fixture
def lake(tmp_path: Path) -> smallround.Lake:
    return smallround.new(tmp_path / "lake")


def test_new_seeds_are_planned_at_once_and_handed_to_the_merge(lake: smallround.Lake) -> None:
    lake.seed("HTTP://a.one.test", OTHER)
    lake.seed(MAP, kind="sitemap")
    context = lake.context()
    plan = plan_task.make(context)
    hosts = ["a.one.test", "b.two.test", "c.test"]
    assert (3, hosts, 3) == (plan["planned"], plan["hosts"], plan["seeds"])
    planned = lake.planned(context)
    assert {HOME: "page", OTHER: "page", MAP: "sitemap"} == {row["url"]: row["kind"] for row in planned}
    assert sorted([key(HOME), key(OTHER), key(MAP)]) == [row["url_key"] for row in planned]
    assert {("DISCOVERED", "seed", 0, None)} == {
        (row["state"], row["found_by"], row["depth"], row["first_referrer_key"]) for row in planned
    }
    assert {HOME: "HTTP://a.one.test", OTHER: OTHER, MAP: MAP} == {
        row["url"]: row["discovered_url"] for row in planned
    }
    frontier = files.read(lake.store, files.FileEntry.from_dict(plan["files"][0]))
    assert {(HOME, "new", "page"), (OTHER, "new", "page"), (MAP, "new", "sitemap")} == set(
        zip(*(frontier[name].to_pylist() for name in ("url", "reason", "kind")), strict=True)
    )
    clocks = files.read_work(lake.store, context.work.path("hosts.parquet")).to_pylist()
    assert set(map(KEYER.host_key, hosts)) == {row["host_key"] for row in clocks}


def test_a_plan_made_again_is_the_same_plan(lake: smallround.Lake) -> None:
    lake.seed(HOME, OTHER)
    context = lake.context()
    first = plan_task.make(context)
    rows_first = lake.planned(context)
    again = plan_task.make(context)
    assert rows_first == lake.planned(context)
    assert {**first, "files": []} == {**again, "files": []}


def test_nothing_due_is_a_plan_of_nothing(lake: smallround.Lake) -> None:
    context = lake.context()
    plan = plan_task.make(context)
    assert (0, [], [], []) == (plan["planned"], plan["groups"], plan["files"], plan["hosts"])
    assert [] == lake.planned(context)


def test_a_proposal_tells_and_writes_nothing(lake: smallround.Lake) -> None:
    lake.seed(HOME, OTHER)
    context = lake.context()
    told = plan_task.told(plan_task.propose(context))
    assert (2, 2, {}, 2) == (told["pages"], told["hosts"], told["cuts"], told["robots"])
    assert [] == lake.store.list(context.work.path())


def test_a_known_url_is_planned_with_its_whole_row_when_it_is_due(lake: smallround.Lake) -> None:
    lake.seed(HOME)
    lake.play(([visit(HOME, etag='"e"')], [link(HOME, HOME + "p")]))
    context = lake.context(NOW + timedelta(hours=1))
    plan_task.make(context)
    assert [HOME + "p"] == [row["url"] for row in lake.planned(context)]
    context = lake.context(NOW + timedelta(days=9))
    plan_task.make(context)
    by_url = {row["url"]: row for row in lake.planned(context)}
    assert {HOME, HOME + "p"} == set(by_url)
    assert ('"e"', f"hash of {HOME}", 1) == (
        by_url[HOME]["etag"],
        by_url[HOME]["content_hash"],
        by_url[HOME]["crawl_count"],
    )


def test_what_an_operator_holds_back_is_counted_and_not_planned(lake: smallround.Lake) -> None:
    lake.seed(HOME)
    lake.play(([visit(HOME)], [link(HOME, HOME + "p"), link(HOME, HOME + "q")]))
    lakes.put(
        lake.store,
        "suppressions",
        rows.table("suppressions", kind=["pause", "pause"], pattern=["a.one.test", "b.two.test"]),
    )
    lake.seed(OTHER)
    context = lake.context()
    proposal = plan_task.propose(context)
    assert {"paused": 3} == plan_task.told(proposal)["cuts"]
    assert 0 == proposal.plan.predicted.pages
    assert 1 == len(proposal.seeds)


def test_all_clocks_of_a_domain_and_valid_robots_copies_go_along(lake: smallround.Lake) -> None:
    lake.seed(HOME)
    clock = {"host_key": KEYER.host_key("www.one.test"), "host": "www.one.test", "domain": "one.test"}
    known = rows.table(
        "hosts",
        **{name: [value] for name, value in clock.items()},
        next_allowed_at=[REAL + timedelta(seconds=9)],
        circuit=["closed"],
        addresses=[["127.0.0.1"]],
        round=[0],
    )
    stranger = rows.table("hosts", host_key=[KEYER.host_key("z.test")], host=["z.test"], domain=["z.test"])
    copies = rows.table(
        "robots",
        origin=["http://www.one.test", "http://a.one.test", "http://z.test"],
        version=["v1", "v2", "v3"],
        valid_until=[NOW + timedelta(hours=1)] * 3,
    )
    for name, table in (("hosts", pa.concat_tables([known, stranger])), ("robots", copies)):
        lakes.put(lake.store, name, table)
    context = lake.context(versions=snapshot.heads(lake.store))
    plan = plan_task.make(context)
    hosts = files.read_work(lake.store, context.work.path("hosts.parquet"))
    assert HOSTS.names == hosts.column_names
    assert {"www.one.test", "a.one.test"} == set(hosts["host"].to_pylist())
    robots = files.read_work(lake.store, context.work.path("robots.parquet"))
    assert ROBOTS.names == robots.column_names
    assert ["http://a.one.test", "http://www.one.test"] == sorted(robots["origin"].to_pylist())
    assert 0 == plan["predicted"]["robots"]


def test_texts_of_robots_copies_are_never_in_memory_together(
    lake: smallround.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_task, "_TEXTS", 1_000)
    lake.seed(*(f"http://h{n}.test/" for n in range(5)))
    copies = rows.table(
        "robots",
        origin=[f"http://h{n}.test" for n in range(5)],
        version=[f"v{n}" for n in range(5)],
        text=["#" * 900] * 5,
        valid_until=[NOW + timedelta(hours=1)] * 5,
    )
    lakes.put(lake.store, "robots", copies)
    asked = []
    query = sql.Reader.query

    def watched(reader: sql.Reader, name: str, **given: Any) -> pa.Table:
        if name == "robots":
            asked.append(len(given["origins"]))
        return query(reader, name, **given)

    monkeypatch.setattr(sql.Reader, "query", watched)
    context = lake.context(versions=snapshot.heads(lake.store))
    plan_task.make(context)
    robots = files.read_work(lake.store, context.work.path("robots.parquet"))
    assert robots.select(ROBOTS.names).equals(copies.select(ROBOTS.names).cast(robots.schema))
    assert asked == [1] * 5


def test_what_robots_denied_is_looked_at_again_when_the_copy_changed(lake: smallround.Lake) -> None:
    lake.seed(HOME)
    lake.play(([visit(HOME, "ROBOTS_DENIED", reason="robots_rule", robots_version="v1")], []))

    def planned(version: str, hours: int) -> int:
        copy = rows.table(
            "robots",
            origin=["http://a.one.test"],
            version=[version],
            round=[lake.round],
            fetched_at=[NOW + timedelta(hours=hours)],
            valid_until=[NOW + timedelta(hours=hours + 1)],
        )
        lakes.put(lake.store, "robots", copy)
        context = lake.context(NOW + timedelta(hours=hours), versions=snapshot.heads(lake.store))
        return plan_task.propose(context).plan.predicted.pages

    assert 0 == planned("v1", 2)
    assert 1 == planned("v2", 3)


def test_a_changed_setting_frees_what_the_old_one_blocked(lake: smallround.Lake) -> None:
    lake.seed(HOME)
    lake.play(([visit(HOME, "SCOPE_DENIED", reason="scope_host")], []))
    assert 0 == plan_task.propose(lake.context()).plan.predicted.pages
    assert 1 == plan_task.propose(lake.context(policy_version="other")).plan.predicted.pages


def test_a_page_that_is_gone_rests_and_returns(lake: smallround.Lake) -> None:
    day = timedelta(days=1)
    lake.seed(HOME)
    lake.play(([visit(HOME)], []))
    for number in (10, 11, 12):
        lake.play(([visit(HOME, "NOT_FOUND", http_status=404)], []), now=NOW + number * day)
    assert lake.seen()[HOME]["state"] == "GONE"

    def planned(at: timedelta) -> list[str]:
        context = lake.context(NOW + at)
        plan_task.make(context)
        return [row["url"] for row in lake.planned(context)]

    assert planned(30 * day) == []
    assert planned(112 * day) == [HOME]  # 12 days, then 90 and a tenth of them at most
    lake.seed(HOME, added_at=NOW + 20 * day)
    assert planned(30 * day) == [HOME]
    lake.play(([visit(HOME)], []), now=NOW + 31 * day)
    assert (lake.seen()[HOME]["state"], lake.seen()[HOME]["gone_sightings"]) == ("FETCHED", 0)
    assert planned(32 * day) == []


def test_what_is_given_as_a_seed_again_is_asked_once_before_its_time(lake: smallround.Lake) -> None:
    lake.seed(HOME, OTHER)
    lake.play(([visit(HOME), visit(OTHER, "TLS_FAILURE")], []))
    soon = NOW + timedelta(minutes=1)
    lake.seed(HOME, OTHER, added_at=soon)
    context = lake.context(soon)
    plan = plan_task.make(context)
    assert [HOME, OTHER] == sorted(row["url"] for row in lake.planned(context))
    frontier = files.read(lake.store, files.FileEntry.from_dict(plan["files"][0]))
    assert {"given"} == set(frontier["reason"].to_pylist())
    lake.play(([visit(HOME), visit(OTHER, "TLS_FAILURE")], []), now=soon)
    assert 0 == plan_task.propose(lake.context(soon)).plan.predicted.pages


def test_a_seed_of_real_time_counts_once_where_planning_lags_behind_it(lake: smallround.Lake) -> None:
    late = NOW + timedelta(days=100)
    lake.seed(HOME)
    lake.play(([visit(HOME)], []))
    lake.seed(HOME, added_at=late)
    assert 0 == plan_task.propose(lake.context()).plan.predicted.pages
    assert 1 == plan_task.propose(lake.context(opened_at=late)).plan.predicted.pages


def test_a_seed_of_the_wrong_kind_is_mended_by_the_right_one(lake: smallround.Lake) -> None:
    lake.seed(HOME, kind="feed")
    lake.seed(OTHER)
    lake.play(
        (
            [
                visit(HOME, "PARSE_FAILED", kind="feed", http_status=200, reason="not_a_sitemap"),
                visit(OTHER, etag='"e"'),
            ],
            [],
        )
    )
    assert "QUARANTINED" == lake.seen()[HOME]["state"]
    soon = NOW + timedelta(minutes=1)
    lake.seed(HOME, added_at=soon)
    lake.seed(OTHER, kind="sitemap", added_at=soon)
    context = lake.context(soon)
    plan_task.make(context)
    planned = {row["url"]: (row["kind"], row["etag"]) for row in lake.planned(context)}
    assert {HOME: ("page", None), OTHER: ("sitemap", None)} == planned
    lake.play(([visit(HOME), visit(OTHER, kind="sitemap", document_key=None)], []), now=soon)
    assert {HOME: "page", OTHER: "sitemap"} == {url: row["kind"] for url, row in lake.seen().items()}


def test_a_list_that_is_read_stays_one_when_it_is_given_as_a_page_by_default(lake: smallround.Lake) -> None:
    lake.seed(HOME, kind="feed")
    lake.play(([visit(HOME, kind="feed", document_key=None)], []))
    soon = NOW + timedelta(minutes=1)
    lake.seed(HOME, added_at=soon)
    context = lake.context(soon)
    plan_task.make(context)
    assert [(HOME, "feed")] == [(row["url"], row["kind"]) for row in lake.planned(context)]


def test_of_two_words_on_a_new_seed_the_last_counts(lake: smallround.Lake) -> None:
    lake.seed(HOME, kind="feed")
    lake.seed(HOME, added_at=NOW + timedelta(minutes=1))
    context = lake.context()
    plan_task.make(context)
    assert [(HOME, "page")] == [(row["url"], row["kind"]) for row in lake.planned(context)]


@pytest.mark.parametrize(("failed", "asks"), [("TLS_FAILURE", 1), ("503", 0)])
def test_a_robots_file_that_did_not_answer_is_tried_again_for_a_seed(
    lake: smallround.Lake, failed: str, asks: int
) -> None:
    lake.seed(HOME)
    lake.play(([visit(HOME, "ROBOTS_UNREACHABLE")], []))
    copy = {"origin": "http://a.one.test", "version": f"unreachable:{failed}", "how": "unreachable"}
    known = rows.table(
        "robots",
        **{name: [value] for name, value in copy.items()},
        round=[1],
        fetched_at=[NOW],
        valid_until=[NOW + timedelta(minutes=10)],
        text=[""],
    )
    lakes.put(lake.store, "robots", known)
    soon = NOW + timedelta(minutes=1)
    lake.seed(HOME, added_at=soon)
    context = lake.context(soon, versions=snapshot.heads(lake.store))
    proposal = plan_task.propose(context)
    assert (1, asks) == (proposal.plan.predicted.pages, proposal.plan.predicted.robots)
    assert 1 - asks == len(proposal.robots)
