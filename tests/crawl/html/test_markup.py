"""Grammars of attribute and header values (outside cases: tests/conformance/test_html.py)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.html import markup


def test_header_values_keep_their_order_whatever_the_case_of_the_name() -> None:
    assert markup.headers("ETag: one\nX: y: z\netag:two\n") == {"etag": ["one", "two"], "x": ["y: z"]}
    assert markup.headers(None) == {}


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
    markup.media_type(text)
