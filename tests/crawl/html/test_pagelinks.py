"""Links of a page: gathered as written, resolved once, bounded."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.html.pagelinks import ANCHOR_CHARS, NONE, Collector, Row, label

BASE = "http://a.test/dir/"


def test_distinct_links_come_in_the_order_they_were_given() -> None:
    links = Collector(BASE, "utf-8", 10)
    links.add("x#1", "t", None, "a")
    links.extend([("./x", "t", None, "a"), ("y", None, "nofollow", "a"), ("javascript:0", None, None, "a")])
    links.areas([{"href": "z", "alt": " a  z "}, {"alt": "no href"}])
    links.frames([{"src": " f "}, {"src": ""}, {}], "iframe")
    links.elements([{"rel": "NEXT", "href": "n"}, {"rel": "icon", "href": "i"}, {"href": "none"}])
    assert list(links.done()) == [
        (BASE + "x", "t", None, "a"),
        (BASE + "y", None, "nofollow", "a"),
        (BASE + "z", "a z", None, "area"),
        (BASE + "f", None, None, "iframe"),
        (BASE + "n", None, "next", "link"),
    ]


def test_a_page_without_links_has_none() -> None:
    assert Collector(BASE, "utf-8", 10).done() is NONE


def test_a_label_is_short_and_never_empty() -> None:
    assert label("  a\n b ") == "a b"
    assert label(" ") is label(None) is None
    assert len(label("x" * 999) or "") == ANCHOR_CHARS


ROWS: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.none(), st.none(), st.just("a")), max_size=20
)


@settings(max_examples=100)
@given(st.lists(ROWS, max_size=4), st.integers(0, 8))
def test_what_is_kept_and_what_is_cut_are_all_there_were(batches: list[list[Row]], limit: int) -> None:
    links = Collector(BASE, "utf-8", limit)
    for rows in batches:
        links.extend(rows)
    met = list(dict.fromkeys(row for rows in batches for row in rows))
    found = links.done()
    assert [target.removeprefix(BASE) for target in found.url] == [row[0] for row in met[:limit]]
    assert found.cut == max(0, len(met) - limit)


def test_references_that_lead_nowhere_are_counted_once_each_by_reason() -> None:
    found = Collector(BASE, "utf-8", 10)
    for href in ("mailto:a@b", "mailto:a@b", "\tDATA:,x", "http://[x/", "httpx:y", "https://", "fine", ""):
        found.add(href, None, None, "a")
    links = found.done()
    assert (links.schemes, links.invalid, len(links)) == (3, 2, 2)
