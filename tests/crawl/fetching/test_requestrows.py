import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from crawl.fetching.hostqueue import Ask
from crawl.fetching.requestrows import Sent, kept, record, validators
from crawl.net.exchange import Answer
from crawl.outcomes import Outcome
from crawl.politeness.clock import HostState
from crawl.records import Fetch
from crawl.schema import FETCHES

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MODIFIED = "Sun, 06 Nov 1994 08:49:37 GMT"


def ask(**changes: Any) -> Ask:
    values: dict[str, Any] = {
        "kind": "page",
        "url": "http://a.test/",
        "url_key": 1,
        "origin": "http://a.test",
        "host": "a.test",
        "domain": "a.test",
        "chain_id": 2,
    }
    return Ask(**{**values, **changes})


def row(asked: Ask, answer: Answer, outcome: Outcome | None = None, state: HostState | None = None) -> Fetch:
    sent = Sent(
        started_at=NOW,
        state=state or HostState.new("a.test", "a.test", 1),
        validators=validators(asked, NOW),
        dns_ms=0.0,
        dns_cached=True,
        robots_version="r",
    )
    return record(
        asked,
        sent,
        answer,
        outcome=outcome or answer.outcome,
        reason=answer.reason,
        next_url=None,
        final_url_key=1,
        finished_at=NOW + timedelta(seconds=1),
        total_ms=1000.0,
        policy_version="p",
    )


def answered(status: int, body: bytes = b"", headers: str = "", outcome: Outcome = Outcome.OK) -> Answer:
    return Answer(
        outcome=outcome,
        reason=None,
        began=0.0,
        ended=1.0,
        status=status,
        headers=headers,
        pieces=(body,),
        size=len(body),
    )


def test_a_record_has_every_column_the_task_does_not_add() -> None:
    names = {field.name for field in fields(Fetch)}
    assert set(FETCHES.names) - names == {"day", "round", "group", "fence"}


def test_validators_are_sent_as_they_came() -> None:
    both = validators(ask(etag='W/"a,b"', last_modified=MODIFIED), NOW)
    assert both == ('If-None-Match: W/"a,b"', f"If-Modified-Since: {MODIFIED}")
    assert validators(ask(etag="unquoted"), NOW) == ("If-None-Match: unquoted",)


@pytest.mark.parametrize("etag", ["*", "", 'a"\r\nX: y', "a\nb", "a\x00b", "ĉ", "x" * 1_001])
def test_an_etag_that_is_no_line_is_not_sent(etag: str) -> None:
    assert validators(ask(etag=etag), NOW) == ()


@pytest.mark.parametrize(
    "date", ["yesterday", "0", "Wed, 31 Dec 2098 00:00:00 GMT", "Sun, 31 Feb 2021 00:00:00 GMT"]
)
def test_a_date_that_is_none_or_in_the_future_is_not_sent(date: str) -> None:
    assert validators(ask(last_modified=date), NOW) == ()


def test_outside_cases_of_validators(cases: Path) -> None:
    checked = 0
    for line in (cases / "http" / "validators.jsonl").read_text().splitlines():
        case = json.loads(line)
        stored, expected = case["stored_headers"], case["expected_request_headers"]
        if case["id"] == "val-304-body-lost":
            continue  # whoever loses a body clears its validators
        if not set(expected) <= {"If-None-Match", "If-Modified-Since"}:
            continue
        sent = validators(ask(etag=stored.get("ETag"), last_modified=stored.get("Last-Modified")), NOW)
        assert dict(one.split(": ", 1) for one in sent) == expected, case["id"]
        checked += 1
    assert checked >= 8


def test_a_whole_page_is_kept_and_nothing_else_is() -> None:
    assert kept(ask(), answered(200, b"x"), Outcome.OK)
    assert not kept(ask(), answered(404, b"x"), Outcome.NOT_FOUND)
    assert not kept(ask(), answered(204), Outcome.OK)
    assert not kept(ask(), answered(200, b"x"), Outcome.TOO_LARGE)
    assert kept(ask(kind="robots"), answered(200, b"x"), Outcome.TOO_LARGE)


def test_the_hash_of_a_page_is_left_to_who_reads_the_journal() -> None:
    assert row(ask(), answered(200, b"x")).body_hash is None
    robots = row(ask(kind="robots"), answered(200, b"x", outcome=Outcome.TOO_LARGE))
    assert robots.body_hash == sha256(b"x").hexdigest()


def test_retry_after_counts_where_the_host_refuses() -> None:
    lines = "Content-Type: text/html\nRetry-After: 120"
    assert row(ask(), answered(429, headers=lines)).retry_after_ms == 120_000
    assert row(ask(), answered(503, headers=lines)).retry_after_ms == 120_000
    assert row(ask(), answered(200, headers=lines)).retry_after_ms is None
    assert row(ask(), answered(200, headers=lines)).content_type == "text/html"


def test_the_gap_in_force_is_the_hosts_and_none_before_its_first_request() -> None:
    assert (row(ask(), answered(200)).required_gap_ms, row(ask(), answered(200)).gap_rule) == (0.0, "none")
    state = HostState(
        host_key=1, host="a.test", domain="a.test", next_allowed_at=NOW, delay_ms=70.0, gap_rule="floor"
    )
    later = row(ask(), answered(200), state=state)
    assert (later.required_gap_ms, later.gap_rule) == (70.0, "floor")


def test_a_host_with_others_clock_is_recorded_with_their_group_and_its_gap() -> None:
    state = replace(HostState.new("a.test", "a.test", 1), politeness_group="news")
    answer = Answer(outcome=Outcome.OK, reason=None, began=0.0, ended=1.0, status=200)
    sent = Sent(
        started_at=NOW,
        state=state,
        validators=(),
        dns_ms=None,
        dns_cached=None,
        robots_version="r",
        group_gap_ms=350.0,
    )
    made = record(
        ask(),
        sent,
        answer,
        outcome=answer.outcome,
        reason=None,
        next_url=None,
        final_url_key=None,
        finished_at=NOW,
        total_ms=1.0,
        policy_version="p",
    )
    assert (made.politeness_group, made.group_gap_ms, made.gap_rule) == ("news", 350.0, "none")
    alone = row(ask(), answer)
    assert (alone.politeness_group, alone.group_gap_ms) == (None, None)
