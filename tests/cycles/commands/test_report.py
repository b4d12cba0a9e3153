"""A round's report: every number from the lake as that round left it."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pyarrow as pa
import pytest

from crawl.errors import UsageError
from crawl.outcomes import FETCHED, TABLE
from cycles.commands import report, status
from cycles.session import reading
from cycles.session.setup import Lake, open_lake
from cycles.words.output import to_json
from lake import snapshot, sql
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
        [1, 2, 3],
        1,
        state=["FETCHED", "FAILED_RETRYABLE", "DISCOVERED"],
        parsed_at=[NOW, None, None],
        last_outcome=["OK", "TIMEOUT", None],
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
            "hops": 0,
            "lists_planned": 0,
            "lists_asked": 0,
            "lists_fetched": 0,
            "lists_parsed": 0,
            "listed": 0,
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
    found = report.report(lake, None, NOW)
    assert (2, None) == (found["round"], found["chosen"])


def test_rounds_that_had_nothing_to_fetch_are_passed_over_and_that_is_told(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, counts={"planned": 3})
    assert report.report(lake, None, NOW)["chosen"] is None
    lakes.commit_round(lake.store, 2, counts={"planned": 0})
    lakes.commit_round(lake.store, 2, kind="upkeep", committed_at=NOW + SECOND)
    found = report.report(lake, None, NOW)
    assert 1 == found["round"]
    assert "(the last round that planned something; 1 later round had nothing to fetch)" in report.told(found)
    assert 2 == report.report(lake, 2, NOW)["round"]


def fates(lake: Lake, round_: int) -> dict[tuple[str, str | None], tuple[int, int]]:
    found = report.report(lake, round_, NOW)["fates"]
    return {(row["fate"], row["reason"]): (row["urls"], row["hops"]) for row in found}


def test_every_planned_url_has_a_fate_with_its_reason(lake: Lake) -> None:
    """Keys 1 to 9 were planned; 10 was asked because a redirect led to it; 11 was met only."""
    planned = rows.table(
        "frontier",
        round=[1] * 9,
        position=list(range(9)),
        url_key=list(range(1, 10)),
        host=[f"d{key}.test" for key in range(1, 10)],
    )
    before = NOW - timedelta(days=3)
    outcomes = ["OK", "OK", "OK", "NOT_MODIFIED", "PARSE_FAILED", "REDIRECT", "TIMEOUT", "ROBOTS_DENIED"]
    known = rows.seen(
        [*range(1, 9), 10, 11],
        1,
        last_outcome=[*outcomes, "OK", None],
        http_status=[200] * 10,
        first_fetched_at=[NOW, NOW, before, before, NOW, None, None, None, NOW, None],
        parsed_at=[NOW, None, before, before, None, None, None, None, NOW, None],
    )
    left = rows.table("rejects", round=[1], stage=["fetch"], reason=["window"], host=["d9.test"], count=[1])
    lakes.commit_round(lake.store, 1, frontier=planned, seen=known, rejects=left)
    assert {
        ("parsed", None): (2, 1),
        ("unparsed", "not_html"): (1, 0),
        ("unparsed", "same_content"): (1, 0),
        ("unparsed", "not_modified"): (1, 0),
        ("unparsed", "parse_failed"): (1, 0),
        ("redirected", "REDIRECT"): (1, 0),
        ("failed", "TIMEOUT"): (1, 0),
        ("skipped", "ROBOTS_DENIED"): (1, 0),
        ("carried", "window"): (1, 0),
    } == fates(lake, 1)
    told = report.told(report.report(lake, 1, NOW))
    assert (
        "  9 planned = 7 asked + 1 skipped (robots.txt forbids it: 1)"
        " + 1 carried over (the window closed first: 1)\n"
        "  8 asked = 7 planned + 1 that redirects led to\n"
        "  8 asked = 6 fetched + 1 redirected + 1 failed (TIMEOUT: 1)\n"
        "  6 fetched = 2 parsed + 4 not parsed (of a type that is not read: 1, unchanged by answer 304: 1,"
        " the parser gave up: 1, the same content as before: 1)\n"
    ) in told


def test_of_a_crawl_every_round_adds_up_and_all_places_say_the_same(crawled: str) -> None:
    lake = open_lake(crawled, {})
    with reading.reader(lake.store, NOW) as reader:
        metric = {row["round"]: row for row in reading.query(reader, "metric-funnel")}
    for number in (1, 2, 3):
        found = report.report(lake, number, NOW)
        (funnel,), counts = found["funnel"], found["entry"]["counts"]
        urls: dict[str, int] = {}
        hops: dict[str, int] = {}
        for row in found["fates"]:
            urls[row["fate"]] = urls.get(row["fate"], 0) + row["urls"]
            hops[row["fate"]] = hops.get(row["fate"], 0) + row["hops"]
        fetched = urls["parsed"] + urls.get("unparsed", 0)
        asked = fetched + urls.get("redirected", 0) + urls.get("failed", 0)
        assert funnel["planned"] == sum(urls.values()) - sum(hops.values())
        assert (funnel["attempted"], funnel["fetched"], funnel["parsed"]) == (asked, fetched, urls["parsed"])
        assert counts["carried"] == urls.get("carried", 0)
        names = ("planned", "attempted", "fetched", "parsed", "discovered")
        assert [counts[name] for name in names] == [funnel[name] for name in names]
        line = f"{funnel['planned']:,} planned · {asked:,} asked · {fetched:,} fetched"
        assert line in status.told(status.overview(lake, NOW))
        assert (asked, fetched) == (metric[number]["attempted"], metric[number]["fetched"])
        assert found["entry"]["actual"]["asked"] == asked
        by_host = {
            name: sum(row[name] for row in found["hosts"])
            for name in ("asked", "fetched", "redirected", "failed", "requests")
        }
        assert (asked, fetched) == (by_host["asked"], by_host["fetched"])
        assert (urls.get("redirected", 0), urls.get("failed", 0)) == (
            by_host["redirected"],
            by_host["failed"],
        )
        assert sum(row["requests"] for row in found["outcomes"]) == by_host["requests"]


def test_questions_count_as_asked_and_fetched_what_outcomes_say() -> None:
    not_asked = {outcome.value for outcome, rule in TABLE.items() if not rule.asked}
    for name in ("report-funnel", "report-fates", "report-hosts"):
        lists = [set(re.findall(r"'(\w+)'", text)) for text in re.findall(r"IN \(([^)]*)\)", sql.text(name))]
        assert not_asked in lists
        assert {outcome.value for outcome in FETCHED} in lists


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
    found["entry"]["stage_ms"] = {"fetch": 4000.0, "merge": 10.0, "plan": 120.0}
    found["entry"]["committed_at"] = found["entry"]["opened_at"] + 5 * SECOND
    told = report.told(found)
    assert "Funnel  2 planned → 2 asked → 1 fetched → 1 parsed\n" in told
    assert (
        "  2 planned = 2 asked\n  2 asked = 1 fetched + 1 failed (TIMEOUT: 1)\n  1 fetched = 1 parsed\n"
        in told
    )
    assert "  besides: 0 URLs with a document, new or unchanged; 0 events; 3 URLs discovered" in told
    assert "8.0 s predicted, 4.0 s taken (-50%)" in told
    assert "expected to be capped by host: d1.test (3 requests in 8.0 s)" in told
    assert "busy longest was d2.test (1 request in 3.0 s)" in told
    assert "left out  40 for want of capacity\n" in told
    assert ["plan", "fetch", "merge", "seal, rest"] == re.findall(
        r"^  (\S.*?) +[\d.]+ s$", told, re.MULTILINE
    )
    assert "seal, rest      0.87 s" in told
    assert re.search(r"TIMEOUT +1 +1 +1 +50\.0%", told)
    assert "its host's clock allows no more requests in the window" in told
    assert "its host is outside [scope] domains and hosts" in told
    assert "x" * 99 + "…" in told
    assert "x" * 101 not in told


def test_what_hosts_were_left_alone_for_is_no_want_of_capacity(lake: Lake) -> None:
    cut = rows.table(
        "frontier",
        round=[1] * 3,
        position=[-1] * 3,
        host=["d1.test", "d2.test", "d3.test"],
        reason=["circuit_open", "host_budget", "paused"],
        count=[2, 5, 1],
    )
    lakes.commit_round(lake.store, 1, frontier=cut)
    told = report.told(report.report(lake, 1, NOW))
    assert "left out  5 for want of capacity, 2 of hosts that are shut off, 1 of paused hosts\n" in told
    assert "its host is shut off after errors, and one URL a round tries whether it answers" in told


def test_hosts_are_told_with_lists_and_robots_and_types_that_are_not_read(lake: Lake) -> None:
    asked = rows.table(
        "fetches",
        round=[1] * 5,
        kind=["robots", "page", "page", "sitemap", "robots"],
        url_key=[8, 1, 1, 2, 9],
        host=["d1.test"] * 4 + ["d2.test"],
        outcome=["OK", "TIMEOUT", "UNSUPPORTED_TYPE", "OK", "TLS_FAILURE"],
    )
    known = rows.seen(
        [1, 2], 1, host=["d1.test"] * 2, kind=["page", "sitemap"], last_outcome=["UNSUPPORTED_TYPE", "OK"]
    )
    lakes.commit_round(lake.store, 1, fetches=asked, seen=known)
    one, two = report.report(lake, 1, NOW)["hosts"]
    names = ("host", "asked", "fetched", "failed", "requests", "robots")
    assert ("d1.test", 2, 2, 0, 4, 1) == tuple(one[name] for name in names)
    assert ("d2.test", 0, 0, 0, 1, 1) == tuple(two[name] for name in names)


def test_an_empty_round_has_a_report(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1)
    told = report.told(report.report(lake, None, NOW))
    assert "0 planned" in told
    assert "How requests ended\n  none" in told


def test_as_json_every_part_is_there(lake: Lake) -> None:
    committed(lake)
    found = json.loads(to_json(report.report(lake, 1, NOW)))
    assert {*report.PARTS, "lake", "round", "chosen", "entry"} == set(found)
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


def test_what_pages_ask_for_is_obeyed_and_not_refused(lake: Lake) -> None:
    reasons = ["noindex", "noarchive", "unavailable_after", "nofollow", "reader_failed"]
    tally = rows.table("rejects", round=[1] * 5, stage=["parse"] * 5, reason=reasons, host=["d1.test"] * 5)
    lakes.commit_round(lake.store, 1, rejects=tally)
    found = report.report(lake, 1, NOW)
    assert set(reasons) == {row["reason"] for row in found["rejects"]}  # as data they stay together
    obeyed, _, rest = (
        report.told(found)
        .partition("Read, but kept or published in part")[2]
        .partition("Refused, dropped or skipped")
    )
    refused = rest.partition("\n\n")[0]
    assert all(f"{reason} " in obeyed and f"{reason} " not in refused for reason in reasons[:3])
    assert all(reason in refused and reason not in obeyed for reason in reasons[3:])
    assert "the page asks that no copy of it is kept: its text is, its body is not" in obeyed
    assert "the reader of its type could make nothing of it" in refused
