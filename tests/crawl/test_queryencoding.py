"""Queries of links in the encoding of their page."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawl.queryencoding import concerns, encode_query
from crawl.url import canonical


@pytest.mark.parametrize(
    ("text", "label", "encoded"),
    [
        ("/s?q=é", "windows-1252", "/s?q=%E9"),
        ("/s?q=é", "latin1", "/s?q=%E9"),  # a label, as pages write it
        ("/s?q=Я", "koi8-r", "/s?q=%F1"),
        ("/s?q=日本", "shift_jis", "/s?q=%93%FA%96{"),  # a second byte that is ASCII stays as it is
        ("/s?q=日本", "euc-jp", "/s?q=%C6%FC%CB%DC"),
        ("/s?q=日本", "gb18030", "/s?q=%C8%D5%B1%BE"),
    ],
)
def test_a_query_is_written_in_the_encoding_of_its_page(text: str, label: str, encoded: str) -> None:
    assert encoded == encode_query(text, label)


@pytest.mark.parametrize("label", ["utf-8", "utf-16le", "utf-16be", "iso-2022-kr", "no such encoding", ""])
def test_utf_8_utf_16_and_unknown_labels_change_nothing(label: str) -> None:
    assert "/é?q=é#é" == encode_query("/é?q=é#é", label)


def test_path_and_fragment_are_left_to_the_url_parser() -> None:
    assert "/é?q=%E9#é?é" == encode_query("/é?q=é#é?é", "windows-1252")
    assert "/é#é?é" == encode_query("/é#é?é", "windows-1252")


def test_what_the_encoding_lacks_becomes_a_character_reference_and_the_rest_does_not_suffer() -> None:
    assert "/?a=%E9&b=%26%2326085%3B" == encode_query("/?a=é&b=日", "windows-1252")


def test_bytes_that_a_query_may_not_hold_are_escaped_beside_what_was_encoded() -> None:
    assert "/?%E9%20%22%3C%3E%27" == encode_query("/?é \"<>'", "windows-1252")


def test_escapes_that_stand_there_are_not_escaped_again() -> None:
    assert "/?a=%C3%A9&b=%E9" == encode_query("/?a=%C3%A9&b=é", "windows-1252")


def test_tabs_and_line_ends_vanish_as_a_url_parser_has_it() -> None:
    assert "/?q=%E9a" == encode_query("/?q=é\t\r\na", "windows-1252")


@pytest.mark.parametrize("edge", [" ", "\n", " \t\x00\x1f "])
def test_what_a_parser_strips_off_the_end_is_not_escaped_into_the_query(edge: str) -> None:
    """`href="?q=é "` and `href="?q=é"` are one URL."""
    assert "/?q=%E9" == encode_query(f"/?q=é{edge}", "windows-1252")
    assert "/?q=%E9%20#" == encode_query("/?q=é #", "windows-1252")  # within a URL a space stays
    assert canonical(f"/?q=é{edge}", "http://a.test/", "gbk") == canonical("/?q=é", "http://a.test/", "gbk")


@settings(max_examples=100)
@given(st.text(max_size=20), st.sampled_from(["windows-1252", "shift_jis", "iso-2022-jp", "gbk", "koi8-r"]))
@example("\x1b(J日\\", "iso-2022-jp")
def test_a_query_ends_up_in_ascii_and_encoding_it_again_changes_nothing(query: str, label: str) -> None:
    query = query.replace("#", "")
    once = encode_query(f"/?é{query}", label)
    assert once.isascii()
    assert once == encode_query(once, label)


def test_controls_that_shift_a_japanese_decoder_are_not_passed_on() -> None:
    assert encode_query("?a=\x1b$B", "iso-2022-jp") == "?a=%26%2365533%3B$B"
    assert concerns("?a=\x1b", "iso-2022-jp")
    assert not concerns("?a=\x1b", "utf-8")
    assert not concerns("?a=b", "iso-2022-jp")
