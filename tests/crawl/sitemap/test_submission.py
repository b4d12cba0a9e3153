"""For which URLs a sitemap may speak."""

import pytest

from crawl.sitemap.submission import admitted


@pytest.mark.parametrize(
    ("sitemap", "loc", "may"),
    [
        ("http://a.test/sitemap.xml", "http://a.test/x/y", True),
        ("http://a.test/sitemap.xml", "https://a.test/", True),  # the scheme does not matter
        ("http://a.test/shop/sitemap.xml", "http://a.test/shop/x", True),
        ("http://a.test/shop/sitemap.xml", "http://a.test/", False),
        ("http://a.test/shop/sitemap.xml", "http://a.test/shopping", False),
        ("http://a.test/index.php?route=a/b", "http://a.test/x", True),  # no part of the directory
        ("http://a.test/sitemap.xml", "http://b.a.test/", False),
        ("http://a.test/sitemap.xml", "http://a.test.evil.test/", False),
    ],
)
def test_a_sitemap_speaks_for_its_own_directory(sitemap: str, loc: str, may: bool) -> None:
    assert admitted(sitemap, [loc]) == [may]


def test_robots_of_a_host_makes_it_speak_for_the_whole_host_and_no_other() -> None:
    locs = ["http://b.test/", "http://a.test/", "http://c.test/", "http://w.b.test/"]

    assert admitted("http://cdn.test/maps/b.xml", locs, {"b.test", "a.test"}) == [True, True, False, False]
