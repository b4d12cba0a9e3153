"""What pages ask of those who index, from the answer to the lake: four visits of a small site.

Pages say noindex, nofollow, noarchive and unavailable_after, in markup and in headers, for us and for others;
some take it back, one begins to ask, one comes to its date.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.handmade import Crawl, Site, page, serving

START = datetime(2026, 2, 1, 6, tzinfo=UTC)
UNTIL = START + timedelta(days=3)  # the date that a page names
TIMES = (START, START + timedelta(minutes=1), UNTIL, START + timedelta(days=14), START + timedelta(days=40))
WWW = "www.site.test"
PATHS = ("plain", "meta", "others", "header", "archive", "past", "later", "begins", "ends", "leads", "alone")


def meta(content: str, name: str = "robots") -> str:
    return f'<meta name="{name}" content="{content}">'


def publish(site: Site) -> None:
    """The site at first."""
    site.put(WWW, "/", page("Home", "All of them.", *(f"/{path}" for path in PATHS)))
    for path, head in {
        "plain": "",
        "meta": meta("noindex"),
        "others": meta("none", "otherbot"),
        "archive": meta("NoArchive", "Reader"),
        "past": meta("unavailable_after: Sunday, 25 Jan 2026 10:00:00 GMT"),
        "later": meta(f"unavailable_after: {UNTIL.isoformat()}"),
        "begins": "",
        "leads": "",
        "alone": meta("nofollow"),
    }.items():
        body = page(path, f"Text of {path}.", f"/behind-{path}", head=head, etag=f'"{path}"')
        site.put(WWW, f"/{path}", replace(body, headers=dict(body.headers)))
    link = "</next>; rel=next, </leads?real>; rel=canonical"
    _header(site, "leads", "Link", link)
    site.put(WWW, "/header", page("header", "Text of header.", "/behind-header", etag='"header"'))
    _header(site, "header", "X-Robots-Tag", "otherbot: index, reader: noindex")
    site.put(WWW, "/ends", page("ends", "Text of ends.", "/behind-ends", etag='"ends"'))
    _header(site, "ends", "X-Robots-Tag", "noindex")


def _header(site: Site, path: str, name: str, value: str | None) -> None:
    """Set or drop a header of a page that stays as it is."""
    reply = site.reply(WWW, f"/{path}")
    headers = {key: one for key, one in reply.headers.items() if key != name}
    site.put(WWW, f"/{path}", replace(reply, headers=headers | ({name: value} if value else {})))


@dataclass(slots=True, kw_only=True)
class Told:
    """The crawled site, and what the server was asked in each visit."""

    site: Site
    crawl: Crawl
    marks: list[int]

    def rows(self, statement: str, round_: int | None = None) -> dict[str, dict[str, Any]]:
        """Rows of an answer by the path of their URL."""
        found = self.crawl.sql(statement, round_)
        return {row["url"].partition(f":{self.site.port}/")[2]: row for row in found}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Iterator[Told]:
    with serving() as site:
        publish(site)
        settings: dict[str, dict[str, Any]] = {
            "agent": {"name": "Reader", "contact": "mailto:reader@example.org"},
            "egress": {"allow": ["127.0.0.0/8"]},
            "dns": {"hosts": {"*.test": "127.0.0.1"}},
            "politeness": {"min_delay": "1ms", "factor": 0.0},
        }
        crawl = Crawl(tmp_path_factory.mktemp("directives") / "lake", workers, settings)
        crawl.seed(site.url(WWW), now=START)
        marks = []
        for number, now in enumerate(TIMES, 1):
            marks.append(len(site.log))
            if number == 4:
                _header(site, "begins", "X-Robots-Tag", "noindex")
                _header(site, "ends", "X-Robots-Tag", None)
                site.put(WWW, "/meta", page("meta", "Text of meta.", etag='"free"'))
            crawl.round(now)
        yield Told(site=site, crawl=crawl, marks=marks)


def test_what_asks_not_to_be_indexed_is_known_and_its_text_is_not(told: Told) -> None:
    rows = told.rows("SELECT url, state, withheld, reason FROM urls", 2)
    hidden = {path: row["withheld"] for path, row in rows.items() if row["withheld"]}
    assert hidden == {"meta": "noindex", "header": "noindex", "ends": "noindex", "past": "unavailable_after"}
    assert {rows[path]["state"] for path in hidden} == {"FETCHED"}
    assert {path: rows[path]["reason"] for path in hidden} == hidden
    pages = told.rows("SELECT url, title, text, text_chars, noindex, withheld FROM pages", 2)
    for path in PATHS:
        shown = pages[path]
        assert shown["title"] == path
        assert ("Text of" in shown["text"]) != (path in hidden), path
        assert shown["text_chars"] > 0
        assert shown["noindex"] == (hidden.get(path) == "noindex")
    told_of = told.rows("SELECT url, kind FROM changes WHERE round = 2", 2)
    assert set(told_of) == set(PATHS) - set(hidden)


def test_its_links_are_followed_all_the_same(told: Told) -> None:
    known = told.rows("SELECT url FROM urls")
    assert {f"behind-{path}" for path in PATHS} <= set(known)


def test_each_directive_is_a_column(told: Told) -> None:
    rows = told.rows("SELECT * FROM pages", 2)
    asked = {
        path: {name for name in ("noindex", "nofollow", "noarchive") if rows[path][name]} for path in PATHS
    }
    assert {path: said for path, said in asked.items() if said} == {
        "meta": {"noindex"},
        "header": {"noindex"},
        "ends": {"noindex"},
        "archive": {"noarchive"},
        "alone": {"nofollow"},
    }
    assert rows["others"]["robots_directives"] is None
    assert rows["later"]["robots_directives"].startswith("unavailable_after: 2026-02-04")
    assert datetime.fromisoformat(rows["later"]["unavailable_after"]) == UNTIL


def test_bodies_of_what_asks_for_no_copy_are_not_kept_and_the_others_are(told: Told) -> None:
    kept = told.rows("SELECT url FROM urls JOIN bodies ON body_hash = content_hash", 2)
    assert set(PATHS) - set(kept) == {"meta", "header", "ends", "past", "archive"}
    counted = told.crawl.sql(
        "SELECT reason, sum(count)::INT AS n FROM rejects WHERE stage = 'parse' GROUP BY 1", 2
    )
    assert {row["reason"]: row["n"] for row in counted} == {
        "noindex": 3,
        "unavailable_after": 1,
        "noarchive": 1,
    }


def test_a_link_header_leads_on_and_names_the_canonical_page(told: Told) -> None:
    rows = told.rows("SELECT u.url, u.canonical_hint FROM urls AS u")
    assert rows["leads"]["canonical_hint"] == told.site.url(WWW, "/leads?real")
    (link,) = told.crawl.sql("SELECT target_url, via, rel, admitted FROM links WHERE via = 'header'")
    assert (link["target_url"], link["rel"], link["admitted"]) == (told.site.url(WWW, "/next"), "next", True)
    assert "next" in rows


def test_on_the_day_it_named_a_page_is_asked_again_and_taken_back(told: Told) -> None:
    asked = [one.path for one in told.site.log[told.marks[2] : told.marks[3]] if one.path[1:] in PATHS]
    assert asked == ["/later"]
    row = told.rows("SELECT url, withheld, document_key FROM urls", 3)["later"]
    assert (row["withheld"], row["document_key"]) == ("unavailable_after", None)
    events = told.rows("SELECT url, kind FROM changes WHERE round = 3", 3)
    assert events["later"]["kind"] == "deleted"
    assert "later" not in told.rows("SELECT url FROM pages", 3)
    assert "unavailable_after" in told.crawl.explain(told.site.url(WWW, "/later"), TIMES[2])


def test_a_page_that_stops_asking_is_new_and_one_that_begins_is_deleted(told: Told) -> None:
    events = {
        path: row["kind"]
        for path, row in told.rows("SELECT url, kind FROM changes WHERE round = 4", 4).items()
    }
    assert {path: events.get(path) for path in ("meta", "ends", "begins", "header", "plain")} == {
        "meta": "new",
        "ends": "new",
        "begins": "deleted",
        "header": None,
        "plain": None,
    }
    pages = told.rows("SELECT url, text, noindex FROM pages", 4)
    assert "Text of ends." in pages["ends"]["text"]
    assert "begins" not in pages
    changed = told.rows("SELECT url, change_count FROM urls", 4)
    assert {path: changed[path]["change_count"] for path in ("meta", "ends", "begins")} == {
        "meta": 1,
        "ends": 0,  # only a header
        "begins": 0,
    }


def test_what_a_header_asked_is_asked_for_whole_and_the_rest_by_its_validators(told: Told) -> None:
    second = {one.path[1:]: one.status for one in told.site.log[told.marks[3] : told.marks[4]]}
    assert {path: second[path] for path in PATHS if path not in ("later",)} == {
        "plain": 304,
        "meta": 200,
        "others": 304,
        "header": 200,
        "archive": 304,
        "past": 304,
        "begins": 304,
        "ends": 200,
        "leads": 304,
        "alone": 304,
    }


def test_a_text_that_was_taken_back_is_read_once_more_and_stays_withheld(told: Told) -> None:
    rows = told.rows("SELECT url, withheld, document_key FROM urls")
    pages = told.rows("SELECT url, text, withheld FROM pages")
    for path, why in (("begins", "noindex"), ("later", "unavailable_after")):
        assert rows[path]["withheld"] == why
        assert (pages[path]["text"], pages[path]["withheld"]) == ("", why)
    told.crawl.command("check", str(told.crawl.root))
