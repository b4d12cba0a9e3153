"""How a URL was found, in words."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cycles.words import foundwords

THEN = datetime(2026, 3, 1, tzinfo=UTC)


def told(referrer: str | None = None, announcer: str | None = None, **columns: Any) -> list[str]:
    row = {
        "found_by": "link",
        "first_referrer_key": 7,
        "first_seen_round": 3,
        "first_seen_at": THEN,
        "depth": 1,
    }
    said = {"announced_by": None, "lastmod": None, "changefreq": None, "sitemap_priority": None, "kind": None}
    return list(foundwords.origin(row | said | columns, referrer, announcer))


@pytest.mark.parametrize(
    ("found_by", "key", "line"),
    [
        ("seed", None, "given as a seed"),
        ("link", 7, "found by link from http://a.test/"),
        ("redirect", 7, "found by redirect from http://a.test/"),
        ("sitemap", 7, "found in sitemap http://a.test/"),
        ("feed", 7, "found in feed http://a.test/"),
        ("robots", 7, "named by http://a.test/"),
        ("well_known", 7, "looked for where sitemaps usually lie"),
    ],
)
def test_every_way_to_be_found_has_its_words(found_by: str, key: int | None, line: str) -> None:
    expected = [f"{line} in round 3, 2026-03-01 00:00:00, depth 1"]
    assert told("http://a.test/", found_by=found_by, first_referrer_key=key) == expected


def test_what_a_sitemap_says_is_told_with_its_name() -> None:
    columns = {"announced_by": 9, "lastmod": THEN, "changefreq": "daily", "sitemap_priority": 0.5}
    assert told(announcer="http://a.test/s.xml", **columns)[1] == (
        "listed in http://a.test/s.xml: lastmod 2026-03-01 00:00:00, changefreq daily, priority 0.5"
    )
    assert told(announced_by=9)[1] == "listed in page 9: without lastmod"


def test_what_is_no_page_says_so() -> None:
    assert told(kind="sitemap", last_outcome="OK")[1] == "read as a sitemap, not as a page"
    for outcome in ("UNSUPPORTED_TYPE", "PARSE_FAILED", None):
        assert told(kind="feed", last_outcome=outcome)[1] == "taken for a feed, not for a page"


@pytest.mark.parametrize(
    ("via", "url", "words"),
    [
        ("a", "http://a.test/", "http://a.test/ links to it as 'here' (round 1, by a, depth 2)."),
        ("a", None, "page 7 links to it as 'here' (round 1, by a, depth 2)."),
        ("robots", "http://a.test/robots.txt", "http://a.test/robots.txt names it in a Sitemap line"),
        ("robots", None, "robots.txt 7 names it in a Sitemap line"),
        ("sitemap", "http://a.test/s.xml", "http://a.test/s.xml lists it"),
        ("redirect", "http://a.test/old", "http://a.test/old redirects to it"),
    ],
)
def test_what_leads_to_a_url_is_named(via: str, url: str | None, words: str) -> None:
    anchor = "here" if via == "a" else None
    link = {"source_url": url, "source_key": 7, "via": via, "anchor": anchor, "round": 1, "depth": 2}
    assert foundwords.source(link).startswith(words)


def test_a_robots_txt_that_is_no_longer_kept_has_no_name() -> None:
    assert told(found_by="robots")[0].startswith("named by a robots.txt in round 3")
