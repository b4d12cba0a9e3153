"""Grammars of attribute and header values, against the outside cases and by hand."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl import markup, url


def rows(folder: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (folder / "html" / name).read_text(encoding="utf-8").splitlines()]


def test_refreshes_of_the_outside_cases_are_understood(cases: Path) -> None:
    wrong = []
    for row in rows(cases, "refresh_grammar.jsonl"):
        found = markup.refresh(row["content"])
        wanted = row["refresh"]
        if (found is None) != (wanted is None):
            wrong.append((row["id"], found))
        elif found is not None and wanted["url"].startswith("http"):
            target = url.canonical_many([found[1]], row["page_url"])[0]
            if (target, found[0]) != (wanted["url"], float(wanted["delay"])):
                wrong.append((row["id"], found, wanted))
    assert wrong == []


def test_robots_and_link_headers_of_the_outside_cases_are_understood(cases: Path) -> None:
    wrong = []
    for row in rows(cases, "headers_meta.jsonl"):
        lines = "\n".join(f"{k}: {v}" for k, v in row.get("headers") or row["header"].items())
        if "agent" in row:
            words = markup.x_robots_tag(markup.headers(lines).get("x-robots-tag", []), row["agent"])
            got = {d: d in words or "none" in words for d in ("noindex", "nofollow")}
            if got != {d: row[d] for d in got}:
                wrong.append((row["id"], words))
            continue
        found = [
            t
            for t, rel in markup.link_header(markup.headers(lines).get("link", []))
            if "canonical" in rel and t
        ]
        target = url.canonical(found[0], row["page_url"]) if found else None
        if target != row["canonical"]:
            wrong.append((row["id"], target))
    assert wrong == []


def test_a_directive_for_another_agent_in_the_same_line_does_not_concern_us() -> None:
    assert markup.x_robots_tag(["otherbot: noindex, mybot: nofollow"], "MyBot") == ["nofollow"]
    assert (
        markup.x_robots_tag(["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"], "mybot")[-1]
        == "noindex"
    )


def test_header_values_keep_their_order_whatever_the_case_of_the_name() -> None:
    assert markup.headers("ETag: one\nX: y: z\netag:two\n") == {"etag": ["one", "two"], "x": ["y: z"]}
    assert markup.headers(None) == {}


@pytest.mark.parametrize(
    ("content_type", "body", "html"),
    [
        ("text/html; charset=utf-8", b"anything", True),
        ("Application/XHTML+XML", b"", True),
        ("text/plain", b"<html>", False),
        ("image/png", b"\x89PNG", False),
        (None, b"\n <!DOCTYPE  html><p>", True),
        (None, b"<!-- c --><html>", True),
        (None, b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml">', True),
        (None, b'<?xml version="1.0"?>\n<rss>', False),
        (None, b"%PDF-1.7", False),
        ("nonsense", b"<html>", True),
        ("", b"", False),
    ],
)
def test_a_page_is_known_by_its_type_and_without_one_by_its_start(
    content_type: str | None, body: bytes, html: bool
) -> None:
    assert markup.is_html(content_type, body) is html


def test_language_tags_are_spelt_with_hyphens_and_nonsense_is_none() -> None:
    assert markup.language_tag(" en_US ") == "en-US"
    assert markup.language_tag("de") == "de"
    assert markup.language_tag("{{ lang }}") is None


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_no_text_makes_a_grammar_fail(text: str) -> None:
    markup.refresh(text)
    markup.directives(text)
    markup.x_robots_tag([text], "bot")
    markup.rel_tokens(text)
    markup.language_tag(text)
    list(markup.link_header([text]))
    markup.headers(text)
    markup.is_html(text, text.encode("utf-8", "replace"))
