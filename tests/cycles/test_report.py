"""A round's report: every number from the lake as that round left it."""

from __future__ import annotations

import json
from datetime import timedelta

import pyarrow as pa
import pytest

from crawl.errors import UsageError
from cycles import report
from cycles.output import to_json
from cycles.setup import Lake
from lake import snapshot
from tests.lake import lakes, rows

NOW = rows.NOW
SECOND = timedelta(seconds=1)


def committed(lake: Lake) -> None:
    planned = rows.table(
        "frontier",
        round=[1, 1, 1],
        group=[0, 0, -1],
        position=[0, 1, -1],
        url_key=[1, 2, None],
        url=["http://d1.test/", "http://d2.test/", None],
        host=["d1.test", "d2.test", "d1.test"],
        reason=["new", "new", "host_capacity"],
        score=[0.9, 0.8, 0.5],
        count=[1, 1, 40],
    )
    asked = rows.table(
        "fetches",
        round=[1, 1, 1],
        kind=["robots", "page", "page"],
        url_key=[7, 1, 2],
        host=["d1.test", "d1.test", "d2.test"],
        outcome=["OK", "OK", "TIMEOUT"],
        started_at=[NOW, NOW + SECOND, NOW + SECOND],
        finished_at=[NOW, NOW + 2 * SECOND, NOW + 4 * SECOND],
        wire_bytes=[10, 100, 0],
    )
    known = rows.seen(
        [1, 2, 3], 1, state=["FETCHED", "FAILED_RETRYABLE", "DISCOVERED"], parsed_at=[NOW, None, None]
    )
    refused = rows.table(
        "rejects",
        round=[1],
        stage=["parse"],
        reason=["scope_host"],
        host=["far.test"],
        count=[3],
        example=["x" * 300],
    )
    lakes.commit_round(lake.store, 1, frontier=planned, fetches=asked, seen=known, rejects=refused)


def test_the_funnel_and_outcomes_are_those_of_the_round(lake: Lake) -> None:
    committed(lake)
    lakes.commit_round(lake.store, 2, seen=rows.seen([1], 2, state=["GONE"]))
    found = report.report(lake, 1, NOW)
    assert [
        {
            "planned": 2,
            "attempted": 2,
            "fetched": 1,
            "parsed": 1,
            "stored": 0,
            "index_ready": 0,
            "discovered": 3,
        }
    ] == found["funnel"]
    ends = {(row["kind"], row["outcome"]): row["requests"] for row in found["outcomes"]}
    assert {("page", "OK"): 1, ("page", "TIMEOUT"): 1, ("robots", "OK"): 1} == ends
    assert {"DISCOVERED": 1, "FAILED_RETRYABLE": 1, "FETCHED": 1} == {
        row["state"]: row["urls"] for row in found["states"]
    }
    cut = found["cuts"][0]
    assert ("d1.test", "host_capacity", 40, 0.5) == tuple(cut.values())
    assert 3 == found["rejects"][0]["count"]


def test_without_a_number_it_is_the_newest_round(lake: Lake) -> None:
    committed(lake)
    lakes.commit_round(lake.store, 2, seen=rows.seen([1], 2, state=["GONE"]))
    assert 2 == report.report(lake, None, NOW)["round"]


def test_a_round_that_was_never_committed_is_told(lake: Lake) -> None:
    with pytest.raises(UsageError, match="crawl run"):
        report.report(lake, None, NOW)
    committed(lake)
    with pytest.raises(UsageError, match="no round 9"):
        report.report(lake, 9, NOW)


def test_it_is_told_for_the_eye_with_plan_against_actual(lake: Lake) -> None:
    committed(lake)
    found = report.report(lake, 1, NOW)
    caps = [{"host": "d1.test", "requests": 3, "seconds": 8.0, "per_second": 0.5}]
    found["entry"]["plan"] = {"seconds": 8.0, "cap": "host", "caps": caps}
    found["entry"]["stage_ms"] = {"plan": 120.0, "fetch": 4000.0}
    told = report.told(found)
    assert "Funnel  2 planned → 2 attempted → 1 fetched → 1 parsed → 0 stored → 0 index-ready; 3 URLs" in told
    assert "8.0 s predicted, 4.0 s taken (-50%)" in told
    assert "capped by host: d1.test (3 requests in 8.0 s)" in told
    assert "40 for want of capacity" in told
    assert "x" * 99 + "…" in told
    assert "x" * 101 not in told


def test_an_empty_round_has_a_report(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1)
    told = report.told(report.report(lake, None, NOW))
    assert "0 planned" in told
    assert "How requests ended\n  none" in told


def test_as_json_every_part_is_there(lake: Lake) -> None:
    committed(lake)
    found = json.loads(to_json(report.report(lake, 1, NOW)))
    assert {*report.PARTS, "lake", "round", "entry"} == set(found)
    assert "settings" not in found["entry"]


def test_many_hosts_are_told_by_the_busiest(lake: Lake) -> None:
    count = 30
    asked = rows.table(
        "fetches", round=[1] * count, kind=["page"] * count, host=[f"h{n}.test" for n in range(count)]
    )
    assert pa.types.is_string(asked.schema.field("host").type)
    lakes.commit_round(lake.store, 1, fetches=asked)
    assert "… and 10 more" in report.told(report.report(lake, 1, NOW))
    assert snapshot.newest(lake.store) is not None
