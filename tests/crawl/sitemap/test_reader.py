"""Reading sitemaps and feeds."""

import gzip
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl import sitemap

URL = "http://a.test/maps/sitemap.xml"


def urlset(*locs: str) -> bytes:
    return ("<urlset>" + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs) + "</urlset>").encode()


def test_entries_are_columns_and_become_objects_when_asked() -> None:
    body = (
        b"<urlset><url><loc>/x#f</loc><lastmod>2024-01-05</lastmod><changefreq>Daily</changefreq>"
        b"<priority>0,8</priority></url><url><loc>HTTP://A.test</loc></url></urlset>"
    )
    found = sitemap.read(body, URL)
    assert found.entries.loc == ["http://a.test/x", "http://a.test/"]
    assert found.entries[0] == ("http://a.test/x", datetime(2024, 1, 5, tzinfo=UTC), "daily", 0.8, ())
    assert [entry.lastmod for entry in found.entries[:]] == [datetime(2024, 1, 5, tzinfo=UTC), None]
    assert (found.kind, found.error, found.skipped) == ("urlset", None, {})


def test_what_cannot_be_an_address_is_left_out_and_counted() -> None:
    body = urlset(
        "mailto:a@a.test",
        "www.a.test/x",
        "a.test",
        "http://a.test/\ufffd",
        "",
        "http://",
        "x/page",
        "nonsense",
        "p?1",
    )
    found = sitemap.read(body, URL)
    assert found.entries.loc == ["http://a.test/maps/x/page", "http://a.test/maps/p?1"]
    assert found.skipped == {"url_invalid": 2, "no_scheme": 3, "bad_characters": 1, "no_location": 1}


def test_feeds_name_their_entries() -> None:
    rss = (
        b'<rss xmlns:a="http://www.w3.org/2005/Atom"><channel><link>http://a.test/home</link>'
        b'<a:link rel="self" href="http://a.test/feed"/>'
        b"<item><link>p1</link><pubDate>Fri, 05 Jan 2024 10:00:00 GMT</pubDate></item>"
        b"<item><guid>http://a.test/p2</guid></item><item><guid isPermaLink='false'>9</guid></item>"
        b'<item><a:link href="http://a.test/p3"/></item></channel></rss>'
    )
    found = sitemap.read(rss, URL)
    assert found.entries.loc == ["http://a.test/maps/p1", "http://a.test/p2", "http://a.test/p3"]
    assert found.skipped == {"no_location": 1}
    rdf = b"<rdf:RDF xmlns:rdf='r'><channel/><item><link>http://a.test/1</link><dc:date>2024</dc:date></item></rdf:RDF>"
    assert sitemap.read(rdf, URL).entries[0].lastmod == datetime(2024, 1, 1, tzinfo=UTC)
    atom = (
        b'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://b.test/x/"><entry>'
        b'<link rel="self" href="s"/>'
        b'<link href="1"/><published>2024-01-05T00:00:00Z</published></entry></feed>'
    )
    assert [tuple(entry)[:2] for entry in sitemap.read(atom, URL).entries] == [
        ("http://b.test/x/1", datetime(2024, 1, 5, tzinfo=UTC))
    ]


@pytest.mark.parametrize("cut", [200, 1_000, 5_000])
def test_a_gzip_file_that_ends_early_gives_what_came_before_and_says_so(cut: int) -> None:
    whole = urlset(*(f"http://a.test/{zlib.crc32(b'%d' % n)}" for n in range(5_000)))
    found = sitemap.read(gzip.compress(whole)[:cut], URL, "application/gzip")
    assert found.error == "encoding_truncated"
    assert found.entries.loc == sitemap.read(whole, URL).entries.loc[: len(found.entries)]
    assert len(found.entries) > 0


def test_a_broken_gzip_file_gives_what_came_before() -> None:
    whole = urlset(*(f"http://a.test/{zlib.crc32(b'%d' % n)}" for n in range(50_000)))
    packed = bytearray(gzip.compress(whole))
    packed[200_000:200_100] = bytes(100)
    found = sitemap.read(bytes(packed), URL)
    assert found.error == "encoding_corrupt"
    assert 1_000 < len(found.entries) < 50_000


def test_decoded_bytes_have_a_cap_that_is_told() -> None:
    bomb = gzip.compress(urlset("http://a.test/1")[:-9] + b" " * 60_000_000, 1)
    found = sitemap.read(bomb, URL, most_bytes=1_000_000)
    assert (found.entries.loc, found.error) == (["http://a.test/1"], "too_large")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_are_told_by_their_bytes(encoding: str) -> None:
    for text in ("<urlset><url><loc>http://a.test/é</loc></url></urlset>", "http://a.test/é\r\n"):
        assert sitemap.read(text.encode(encoding), URL).entries.loc == ["http://a.test/%C3%A9"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"<html><a href='/x'>", "html"),
        (b"<!DOCTYPE html><title>404</title><body>", "html"),
        (b"<!doctype html>\n<title>404</title>", "html"),
        (b'{"error": 404}', "not_a_sitemap"),
        (b"http\n", "not_a_sitemap"),
        (b"<opml><body/></opml>", "html"),
        (b"%PDF-1.4", "not_a_sitemap"),
        (b"\x1f\x8b", "empty"),
    ],
)
def test_what_is_no_sitemap_has_a_reason(body: bytes, error: str) -> None:
    found = sitemap.read(body, URL)
    assert (found.kind, len(found.entries)) == ("none", 0)
    assert found.error in (error, "encoding_truncated", "encoding_corrupt")


def test_lines_of_text_are_addresses_and_a_cut_last_one_is_none() -> None:
    text = b"http://a.test/1\r# comment\r\n\n  http://a.test/2  \nnonsense\nhttp://a.test/3"
    found = sitemap.read(text, URL)
    assert found.entries.loc == [f"http://a.test/{n}" for n in (1, 2, 3)]
    assert found.skipped == {"no_scheme": 1}
    assert sitemap.read(text, URL, most_bytes=len(text) - 1).entries.loc[-1] == "http://a.test/2"


def test_no_more_entries_than_allowed_in_any_form() -> None:
    locs = [f"http://a.test/{n}" for n in range(5)]
    for body in (urlset(*locs), "\n".join(locs).encode()):
        found = sitemap.read(body, URL, most_urls=4)
        assert (found.entries.loc, found.error) == (locs[:4], "too_many_urls")


MARKUP = [
    "<urlset>",
    "<url>",
    "<loc>",
    "http://a.test/",
    "</loc>",
    "</url>",
    "&",
    "&x;",
    "<!--",
    "]]>",
    "<![CDATA[",
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(MARKUP) | st.text(max_size=5)).map("".join) | st.binary(max_size=200))
def test_nothing_raises_and_every_location_is_an_address(body: str | bytes) -> None:
    found = sitemap.read(body.encode(errors="replace") if isinstance(body, str) else body, URL)
    assert all(entry.loc.startswith("http") for entry in found.entries)
