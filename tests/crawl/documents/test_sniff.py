"""What a body is by header and first bytes, and what contradicts its type."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.documents import sniff

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF"
ZIP = b"PK\x03\x04\x14\0\0\0"
EXE = b"MZ\x90\0\3\0\0\0\4\0\0\0\xff\xff"
ELF = b"\x7fELF\2\1\1\0"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
NOISE = bytes(range(256)) * 6
WIDE = "<p>two bytes a character".encode("utf-16-le")


@pytest.mark.parametrize(
    ("content_type", "body", "found"),
    [
        # 7, step 1: what is declared as page or XML is that, whatever it holds
        ("text/html; charset=x", ZIP, "text/html"),
        ("application/xhtml+xml", b"", "application/xhtml+xml"),
        ("image/svg+xml", PNG, "image/svg+xml"),
        # step 2 and 7.1: without a type the bytes tell
        (None, b"", "text/plain"),
        (None, b" \n<!DOCTYPE html><p>", "text/html"),
        (None, b"<HTML lang=en>", "text/html"),
        (None, b"<!-- x -->", "text/html"),
        (None, b"<!--x", "text/html"),
        (None, b"\n <!doctype  html>", "text/html"),
        (None, b"<html\n  lang=en>", "text/html"),
        (None, b"<bold>", "text/plain"),
        (None, b"<b>", "text/html"),
        (None, b"\xef\xbb\xbf<html>", "text/html"),
        (None, b"<?xml version='1.0'?><x/>", "text/xml"),
        (None, b"<?xml version='1.0'?><!DOCTYPE html PUBLIC ''><html>", "application/xhtml+xml"),
        (None, b"<?xml version='1.0'?>\n<!-- a --><?b c?><rss version='2.0'>", "application/rss+xml"),
        (None, b"<?xml version='1.0'?><feed xmlns='a'>", "application/atom+xml"),
        (None, PDF, "application/pdf"),
        (None, b"%!PS-Adobe-3.0", "application/postscript"),
        (None, b"\xfe\xff\0a", "text/plain"),
        (None, b"\xff\xfea\0", "text/plain"),
        (None, PNG, "image/png"),
        (None, JPEG, "image/jpeg"),
        (None, b"GIF89a\1\0", "image/gif"),
        (None, b"RIFF\0\1\2\3WEBPVP8 ", "image/webp"),
        (None, b"RIFF\0\1\2\3WAVEfmt ", "audio/wave"),
        (None, b"RIFF\0\1\2\3AVI LIST", "video/avi"),
        (None, b"BM\0\0", "image/bmp"),
        (None, b"\0\0\1\0", "image/x-icon"),
        (None, b"ID3\4", "audio/mpeg"),
        (None, b"\xff\xfb\x90\x64", "audio/mpeg"),
        (None, b"OggS\0", "application/ogg"),
        (None, b"\0\0\0\x18ftypmp42", "video/mp4"),
        (None, b"\0\0\0\x18ftypavif", "image/avif"),
        (None, b"\x1a\x45\xdf\xa3", "video/webm"),
        (None, b"\x1f\x8b\x08", "application/x-gzip"),
        (None, ZIP, "application/zip"),
        (None, b"Rar!\x1a\7\0", "application/x-rar-compressed"),
        (None, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (None, b"a.txt".ljust(257, b"\0") + b"ustar", "application/x-tar"),
        (None, EXE, "application/vnd.microsoft.portable-executable"),
        (None, ELF, "application/x-elf"),
        (None, b"plain words", "text/plain"),
        (None, b"binary \0 words", "application/octet-stream"),
        ("", b"<p>", "text/html"),
        ("html", b"<p>", "text/html"),
        ("text/", b"<p>", "text/html"),
        ("a b/c", b"<p>", "text/html"),
        ("*/*", b"<p>", "text/html"),
        ("unknown/unknown", b"<p>", "text/html"),
        ("application/unknown; x=y", PDF, "application/pdf"),
        # step 4 and 7.2: text is never more than text, whatever it looks like
        ("text/plain", b"<!doctype html><p>", "text/plain"),
        ("text/plain", b"<\0>", "application/octet-stream"),
        ("text/plain; charset=UTF-8", NOISE, "application/octet-stream"),
        ("text/plain", PDF[:9], "text/plain"),
        ("text/plain", b"\xef\xbb\xbf\0", "text/plain"),
        ("text/plain;charset=utf-8", b"\0", "text/plain"),
        ("text/css", b"\0", "text/css"),
        # steps 5 and 7: pictures and sounds are what they begin like
        ("image/png", JPEG, "image/jpeg"),
        ("image/anything", PNG, "image/png"),
        ("image/png", b"<html>", "image/png"),
        ("audio/x", b"OggS\0", "application/ogg"),
        ("video/mp4", PNG, "video/mp4"),
        # step 9
        ("application/octet-stream", b"<html>", "application/octet-stream"),
        ("application/json", b"<html>", "application/json"),
        # XML that does not say which: its root does
        ("text/xml", b"<rss>", "application/rss+xml"),
        ("application/xml", b"\xef\xbb\xbf<?xml?>\n<feed>", "application/atom+xml"),
        ("application/xml", b"<urlset>", "application/xml"),
        ("application/xml", b"", "application/xml"),
    ],
)
def test_a_type_is_computed_as_the_standard_says(content_type: str | None, body: bytes, found: str) -> None:
    assert sniff.computed(content_type, body) == found


@pytest.mark.parametrize(
    ("content_type", "body", "found"),
    [
        (None, b"<html>", "text/plain"),
        (None, PDF, "text/plain"),
        (None, b"<?xml version='1.0'?>", "text/plain"),
        (None, PNG, "image/png"),
        ("text/plain", b"\0", "text/plain"),
        ("image/png", JPEG, "image/png"),
        ("text/html", b"", "text/html"),
    ],
)
def test_a_server_that_forbids_sniffing_is_obeyed(content_type: str | None, body: bytes, found: str) -> None:
    assert sniff.computed(content_type, body, nosniff=True) == found


@pytest.mark.parametrize(
    ("media_type", "body", "really"),
    [
        ("text/html", ZIP, "application/zip"),
        ("text/html", EXE, "application/vnd.microsoft.portable-executable"),
        ("text/html", ELF, "application/x-elf"),
        ("text/html", PDF, "application/pdf"),
        ("text/html", PNG, "image/png"),
        ("text/html", b"\x1f\x8b\x08\0", "application/x-gzip"),
        ("text/html", b"GIF89a\1\0\1\0", "image/gif"),
        ("application/xhtml+xml", JPEG, "image/jpeg"),
        ("text/html", NOISE, "application/octet-stream"),
        ("text/css", ZIP, "application/zip"),
        ("application/pdf", b"<!doctype html>", "text/html"),
        ("application/pdf", ZIP, "application/zip"),
        ("application/pdf", b"not found", "text/plain"),
        ("image/png", b"<html>", "text/html"),
        ("image/jpeg", ZIP, "application/zip"),
        ("image/x-new", ZIP, "application/zip"),
        ("application/msword", b"<!DOCTYPE html>", "text/html"),
        ("application/msword", EXE, "application/vnd.microsoft.portable-executable"),
    ],
)
def test_what_begins_like_something_else_lies(media_type: str, body: bytes, really: str) -> None:
    assert sniff.contradiction(media_type, body) == really


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        *[(kind, b"") for kind in ("text/html", "application/pdf", "image/png", "application/msword")],
        ("text/html", b"<html>"),
        ("text/html", b"  just words"),
        ("text/html", b"MZ is what a program begins with"),
        ("text/html", b"GIF89a is a format, BM another"),
        ("text/html", b"ID3 tags"),
        ("text/html", b"<\0h\0t\0m\0l\0>\0"),
        ("text/html", WIDE),
        ("text/html", " zwölf Zeichen und mehr".encode("utf-16-be")),
        ("text/html", b"\xff\xfe" + bytes(500)),
        ("text/html", b"one stray \0 and \x1a in a page that is otherwise one"),
        ("text/html", b"\x1b$B$3$s$K$A$O" * 50),
        ("text/html", bytes(range(128, 256)) * 11),
        ("application/pdf", PDF),
        ("application/pdf", b"\r\n\xef\xbb\xbfjunk" + PDF),
        ("image/png", PNG),
        ("image/png", JPEG),
        ("image/svg+xml", b"<svg>"),
        ("image/x-portable-pixmap", b"P3 3 2 255"),
        ("application/zip", ZIP),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", ZIP),
        ("application/octet-stream", EXE),
    ],
)
def test_what_may_be_what_it_says_is_believed(media_type: str, body: bytes) -> None:
    assert sniff.contradiction(media_type, body) is None


def test_no_page_of_the_outside_cases_is_taken_for_something_else(cases: Path) -> None:
    rows = map(json.loads, (cases / "html" / "charset.jsonl").read_text().splitlines())
    pages = [base64.b64decode(row["body_b64"]) for row in rows]
    pages += [path.read_bytes() for path in (cases / "html" / "files").iterdir()]
    assert len(pages) > 100
    assert [page[:40] for page in pages if sniff.contradiction("text/html", page)] == []


@settings(max_examples=100)
@given(st.binary(max_size=3000), st.sampled_from([None, "text/html", "text/plain", "image/png", "x", "a/b"]))
def test_any_bytes_have_a_type_and_only_the_first_count(body: bytes, content_type: str | None) -> None:
    found = sniff.computed(content_type, body)
    assert found.count("/") == 1
    assert sniff.computed(content_type, body[: sniff.HEADER]) == found
    assert sniff.contradiction(found, body) == sniff.contradiction(found, body[: sniff.HEADER])


@given(st.binary(max_size=200))
def test_text_never_becomes_what_could_carry_scripts(body: bytes) -> None:
    assert sniff.computed("text/plain", body) in ("text/plain", "application/octet-stream")


@pytest.mark.parametrize("part", [b"<!---->", b"<?a?>", b"<!--", b"<?", b" ", b"<!-- --> <?x ?>", b"<a:"])
def test_no_prologue_of_xml_is_read_for_ever(part: bytes) -> None:
    body = b"<?xml?>" + part * 2000  # a pattern that backtracks would not end
    assert sniff.computed(None, body) == "text/xml"
    assert sniff.computed("text/xml", body) == "text/xml"
