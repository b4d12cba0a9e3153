"""Real documentation sites: exactly what can be reached, politely, and two months later nothing twice.

The small test crawls two of the sites, the slow one all five. What should be found is found by another
program, what was asked is read from the server's log.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crawl import url as urls
from tests.acceptance.commands import configure, crawl, sql
from tests.acceptance.realweb import Answered, RealWeb, serving

FIRST, LATER = "2026-03-01T00:00:00Z", "2026-05-01T00:00:00Z"
MIN_DELAY_S = 0.020
#: of times that the server gives in whole milliseconds
TOLERANCE_S = 0.002
CONTENT = ("documents", "bodies", "outbox")


@pytest.fixture
def tools(repo_root: Path) -> Path:
    """The folder with `up` and `reachable.py`: CRAWL_REALWEB, else ../shared/realweb beside the checkout."""
    return Path(os.environ.get("CRAWL_REALWEB") or repo_root.parent / "shared" / "realweb")


@pytest.mark.timeout(300)
def test_two_sites_are_crawled_completely_politely_and_later_asked_conditionally(
    tools: Path, tmp_path: Path
) -> None:
    with serving(tools, tmp_path / "nginx") as web:
        prove(web, ("bind.test", "policy.test"), tmp_path / "lake")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_five_sites_are_crawled_completely_politely_and_later_asked_conditionally(
    tools: Path, tmp_path: Path
) -> None:
    with serving(tools, tmp_path / "nginx") as web:
        prove(web, web.hosts, tmp_path / "lake")


def prove(web: RealWeb, hosts: Sequence[str], lake: Path) -> None:
    """Crawl, look, and crawl again two months later."""
    truth = {host: web.reachable(host) for host in hosts}
    begin(web, hosts, lake)
    mark = web.mark()
    crawl("run", str(lake), "--until-idle", "--now", FIRST)
    seen_by_server = web.since(mark)
    first = fetches(lake, 0)
    last_round = max(row["round"] for row in first)
    finds_what_is_reachable(first, truth)
    asks_nothing_twice(seen_by_server, hosts)
    keeps_its_distance(first, seen_by_server)
    crawl("check", str(lake))

    before = counts(lake)
    mark = web.mark()
    crawl("run", str(lake), "--until-idle", "--now", LATER)
    second = fetches(lake, last_round)
    asks_nothing_twice(web.since(mark), hosts)
    keeps_its_distance(second, web.since(mark), follows=True)
    finds_nothing_new(pages(first), pages(second))
    assert counts(lake) == before
    crawl("check", str(lake))


def begin(web: RealWeb, hosts: Sequence[str], lake: Path) -> None:
    crawl("init", str(lake))
    configure(
        lake,
        agent__name="realweb-test",
        agent__contact="mailto:crawl@example.org",
        egress__allow=["127.0.0.0/8"],
        dns__hosts={"*.test": "127.0.0.1"},
        politeness__min_delay="20ms",
        scope__domains=list(hosts),
        parsing__via=["a", "area", "redirect"],
    )
    crawl("seed", str(lake), *(web.home(host) for host in hosts))


def fetches(lake: Path, after_round: int) -> list[dict[str, Any]]:
    return sql(
        lake,
        "SELECT round, kind, url, host, status, outcome, required_gap_ms, gap_rule, body_hash,"
        " request_validators, response_headers FROM fetches"
        f" WHERE round > {after_round} ORDER BY host, started_at",
    )


def pages(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The last request of each page by its URL."""
    return {row["url"]: row for row in rows if row["kind"] == "page"}


def counts(lake: Path) -> dict[str, int]:
    question = " UNION ALL ".join(f"SELECT '{t}' AS name, count(*) AS n FROM {t}" for t in CONTENT)
    return {row["name"]: row["n"] for row in sql(lake, question)}


def finds_what_is_reachable(
    rows: Iterable[Mapping[str, Any]], truth: Mapping[str, Mapping[str, int]]
) -> None:
    """The same URLs with status 200, but for two spellings of one page (the key form says which are one)."""
    ours = {row["url"] for row in rows if row["kind"] == "page" and row["status"] == 200}
    theirs = {
        urls.canonical(url) for found in truth.values() for url, status in found.items() if status == 200
    }
    our_keys, their_keys = ({urls.key_form(url) for url in some} for some in (ours, theirs))
    missed = sorted(url for url in theirs - ours if urls.key_form(url) not in our_keys)
    more = sorted(url for url in ours - theirs if urls.key_form(url) not in their_keys)
    assert (missed, more) == ([], []), f"{len(missed)} missed, {len(more)} more than reachable"
    spellings = Counter(urls.key_form(url) for url in ours)
    assert [key for key, n in spellings.items() if n > 1] == []
    for host, found in truth.items():
        assert any(urls.host(url) == host for url in ours), f"nothing of {host} was fetched"
        assert found


def asks_nothing_twice(seen: Mapping[str, Sequence[Answered]], hosts: Sequence[str]) -> None:
    assert set(seen) == set(hosts)
    for host, requests in seen.items():
        paths = Counter(request.path for request in requests)
        assert {path: n for path, n in paths.items() if n > 1} == {}, host
        assert paths["/robots.txt"] == 1, host


def keeps_its_distance(
    rows: Iterable[Mapping[str, Any]], seen: Mapping[str, Sequence[Answered]], *, follows: bool = False
) -> None:
    """Between two requests of a host the server saw at least the gap that `fetches` says was in force.

    The first request of a host owes no gap, unless it `follows` those of an earlier crawl.
    """
    by_host = defaultdict(list)
    for row in rows:
        by_host[row["host"]].append(row)
    assert set(by_host) == set(seen)
    for host, requests in seen.items():
        own = by_host[host]
        assert [path_of(row["url"]) for row in own] == [request.path for request in requests], host
        for row in own if follows else own[1:]:
            assert row["required_gap_ms"] >= MIN_DELAY_S * 1000, row
            assert row["gap_rule"] != "none", row
        for (before, after), row in zip(pairwise(requests), own[1:], strict=True):
            gap = after.start - before.end
            assert gap >= row["required_gap_ms"] / 1000 - TOLERANCE_S, (before, after, row)


def path_of(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def finds_nothing_new(
    first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]
) -> None:
    """Every page is asked again, with its validators: 304, or the same content, or the same 404."""
    assert set(second) == set(first)
    for url, again in second.items():
        then = first[url]
        validators = {line.split(":")[0].lower() for line in then["response_headers"].split("\n")} & {
            "etag",
            "last-modified",
        }
        sent = {line.split(":")[0].lower() for line in (again["request_validators"] or "").split("\n")} - {""}
        if then["status"] == 200 and validators:
            wanted = {"etag": "if-none-match", "last-modified": "if-modified-since"}
            assert sent == {wanted[v] for v in validators}, url
            assert (again["status"], again["outcome"]) == (304, "NOT_MODIFIED"), url
        else:
            assert sent == set(), url
            assert again["status"] == then["status"], url
            assert again["body_hash"] == then["body_hash"], url
