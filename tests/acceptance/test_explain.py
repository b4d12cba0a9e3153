"""`crawl explain` on a small site: every URL tells where it was found, what was decided and what comes next.

Four rounds: the home page; then its links, in a window so short that a busy host's clock lets few of them
through; the rest, in a long one; and all that is due again two weeks later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.handmade import Crawl, Reply, Site, page, serving

START = datetime(2026, 2, 1, 6, tzinfo=UTC)
TIMES = (START, START + timedelta(minutes=1), START + timedelta(minutes=2), START + timedelta(days=14))
NOW = TIMES[-1]
SHORT = timedelta(seconds=1)

WWW, BUSY, SLOW, OTHER = "www.site.test", "busy.site.test", "slow.site.test", "www.other.test"
LONG = "/long/" + "very-" * 40 + "long"


@dataclass(slots=True, kw_only=True)
class Told:
    """The crawled site."""

    site: Site
    crawl: Crawl

    def story(self, host: str, path: str) -> str:
        return self.crawl.explain(self.site.url(host, path), NOW)


def chapter(story: str, name: str) -> str:
    """The lines below a heading."""
    found = re.search(rf"^{name}.*\n((?:  .*\n?)*)", story, re.MULTILINE)
    assert found is not None, story
    return found[1]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Iterator[Told]:
    with serving() as site:
        _publish(site)
        settings: dict[str, dict[str, Any]] = {
            "agent": {"name": "Reader", "contact": "mailto:reader@example.org"},
            "egress": {"allow": ["127.0.0.0/8"]},
            "dns": {"hosts": {"*.test": "127.0.0.1"}},
            "politeness": {"min_delay": "20ms", "factor": 0.0},
            "scope": {"domains": ["site.test"]},
        }
        crawl = Crawl(tmp_path_factory.mktemp("told") / "lake", workers, settings)
        crawl.seed(site.url(WWW), site.url(BUSY), now=START)
        for number, now in enumerate(TIMES, 1):
            if number == 4:
                site.put(WWW, "/changing", page("Changing", "quite another text", etag='"2"'))
            crawl.round(now, SHORT if number == 2 else None)
        yield Told(site=site, crawl=crawl)


def _publish(site: Site) -> None:
    busy = [site.put(BUSY, f"/{number}", page(f"Busy {number}", f"text {number}")) for number in range(12)]
    site.put(BUSY, "/", page("Busy", "a host that wants to be asked slowly"))
    site.robots(BUSY, "User-agent: *", "Crawl-delay: 0.25")
    site.robots(WWW, "User-agent: *", "Disallow: /private/")
    slow = [
        site.put(SLOW, f"/{number}", replace(page(f"Slow {number}", f"text {number}"), delay=0.6))
        for number in range(3)
    ]
    site.put(WWW, "/steady", page("Steady", "always the same", "/deep", etag='"s"'))
    site.put(WWW, "/changing", page("Changing", "a first text", etag='"1"'))
    site.put(WWW, "/moved", Reply(status=301, headers={"Location": "/steady-too"}))
    site.put(WWW, "/steady-too", page("Steady", "the place it moved to"))
    site.put(WWW, "/away", Reply(status=302, headers={"Location": site.url(OTHER, "/x")}))
    site.put(WWW, "/deep", page("Deep", "two links away"))
    site.put(WWW, LONG, page("Long", "a long address"))
    own = ["/steady", "/changing", "/moved", "/away", "/private/diary", "/lost", LONG]
    site.put(WWW, "/", page("Home", "the home page", *own, site.url(OTHER, "/elsewhere"), *busy, *slow))


def test_a_fetched_page_tells_from_where_it_was_found_to_when_it_is_due(told: Told) -> None:
    story = told.story(WWW, "/steady")
    assert f"found by link from {told.site.url(WWW)} in round 1, 2026-02-01 06:00:00, depth 1" in story
    assert "links to it as 'to 1' (round 1, by a, depth 1)" in story
    rounds = chapter(story, "Decided").splitlines()
    assert "round 1 (2026-02-01 06:00:00): discovered" in rounds[0]
    assert re.search(
        r"round 2 \(.*\): planned as discovery \(never fetched\), score 0\.\d+, group \d position", rounds[1]
    )
    assert rounds[1].endswith("; OK → FETCHED")
    assert re.search(r"round 3 \(.*\): not due before 2026-02-0[78] ", rounds[2])
    assert re.search(
        r"round 4 \(.*\): planned as \w+ \(its time had come\), .*; NOT_MODIFIED → FETCHED$", rounds[3]
    )
    asked = chapter(story, "Asked")
    assert "→ 200 OK" in asked
    assert "→ 304 NOT_MODIFIED" in asked
    gap, ms = r"gap [\d,]+ ms \((?:none|floor|factor)\)", r"[\d.]+ ms"
    phases = f"{gap}; dns {ms}, connect {ms}, first byte {ms}, in all {ms}"
    assert 2 == len(re.findall(phases, asked))
    assert 1 == asked.count("conditional; 0 bytes from 127.0.0.1")
    assert 2 == len(re.findall(r"allowed by robots [0-9a-f]{16}", asked))
    assert re.search(
        r"due 2026-0[23]-\d\d .*: 14 d after the last check \(7 d before; it had not changed\)", story
    )


def test_a_page_that_changed_is_asked_again_sooner(told: Told) -> None:
    story = told.story(WWW, "/changing")
    assert "answered twice, seen to have changed once, last 2026-02-15 06:00:00" in story
    assert "event changed in round 4" in story
    assert re.search(
        r"due 2026-02-1[89] .*: 3 d 12 h after the last check \(7 d before; it had changed\)", story
    )


def test_a_redirected_url_tells_its_chain(told: Told) -> None:
    story = told.story(WWW, "/moved")
    target = told.site.url(WWW, "/steady-too")
    assert f"redirects to {target}" in chapter(story, "Now")
    asked = chapter(story, "Asked")
    assert "→ 301 REDIRECT" in asked
    assert f"leads to {target}\n" in asked
    assert f"GET {target} → 200 OK, hop 1" in asked
    arrived = told.story(WWW, "/steady-too")
    assert f"found by redirect from {told.site.url(WWW, '/moved')} in round 2" in arrived
    assert "round 2 (2026-02-01 06:01:00): discovered; OK → FETCHED" in arrived
    assert "REDIRECT, hop 1" not in arrived


def test_a_redirect_out_of_the_domain_is_not_followed_at_once(told: Told) -> None:
    story = told.story(WWW, "/away")
    assert f"leads to {told.site.url(OTHER, '/x')}, which was not asked at once" in story
    assert "Rejected by scope (scope_host)" in told.story(OTHER, "/x")


def test_a_url_that_robots_forbids_tells_by_which_line_of_which_copy(told: Told) -> None:
    story = told.story(WWW, "/private/diary")
    now = chapter(story, "Now")
    assert "BLOCKED" in now
    assert "because robots.txt forbids it: Disallow: /private/ (line 2)" in now
    assert re.search(rf"robots.txt of http://{WWW}:\d+: copy [0-9a-f]{{16}}, as fetched, HTTP 200", now)
    assert "ROBOTS_DENIED (Disallow: /private/ (line 2)) → BLOCKED" in chapter(story, "Decided")
    assert "never: no request goes out before robots.txt allows it" in chapter(story, "Asked")
    assert "judged anew then, or as soon as robots.txt changes" in chapter(story, "Next")
    assert told.site.asked(WWW, "/private/diary") == []


def test_a_page_that_is_not_there_tells_how_often_it_was_missed(told: Told) -> None:
    story = told.story(WWW, "/lost")
    assert "last outcome NOT_FOUND, HTTP 404, in round 4 (" in chapter(story, "Now")
    assert 2 == chapter(story, "Asked").count("→ 404 NOT_FOUND")
    assert "missed twice since 2026-02-01 06:01:00; missed 3 times over 1 d it counts as gone" in story


def test_a_url_that_was_cut_tells_by_how_much(told: Told) -> None:
    """Of twelve pages of one host, four fit into a second; the others stood behind them."""
    cut = told.crawl.sql(
        f"SELECT reason, score, count FROM frontier WHERE round = 2 AND host = '{BUSY}' AND position < 0"
    )[0]
    left = told.crawl.sql(  # what was planned before and carried over, on a loaded machine, was not left out
        f"SELECT url FROM frontier WHERE round = 3 AND host = '{BUSY}' AND position >= 0 AND url_key NOT IN"
        " (SELECT url_key FROM frontier WHERE round = 2 AND position >= 0) ORDER BY url"
    )
    assert cut["reason"] == "host_capacity"
    assert cut["count"] == len(left) >= 8
    story = told.crawl.explain(left[0]["url"], NOW)
    second = chapter(story, "Decided").splitlines()[1]
    planned = 12 - cut["count"]
    assert (
        "left out (host_capacity: its host's clock allows no more requests in the window),"
        f" with {cut['count']} of its host; {planned} were planned; its score "
    ) in second
    facts = told.crawl.facts(left[0]["url"], NOW)["decisions"][1]
    assert facts["decision"] == "left_out"
    assert facts["cut_off"] == cut["score"]
    assert facts["short_by"] == pytest.approx(cut["score"] - facts["score"])
    assert f"the cut-off {cut['score']:.3f}" in second
    assert re.search(r"round 3 \(.*\): planned as discovery .*; OK → FETCHED", chapter(story, "Decided"))


def test_a_url_that_was_not_reached_tells_why_it_was_carried_over(told: Told) -> None:
    """Nobody knew how slow its host is: three pages were planned for a second, and take two."""
    stories = [chapter(told.story(SLOW, f"/{number}"), "Decided").splitlines()[1:3] for number in range(3)]
    carried = "; not reached within the window: carried over (window: the window closed first)"
    late = [third for second, third in stories if second.endswith(carried)]
    assert late
    assert all(third.endswith("; OK → FETCHED") for third in late)


def test_a_url_out_of_scope_tells_the_rule_and_who_links_to_it(told: Told) -> None:
    story = told.story(OTHER, "/elsewhere")
    assert "This URL is not known." in story
    assert "Rejected by scope (scope_host): its host is outside [scope] domains and hosts." in story
    assert f"{told.site.url(WWW)} links to it as 'to 8' (round 1, by a, depth 1)." in story
    assert re.search(
        r"Of links to its host, \d+ were not admitted in round 1 \(scope_host: .*\), such as to http://www.other",
        story,
    )
    assert told.site.asked(OTHER) == []


def test_an_unknown_url_is_told_so(told: Told) -> None:
    story = told.story(WWW, "/never-heard-of")
    assert "This URL is not known." in story
    assert "Not discovered: it was never given as a seed, and no page kept in the lake links to it." in story


def test_a_seed_tells_who_gave_it(told: Told) -> None:
    story = told.story(WWW, "/")
    assert "given as a seed in round 1, 2026-02-01 06:00:00, depth 0" in story
    assert re.search(r"seed of \S+@\S+, 2026-02-01 06:00:00, priority medium: accepted", story)
    assert "round 1 (2026-02-01 06:00:00): planned as discovery (never fetched)" in story


def test_a_long_url_is_cut_in_tables_and_whole_in_its_story_and_in_data(told: Told) -> None:
    url = told.site.url(WWW, LONG)
    assert told.story(WWW, LONG).startswith(url + "\n")
    question = "SELECT url FROM urls WHERE url LIKE '%/long/%'"
    assert [{"url": url}] == told.crawl.sql(question)
    table = told.crawl.command("sql", str(told.crawl.root), question)
    assert url[:99] + "…" in table
    assert url not in table
    assert url in told.crawl.command("sql", str(told.crawl.root), question, "--format", "csv")
