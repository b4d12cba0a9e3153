"""A page of which nothing could be read."""

from crawl.html.page import unread


def test_it_says_why_and_nothing_else() -> None:
    page = unread("http://a.test/")
    assert (page.error, page.base, page.text, len(page.links)) == ("memory", "http://a.test/", "", 0)
