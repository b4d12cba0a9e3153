"""The Link header: its grammar, its relations, its context."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crawl import url
from crawl.html import linkheader

PAGE = "http://www.example.com/dir/page.html"
HERE = "http://www.example.com/dir/"


def read(*lines: str) -> linkheader.Found:
    return linkheader.read(lines, PAGE)


def test_links_of_all_lines_come_in_order_each_once() -> None:
    found = read('<n>; rel=next, </p#x>; rel="Prev  NEXT"', "<n>;rel=next", "<http://o.test>; rel=alternate")
    assert found.links == (
        (HERE + "n", "next"),
        ("http://www.example.com/p", "prev next"),
        ("http://o.test/", "alternate"),
    )


def test_what_leads_to_no_page_is_no_link() -> None:
    found = read(
        "<s.css>; rel=preload; as=style, <a>; rel=alternate; type=application/rss+xml",
        '<b>; rel="alternate stylesheet", <mailto:x@y.test>; rel=next, <c>, <>; rel=next',
        '<h>; rel=alternate; type="text/html"; hreflang=de',
    )
    assert found.links == ((HERE + "h", "alternate"),)


def test_the_first_canonical_that_is_a_url_counts() -> None:
    assert read(
        "<ftp://x.test/>; rel=canonical", "</c#top>; rel=canonical, </d>; rel=canonical"
    ).canonical == ("http://www.example.com/c")


def test_a_link_of_another_page_says_nothing_about_this_one() -> None:
    assert read('</c>; rel=canonical; anchor="/other"') == linkheader.NOTHING
    assert read('</c>; rel=canonical; anchor="#part"').canonical == "http://www.example.com/c"


def test_quoted_values_hold_commas_semicolons_and_escapes() -> None:
    assert read(r'<a>; title="x, <b>; rel=next \" y"; rel=next').links == ((HERE + "a", "next"),)
    assert read('<a>; rel=next; title="never closed, <b>; rel=next').links == ((HERE + "a", "next"),)


def test_of_a_relation_given_twice_the_first_counts() -> None:
    assert read("<a>; rel=prev; rel=next").links == ((HERE + "a", "prev"),)


def test_so_many_links_are_read() -> None:
    assert len(read(", ".join(f"<{n}>; rel=next" for n in range(2_000))).links) == 500


@settings(max_examples=100)
@given(st.lists(st.text(alphabet=st.sampled_from('<>;,="\\ abrelnxt/#:é\0'), max_size=60), max_size=3))
def test_no_lines_make_it_fail_and_every_target_is_canonical(lines: list[str]) -> None:
    found = read(*lines, *(f"<{line}>; rel=next" for line in lines))
    assert all(url.canonical(target) == target for target, _ in found.links)
    assert len(set(found.links)) == len(found.links)
