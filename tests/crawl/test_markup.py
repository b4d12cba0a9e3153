"""Grammars of attribute and header values (outside cases: tests/conformance/test_html.py)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl import markup


def test_header_values_keep_their_order_whatever_the_case_of_the_name() -> None:
    assert markup.headers("ETag: one\nX: y: z\netag:two\n") == {"etag": ["one", "two"], "x": ["y: z"]}
    assert markup.headers(None) == {}


@pytest.mark.parametrize(
    ("content_type", "body", "html"),
    [
        ("text/html; charset=utf-8", b"anything", True),
        ("Application/XHTML+XML", b"", True),
        ("text/plain", b"<html>", False),
        ("image/png", b"\x89PNG", False),
        (None, b"\n <!DOCTYPE  html><p>", True),
        (None, b"<!-- c --><html>", True),
        (None, b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml">', True),
        (None, b'<?xml version="1.0"?>\n<rss>', False),
        (None, b"%PDF-1.7", False),
        ("nonsense", b"<html>", True),
        ("", b"", False),
    ],
)
def test_a_page_is_known_by_its_type_and_without_one_by_its_start(
    content_type: str | None, body: bytes, html: bool
) -> None:
    assert markup.is_html(content_type, body) is html


def test_language_tags_are_spelt_with_hyphens_and_nonsense_is_none() -> None:
    assert markup.language_tag(" en_US ") == "en-US"
    assert markup.language_tag("de") == "de"
    assert markup.language_tag("{{ lang }}") is None


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_no_text_makes_a_grammar_fail(text: str) -> None:
    markup.refresh(text)
    markup.rel_tokens(text)
    markup.language_tag(text)
    markup.leads_to_a_page(text, text)
    markup.headers(text)
    markup.is_html(text, text.encode("utf-8", "replace"))
