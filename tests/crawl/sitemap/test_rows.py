"""Rows of links from sitemaps, feeds and robots.txt."""

from typing import Any

from crawl import sitemap
from crawl.documents.linkrows import COLUMNS, LinkRows
from crawl.keys import Keyer
from crawl.policy import Settings, Sitemaps
from crawl.rejects import Rejects
from crawl.sitemap import rows as sitemaprows

KEYER = Keyer(b"k" * 32)
SOURCE = "http://a.test/maps/s.xml"


def rows_of(
    body: str, *, level: int = 0, vouching: tuple[str, ...] = (), **settings: Any
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    rows, tally = LinkRows(KEYER, Settings()), Rejects()
    sitemaprows.add(
        rows,
        tally,
        sitemap.read(body.encode(), SOURCE),
        url_key=7,
        source=SOURCE,
        host="a.test",
        domain="a.test",
        level=level,
        vouching=vouching,
        settings=Sitemaps(**settings),
    )
    table, refused = rows.finish()
    assert table.schema == COLUMNS
    tally.update(refused)
    counts: dict[str, int] = {}
    for reason, _host, _template, count, _example in tally:
        counts[reason] = counts.get(reason, 0) + count
    return table.to_pylist(), counts


def urlset(*locs: str) -> str:
    return "<urlset>" + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs) + "</urlset>"


def index(*locs: str) -> str:
    return (
        "<sitemapindex>" + "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs) + "</sitemapindex>"
    )


def test_an_entry_is_a_row_with_what_the_sitemap_says_of_it() -> None:
    body = (
        "<urlset><url><loc>http://a.test/maps/x</loc><lastmod>2024-01-05</lastmod><changefreq>daily</changefreq>"
        "<priority>0.7</priority></url></urlset>"
    )
    [row], refused = rows_of(body, level=2)
    assert refused == {}
    assert (row["source_key"], row["via"], row["target_kind"], row["depth"]) == (7, "sitemap", "page", 1)
    assert (row["admitted"], row["first_parse"], row["is_internal"]) == (True, False, True)
    assert (str(row["lastmod"])[:10], row["changefreq"], row["sitemap_priority"]) == (
        "2024-01-05",
        "daily",
        0.7,
    )


def test_a_sitemap_names_only_what_it_may_speak_for_and_every_refusal_is_counted() -> None:
    locs = ["http://a.test/maps/x", "http://a.test/up", "http://b.test/x", "http://c.test/"]
    rows, refused = rows_of(urlset(*locs))
    assert [row["admitted"] for row in rows] == [True, False, False, False]
    assert refused == {"sitemap_cross_site": 3}
    rows, refused = rows_of(urlset(*locs), vouching=("a.test", "b.test"))
    assert [row["admitted"] for row in rows] == [True, True, True, False]
    assert refused == {"sitemap_cross_site": 1}


def test_what_a_sitemap_names_is_in_scope_or_left_out_like_any_link() -> None:
    rows, refused = rows_of(urlset("http://u@a.test/maps/x", "http://a.test/maps/" + "y" * 3_000))
    assert [row["admitted"] for row in rows] == [False, False]
    assert refused == {"url_credentials": 1, "url_too_long": 1}


def test_an_index_names_sitemaps_one_level_deeper_up_to_a_depth() -> None:
    rows, refused = rows_of(index("http://a.test/1.xml", SOURCE), level=2)
    assert [(row["target_kind"], row["depth"], row["admitted"]) for row in rows] == [
        ("sitemap", 3, True),
        ("sitemap", 3, False),
    ]
    assert refused == {"sitemap_loop": 1}
    rows, refused = rows_of(index("http://a.test/1.xml"), level=3)
    assert ([row["admitted"] for row in rows], refused) == ([False], {"sitemap_nesting": 1})


def test_an_index_names_sitemaps_of_so_many_hosts_and_no_more() -> None:
    locs = [f"http://h{n % 7}.test/{n}.xml" for n in range(14)]
    rows, refused = rows_of(index(*locs), hosts=5)
    assert sum(row["admitted"] for row in rows) == 10
    assert refused == {"sitemap_hosts": 4}


def test_what_a_feed_names_elsewhere_is_a_link_whose_date_is_not_believed() -> None:
    item = "<item><link>http://{}/1</link><pubDate>Fri, 05 Jan 2024 10:00:00 GMT</pubDate></item>"
    rows, refused = rows_of(f"<rss>{item.format('www.a.test')}{item.format('b.test')}</rss>")
    assert [(row["via"], row["admitted"], row["lastmod"] is None) for row in rows] == [
        ("feed", True, False),
        ("feed", True, True),
    ]
    assert refused == {}


def test_what_is_missing_of_a_sitemap_is_counted() -> None:
    assert rows_of("<urlset><url><loc>http://a.test/maps/x</loc></url><url><loc>ftp://x/</loc></url>")[1] == {
        "sitemap_xml_cut": 1,
        "url_invalid": 1,
    }


def test_pages_and_lists_may_be_in_one_batch() -> None:
    rows = LinkRows(KEYER, Settings())
    page: dict[str, Any] = {"source_key": 1, "source_domain": "a.test", "depth": 1, "first_parse": True}
    rows.add(["http://a.test/"], ["home"], [None], ["a"], **page)
    sitemaprows.name(
        rows, ["http://a.test/s.xml"], kind="sitemap", via="robots", url_key=2, domain="a.test", depth=0
    )
    rows.add(["http://a.test/2"], [None], [None], ["a"], **page)
    table, refused = rows.finish()
    assert table["target_kind"].to_pylist() == ["page", "sitemap", "page"]
    assert table["admitted"].to_pylist() == [True, True, True]
    assert len(refused) == 0


def test_refusals_are_counted_by_list_however_many_hosts_it_names() -> None:
    rows, tally = LinkRows(KEYER, Settings()), Rejects()
    for host in ("a.test", "b.test"):
        sitemaprows.add(
            rows,
            tally,
            sitemap.read(urlset(*(f"http://h{n}.test/" for n in range(50))).encode(), f"http://{host}/s.xml"),
            url_key=1,
            source=f"http://{host}/s.xml",
            host=host,
            domain=host,
            level=0,
            vouching=(),
            settings=Sitemaps(),
        )
    assert list(rows.finish()[1]) == [
        ("sitemap_cross_site", host, "", 50, "http://h0.test/") for host in ("a.test", "b.test")
    ]


def test_dates_that_are_all_one_tell_nothing() -> None:
    entry = "<url><loc>http://a.test/maps/{}</loc><lastmod>2024-01-05T10:00:{:02}Z</lastmod></url>"
    for count, dated in ((19, 19), (20, 0)):
        rows, _ = rows_of("<urlset>" + "".join(entry.format(n, n) for n in range(count)) + "</urlset>")
        assert sum(row["lastmod"] is not None for row in rows) == dated
