"""Pages: links, text and what a head says (outside cases: tests/conformance/test_html.py)."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl import html, url
from crawl.html import pagelinks, reader

PAGE = "http://www.example.com/dir/page.html"


def read(markup: str, **options: object) -> html.Page:
    return html.read(markup.encode(), "text/html; charset=utf-8", PAGE, **options)  # type: ignore[arg-type]


def test_blocks_part_words_and_inline_elements_do_not() -> None:
    page = read(
        "<title>A\n B </title><style>x{}</style><script>y</script><p>One<br>two</p>"
        "<p>th<b>r</b>e<i><u>e</u></i></p>"
        "<ul><li>4<li>5</ul><noscript>6</noscript><template>7</template><div hidden>8</div>&nbsp;9&#160;10"
        "<td>a<!---->b"
        "<div>c</div>d<span></span>e<span><p>f</p></span>g"
    )
    assert page.title == "A B"
    assert page.text == "One two three 4 5 6 9 10ab c de f g"


def test_text_of_an_anchor_is_whole_words_and_a_picture_speaks_where_there_is_none() -> None:
    page = read(
        "<a href=1>th<b>r</b>ee <div>x</div>y</a><a href=2><img src=i alt=' a  b '></a><a href=3></a>"
        f"<a href=4>{'z' * 300}</a><map><area href=5 alt='an area'></map><a href=6>a<script>no</script>b</a>"
    )
    assert {target[27:]: anchor for target, anchor, *_ in page.links} == {
        "1": "three x y",
        "2": "a b",
        "3": None,
        "4": "z" * 200,
        "5": "an area",
        "6": "ab",
    }


def test_each_kind_of_link_says_how_it_was_found() -> None:
    page = read(
        "<head><link rel=next href=n><link rel='Alternate' hreflang=de href=de><link rel=stylesheet href=s>"
        "<link rel='alternate stylesheet' href=s2><link rel=alternate type=application/rss+xml href=rss>"
        "<link rel=canonical href=c#x><meta http-equiv=Refresh content='0; url=r'></head>"
        "<a href=a rel='NoFollow  UGC'>a</a><iframe src=i></iframe><svg><a href=v>v</a></svg>"
    )
    assert {(t.rpartition("/")[2], rel, via) for t, _, rel, via in page.links} == {
        ("n", "next", "link"),
        ("de", "alternate", "link"),
        ("a", "nofollow ugc", "a"),
        ("i", None, "iframe"),
        ("v", None, "a"),
        ("r", None, "refresh"),
    }
    assert page.canonical == "http://www.example.com/dir/c"
    assert page.refresh == (0.0, "http://www.example.com/dir/r")


def test_a_frameset_links_to_its_frames() -> None:
    page = read("<frameset><frame src=one><frame src=two><noframes><a href=no>no</a></noframes></frameset>")
    assert [(t.rpartition("/")[2], via) for t, *_, via in page.links] == [("one", "frame"), ("two", "frame")]
    assert page.text == ""


def test_links_that_differ_in_nothing_but_their_fragment_are_one() -> None:
    page = read("<a href='x#1'>t</a><a href='./x#2'>t</a><a href=x>other</a><a href='#top'>t</a>")
    assert [(t, a) for t, a, *_ in page.links] == [
        ("http://www.example.com/dir/x", "t"),
        ("http://www.example.com/dir/x", "other"),
        (PAGE, "t"),
    ]


def test_more_links_than_the_limit_are_counted_and_left_out() -> None:
    page = read("".join(f"<a href={n}>x</a>" for n in range(10)) + "<a href=9>x</a>", limit=4)
    assert (len(page.links), page.links.cut) == (4, 6)


def test_a_reload_is_no_refresh_and_neither_is_one_for_browsers_without_scripts() -> None:
    assert read("<meta http-equiv=refresh content=30>").refresh is None
    assert len(read("<meta http-equiv=refresh content=30>").links) == 0
    assert (
        read("<head><noscript><meta http-equiv=refresh content='0;url=/x'></noscript></head>").refresh is None
    )


def test_the_head_says_language_description_and_directives() -> None:
    page = read(
        "<html lang=pt_BR><meta name=Description content=' a\n b '>"
        "<meta name=robots content='NOINDEX, Follow'>"
        "<meta name=ourbot content=nofollow><meta name=otherbot content=none>",
        agent="OurBot",
    )
    assert (page.language, page.description) == ("pt-BR", "a b")
    assert page.robots == ("noindex", "follow", "nofollow")
    assert read("<meta http-equiv=content-language content=fr>").language == "fr"


def test_language_is_the_markups_else_the_headers_else_what_the_text_looks_like() -> None:
    german = "<p>Der Hafenmeister schrieb jedes Schiff auf, das vor Sonnenaufgang auslief."
    header = {"content_language": ["fr"]}
    for markup, options, found in (
        ("<html lang=en>" + german, header, ("en", "markup")),
        ("<meta http-equiv=content-language content=es>" + german, header, ("es", "markup")),
        ("<html lang='{{lang}}'>" + german, header, ("fr", "header")),
        (german, {"content_language": ["de, en"]}, ("de", "detected")),
        ("<p>42", {}, (None, None)),
    ):
        page = read(markup, **options)
        assert (page.language, page.language_source) == found


def test_a_page_for_which_there_is_no_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_left(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(reader, "_sort", nothing_left)
    assert read("<p>x").error == "memory"


@pytest.mark.parametrize("address", ["", "no url", "http://[", "http://a.test/" + "x" * 9_000, "\ud800"])
def test_an_address_that_is_none_costs_relative_links_only(address: str) -> None:
    page = html.read(b"<base href=b><a href=x></a><a href=http://b.test/></a>", None, address)
    assert "http://b.test/" in page.links.url


def test_the_title_of_a_drawing_is_not_the_pages() -> None:
    assert read("<svg><title>icon</title></svg><title>page</title>").title == "page"


def test_the_query_of_a_link_is_written_in_the_encoding_of_its_page() -> None:
    page = html.read("<a href='?q=я'>x</a>".encode("koi8-r"), "text/html; charset=koi8-r", PAGE)
    assert list(page.links.url) == [PAGE + "?q=%D1"]


@pytest.mark.parametrize(
    "body", [b"", b"\0", b"<", b"<!--", b"<a href=", b"\xff\xfe", b"<html><frameset>", b"<a>" * 99]
)
def test_stumps_of_pages_are_read(body: bytes) -> None:
    assert html.read(body, None, PAGE).base == PAGE


def test_five_thousand_levels_lose_no_link() -> None:
    page = read("<div>" * 5_000 + "<a href=deep>x</a>")
    assert list(page.links.url) == ["http://www.example.com/dir/deep"]


TAGS = ["a", "b", "p", "div", "span", "base", "link", "meta", "title", "script", "style", "template"]
TAGS += ["noscript", "svg", "table", "td", "frameset", "select", "head", "body"]
ATTRIBUTES = [
    "href=x",
    "href='http://[/'",
    "rel=canonical",
    "http-equiv=refresh",
    "content='0;url=x'",
    "name=robots",
    "hidden",
]
FRAGMENT = st.one_of(
    st.builds("<{} {}>".format, st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES)),
    st.builds("</{}>".format, st.sampled_from(TAGS)),
    st.text(max_size=8),
    st.just("<!--x-->"),
)


@settings(max_examples=100)
@given(st.lists(FRAGMENT, max_size=25).map("".join))
def test_any_soup_of_tags_is_read_and_its_links_are_canonical(soup: str) -> None:
    page = html.read(soup.encode("utf-8", "replace"), "text/html; charset=utf-8", PAGE)
    assert page.text == " ".join(page.text.split())
    for target, anchor, _, _ in page.links:
        assert url.canonical(target) == target
        assert "#" not in target
        assert anchor is None or len(anchor) <= pagelinks.ANCHOR_CHARS


def test_pages_that_once_broke_other_crawlers_are_read_right(cases: Path) -> None:
    wrong = []
    for line in (cases / "bugreports.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        given, right = row["smallest_input"], row["right"]
        if row["area"] != "html" or "page" not in given:
            continue
        page = html.read(given["html"].encode(), "text/html; charset=utf-8", given["page"])
        found = {
            "refresh_url": page.refresh[1] if page.refresh else None,
            "canonical": page.canonical,
            "links": list(page.links.url),
            "page_kept": True,
        }
        if {name: found[name] for name in right} != right:
            wrong.append((row["id"], found))
    assert wrong == []
