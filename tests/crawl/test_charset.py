"""Encodings: the standard's order of evidence, its labels, and where Python's codecs differ."""

import base64
import json
from pathlib import Path

import pytest
import webencodings
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl import charset

#: rows of the outside cases that this crawler answers otherwise, and why
EXCEPTIONS = {
    "cs-h5-chardet-big5": "nothing is declared, and there is no statistical detector here",
    "cs-sc-filename": "as above; the fallback happens to be the answer",
    "cs-w3-loose-meta": "`< meta` is no tag in HTML",
}


def canonical_name(name: str | None) -> str | None:
    """One spelling per encoding: gbk is decoded as gb18030, and utf-16-le is a spelling of Python's."""
    if name is None or name == "replacement":
        return name
    found = webencodings.lookup({"utf-16-le": "utf-16le", "utf-16-be": "utf-16be"}.get(name, name))
    return {"gbk": "gb18030"}.get(found.name, found.name)


def rows(folder: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (folder / "html" / name).read_text(encoding="utf-8").splitlines()]


def test_bodies_of_the_outside_cases_are_read_in_the_expected_encoding(cases: Path) -> None:
    wrong = []
    for row in rows(cases, "charset.jsonl"):
        if row["id"] in EXCEPTIONS:
            continue
        body = base64.b64decode(row["body_b64"])
        name, markup = charset.to_utf8(body, row["content_type"])
        wanted = {canonical_name(n) for n in [row["expected_encoding"], *row.get("either", [])]}
        if row.get("fallback") == row["expected_encoding"] and "no declaration" in row.get("note", ""):
            wanted.add("utf-8")  # pure ASCII or UTF-8 that declares nothing
        if row["expected_encoding"] and not row.get("any_encoding") and canonical_name(name) not in wanted:
            wrong.append((row["id"], name, wanted))
        text = markup.decode()
        texts = {row["expected_text"], *row.get("either_text", [])} if "expected_text" in row else {text}
        if text not in texts or row.get("must_contain", "") not in text:
            wrong.append((row["id"], text, texts))
    assert wrong == []


def test_content_type_headers_of_the_outside_cases_name_the_expected_charset(cases: Path) -> None:
    wrong = [
        (row["header"], charset.from_content_type(row["header"]))
        for row in rows(cases, "content_type.jsonl")
        if charset.from_content_type(row["header"]) != canonical_name(row["charset"])
    ]
    assert wrong == []


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
