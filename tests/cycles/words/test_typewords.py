"""What is said about media types."""

from typing import Any

import pytest

from cycles.words.typewords import read_as, unread


def row(**given: Any) -> dict[str, Any]:
    return {"url_key": 1, "last_outcome": "OK", "reason": None, "sniffed_type": "text/html"} | given


def fetch(**given: Any) -> dict[str, Any]:
    made = {"url_key": 1, "outcome": "OK", "status": 200, "bytes": 9}
    return made | {"content_type": "text/html", "sniffed_type": "text/html"} | given


def test_of_a_page_that_was_read_there_is_nothing_to_say() -> None:
    assert unread(row(), [fetch()]) is None
    assert unread(row(reason="robots", last_outcome="ROBOTS_DENIED"), []) is None


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("application/zip", "not read: it is application/zip, which is none of content.types"),
        ("Application/Zip; x=y", "not read: it is application/zip, which is none of content.types"),
        (None, "not read: it is application/zip, which is none of content.types"),
        ("a\x1b[31m/b", "not read: it is application/zip (it says a\\x1b[31m/b), which is none of"),
    ],
)
def test_a_type_that_is_not_read_is_told_with_what_was_declared(declared: str | None, words: str) -> None:
    found = row(reason="unsupported_type", last_outcome="UNSUPPORTED_TYPE", sniffed_type="application/zip")
    fetches = [fetch(content_type=declared, sniffed_type="application/zip"), fetch(url_key=2)]
    assert (unread(found, fetches) or "").startswith(words)


def test_a_feed_that_was_asked_for_as_a_page_is_told_what_comes_next() -> None:
    feed = {"sniffed_type": "application/rss+xml"}
    found = row(reason="unsupported_type", last_outcome="UNSUPPORTED_TYPE", kind="feed", **feed)
    told = unread(found, [fetch(kind="page", **feed)]) or ""
    assert told == (
        "not read: it was asked for as a page, and application/rss+xml is none of content.types; the next"
        " request reads it as a feed"
    )
    told = unread(found, [fetch(kind="feed", **feed)]) or ""
    assert told.startswith("not read: it is application/rss+xml (it says text/html), which is none of")


def test_a_lie_is_told_with_what_it_is() -> None:
    found = row(reason="type_mismatch", last_outcome="TYPE_MISMATCH", sniffed_type="application/zip")
    told = unread(found, [fetch(sniffed_type="application/zip")])
    assert told == (
        "not read: it says text/html, but its first bytes are those of application/zip; nothing of it is kept"
    )
    assert "it says no type" in (unread(found, []) or "")


def test_a_reader_that_failed_is_told_by_its_type() -> None:
    found = row(
        reason="reader_failed (KeyError)", last_outcome="PARSE_FAILED", sniffed_type="application/pdf"
    )
    assert unread(found, []) == "the reader of application/pdf could make nothing of it"


def test_a_document_that_is_no_page_is_told_with_its_type_and_metadata() -> None:
    assert read_as({"sniffed_type": "text/html", "metadata": None}) == ""
    assert read_as({"sniffed_type": None}) == ""
    assert read_as({"sniffed_type": "image/png", "metadata": '{"width": 9}'}) == (
        ', read as image/png {"width": 9}'
    )
    assert read_as({"sniffed_type": "application/pdf", "metadata": None}) == ", read as application/pdf"
