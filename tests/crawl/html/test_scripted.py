"""Signs that scripts make a page's text."""

from __future__ import annotations

import pytest

from crawl import html

PAGE = "http://www.example.com/"


def signs(markup: str) -> tuple[str, ...]:
    return html.read(markup.encode(), "text/html; charset=utf-8", PAGE).signs


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ("<body><div id=root></div><script src=/a.js></script>", ("id=root",)),
        (
            '<body><div id="__next"><p>x</div><script id="__NEXT_DATA__">{}</script>',
            ("__NEXT_DATA__", "id=__next"),
        ),
        ("<html ng-app=x><body data-ng-app><script src=a></script>", ("data-ng-app", "ng-app")),
        ("<body><app-root ng-version=17></app-root><script src=a></script>", ("app-root", "ng-version")),
        (
            "<body><noscript>Please enable <b>JavaScript</b>.</noscript><script src=a></script>",
            ("noscript",),
        ),
        ("<body><noscript><img src=pixel></noscript><p id=main>text<script src=a></script>", ()),
        ("<body><div><div id=root></div></div><script src=a></script>", ()),  # not one of the outermost
        ("<body><div id=root></div>", ()),  # without a script nothing is made by one
        ("", ()),
    ],
)
def test_signs_are_those_of_the_outermost_elements_and_of_scripts(
    markup: str, found: tuple[str, ...]
) -> None:
    assert signs(markup) == found


def test_scripts_are_counted_and_measured() -> None:
    page = html.read(
        "<script>é=1</script><p>x<script src=y></script>".encode(), "text/html;charset=utf-8", PAGE
    )
    assert (page.scripts, page.script_chars) == (2, 3)
    assert page.text == "x"
