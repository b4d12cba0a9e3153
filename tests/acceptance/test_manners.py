"""robots.txt and redirects over several rounds, seen from the lake and from the server's log.

`www.a.test` keeps its robots.txt in another domain; `b.test` opens one folder and closes another between two
visits; `c.test` cannot give its robots.txt at first. Redirects lead through three domains, in a circle over
two hosts, and on without end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.handmade import Crawl, Reply, Site, page, serving

START = datetime(2026, 2, 1, 6, tzinfo=UTC)
#: four rounds a few minutes apart, so that what waits for its turn gets it; then two, two weeks later
TIMES = tuple(START + timedelta(minutes=20 * n) for n in range(4))
LATER = START + timedelta(days=14)
AGENT = {"name": "Reader", "contact": "mailto:reader@example.org"}


@dataclass(slots=True, kw_only=True)
class Story:
    site: Site
    crawl: Crawl
    mark: int = 0  #: the log's length before the last round

    def row(self, host: str, path: str) -> dict[str, Any]:
        url = self.site.url(host, path)
        (row,) = self.crawl.sql(f"SELECT * FROM urls WHERE url = '{url}'")
        return row

    def fetches(self, where: str) -> list[dict[str, Any]]:
        return self.crawl.sql(f"SELECT * FROM fetches WHERE {where} ORDER BY started_at")


def moved(to: str, status: int = 302) -> Reply:
    return Reply(status=status, headers={"Location": to})


def publish(site: Site) -> list[str]:
    """The web as it is first; its seeds."""
    site.put("www.a.test", "/robots.txt", moved(site.url("rules.host.test", "/a")))
    site.put("rules.host.test", "/a", Reply(body=b"User-agent: *\nDisallow: /no\n"))
    site.put("www.a.test", "/no", page("No", "forbidden"))
    site.put("www.a.test", "/yes", page("Yes", "allowed"))
    site.robots("b.test", "User-agent: *", "Disallow: /closed/")
    site.put("b.test", "/closed/x", page("X", "closed at first"))
    site.put("b.test", "/open/y", page("Y", "open at first"))
    site.put("c.test", "/robots.txt", Reply(status=503))
    site.put("c.test", "/z", page("Z", "waits"))
    site.put("one.test", "/start", moved(site.url("two.test", "/middle")))
    site.put("two.test", "/middle", moved(site.url("three.test", "/end"), 301))
    refresh = f'<meta http-equiv="refresh" content="0; url={site.url("four.test", "/last")}">'
    site.put("three.test", "/end", page("End", "reached", head=refresh))
    site.put("four.test", "/last", page("Last", "the end of it"))
    site.put("l1.loop.test", "/", moved(site.url("l2.loop.test", "/")))
    site.put("l2.loop.test", "/", moved(site.url("l1.loop.test", "/")))
    seeds = [site.url(h, p) for h, p in (("www.a.test", "/no"), ("www.a.test", "/yes"), ("c.test", "/z"))]
    seeds += [site.url("b.test", "/closed/x"), site.url("b.test", "/open/y"), site.url("one.test", "/start")]
    return [*seeds, site.url("l1.loop.test"), site.url("l2.loop.test")]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Iterator[Story]:
    with serving() as site:
        settings: dict[str, dict[str, Any]] = {
            "agent": AGENT,
            "egress": {"allow": ["127.0.0.0/8"]},
            "dns": {"hosts": {"*.test": "127.0.0.1"}},
            "politeness": {"min_delay": "5ms", "factor": 0.0, "backoff_base": "5ms"},
        }
        crawl = Crawl(tmp_path_factory.mktemp("manners") / "lake", workers, settings)
        crawl.seed(*publish(site), now=START)
        for number, now in enumerate(TIMES):
            if number == 1:
                site.robots("c.test", "User-agent: *", "Disallow: /nothing")
            crawl.round(now)
        told = Story(site=site, crawl=crawl, mark=len(site.log))
        site.robots("b.test", "User-agent: *", "Disallow: /open/")
        crawl.round(LATER)
        crawl.round(LATER + timedelta(minutes=20))  # takes up what the new copy allows
        crawl.command("check", str(crawl.root))
        yield told


def test_a_robots_txt_in_another_domain_is_obeyed_by_its_origin_alone(story: Story) -> None:
    asked = [
        (one["round"], one["host"], one["hop"]) for one in story.fetches("kind = 'robots' AND round < 3")
    ]
    here = [one for one in asked if one[1] in ("www.a.test", "rules.host.test")]
    assert here == [(1, "www.a.test", 0), (2, "www.a.test", 0), (2, "rules.host.test", 1)]
    assert not story.site.asked("www.a.test", "/no")
    assert story.row("www.a.test", "/yes")["state"] == "FETCHED"
    assert (story.row("www.a.test", "/no")["state"], story.row("www.a.test", "/no")["last_error"]) == (
        "BLOCKED",
        "Disallow: /no (line 2)",
    )
    copies = story.crawl.sql("SELECT round, origin, how, elsewhere FROM robots WHERE len(elsewhere) > 0")
    told = {(one["round"], one["origin"], one["how"], *one["elsewhere"]) for one in copies}
    origin = story.site.url("www.a.test").rstrip("/")
    assert {(1, origin, "elsewhere", "host.test"), (2, origin, "fetched", "host.test")} <= told
    waits = story.crawl.sql("SELECT reason, count FROM rejects WHERE round = 1 AND stage = 'fetch'")
    assert waits == [{"reason": "robots_elsewhere", "count": 2}]


def test_explain_names_the_rule_its_line_and_the_copy(story: Story) -> None:
    told = story.crawl.explain(story.site.url("www.a.test", "/no"), LATER)
    assert "forbidden by line 2, Disallow: /no" in told
    assert "its robots.txt lies in another domain" in told, told


def test_what_a_new_copy_allows_comes_back_and_what_it_forbids_is_not_asked(story: Story) -> None:
    x, y = story.row("b.test", "/closed/x"), story.row("b.test", "/open/y")
    assert (x["state"], y["state"], y["last_outcome"]) == ("FETCHED", "BLOCKED", "ROBOTS_DENIED")
    paths = [one.path for one in story.site.asked("b.test", since=story.mark)]
    assert paths == ["/robots.txt", "/closed/x"]
    versions = story.crawl.sql("SELECT version FROM robots WHERE origin LIKE '%b.test%' ORDER BY round")
    assert y["robots_version"] == x["robots_version"] == versions[-1]["version"] != versions[0]["version"]


def test_a_robots_txt_that_cannot_be_had_defers_and_is_asked_for_once_a_round(story: Story) -> None:
    assert story.row("c.test", "/z")["state"] == "FETCHED"
    first, *rest = story.fetches("host = 'c.test'")
    assert (first["round"], first["kind"], first["status"]) == (1, "robots", 503)
    assert [(one["kind"], one["status"]) for one in rest if one["round"] < 5][:2] == [
        ("robots", 200),
        ("page", 200),
    ]
    decided = story.crawl.facts(story.site.url("c.test", "/z"), LATER)["decisions"]
    assert decided[0]["last_outcome"] == "ROBOTS_UNREACHABLE"


def test_a_chain_through_domains_keeps_its_name_and_its_length(story: Story) -> None:
    hops = story.fetches("kind = 'page' AND host IN ('one.test', 'two.test', 'three.test', 'four.test')")
    first = [one for one in hops if one["round"] < 5]
    assert [(one["round"], one["host"], one["hop"]) for one in first] == [
        (1, "one.test", 0),
        (2, "two.test", 1),
        (3, "three.test", 2),
        (4, "four.test", 3),
    ]
    assert len({one["chain_id"] for one in first}) == 1
    middle = story.row("two.test", "/middle")
    assert middle["found_by"] == "redirect"
    assert middle["first_referrer_key"] == story.row("one.test", "/start")["url_key"]
    assert middle["redirect_to_key"] == story.row("three.test", "/end")["url_key"]
    assert middle["chain_id"] is None
    again = [one for one in hops if one["round"] == 5 and one["host"] == "two.test"]
    assert [one["hop"] for one in again] == [0]  # asked for its own sake


def test_a_loop_over_two_hosts_is_one_whoever_was_asked_first(story: Story) -> None:
    ends = [story.row(host, "/") for host in ("l1.loop.test", "l2.loop.test")]
    assert {one["last_outcome"] for one in ends} == {"REDIRECT_LOOP"}
    assert [one["redirect_to_key"] for one in ends] == [one["url_key"] for one in reversed(ends)]
