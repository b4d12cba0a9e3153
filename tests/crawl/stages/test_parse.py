"""Parse: what some pages say, as rows."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from crawl.keys import Keyer
from crawl.policy import Agent, Parsing, Scope, Settings, Sitemaps
from crawl.stages.parse import DOCUMENT_COLUMNS, Extract, RawPage, extract

KEYER = Keyer(bytes(range(32)))
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SETTINGS = Settings(agent=Agent(name="OurBot"), scope=Scope(domains=("a.test",)))


def raw(path: str, body: str, **given: object) -> RawPage:
    url = f"http://a.test/{path}"
    fields: dict[str, object] = {
        "url_key": KEYER.url_key(url),
        "url": url,
        "host": "a.test",
        "domain": "a.test",
        "depth": 2,
        "first_parse": True,
        "content_type": "text/html; charset=utf-8",
        "headers": None,
        "body": body.encode(),
    }
    return RawPage(**{**fields, **given})  # type: ignore[arg-type]


def run(*pages: RawPage, settings: Settings = SETTINGS) -> Extract:
    return extract(pages, keyer=KEYER, settings=settings)


def test_a_page_becomes_a_document_and_its_links_are_one_deeper() -> None:
    page = raw(
        "x",
        "<html lang=en><title>T</title><meta name=description content=D><meta name=robots content=noarchive>"
        "<p>Some <b>text</b></p><a href=y rel=nofollow>Why</a>",
        headers="Last-Modified: old\nLAST-MODIFIED: new\nX-Robots-Tag: otherbot: none\n"
        "X-Robots-Tag: ourbot: max-snippet: 5\n"
        'Link: </c>; rel="canonical", </n>; rel=next',
    )
    found = run(page)
    assert found.documents.schema == DOCUMENT_COLUMNS
    (document,) = found.documents.to_pylist()
    assert document == {
        "document_key": KEYER.document_key("Some text Why"),
        "text": "Some text Why",
        "first_url_key": page.url_key,
        "url": page.url,
        "title": "T",
        "description": "D",
        "language": "en",
        "language_source": "markup",
        "charset": "utf-8",
        "content_type": "text/html; charset=utf-8",
        "sniffed_type": "text/html",
        "metadata": None,
        "last_modified": "new",
        "canonical_hint": "http://a.test/c",
        "robots_directives": "noarchive, max-snippet: 5",
        "noindex": False,
        "nofollow": False,
        "noarchive": True,
        "unavailable_after": None,
        "withheld": None,
        "text_chars": 13,
        "html_bytes": len(page.body),
        "truncated": False,
        "link_count": 2,
        "text_ratio": 13 / len(page.body),
        "script_count": 0,
        "script_chars": 0,
        "script_signs": None,
        "simhash": None,
        "minhash": None,
        "needs_rendering": None,
        "depth": 2,
    }
    link, next_link = found.links.to_pylist()
    assert (next_link["target_url"], next_link["rel"], next_link["via"]) == (
        "http://a.test/n",
        "next",
        "header",
    )
    assert (link["target_url"], link["depth"], link["via"]) == ("http://a.test/y", 3, "a")
    assert (link["anchor"], link["rel"], link["first_parse"]) == ("Why", "nofollow", True)
    assert found.parsed.to_pylist() == [
        {
            "url_key": page.url_key,
            "document_key": document["document_key"],
            "canonical_hint": "http://a.test/c",
            "withheld": None,
            "unavailable_after": None,
            "keep": False,
        }
    ]
    assert [(reason, count, example) for reason, _, _, count, example in found.rejects] == [
        ("noarchive", 1, page.url)
    ]


def test_of_equal_texts_the_document_is_that_of_the_smallest_depth_and_key() -> None:
    pages = [raw(f"{n}", "<p>same</p>", depth=1 if n in {3, 5} else 2) for n in range(6)]
    found = run(*pages)
    assert found.documents["first_url_key"].to_pylist() == [min(pages[3].url_key, pages[5].url_key)]
    assert found.parsed.num_rows == 6
    assert run(*reversed(pages)).documents == found.documents


def test_what_is_no_page_gives_no_rows_and_one_without_a_type_is_known_by_its_start() -> None:
    found = run(
        raw("p", "<html>", content_type="text/plain"),
        raw("q", "%PDF-1.7", content_type=None),
        raw("r", "<!doctype html><p>yes", content_type=None),
    )
    assert found.documents["text"].to_pylist() == ["yes"]
    assert found.parsed.num_rows == 1


def test_limits_on_a_page_leave_their_reasons() -> None:
    parsing = Parsing(parsed_bytes=60, links=2)
    body = "<a href=1>x</a><a href=2>x</a><a href=3>x</a><p>" + "y" * 100
    found = run(raw("p", body), settings=replace(SETTINGS, parsing=parsing))
    assert found.links.num_rows == 2
    assert [(reason, count, example) for reason, _, _, count, example in found.rejects] == [
        ("page_too_long", 1, "http://a.test/p"),
        ("too_many_links", 1, "http://a.test/p"),
    ]
    assert found.documents["html_bytes"].to_pylist() == [len(body)]


def test_links_that_lead_nowhere_are_counted_by_reason() -> None:
    hrefs = ["mailto:x@y", " JavaScript:void(0)", "tel:1", "http://[bad/", "https://a b/", "ok", "mailto:x@y"]
    found = run(raw("p", "".join(f"<a href='{href}'>x</a>" for href in hrefs)))
    assert found.links.num_rows == 1
    assert [(reason, host, count, example) for reason, host, _, count, example in found.rejects] == [
        ("link_invalid", "a.test", 2, "http://a.test/p"),
        ("link_scheme", "a.test", 3, "http://a.test/p"),
    ]


def test_a_page_that_asks_not_to_be_followed_is_followed_unless_the_operator_obeys() -> None:
    page = raw("p", "<meta name=robots content=none><a href=x>x</a>")
    assert run(page).links["admitted"].to_pylist() == [True]
    obeying = replace(SETTINGS, parsing=Parsing(follow_nofollow=False))
    assert run(page, settings=obeying).links["admitted"].to_pylist() == [False]


PAST, LATER = "2026-02-01", "2026-04-01"


@pytest.mark.parametrize(
    ("markup", "header", "withheld"),
    [
        ("<meta name=robots content=noindex>", "", "noindex"),
        ("<meta name=ourbot content=none>", "", "noindex"),
        ("<meta name=otherbot content=noindex>", "X-Robots-Tag: otherbot: noindex", None),
        ("", "X-Robots-Tag: noindex", "noindex"),
        (f"<meta name=robots content='unavailable_after: {PAST}'>", "", "unavailable_after"),
        (f"<meta name=robots content='unavailable_after: {LATER}'>", "", None),
        ("", f"X-Robots-Tag: unavailable_after: {PAST}", "unavailable_after"),
    ],
)
def test_a_page_that_asks_not_to_be_indexed_leaves_its_links_and_no_text(
    markup: str, header: str, withheld: str | None
) -> None:
    body = markup + "<title>T</title><meta name=description content=D><p>words<a href=x>x</a>"
    page = raw("p", body, headers=header, now=NOW)
    twin = raw("q", "<p>words<a href=x>x</a>", now=NOW)
    found = run(page, twin)
    rows = {row["url"]: row for row in found.documents.to_pylist()}
    said = {row["url_key"]: row for row in found.parsed.to_pylist()}[page.url_key]
    assert (said["withheld"], said["keep"]) == (withheld, withheld is None)
    assert said["document_key"] != KEYER.document_key("wordsx") or withheld is None
    assert rows[twin.url]["text"] == "wordsx" if withheld else len(rows) == 1
    if withheld:
        row = rows[page.url]
        assert (row["text"], row["title"], row["description"], row["text_chars"]) == ("", "T", None, 6)
        assert row["withheld"] == withheld
    assert [(reason, count) for reason, _, _, count, _ in found.rejects] == (
        [(withheld, 1)] if withheld else []
    )
    assert found.links["admitted"].to_pylist() == [True, True]


def test_who_keeps_such_pages_keeps_their_text_and_what_they_ask() -> None:
    keeping = replace(SETTINGS, parsing=Parsing(keep_noindex=True, keep_noarchive=True))
    page = raw("p", "<meta name=robots content='none, noarchive'><p>words", now=NOW)
    found = run(page, settings=keeping)
    (row,) = found.documents.to_pylist()
    assert (row["text"], row["noindex"], row["nofollow"], row["noarchive"]) == ("words", True, True, True)
    assert (row["withheld"], found.parsed["keep"].to_pylist(), list(found.rejects)) == (None, [True], [])


def test_the_language_is_the_markups_the_headers_or_the_texts() -> None:
    german = "<p>Der Hafenmeister schrieb jedes Schiff auf, das vor Sonnenaufgang auslief."
    for name, body, headers, told in (
        ("1", "<html lang=fr>" + german, "Content-Language: es", ("fr", "markup")),
        ("2", german + "2", "Content-Language: es", ("es", "header")),
        ("3", german + "3", None, ("de", "detected")),
        ("4", "<p>4", None, (None, None)),
    ):
        (row,) = run(raw(name, body, headers=headers)).documents.to_pylist()
        assert (row["language"], row["language_source"]) == told


def test_signs_of_scripts_are_counted() -> None:
    body = "<html><body><div id=root></div><script>var a</script><noscript>Enable JavaScript</noscript>"
    (row,) = run(raw("p", body)).documents.to_pylist()
    assert (row["script_count"], row["script_chars"], row["script_signs"]) == (1, 5, "id=root, noscript")
    assert row["text_ratio"] == len("Enable JavaScript") / len(body)


def test_pages_are_taken_one_at_a_time() -> None:
    order = []

    def pages():
        for name in ("1", "2"):
            order.append(f"give {name}")
            yield raw(name, f"<p>{name}")
            order.append(f"done {name}")

    extract(pages(), keyer=KEYER, settings=SETTINGS)
    assert order == ["give 1", "done 1", "give 2", "done 2"]


def test_no_pages_are_tables_without_rows() -> None:
    found = run()
    assert (found.documents.num_rows, found.links.num_rows, found.parsed.num_rows) == (0, 0, 0)


@pytest.mark.parametrize(
    ("header", "body", "targets"),
    [
        ("Refresh: 0; url=/new", "", ["http://a.test/new"]),
        ("Refresh: 5;URL='new#part'", "", ["http://a.test/new"]),
        ("Refresh: 0; url=/new", "<meta http-equiv=refresh content='0; url=/new'>", ["http://a.test/new"]),
        ("Refresh: 30", "", []),  # a reload
        ("Refresh: 0; url=/x", "", []),
        ("Refresh: 0; url=mailto:x@a.test", "", []),
        ("Refresh: soon", "", []),
    ],
)
def test_a_refresh_header_leads_on_as_a_meta_refresh_does(header: str, body: str, targets: list[str]) -> None:
    links = run(raw("x", f"<title>T</title>{body}<p>text", headers=header)).links.to_pylist()
    assert [link["target_url"] for link in links if link["via"] == "refresh"] == targets


def test_a_sitemap_gives_links_alone_and_says_what_it_was_not() -> None:
    body = "<urlset><url><loc>http://a.test/1</loc></url><url><loc>http://b.test/2</loc></url></urlset>"
    anywhere = Settings()
    lists = [raw("s.xml", body, kind="sitemap", depth=0), raw("no.xml", "<html>", kind="sitemap")]
    read = run(*lists, settings=anywhere)
    assert len(read.documents) == 0
    assert read.parsed["url_key"].to_pylist() == [KEYER.url_key("http://a.test/s.xml")]
    assert read.parsed["document_key"].to_pylist() == [None]
    assert list(read.failed.values()) == ["not_a_sitemap (html)"]
    assert read.links["admitted"].to_pylist() == [True, False]
    vouched = run(replace(lists[0], vouching=("b.test",)), settings=anywhere)
    assert vouched.links["admitted"].to_pylist() == [True, True]


def test_an_empty_list_is_one() -> None:
    read = run(raw("s.xml", "", kind="sitemap"), raw("f.xml", "<rss/>", kind="feed"))
    assert (len(read.links), len(read.parsed), read.failed) == (0, 2, {})


def test_feeds_that_a_page_names_are_found_where_settings_say_so() -> None:
    feed = '<link rel="alternate" type="application/rss+xml" href="/feed"><a href="/x">x</a>'
    links = run(raw("p", feed)).links.to_pylist()
    assert [(row["via"], row["target_kind"], row["target_url"], row["depth"]) for row in links] == [
        ("a", "page", "http://a.test/x", 3),
        ("alternate", "feed", "http://a.test/feed", 3),
    ]
    off = replace(SETTINGS, sitemaps=Sitemaps(feeds=False))
    assert run(raw("p", feed), settings=off).links["via"].to_pylist() == ["a"]
