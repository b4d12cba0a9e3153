"""Sitemaps and feeds of a small web: what they bring, whom they speak for, and what their dates are worth.

Day 0: five rounds until all they name is fetched. Day 8: everything is due, some of it has changed. Day 12:
only the lists are due, which change often; they say that pages changed. Day 14: a host whose dates were wrong
each time is not believed any more.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.handmade import Crawl, Reply, Site, page, serving

START = datetime(2026, 2, 1, 6, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
SHOP, CDN, LIAR, OTHER = "www.shop.test", "cdn.test", "liar.test", "other.test"

pytestmark = pytest.mark.timeout(300)


def xml(root: str, *entries: tuple[str, dict[str, str]]) -> bytes:
    element = "sitemap" if root == "sitemapindex" else "url"
    body = "".join(
        f"<{element}><loc>{loc}</loc>{''.join(f'<{k}>{v}</{k}>' for k, v in said.items())}</{element}>"
        for loc, said in entries
    )
    return f'<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{body}</{root}>'.encode()


def listing(body: bytes, kind: str = "application/xml") -> Reply:
    return Reply(body=body, headers={"Content-Type": kind})


def rss(*links: str) -> Reply:
    items = "".join(f"<item><link>{link}</link></item>" for link in links)
    return listing(f"<rss><channel>{items}</channel></rss>".encode(), "application/rss+xml")


@dataclass
class Story:
    site: Site
    crawl: Crawl
    #: entries of the log before each day
    marks: dict[int, int] = field(default_factory=dict)

    def row(self, host: str, path: str, round_: int | None = None) -> dict[str, Any]:
        found = self.crawl.sql(f"SELECT * FROM urls WHERE url = '{self.site.url(host, path)}'", round_)
        assert len(found) == 1, path
        return found[0]

    def asked(self, host: str, day: int) -> set[str]:
        """Paths asked on a day, robots.txt aside."""
        days = sorted(self.marks)
        until = self.marks[days[days.index(day) + 1]] if day != days[-1] else len(self.site.log)
        return {
            one.path
            for one in self.site.log[self.marks[day] : until]
            if one.host == host and one.path != "/robots.txt"
        }

    def day(self, number: int, rounds: int) -> None:
        self.marks[number] = len(self.site.log)
        dates(self.site, number)
        for step in range(rounds):
            self.crawl.round(START + number * DAY + step * HOUR)


def when(moment: datetime) -> dict[str, str]:
    return {"lastmod": moment.isoformat()}


def dates(site: Site, day: int) -> None:
    """Lists as they are on a day. Both hosts date pages; only the shop's are true."""
    now = START + day * DAY
    changed = {"lastmod": (START + 10 * DAY).isoformat()} if day >= 12 else {}
    said = {**when(START - DAY), **changed, "changefreq": "daily", "priority": "0.9"}
    entries = [(site.url(SHOP, "/p1"), said), (site.url(SHOP, f"/day-{day}"), {})]
    entries += [(site.url(SHOP, "/secret/x"), {}), (site.url(OTHER, "/victim"), {})]
    site.put(SHOP, "/maps/one.xml", listing(xml("urlset", *entries)))
    site.put(SHOP, f"/day-{day}", page("New", f"Of day {day}"))
    if day >= 12:
        site.put(SHOP, "/p1", page("One", "It changed"))
    lies = [(site.url(LIAR, f"/{n}"), when(now - n * HOUR)) for n in range(1, 13)]
    site.put(LIAR, "/sitemap.xml", listing(xml("urlset", *lies)))
    if day >= 8:
        site.put(SHOP, "/maps/lost.xml", Reply(status=404))


def furnish(site: Site) -> None:
    """The web as it is at first."""
    shop = f"Sitemap: {site.url(SHOP, '/maps/index.xml')}"
    site.robots(SHOP, "User-agent: *", "Disallow: /secret", shop, f"Sitemap: {site.url(CDN, '/shop.xml')}")
    site.robots(LIAR, f"Sitemap: {site.url(LIAR, '/sitemap.xml')}")
    feed = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
    site.put(SHOP, "/", page("Home", "Welcome", "/blog.rss", head=feed))
    parts = ("one.xml", "lost.xml", "soft.xml", "cut.xml.gz", "index.xml")
    index = [(site.url(SHOP, f"/maps/{part}"), {}) for part in parts]
    site.put(SHOP, "/maps/index.xml", listing(xml("sitemapindex", *index)))
    site.put(SHOP, "/maps/lost.xml", listing(xml("urlset", (site.url(SHOP, "/kept"), {}))))
    site.put(SHOP, "/maps/soft.xml", page("Not found", "Nothing here", "/from-soft"))
    many = xml("urlset", *((site.url(SHOP, f"/cut/{zlib.crc32(b'%d' % n)}"), {}) for n in range(200)))
    site.put(SHOP, "/maps/cut.xml.gz", listing(gzip.compress(many)[:700], "application/gzip"))
    site.put(CDN, "/shop.xml", listing(xml("urlset", (site.url(SHOP, "/from-cdn"), {}))))
    site.put(CDN, "/folder/seed.txt", listing(f"{site.url(CDN, '/up')}\n".encode(), "text/plain"))
    site.put(SHOP, "/feed.xml", rss(site.url(SHOP, "/news"), site.url(OTHER, "/far")))
    site.put(SHOP, "/blog.rss", rss(site.url(SHOP, "/post")))
    for path in ("/p1", "/kept", "/from-cdn", "/news", "/post"):
        site.put(SHOP, path, page(path, f"About {path}"))
    site.put(LIAR, "/", page("Liar", "Welcome"))
    for n in range(1, 13):
        site.put(LIAR, f"/{n}", page(f"Page {n}", f"Always the same {n}"))
    for host, path in ((CDN, "/up"), (OTHER, "/victim"), (OTHER, "/far")):
        site.put(host, path, page(path, f"About {path} of {host}"))


@pytest.fixture(scope="module")
def story(workers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with serving() as site:
        root = tmp_path_factory.mktemp("sitemaps") / "lake"
        settings = {
            "agent": {"name": "test-crawler"},
            "egress": {"allow": ["127.0.0.0/8"]},
            "dns": {"hosts": {"*.test": "127.0.0.1"}},
            "politeness": {"min_delay": "1ms", "factor": 0.0},
        }
        crawl = Crawl(root, workers, settings)
        furnish(site)
        crawl.seed(site.url(SHOP), site.url(LIAR), now=START)
        crawl.seed(site.url(CDN, "/folder/seed.txt"), "--kind", "sitemap", now=START)
        told = Story(site, crawl)
        for day, rounds in ((0, 5), (8, 2), (12, 2), (14, 2)):
            told.day(day, rounds)
        yield told


def test_what_sitemaps_and_feeds_name_is_found_and_fetched(story: Story) -> None:
    for path, by in {
        "/p1": "sitemap", "/kept": "sitemap", "/from-cdn": "sitemap", "/news": "feed",
        "/maps/index.xml": "robots", "/maps/one.xml": "sitemap", "/feed.xml": "link",
    }.items():  # fmt: skip
        row = story.row(SHOP, path, 5)
        assert (row["state"], row["found_by"]) == ("FETCHED", by), path
    assert story.row(CDN, "/up")["found_by"] == "sitemap"  # a seed may speak for its whole host
    assert story.row(OTHER, "/far")["found_by"] == "feed"
    kinds = story.crawl.sql("SELECT DISTINCT kind FROM fetches ORDER BY kind")
    assert [row["kind"] for row in kinds] == ["feed", "page", "robots", "sitemap"]


def test_a_sitemap_speaks_for_nobody_else_and_robots_rules_what_it_names(story: Story) -> None:
    assert story.crawl.sql(f"SELECT url FROM urls WHERE url = '{story.site.url(OTHER, '/victim')}'") == []
    assert story.row(SHOP, "/secret/x")["last_outcome"] == "ROBOTS_DENIED"
    told = {row["reason"]: row["example"] for row in story.crawl.sql("SELECT reason, example FROM rejects")}
    assert told["sitemap_cross_site"] == story.site.url(OTHER, "/victim")
    assert told["sitemap_loop"] == story.site.url(SHOP, "/maps/index.xml")


def test_a_list_that_ends_early_counts_as_far_as_it_goes_and_a_page_is_no_list(story: Story) -> None:
    found = story.crawl.sql(
        "SELECT count(*) AS n FROM urls WHERE url LIKE '%/cut/%' AND found_by = 'sitemap'"
    )
    assert 10 < found[0]["n"] < 200
    reasons = {row["reason"] for row in story.crawl.sql("SELECT DISTINCT reason FROM rejects", 5)}
    assert {"sitemap_encoding_truncated", "not_a_sitemap"} <= reasons
    soft = story.row(SHOP, "/maps/soft.xml", 5)
    assert (soft["state"], soft["last_outcome"], soft["reason"]) == (
        "QUARANTINED",
        "PARSE_FAILED",
        "not_a_sitemap (html)",
    )
    assert story.crawl.sql("SELECT url FROM urls WHERE url LIKE '%/from-soft'") == []


def test_a_sitemap_that_vanishes_takes_no_page_with_it(story: Story) -> None:
    lost = story.row(SHOP, "/maps/lost.xml")
    assert (lost["state"], lost["last_outcome"]) == ("GONE", "NOT_FOUND")  # after its sightings, as any URL
    assert story.row(SHOP, "/kept")["state"] == "FETCHED"
    assert story.crawl.sql("SELECT * FROM changes WHERE kind = 'deleted'") == []


def test_a_page_that_turns_out_to_be_a_feed_is_read_as_one(story: Story) -> None:
    asked = story.crawl.sql("SELECT outcome FROM fetches WHERE url LIKE '%/blog.rss' ORDER BY started_at")
    assert [row["outcome"] for row in asked[:2]] == ["UNSUPPORTED_TYPE", "OK"]
    first, later = story.row(SHOP, "/blog.rss", 5), story.row(SHOP, "/blog.rss")
    assert (first["kind"], first["last_outcome"]) == ("feed", "OK")  # the very next round read it
    assert (later["kind"], later["state"], later["reason"]) == ("feed", "FETCHED", None)
    assert story.row(SHOP, "/post")["found_by"] == "feed"


def test_a_page_whose_list_says_it_changed_is_fetched_before_its_time(story: Story) -> None:
    assert "/p1" in story.asked(SHOP, 12)
    assert "/kept" not in story.asked(SHOP, 12)  # nothing was said of it, and it was seen four days ago
    row = story.row(SHOP, "/p1")
    assert (row["change_count"], row["changefreq"], row["sitemap_priority"]) == (1, "daily", 0.9)
    [host] = story.crawl.sql(f"SELECT * FROM host_health WHERE host = '{SHOP}'")
    assert (host["lastmod_precision"], host["lastmod_recall"]) == (1.0, 1.0)


def test_a_host_whose_dates_are_wrong_each_time_is_not_believed_any_more(story: Story) -> None:
    pages = {f"/{n}" for n in range(1, 13)}
    assert pages <= story.asked(LIAR, 12)
    assert story.asked(LIAR, 14) == {"/sitemap.xml"}
    [host] = story.crawl.sql(f"SELECT * FROM host_health WHERE host = '{LIAR}'")
    assert host["lastmod_precision"] == 0.0


def test_new_pages_that_a_list_names_are_found_though_nothing_links_there(story: Story) -> None:
    for day in (0, 8, 12, 14):
        assert story.row(SHOP, f"/day-{day}")["found_by"] == "sitemap"


def test_a_story_tells_what_lists_say_and_a_report_counts_them_apart(story: Story) -> None:
    told = story.crawl.explain(story.site.url(SHOP, "/p1"), START + 15 * DAY)
    part = story.site.url(SHOP, "/maps/one.xml")
    assert f"found in sitemap {part} in round 3" in told
    assert f"listed in {part}: lastmod 2026-02-11 06:00:00, changefreq daily, priority 0.9" in told
    report = story.crawl.command("report", str(story.crawl.root), "3")
    assert "of these, sitemaps and feeds: " in report


def test_the_lake_holds_every_check(story: Story) -> None:
    assert "checks hold" in story.crawl.command("check", str(story.crawl.root))
