"""Visits and fetches: records as rows, one visit a URL."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from crawl.keys import Keyer
from crawl.merging.visits import Parsed, arrived, fetch_rows, unkept, visit_rows
from crawl.policy import Parsing
from crawl.records import Fetch, Skip
from crawl.schema import FETCHES, VISITS

KEYER = Keyer(bytes(range(32)))
NOW = datetime(2026, 3, 1, tzinfo=UTC)
FETCH = Fetch(
    kind="page",
    url="http://a.test/",
    url_key=7,
    origin="http://a.test",
    host="a.test",
    domain="a.test",
    attempt=1,
    chain_id=1,
    hop=0,
    started_at=NOW,
    finished_at=NOW + timedelta(seconds=1),
    required_gap_ms=0.0,
    gap_rule="none",
    total_ms=1.0,
    outcome="OK",
    policy_version="p",
    status=200,
    bytes=5,
    body_hash="new",
    known_hash="old",
    response_headers="ETag: one\nLast-Modified: then\nETAG: two",
    depth=3,
)
SKIP = Skip(
    url_key=8,
    url="http://a.test/8",
    host="a.test",
    depth=1,
    outcome="ROBOTS_DENIED",
    reason="r",
    decided_at=NOW,
)


def rows(*records: Fetch | Skip, **given: object) -> list[dict]:
    options = {"parsed": {}, "failed": {}, **given}
    more = {name: options[name] for name in ("agent", "keep_noindex") if name in options}
    table = visit_rows(records, options["parsed"], options["failed"], KEYER, **more)
    assert table.schema == VISITS
    return table.to_pylist()


def test_content_that_differs_from_what_was_known_is_a_change() -> None:
    (row,) = rows(FETCH, parsed={7: Parsed(99, "http://a.test/c")})
    assert row["changed"]
    assert (row["content_hash"], row["content_length"], row["document_key"]) == ("new", 5, 99)
    assert (row["etag"], row["last_modified"], row["canonical_hint"]) == ("two", "then", "http://a.test/c")
    assert row["fetched_at"] == NOW + timedelta(seconds=1)
    assert (row["depth"], row["outcome"], row["http_status"]) == (3, "OK", 200)


def test_the_same_content_and_a_304_are_none() -> None:
    same = replace(FETCH, known_hash="new")
    (row,) = rows(same)
    assert (row["changed"], row["content_hash"]) == (False, "new")
    assert not arrived(same)
    (row,) = rows(replace(FETCH, status=304, outcome="NOT_MODIFIED", body_hash=None, bytes=0))
    assert (row["changed"], row["content_hash"], row["content_length"]) == (False, None, None)


def test_the_body_of_an_error_page_is_no_content() -> None:
    missing = replace(FETCH, status=404, outcome="NOT_FOUND")
    (row,) = rows(missing)
    assert (row["changed"], row["content_hash"]) == (False, None)
    assert not arrived(missing)


def test_content_that_is_no_page_is_of_a_type_that_is_not_read() -> None:
    pdf = replace(FETCH, content_type="application/pdf")
    (row,) = rows(pdf)
    assert (row["outcome"], row["changed"], row["content_hash"]) == ("UNSUPPORTED_TYPE", True, "new")
    (refused,) = rows(
        replace(pdf, outcome="UNSUPPORTED_TYPE", body_hash=None, sniffed_type="application/pdf")
    )
    assert (refused["outcome"], refused["changed"], refused["content_hash"]) == (
        "UNSUPPORTED_TYPE",
        False,
        None,
    )
    assert refused["sniffed_type"] == "application/pdf"
    (typeless,) = rows(FETCH)
    assert typeless["outcome"] == "UNSUPPORTED_TYPE"


def test_equal_content_of_a_page_an_empty_answer_and_a_304_are_what_they_were() -> None:
    page = replace(FETCH, content_type="text/html; charset=utf-8", known_hash="new")
    empty = replace(FETCH, bytes=0)
    unchanged = replace(
        FETCH, content_type="application/pdf", status=304, outcome="NOT_MODIFIED", body_hash=None
    )
    assert [row["outcome"] for each in (page, empty, unchanged) for row in rows(each)] == [
        "OK",
        "OK",
        "NOT_MODIFIED",
    ]


def test_a_redirect_names_its_target() -> None:
    moved = replace(FETCH, status=301, outcome="REDIRECT", next_url="http://b.test/x", body_hash=None)
    other = replace(moved, url_key=3, next_url="http://c.test/")
    assert [row["redirect_to_key"] for row in rows(moved, other, SKIP)] == [
        KEYER.url_key("http://c.test/"),
        KEYER.url_key("http://b.test/x"),
        None,
    ]


def test_a_page_whose_parse_was_given_up_says_so() -> None:
    (row,) = rows(FETCH, failed={7: "parse_deadline"})
    assert (row["outcome"], row["reason"], row["document_key"], row["changed"]) == (
        "PARSE_FAILED", "parse_deadline", None, True,
    )  # fmt: skip


def test_a_url_has_one_visit_and_a_request_tells_more_than_a_skip() -> None:
    skipped = replace(SKIP, url_key=7, decided_at=NOW + timedelta(hours=1))
    later = replace(FETCH, finished_at=NOW + timedelta(minutes=5), outcome="TIMEOUT", status=None)
    robots = replace(FETCH, kind="robots", url_key=6)
    found = rows(later, FETCH, skipped, robots, SKIP)
    assert [(row["url_key"], row["outcome"]) for row in found] == [(7, "TIMEOUT"), (8, "ROBOTS_DENIED")]
    assert found[1]["fetched_at"] == NOW
    assert found[1]["reason"] == "r"


def test_rows_of_fetches_have_the_tables_columns() -> None:
    table = fetch_rows([FETCH, FETCH], day=date(2026, 3, 1), round_=4, group=2, fence=9)
    assert table.schema == FETCHES
    row = table.to_pylist()[1]
    assert (row["round"], row["group"], row["fence"], row["url_key"], row["body_hash"]) == (4, 2, 9, 7, "new")
    assert fetch_rows([], day=date(2026, 3, 1), round_=4, group=2, fence=9).num_rows == 0


def test_a_part_of_a_page_has_its_document_and_says_why_it_is_not_whole() -> None:
    cut = replace(FETCH, outcome="RESET", reason="body_cut", truncated=True)
    assert arrived(cut)
    (row,) = rows(cut, parsed={7: Parsed(99, None)})
    assert (row["outcome"], row["reason"], row["truncated"]) == ("RESET", "body_cut", True)
    assert (row["document_key"], row["content_hash"], row["content_length"]) == (99, None, None)
    (failed,) = rows(cut, failed={7: "parse_deadline"})
    assert (failed["outcome"], failed["reason"]) == ("RESET", "body_cut")


def test_a_success_of_a_kind_nobody_knows_brings_a_page() -> None:
    assert arrived(replace(FETCH, status=299))
    assert not arrived(replace(FETCH, status=206))


def test_what_a_header_asks_counts_until_a_parse_has_told_more() -> None:
    ours = "OurBot: noindex, max-snippet: 5, unavailable_after: 2030-01-01"
    lines = f"X-Robots-Tag: otherbot: none\nX-Robots-Tag: {ours}"
    until = datetime(2030, 1, 1, tzinfo=UTC)
    for status in (200, 304):
        asked = replace(FETCH, status=status, response_headers=lines)
        (row,) = rows(asked, agent="ourbot")
        assert (row["withheld"], row["unavailable_after"]) == ("noindex", until)
        assert row["header_robots"] == "noindex, unavailable_after: 2030-01-01"
    (row,) = rows(asked, agent="ourbot", keep_noindex=True)
    assert (row["withheld"], row["header_robots"]) == (None, "noindex, unavailable_after: 2030-01-01")
    told = {7: Parsed(99, None, "unavailable_after", until)}
    (row,) = rows(replace(asked, status=200), agent="ourbot", parsed=told)
    assert row["withheld"] == "unavailable_after"
    (row,) = rows(replace(asked, status=404), agent="ourbot")
    assert (row["withheld"], row["header_robots"]) == (None, None)
    (row,) = rows(asked)
    assert row["header_robots"] is None


def test_a_header_may_forbid_to_keep_a_body() -> None:
    def why(lines: str | None, **policy: bool) -> str | None:
        return unkept(replace(FETCH, response_headers=lines), "ourbot", Parsing(**policy))

    assert why("x-robots-tag: ourbot: noarchive") == "noarchive"
    assert why("X-Robots-Tag: none") == "noindex"
    assert why("X-Robots-Tag: none", keep_noindex=True) is None
    assert why("X-Robots-Tag: noarchive", keep_noarchive=True) is None
    assert why("X-Robots-Tag: otherbot: noarchive") is why("Link: <x-robots-tag>") is why(None) is None


def test_what_was_read_of_a_try_that_was_cut_is_not_the_next_ones() -> None:
    cut = replace(FETCH, outcome="RESET", reason="body_cut", truncated=True)
    later = NOW + timedelta(seconds=9)
    same = replace(FETCH, outcome="NOT_MODIFIED", status=304, body_hash=None, finished_at=later)
    for options in ({"parsed": {7: Parsed(99, None)}}, {"failed": {7: "parse_deadline"}}):
        (row,) = rows(cut, same, **options)
        assert (row["outcome"], row["document_key"], row["truncated"]) == ("NOT_MODIFIED", None, False)
