"""Columns of one visit; all outcomes against a reference are in tests/crawl/stages/test_merge.py."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.merging import visited
from crawl.outcomes import TABLE, Outcome
from crawl.schema import SEEN, VISITS
from crawl.state import State
from tests.crawl.urlrows import NOW, REAL, ROUND, SETTINGS, fetched, ok, row, visit

DAY = timedelta(days=1)


def after(before: dict[str, Any], came: dict[str, Any], **options: Any) -> dict[str, Any]:
    rows = visited.after(
        pa.Table.from_pylist([before], SEEN),
        pa.Table.from_pylist([came], VISITS),
        **{"settings": SETTINGS, "policy_version": "p1", "now": NOW, "round": ROUND} | options,
    )
    [found] = rows.to_pylist()
    return dict(found)


@hypothesis(max_examples=100, deadline=None)
@given(state=st.sampled_from(list(State)), outcome=st.sampled_from(list(Outcome)))
def test_no_visit_leaves_a_required_column_null_or_a_date_in_the_past(state: State, outcome: Outcome) -> None:
    made = after(fetched(1, state=str(state)), visit(1, str(outcome)))
    missing = {n for n, v in made.items() if v is None and SEEN.field(n).metadata[b"nullable"] == b"no"}
    assert set() == missing
    assert made["next_fetch_at"] > NOW


@pytest.mark.parametrize("outcome", [o for o, rule in TABLE.items() if rule.against == "host"])
def test_no_number_of_host_faults_gives_a_url_up(outcome: Outcome) -> None:
    made, now = row(1), NOW
    for _ in range(20):
        made = after(made, visit(1, str(outcome)), now=now)
        now += 30 * DAY
    assert made["state"] in {"DISCOVERED", "FAILED_RETRYABLE"}


def test_a_page_that_returns_from_the_dead_is_new_again() -> None:
    gone = fetched(1, last_outcome="GONE", gone_sightings=1, gone_since=NOW - 2 * DAY)
    gone = after(gone, visit(1, "GONE", http_status=410))
    assert ("GONE", None) == (gone["state"], gone["document_key"])
    back = after(gone, ok(1, content_hash="h1", document_key=501))
    assert ("FETCHED", 501, 0, None) == (
        back["state"],
        back["document_key"],
        back["gone_sightings"],
        back["gone_since"],
    )
    assert NOW == back["index_ready_at"]


def test_old_checks_count_less() -> None:
    long_ago = NOW - visited.HALF_LIFE
    made = after(fetched(1, last_checked_at=long_ago, checks_decayed=4.0, changes_decayed=2.0), ok(1))
    assert pytest.approx((3.0, 2.0)) == (made["checks_decayed"], made["changes_decayed"])


def test_a_failure_keeps_the_interval_of_the_recrawl() -> None:
    made = after(fetched(1), visit(1, "TIMEOUT", http_status=None))
    assert 7 * 86_400.0 == made["interval_s"]
    assert 200 == made["http_status"]


def test_a_gone_page_keeps_its_reason_while_its_host_is_down() -> None:
    made = after(fetched(1, state="GONE", reason="not_found"), visit(1, "REFUSED", reason="refused"))
    assert ("GONE", "not_found", "refused") == (made["state"], made["reason"], made["last_error"])


def test_an_unknown_outcome_is_refused() -> None:
    with pytest.raises(ValueError, match="none of"):
        after(row(1), visit(1, "NO_SUCH_THING"))


def test_of_several_visits_the_last_request_counts() -> None:
    came = [
        visit(1, "SUPPRESSED", fetched_at=REAL + DAY),
        visit(1, "TIMEOUT"),
        ok(1, fetched_at=REAL + timedelta(hours=1)),
        visit(0),
    ]
    rows = visited.one_each(pa.Table.from_pylist(came, VISITS)).to_pylist()
    assert [(0, "OK", None), (1, "OK", "h2")] == [
        (r["url_key"], r["outcome"], r["content_hash"]) for r in rows
    ]


def test_what_came_of_a_page_stands_until_it_comes_whole() -> None:
    cut = visit(1, "RESET", reason="body_cut", http_status=200, document_key=77, truncated=True, etag='"e"')
    made = after(row(1), cut)
    assert ("FAILED_RETRYABLE", "body_cut", 77) == (made["state"], made["reason"], made["document_key"])
    assert (None, None, NOW, NOW) == (
        made["content_hash"],
        made["etag"],  # no 304 may stand for what is not there
        made["fetched_at"],
        made["parsed_at"],
    )
    assert 77 == after(made, cut | {"document_key": 78})["document_key"]
    whole = after(made, ok(1, content_hash="h", document_key=79))
    assert ("FETCHED", 79, "h") == (whole["state"], whole["document_key"], whole["content_hash"])


def test_a_part_replaces_no_whole_page_but_of_one_that_is_too_large_now() -> None:
    cut = visit(1, "RESET", http_status=200, document_key=77, truncated=True)
    assert 501 == after(fetched(1), cut)["document_key"]
    grown = visit(1, "TOO_LARGE", reason="wire_bytes", http_status=200, document_key=77, truncated=True)
    made = after(fetched(1), grown)
    assert ("QUARANTINED", "wire_bytes", 77) == (made["state"], made["reason"], made["document_key"])
    assert (None, None) == (made["etag"], made["content_hash"])


def test_a_chain_ends_for_a_url_that_was_asked_and_a_loop_keeps_its_target() -> None:
    before = row(1, chain_id=7, chain_hop=2)
    came = after(before, visit(1, "REDIRECT_LOOP", http_status=302, redirect_to_key=5))
    assert (None, None, 5) == (came["chain_id"], came["chain_hop"], came["redirect_to_key"])
    assert "FAILED_RETRYABLE" == came["state"]


def test_what_lies_about_its_type_is_quarantined_and_its_validators_are_forgotten() -> None:
    lie = visit(
        1,
        "TYPE_MISMATCH",
        reason="type_mismatch",
        http_status=200,
        etag='"x"',
        sniffed_type="application/zip",
    )
    made = after(fetched(1), lie)
    assert ("QUARANTINED", "type_mismatch", "application/zip") == (
        made["state"],
        made["reason"],
        made["sniffed_type"],
    )
    assert (None, None, None) == (made["etag"], made["last_modified"], made["content_hash"])
    assert made["next_fetch_at"] > NOW
    good = after(made, ok(1, content_hash="h", document_key=79, sniffed_type="text/html"))
    assert ("FETCHED", None, "text/html") == (good["state"], good["reason"], good["sniffed_type"])


def test_a_page_that_becomes_what_nobody_reads_has_changed_and_leaves_no_hash() -> None:
    """Else the page that comes back would look as if it had never been away, and stay without a text."""
    gone = visit(1, "UNSUPPORTED_TYPE", http_status=200, etag='"p"', sniffed_type="application/pdf")
    made = after(fetched(1), gone)
    assert ("FETCHED", "unsupported_type", None, None) == (
        made["state"],
        made["reason"],
        made["document_key"],
        made["content_hash"],
    )
    assert (1, NOW, '"p"') == (made["change_count"], made["last_changed_at"], made["etag"])
    again = after(made, gone)
    assert 1 == again["change_count"]
    same = after(again, visit(1, "NOT_MODIFIED", http_status=304))
    assert ("unsupported_type", "application/pdf") == (same["reason"], same["sniffed_type"])


def test_a_list_that_was_read_is_in_order_without_a_document_and_says_when() -> None:
    made = after(row(1, kind="sitemap"), ok(1, kind="sitemap", document_key=None))
    assert (made["state"], made["reason"], made["document_key"]) == ("FETCHED", None, None)
    assert (made["parsed_at"], made["kind"], made["visited_round"]) == (NOW, "sitemap", ROUND)
    page = after(row(1), ok(1, document_key=None))
    assert (page["reason"], page["parsed_at"]) == ("no_content", None)


@pytest.mark.parametrize(
    ("url", "media", "kind"),
    [
        ("http://a.test/blog", "application/rss+xml", "feed"),
        ("http://a.test/blog", "application/atom+xml", "feed"),
        ("http://a.test/Sitemap-1.xml?x", "text/xml", "sitemap"),
        ("http://a.test/sitemap.xml.gz", "application/gzip", "sitemap"),
        ("http://a.test/sitemap/data.xml", "text/xml", "page"),
        ("http://a.test/data.xml", "text/xml", "page"),
        ("http://a.test/sitemap.pdf", "application/pdf", "page"),
    ],
)
def test_a_page_that_came_as_a_list_is_read_as_one_from_then_on(url: str, media: str, kind: str) -> None:
    came = visit(1, "UNSUPPORTED_TYPE", http_status=200, sniffed_type=media)
    assert after(row(1, url=url), came)["kind"] == kind
    off = replace(SETTINGS, sitemaps=replace(SETTINGS.sitemaps, follow=False, feeds=False))
    assert after(row(1, url=url), came, settings=off)["kind"] == "page"
    made = after(row(1, url=url), came | {"etag": '"e"'})
    again = NOW + timedelta(microseconds=1)
    assert (made["next_fetch_at"] == again, made["etag"]) == (
        kind != "page",
        '"e"' if kind == "page" else None,
    )


def test_a_first_reading_is_no_change() -> None:
    unread = after(row(1), visit(1, "UNSUPPORTED_TYPE", http_status=200, sniffed_type="application/rss+xml"))
    assert 0 == unread["change_count"]
    for came in (ok(1, content_hash="h"), ok(1, kind="feed", content_hash="h", document_key=None)):
        made = after(unread, came)
        assert (0, "h") == (made["change_count"], made["content_hash"])
        assert unread["interval_s"] == made["interval_s"]
        assert 1 == after(made, ok(1, kind=came["kind"], content_hash="i"))["change_count"]
        assert made["next_fetch_at"] > NOW + timedelta(hours=1)
    page = fetched(1, content_hash=None, document_key=7)
    assert 0 == after(page, ok(1, kind="sitemap", document_key=None))["change_count"]
