"""Which answers are refused for their type, by the header alone or by their first bytes."""

import pytest

from crawl.documents.screen import MISMATCH, UNSUPPORTED, Screen, Verdict, content_type
from crawl.outcomes import Outcome
from crawl.policy import Content

PAGES = Screen(Content())
MORE = Screen(Content(types=("text/html", "application/pdf", "image/jpeg", "text/plain")))
PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff\xe0"


def shown(screen: Screen, value: str | None, head: bytes, *more: str) -> Verdict:
    return screen.shown(value, "\n".join(["Server: x", f"Content-Type: {value}", *more]), head)


@pytest.mark.parametrize(
    "value",
    ["application/zip", "image/png", "video/mp4; x=y", "text/plain", "application/json", "application/pdf"],
)
def test_a_type_that_no_byte_could_make_a_page_is_refused_by_the_header(value: str) -> None:
    assert PAGES.declared(value) == Verdict(value.partition(";")[0], UNSUPPORTED)


@pytest.mark.parametrize(
    "value",
    ["text/html; charset=x", "Application/XHTML+XML", "", "html", "*/*", "text/xml", "application/xml"],
)
def test_of_what_is_or_may_be_a_page_the_first_bytes_are_wanted(value: str) -> None:
    assert PAGES.declared(value) is None


def test_pictures_are_taken_for_what_they_begin_like() -> None:
    assert MORE.declared("image/png") is None
    assert shown(MORE, "image/png", JPEG) == Verdict("image/jpeg")
    assert shown(MORE, "image/jpeg", PNG) == Verdict("image/png", UNSUPPORTED)
    assert shown(MORE, "image/jpeg", b"<html>") == Verdict("text/html", MISMATCH)
    assert PAGES.declared("image/png") == Verdict("image/png", UNSUPPORTED)


def test_what_lies_about_itself_is_told_by_what_it_is() -> None:
    verdict = shown(PAGES, "text/html", b"PK\3\4")
    assert verdict == Verdict("application/zip", MISMATCH)
    assert verdict.outcome is Outcome.TYPE_MISMATCH
    assert shown(PAGES, "text/html", b"<p>").outcome is Outcome.OK
    assert shown(MORE, "application/pdf", b"<!doctype html>").reason == MISMATCH


def test_without_a_type_the_bytes_decide_unless_the_server_forbids_it() -> None:
    assert shown(PAGES, None, b"<html>") == Verdict("text/html")
    assert shown(PAGES, None, b"<html>", "X-Content-Type-Options: NoSniff") == Verdict(
        "text/plain", UNSUPPORTED
    )
    assert shown(PAGES, None, b"<html>", "X-Content-Type-Options: sniff, nosniff") == Verdict("text/html")
    assert shown(PAGES, None, b"<html>", "X: x-content-type-options: nosniff") == Verdict("text/html")
    assert shown(PAGES, None, b"words") == Verdict("text/plain", UNSUPPORTED)
    assert shown(PAGES, None, b"words").outcome is Outcome.UNSUPPORTED_TYPE


def test_an_empty_answer_without_a_type_is_not_refused() -> None:
    assert shown(PAGES, None, b"", "Server: x").reason is None
    assert shown(PAGES, "text/html", b"").reason is None
    assert shown(PAGES, "application/xml", b"").reason == UNSUPPORTED


def test_text_is_no_page_even_where_it_looks_like_one() -> None:
    assert shown(MORE, "text/plain", b"<html>") == Verdict("text/plain")
    assert shown(MORE, "text/plain", b"\0\1\2\3") == Verdict("application/octet-stream", UNSUPPORTED)


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("", None),
        ("Content-Type: a/b", "a/b"),
        ("content-type :\ta/b \nX: y", "a/b"),
        ("Content-Type: a/b\nCONTENT-TYPE: c/d", "c/d"),
        ("Content-Type: a/b\nX-Content-Type: c/d", "a/b"),
        ("Content-Type-X: a/b", None),
        ("X: content-type: a/b", None),
        ("Content-Type: a/b\nContent-Type", "a/b"),
    ],
)
def test_the_last_line_of_a_header_counts(lines: str, value: str | None) -> None:
    assert content_type(lines) == value


def test_servers_that_make_up_types_fill_no_memory() -> None:
    screen = Screen(Content())
    for number in range(10_000):
        screen.declared(f"text/x{number}")
    assert len(screen._declared) <= 4096
