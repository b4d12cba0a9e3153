"""What is said of a sitemap or feed."""

from __future__ import annotations

from typing import Any

import pytest

from cycles.words.listwords import named, unlisted

URL = "http://a.test/sitemap.xml"


def row(**given: Any) -> dict[str, Any]:
    return {"url": URL, "kind": "sitemap", "last_outcome": "OK", "reason": None} | given


def reject(reason: str, round_: int = 2, example: str = URL) -> dict[str, Any]:
    return {"reason": reason, "round": round_, "example": example}


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("not_a_sitemap (not_a_sitemap)", "not read: neither a sitemap nor a feed (not_a_sitemap)"),
        (
            "not_a_sitemap (html)",
            "not read: neither a sitemap nor a feed (not_a_sitemap); it is an HTML page",
        ),
        ("not_a_sitemap (n\x1b)", "not read: neither a sitemap nor a feed (not_a_sitemap); n\\x1b"),
        ("unsupported_type", None),
        (None, None),
    ],
)
def test_what_is_no_list_is_told_with_what_it_is(reason: str | None, words: str | None) -> None:
    assert words == unlisted(row(reason=reason))


def test_a_list_tells_how_many_urls_it_named_and_whether_that_is_all() -> None:
    readings = [{"round": 1, "urls": 9}, {"round": 2, "urls": 1}]
    rejects = [
        reject("sitemap_xml_cut", 1),
        reject("sitemap_xml_cut"),
        reject("noindex"),
        reject("no_location", example="http://a.test/other.xml"),
    ]
    assert list(named(row(), readings, rejects)) == [
        "named 1 URL when it was read last, in round 2",
        "in round 2: a sitemap ends early; its entries up to there count (sitemap_xml_cut)",
    ]


def test_a_list_without_entries_says_so() -> None:
    assert list(named(row(kind="feed"), [], [])) == ["no URL that this feed names is kept"]


@pytest.mark.parametrize("given", [{"kind": "page"}, {"kind": None}, {"last_outcome": "PARSE_FAILED"}])
def test_of_what_was_not_read_as_a_list_nothing_is_told(given: dict[str, Any]) -> None:
    assert not list(named(row(**given), [{"round": 1, "urls": 9}], [reject("sitemap_xml_cut")]))
