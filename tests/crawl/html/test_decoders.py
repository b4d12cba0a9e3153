"""Decoders of the Encoding Standard, where Python's codecs differ from it."""

from __future__ import annotations

import pytest
import webencodings
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.html.decoders import decode


@pytest.mark.parametrize(
    ("name", "octets", "text"),
    [
        ("windows-1252", b"\x80\x81\x9d", "€\x81\x9d"),
        ("windows-1251", b"\x98\xff", "\x98я"),
        ("windows-1253", b"\x81\xaa\xc1", "\x81\ufffdΑ"),
        ("windows-1255", b"\xca\xd9", "\u05ba\ufffd"),
        ("windows-874", b"\x81\xa1\xdb", "\x81ก\ufffd"),
        ("koi8-u", b"\xae\xbe\xf1", "ўЎЯ"),
        ("gbk", b"\x80\xa2\xe3\xb5\xba", "€€岛"),
        ("gb18030", b"\xff<a>", "\ufffd<a>"),
        ("euc-jp", b"\xad\xa1\xa1\xc1\xa1\xdd", "①～－"),
        ("euc-jp", b"\xff<a>\xad", "\ufffd<a>\ufffd"),
        ("iso-2022-jp", b"\x1b$B!A\x1b(B<a>", "～<a>"),
        ("shift_jis", b"\x81\x60\x87\x40", "～①"),
        ("x-user-defined", b"a\x80", "a\uf780"),
        ("no such encoding", b"a\xff", "a\ufffd"),
    ],
)
def test_octets_mean_what_the_web_takes_them_for(name: str, octets: bytes, text: str) -> None:
    assert decode(octets, name) == text


@settings(max_examples=100)
@given(st.binary(max_size=60), st.sampled_from(sorted(set(webencodings.LABELS.values()))))
def test_any_octets_give_text_that_utf_8_can_hold(octets: bytes, name: str) -> None:
    decode(octets, name).encode()


@settings(max_examples=100)
@given(
    st.binary(max_size=40),
    st.sampled_from(["euc-jp", "gbk", "windows-1255", "shift_jis", "euc-kr", "big5"]),
)
def test_no_broken_octets_swallow_a_tag(octets: bytes, name: str) -> None:
    assert decode(octets + b"  <a href=x>", name).endswith("<a href=x>")
