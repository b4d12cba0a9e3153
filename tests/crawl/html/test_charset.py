"""Encodings: the order of evidence and the labels of the standard; outside cases: tests/conformance."""

import pytest
import webencodings
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.html import charset


@pytest.mark.parametrize(
    ("body", "content_type", "name"),
    [
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "text/html; charset=koi8-r", "utf-8"),
        (b"<meta charset=koi8-r>", "text/html; charset=windows-1251", "windows-1251"),
        (b"<meta charset=koi8-r>", "text/html", "koi8-r"),
        (b"<?xml version='1.0' encoding='koi8-r'?><html>", "application/xhtml+xml", "koi8-r"),
        (b"<p>\xc3\xa9", None, "utf-8"),
        (b"<p>\xe9", None, "windows-1252"),
        (b"", None, "utf-8"),
    ],
)
def test_a_mark_beats_the_header_the_header_the_markup_and_the_markup_the_guess(
    body: bytes, content_type: str | None, name: str
) -> None:
    assert charset.sniff(body, content_type)[0] == name


def test_a_body_cut_inside_its_last_character_is_still_utf_8() -> None:
    assert charset.sniff("<p>éé".encode()[:-1], None)[0] == "utf-8"
    assert charset.sniff("<p>é and more".encode("latin-1"), None)[0] == "windows-1252"


def test_a_declaration_far_down_the_head_is_found_and_one_in_a_comment_is_not() -> None:
    padding = b"<!-- <meta charset=koi8-r> " + b"x" * 5_000 + b" -->"
    assert charset.sniff(padding + b"<meta charset=windows-1251>\xe0", None)[0] == "windows-1251"


def test_what_python_calls_a_codec_is_no_label() -> None:
    for label in ("rot13", "zip", "unicode_escape", "idna", "utf-7", "undefined"):
        assert charset.sniff(b"x", f"text/html; charset={label}")[0] == "utf-8"


def test_markup_in_a_replacement_encoding_is_not_read() -> None:
    assert charset.to_utf8(b"<a href=/x>", "text/html; charset=iso-2022-kr") == (
        "replacement",
        "\ufffd".encode(),
    )


def test_what_declares_nothing_is_read_as_it_looks() -> None:
    russian = "<p>Начальник порта записывал каждое судно, уходившее до рассвета"
    japanese = "<p>港の責任者は夜明け前に出て行く船をすべて書き留めていた"
    for text, name in (
        (russian, "windows-1251"),
        (russian, "koi8-u"),
        (japanese, "shift_jis"),
        (japanese, "euc-jp"),
        (japanese, "iso-2022-jp"),
    ):
        assert charset.to_utf8(text.encode(name), None) == (name, text.encode())


def test_a_stray_octet_makes_no_other_encoding_of_utf_8() -> None:
    assert charset.to_utf8("éèü".encode() * 20 + b"\xe9x", None) == (
        "utf-8",
        ("éèü" * 20 + "\ufffdx").encode(),
    )


def test_signs_of_punctuation_tell_nothing() -> None:
    assert charset.sniff(b"<p>\xa3100 and \xbd cup \xab", None)[0] == "windows-1252"


def test_errors_of_a_long_body_cost_no_copy_each() -> None:
    body = b"\x80\xff" * 500_000
    assert len(charset.to_utf8(body, "text/html; charset=gbk")[1]) == 3_000_000


def test_valid_utf_8_is_handed_back_without_a_copy() -> None:
    body = "<p>é</p>".encode()
    assert charset.to_utf8(body, None)[1] is body


@settings(max_examples=100)
@given(
    st.binary(max_size=300)
    | st.builds(lambda a, b: b"<meta " + a + b">" + b, st.binary(max_size=40), st.binary(max_size=40)),
    st.one_of(
        st.none(),
        st.text(max_size=40),
        st.sampled_from(sorted(webencodings.LABELS)).map("a/b;charset={}".format),
    ),
)
def test_any_body_and_header_give_valid_utf_8_and_a_known_encoding(
    body: bytes, content_type: str | None
) -> None:
    name, markup = charset.to_utf8(body, content_type)
    markup.decode("utf-8")
    assert webencodings.lookup(name) is not None
