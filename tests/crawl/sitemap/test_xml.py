"""The stream of tags: what ends it, and that it stays small."""

import tracemalloc

import pytest

from crawl.sitemap import xml as sitemapxml

URLSET = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def read(document: bytes, most: int = 50_000) -> sitemapxml.Fields:
    root = sitemapxml.find_root(document)
    assert root is not None
    return sitemapxml.read(document, *root, most)


def entry(n: int) -> bytes:
    return b"<url><loc>http://a.test/%d</loc></url>" % n


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"<?xml version='1.0'?><!-- <rss> --><urlset>", "urlset"),
        (b"<!DOCTYPE x [<!ENTITY a '<rss>'>]><x:SitemapIndex >", "index"),
        (b"<rdf:RDF xmlns:rdf='x'>", "rss"),
        (b"<feed/>", "atom"),
        (b"<br/>Warning: x\n<rss version='2.0'>", "rss"),
    ],
)
def test_the_root_is_found_behind_whatever_stands_before_it(head: bytes, kind: str) -> None:
    found = sitemapxml.find_root(head)
    assert found is not None
    assert found[0] == kind


@pytest.mark.parametrize(
    "head", [b"", b"<feedback>", b"<html><urlset>", b"<!-- <urlset> ", b"<!DOCTYPE x [ <urlset>"]
)
def test_a_page_or_anything_else_has_no_root(head: bytes) -> None:
    assert sitemapxml.find_root(head) is None


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (b"http://a.test/?a=1&b=2", "http://a.test/?a=1&b=2"),
        (b"http://a.test/?a=1&amp;b=2&#38;c", "http://a.test/?a=1&b=2&c"),
        (b"<![CDATA[http://a.test/?a&b;]]>", "http://a.test/?a&b;"),
        (b"http://a.test/&eacute;", "http://a.test/\u00e9"),
        (b"http://a.test/&unheard;x", "http://a.test/x"),
        (b"http://a.test/\x00\x0bx", "http://a.test/x"),
        (b" <!-- c -->http://a.test/<!-- c -->x ", "http://a.test/x"),
    ],
)
def test_references_are_settled_without_any_declaration(inside: bytes, expected: str) -> None:
    assert read(URLSET + b"<url><loc>" + inside + b"</loc></url></urlset>").loc == [expected]


def test_an_entry_that_was_not_closed_counts_if_its_address_was_complete() -> None:
    cut = URLSET + entry(1) + b"<url><loc>http://a.test/2</loc><lastmod>2024-0"
    assert read(cut).loc == ["http://a.test/1", "http://a.test/2"]
    assert read(cut).lastmod == [None, None]
    assert not read(cut).whole
    assert read(URLSET + entry(1) + b"<url><loc>http://a.test/2").loc == ["http://a.test/1"]


def test_fields_of_extensions_are_not_the_entrys_own() -> None:
    document = (
        b'<urlset xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><url><image:loc>http://a.test/i'
        b"</image:loc><image:image><image:loc>http://a.test/j</image:loc></image:image><v:video><v:loc>"
        b"http://a.test/v</v:loc></v:video><loc>http://a.test/</loc></url></urlset>"
    )
    assert read(document).loc == ["http://a.test/"]


@pytest.mark.parametrize(
    "bomb",
    [
        b"<a/>" * 50_000,
        b"<a>" * 50_000,
        b"<a " + b" ".join(b'a%d="1"' % n for n in range(50_000)) + b"/>",
        b"<url><loc>" + b"a" * 500_000 + b"</loc></url>",
        b"&" * 200_000,
        b"<![CDATA[" * 50_000,
        b"<!--" * 100_000,
        b"</b>" * 100_000,
        b"<url xmlns='u'>" * 50_000,
    ],
    ids=[
        "elements",
        "nesting",
        "attributes",
        "text",
        "ampersands",
        "cdata",
        "comments",
        "ends",
        "namespaces",
    ],
)
def test_what_is_made_to_be_read_for_long_ends_early_and_keeps_what_came_before(
    bomb: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, bound in (("_ELEMENTS", 5_000), ("_RUN", 65_536), ("_REFERENCES", 1_000)):
        monkeypatch.setattr(sitemapxml, name, bound)
    tracemalloc.start()
    try:
        found = read(URLSET + entry(1) + bomb + entry(2))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.loc[:1] == ["http://a.test/1"]
    assert peak < 1_000_000 + 4 * len(bomb)


def test_no_more_entries_are_read_than_asked_for() -> None:
    found = read(URLSET + b"".join(map(entry, range(10))) + b"</urlset>", most=3)
    assert (len(found.loc), found.more) == (3, True)
