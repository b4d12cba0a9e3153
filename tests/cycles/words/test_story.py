"""A story in words says what the facts say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from crawl.policy import Scope, Settings
from cycles.commands import pausing, seeding
from cycles.commands.explain import explain
from cycles.session.setup import Lake
from cycles.session.workspace import Workspace
from cycles.words import story
from lake import files
from tests.cycles.commands import test_explain as facts
from tests.lake import lakes, rows

NOW, DAY, URL = facts.NOW, facts.DAY, facts.URL


def told(lake: Lake, now: Any = NOW) -> str:
    return story.told(explain(lake, URL, now))


def fetched(lake: Lake, **columns: Any) -> pa.Table:
    given = {
        "state": "FETCHED",
        "last_outcome": "OK",
        "http_status": 200,
        "last_checked_at": NOW,
        "next_fetch_at": NOW + 7 * DAY,
        "interval_s": 604800.0,
        "crawl_count": 1,
        "tier": "high",
        "score": 0.61,
        **columns,
    }
    return facts.known(lake, columns.pop("round", 2), **{k: v for k, v in given.items() if k != "round"})


def test_a_url_that_was_cut_is_told_by_how_much(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=facts.known(lake, 1, score=0.4, next_fetch_at=NOW))
    lakes.commit_round(lake.store, 2, now=NOW + DAY, frontier=facts.cut(2, "host_capacity", 0.65))
    text = told(lake)
    assert "left out (host_capacity: its host's clock allows no more requests in the window), with 10" in text
    assert "its score 0.400 was 0.250 below the cut-off 0.650" in text
    assert "never fetched, as soon as a plan has room for it" in text


def test_a_url_that_reached_the_cut_off_was_outrun(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=facts.known(lake, 1, score=0.65, next_fetch_at=NOW))
    lakes.commit_round(lake.store, 2, now=NOW + DAY, frontier=facts.cut(2, "host_capacity", 0.65))
    assert "reached the cut-off 0.650, but others came before it" in told(lake)


def test_of_a_host_that_is_shut_off_no_score_is_blamed(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=facts.known(lake, 1, score=0.65, next_fetch_at=NOW))
    lakes.commit_round(lake.store, 2, now=NOW + DAY, frontier=facts.cut(2, "circuit_open", 0.65))
    text = told(lake)
    assert "(circuit_open: its host is shut off after errors, and one URL a round tries whether it" in text
    assert "cut-off" not in text


def test_each_request_is_told_with_its_phases(lake: Lake) -> None:
    request = facts.asked(lake, 2).to_pylist()[0]
    request |= {
        "status": 200,
        "required_gap_ms": 1000.0,
        "gap_rule": "floor",
        "dns_ms": 1.0,
        "connect_ms": 2.0,
        "first_byte_ms": 30.0,
        "total_ms": 44.4,
        "address": "127.1.2.3",
        "wire_bytes": 12_345,
        "robots_version": "abc",
        "request_validators": "If-None-Match: x",
        "conn_reused": True,
    }
    lakes.commit_round(lake.store, 1, now=NOW, seen=facts.known(lake, 1, next_fetch_at=NOW))
    lakes.commit_round(
        lake.store,
        2,
        now=NOW + DAY,
        frontier=facts.planned(lake, 2),
        fetches=rows.table("fetches", **{name: [value] for name, value in request.items()}),
        seen=fetched(lake),
    )
    text = told(lake)
    assert f"GET {URL} → 200 OK" in text
    assert (
        "gap 1,000 ms (floor); dns 1.0 ms, connect 2.0 ms, first byte 30.0 ms, in all 44.4 ms,"
        " kept connection, conditional; 12,345 bytes from 127.1.2.3; allowed by robots abc"
    ) in text
    assert "planned as high (never fetched), score 0.600, group 0 position 4, to start after 1.5 s" in text
    assert "; OK → FETCHED" in text


def test_what_a_code_of_the_transport_means_is_told_beside_it(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=facts.known(lake, 1, next_fetch_at=NOW))
    failed = facts.asked(lake, 2).to_pylist()[0] | {"outcome": "TLS_FAILURE", "reason": "tls_expired"}
    failed |= {"truncated": True}
    fetches = rows.table("fetches", **{name: [value] for name, value in failed.items()})
    lakes.commit_round(lake.store, 2, now=NOW + DAY, frontier=facts.planned(lake, 2), fetches=fetches)
    text = told(lake)
    assert "TLS_FAILURE (tls_expired: the certificate has expired)" in text
    assert "bytes, not all of it" in text


def test_when_it_is_due_again_and_why(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=fetched(lake, round=1))
    assert "due 2026-03-08 12:00:00: 7 d after the first answer" in told(lake)
    changed = {"interval_s": 302400.0, "last_changed_at": NOW, "crawl_count": 2, "change_count": 1}
    lakes.commit_round(lake.store, 2, now=NOW, seen=fetched(lake, **changed))
    assert "3 d 12 h after the last check (7 d before; it had changed)" in told(lake)
    assert "due since" in told(lake, NOW + 8 * DAY)


def test_a_failure_is_told_with_the_attempt_that_follows(lake: Lake) -> None:
    failed = {
        "state": "FAILED_RETRYABLE",
        "last_outcome": "TIMEOUT",
        "attempts": 2,
        "last_error": "15 s idle",
    }
    lakes.commit_round(lake.store, 1, seen=fetched(lake, round=1, **failed))
    text = told(lake)
    assert "attempt 3 after TIMEOUT" in text
    assert "last outcome TIMEOUT, HTTP 200: 15 s idle" in text


def test_a_page_that_is_missed_is_told_with_what_it_takes_to_be_gone(lake: Lake) -> None:
    missed = {
        "last_outcome": "NOT_FOUND",
        "last_error": "NOT_FOUND",
        "reason": "not_found",
        "http_status": 404,
    }
    missed |= {"gone_sightings": 1, "gone_since": NOW, "attempts": 1, "last_checked_at": None}
    lakes.commit_round(lake.store, 1, seen=fetched(lake, round=1, **missed))
    text = told(lake)
    assert "last outcome NOT_FOUND, HTTP 404, in round 1 (2026-03-01 12:00:00)\n" in text
    assert (
        "answered 404 once in a row since 2026-03-01 12:00:00; still counted as live, because it takes 3 of"
        " them over 1 d to be gone\n"
    ) in text
    assert "not_found" not in text
    assert "missed once since 2026-03-01 12:00:00; missed 3 times over 1 d it counts as gone" in text


def test_what_robots_forbids_is_told_once_with_its_rule(lake: Lake) -> None:
    rule = "Disallow: /p (line 2)"
    denied = {"state": "BLOCKED", "last_outcome": "ROBOTS_DENIED", "last_error": rule, "reason": rule}
    lakes.commit_round(lake.store, 1, seen=fetched(lake, round=1, crawl_count=0, http_status=None, **denied))
    text = told(lake)
    assert (
        f"because robots.txt forbids it: {rule}\n"
        "  last outcome ROBOTS_DENIED, in round 1 (2026-03-01 12:00:00)\n" in text
    )
    assert "never: no request goes out before robots.txt allows it" in text
    assert "judged anew then, or as soon as robots.txt changes" in text


def test_the_last_outcome_and_the_last_confirmation_have_a_time_each(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=fetched(lake, round=1))
    failed = {"last_outcome": "SERVER_ERROR", "http_status": 500, "attempts": 2, "last_checked_at": NOW}
    lakes.commit_round(lake.store, 2, now=NOW + DAY, seen=fetched(lake, round=2, **failed))
    text = told(lake)
    assert (
        "last outcome SERVER_ERROR, HTTP 500, in round 2 (2026-03-02 12:00:00);"
        " last confirmed 2026-03-01 12:00:00\n"
    ) in text
    assert "failed twice in a row; still counted as live" in text


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"status": 200, "content_type": "image/png", "bytes": 9}, "of image/png nothing could be read"),
        ({"status": 204, "content_type": None}, "an answer 204 brings none"),
        ({"status": 200, "content_type": None}, "an answer 200 brings none"),
        ({"status": 200, "content_type": "a\x1b[31m", "bytes": 9}, "of a\\x1b[31m nothing could"),
        (None, "in what came nothing could be read"),
    ],
)
def test_a_page_without_a_text_is_told_with_why(
    lake: Lake, request_: dict[str, Any] | None, words: str
) -> None:
    asked = {}
    if request_ is not None:
        row = facts.asked(lake, 1).to_pylist()[0] | {"outcome": "OK", **request_}
        asked["fetches"] = rows.table("fetches", **{name: [value] for name, value in row.items()})
    lakes.commit_round(lake.store, 1, seen=fetched(lake, round=1, reason="no_content"), **asked)
    assert f"without a text (no_content): {words}" in told(lake)


def test_a_pause_is_told_under_now(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=fetched(lake, round=1))
    pausing.pause(lake, "a.test", reason="its owner asked", who="me", now=NOW)
    now = told(lake).partition("\nFound\n")[0]
    assert "  held back by pause of a.test: its owner asked" in now
    pausing.resume(lake, "a.test", who="me", now=NOW + DAY)
    assert "held back" not in told(lake)


def test_a_url_in_the_plan_of_an_open_round_is_told_with_its_place(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=fetched(lake, round=1))
    work = Workspace(lake.root, 2)
    work.once({"now": "2026-03-02", "opened_at": "2026-03-02"}, "open.json")
    assert "open, at" not in told(lake)
    leased = pa.table({"url_key": [facts.key(lake)], "group": [3], "position": [17]})
    files.write_work(lake.store, work.path("planned.parquet"), leased)
    decided = told(lake).partition("\nDecided\n")[2].partition("\nAsked")[0]
    assert "round 2 (open, at its stage plan): in its plan, group 3 position 17" in decided


def test_another_spelling_is_told_beside_the_one_that_is_stored(lake: Lake) -> None:
    stored = "http://a.test/page?b=1&a=2"
    key = facts.key(lake, stored)
    lakes.commit_round(lake.store, 1, seen=rows.seen([key], 1, url=[stored], host=["a.test"]))
    text = story.told(explain(lake, "http://A.test/page?a=2&b=1&utm_source=x", NOW))
    assert text.startswith(f"{stored}\n  given as http://A.test/page?a=2&b=1&utm_source=x\n")


def test_a_refused_seed_is_told_with_its_reason(lake: Lake) -> None:
    narrow = Lake(lake.store, Settings(scope=Scope(hosts=("b.test",))))
    for text in (URL, "HTTP://A.test/page"):
        seeding.add(narrow, [text], None, priority="high", who="me", now=NOW, tell=lambda _: None)
    found = story.told(explain(narrow, "HTTP://A.test/page", NOW))
    refused = "given as a seed by me on 2026-03-01 12:00:00, and refused: its host is outside [scope]"
    assert 2 == found.count(refused)
    assert "next round takes it in" not in found
    assert "Not discovered: it is no seed, and no page" in told(lake)


@pytest.mark.parametrize("state", ["GONE", "TERMINAL"])
def test_what_counts_as_gone_or_given_up_rests(lake: Lake, state: str) -> None:
    lakes.commit_round(lake.store, 1, seen=fetched(lake, round=1, state=state, reason="not_found"))
    assert "looked at once more then, or as soon as it is given as a seed again" in told(lake)


def test_rounds_that_passed_it_by_are_told_together(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=fetched(lake, round=1))
    for number in range(2, 6):
        lakes.commit_round(lake.store, number, now=NOW + (number - 1) * DAY)
    assert "rounds 2 to 5: not due before 2026-03-08 12:00:00" in told(lake)


def test_an_unknown_url_is_told_as_not_discovered(lake: Lake) -> None:
    text = told(lake)
    assert "This URL is not known." in text
    assert "Not discovered: it was never given as a seed" in text
    assert "No URL of its host a.test was ever asked." in text


def test_an_unknown_url_that_scope_rejects_is_told_with_the_page_that_links_to_it(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, links=facts.link(lake, 1, admitted=False))
    text = story.told(explain(Lake(lake.store, Settings(scope=Scope(domains=("b.test",)))), URL, NOW))
    assert "Rejected by scope (scope_host): its host is outside [scope] domains and hosts." in text
    assert "links to it as 'the page' (round 1, by a, depth 1)" in text


def test_an_unknown_url_whose_link_waits_is_told_so(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, links=facts.link(lake, 1))
    assert "The link waits to be merged." in told(lake)


def test_a_link_that_was_out_of_scope_when_found_is_told_so(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, links=facts.link(lake, 1, admitted=False))
    assert "Then it was out of scope; the settings have changed since." in told(lake)


def test_a_seed_that_waits_is_told_with_who_gave_it(lake: Lake) -> None:
    seeding.add(lake, [URL], None, priority="high", who="me@here", now=NOW, tell=lambda _: None)
    assert "given as a seed by me@here on 2026-03-01 12:00:00: the next round takes it in" in told(lake)


def test_a_strangers_text_steers_no_terminal(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=fetched(lake, round=1, last_error="\x1b[2J"))
    assert "\x1b" not in told(lake)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(hours=36), "1 d 12 h"),
        (timedelta(days=90, minutes=5, seconds=3), "90 d 5 min"),
    ],
)
def test_a_length_of_time_has_two_units(length: timedelta, words: str) -> None:
    assert words == story._interval(length.total_seconds())


def test_a_text_that_is_withheld_says_who_asked_for_that(lake: Lake) -> None:
    seen = fetched(lake, round=1, withheld="noindex", reason="noindex")
    lakes.commit_round(lake.store, 1, now=NOW, seen=seen)
    assert "its text is neither kept nor published (noindex): the page asks not to be indexed" in told(lake)


def test_a_robots_txt_that_failed_is_told_with_the_reason_of_its_request(lake: Lake) -> None:
    reason = "unreachable:TLS_FAILURE"
    waits = {"state": "DISCOVERED", "last_outcome": "ROBOTS_UNREACHABLE", "reason": reason, "attempts": 1}
    robots = rows.table(
        "fetches",
        round=[1],
        kind=["robots"],
        url=["http://a.test/robots.txt"],
        origin=["http://a.test"],
        chain_id=[5],
        outcome=["TLS_FAILURE"],
        reason=["tls_unknown_ca"],
    )
    seen = fetched(lake, round=1, origin="http://a.test", crawl_count=0, http_status=None, **waits)
    lakes.commit_round(lake.store, 1, now=NOW, seen=seen, fetches=robots)
    text = told(lake)
    assert "because its robots.txt could not be read: TLS_FAILURE (tls_unknown_ca: the certificate's" in text
    assert "tls.ca_file" in text
    assert "GET http://a.test/robots.txt → TLS_FAILURE (tls_unknown_ca: " in text.partition("\nAsked")[2]


@pytest.mark.parametrize("outcome", ["NOT_FOUND", "GONE", "RATE_LIMITED", "SERVER_ERROR", "TYPE_MISMATCH"])
def test_what_never_brought_content_is_not_said_to_be_unchanged(lake: Lake, outcome: str) -> None:
    state = {"state": "FAILED_RETRYABLE", "last_outcome": outcome, "reason": outcome.lower()}
    lakes.commit_round(lake.store, 1, now=NOW, seen=fetched(lake, round=1, crawl_count=2, **state))
    assert "answered twice, never with content that is kept\n" in told(lake)


def test_a_sitemap_is_told_with_what_it_named(lake: Lake) -> None:
    names = rows.table(
        "links",
        round=[1, 1, 1],
        source_key=[facts.key(lake)] * 3,
        target_key=[1, 2, 2],
        target_url=["http://a.test/1", "http://a.test/2", "http://a.test/2"],
        via=["sitemap"] * 3,
    )
    cut = rows.table(
        "rejects", round=[1], stage=["parse"], reason=["sitemap_xml_cut"], host=["a.test"], example=[URL]
    )
    seen = fetched(lake, round=1, kind="sitemap")
    lakes.commit_round(lake.store, 1, now=NOW, seen=seen, links=names, rejects=cut)
    text = told(lake)
    assert "named 2 URLs when it was read last, in round 1\n" in text
    assert "in round 1: a sitemap ends early; its entries up to there count (sitemap_xml_cut)\n" in text


def test_what_may_not_be_asked_is_told_with_the_setting(lake: Lake) -> None:
    denied = {"state": "BLOCKED", "last_outcome": "EGRESS_DENIED", "reason": "10.1.2.3", "crawl_count": 0}
    lakes.commit_round(lake.store, 1, now=NOW, seen=fetched(lake, round=1, **denied))
    assert "because no request may go to 10.1.2.3: " in told(lake)


def test_an_unknown_url_is_told_of_refused_links_and_of_nothing_else(lake: Lake) -> None:
    reasons = ["scope_host", "nofollow", "noindex", "not_a_sitemap", "sitemap_cross_site"]
    tally = rows.table("rejects", round=[1] * 5, stage=["parse"] * 5, reason=reasons, host=["a.test"] * 5)
    lakes.commit_round(lake.store, 1, rejects=tally)
    text = told(lake)
    assert "not admitted in round 1 (scope_host: its host is outside [scope] domains and hosts), such" in text
    assert "not admitted in round 1 (nofollow: page or link asks not to follow it), such as" in text
    assert not any(reason in text for reason in reasons[2:])


def test_a_robots_txt_is_known_for_what_it_is(lake: Lake) -> None:
    url = "http://a.test/robots.txt"
    requests = rows.table(
        "fetches", round=[1], kind=["robots"], url=[url], origin=["http://a.test"], chain_id=[1], status=[200]
    )
    lakes.commit_round(lake.store, 1, now=NOW, fetches=requests)
    text = story.told(explain(lake, url, NOW))
    assert "It is the robots.txt of its origin" in text
    assert f"GET {url} → HTTP 200" in text
    assert "not known" not in text
    assert "not known" in story.told(explain(lake, "http://b.test/robots.txt", NOW))
