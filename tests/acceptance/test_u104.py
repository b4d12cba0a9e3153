"""One page through all that can happen to it: the article U-104, from the seed that leads to it on.

The story is that of the design "Atlas Discovery". Its chapters follow one another in one lake: each is a
function that publishes something, crawls, and looks at what the publishers saw and what the lake says. A
later ability gets its chapter: write the function and name it in `CHAPTERS`. Not told yet: sitemaps and traps
by pattern (chapter 6), near duplicates (12), a discovery share (13), rendering (14), delivery of events (15),
opt-out (16). The atomic slot (chapter 7) is tested on `crawl.fetching.agenda`, seven after eight on
`lake.fence` too.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from crawl.errors import FenceLost
from crawl.url import canonical
from cycles.commands.checking import check
from cycles.session.setup import open_lake
from lake import rounds
from tests.acceptance import processes
from tests.acceptance.handmade import Crawl, Reply, Site, page, serving, zipped

NEWS, DOCS, STORE = "news-a.example.test", "docs-b.example.test", "store-c.example.test"
CDN, PARTNER, INSIDE = "cdn-news-a.example.test", "chips.partner.test", "intranet.example.test"
U104, U105, U106, PRINT = (
    "/articles/chip-supply",
    "/articles/ports",
    "/articles/old-fab",
    "/articles/chip-supply/print",
)
U107, U108, HELP = "/account/orders", "/products/lamp", "/account/help/faq"
TEXT: Final = "Chip makers expect supply to catch up with demand by the end of the year."
START: Final = datetime(2026, 1, 5, 3, tzinfo=UTC)
GAP_S: Final = 0.04
LEASE_S: Final = 1.5

SETTINGS: dict[str, dict[str, Any]] = {
    "agent": {"name": "Atlas-Bot", "contact": "https://atlas.example.org/bot"},
    "egress": {"allow": ["127.0.0.0/8"]},
    "dns": {"hosts": {"*.test": "127.0.0.1", INSIDE: "10.1.2.3"}},
    "politeness": {"min_delay": f"{GAP_S * 1000:.0f}ms", "factor": 0.0},
    "fetching": {"lease": f"{LEASE_S}s"},
    "limits": {"decoded_bytes": 200_000},
    "storage": {"upkeep": False},  # each driver is one round, and no event is forgotten
}


@dataclass(slots=True, kw_only=True)
class Scene:
    """The publishers, the lake, and the clock of the story."""

    site: Site
    crawl: Crawl
    now: datetime = START
    states: dict[int, dict[str, int]] = field(default_factory=dict)  # as each round left them

    def round(self, window: timedelta | None = None) -> int:
        """Crawl a round at the story's time; its number."""
        number = self.crawl.round(self.now, window).round
        self.states[number] = self.counted()
        return number

    def counted(self, round_: int | None = None) -> dict[str, int]:
        """URLs by state."""
        rows = self.crawl.sql("SELECT state, count(*) AS urls FROM urls GROUP BY state", round_)
        return {row["state"]: row["urls"] for row in rows}

    def url(self, path: str = U104, host: str = NEWS) -> str:
        return self.site.url(host, path)

    def row(self, path: str = U104, host: str = NEWS) -> dict[str, Any]:
        """What the lake knows of a URL now. Raises AssertionError unless it is one row."""
        rows = self.crawl.sql(f"SELECT * FROM urls WHERE url = '{self.url(path, host)}'")
        assert len(rows) == 1, (path, host, rows)
        return rows[0]

    def fetches(self, path: str = U104, host: str = NEWS) -> list[dict[str, Any]]:
        """The requests for a URL, oldest first."""
        return self.crawl.sql(
            f"SELECT * FROM fetches WHERE url = '{self.url(path, host)}' ORDER BY started_at"
        )

    def events(self, path: str = U104, host: str = NEWS) -> list[str]:
        """Kinds of the events about a URL, oldest first."""
        key = self.row(path, host)["url_key"]
        return [
            r["kind"] for r in self.crawl.sql(f"SELECT kind FROM outbox WHERE url_key = {key} ORDER BY round")
        ]

    def wait_until_due(self, path: str = U104, host: str = NEWS) -> None:
        """Let the story's time pass until a URL is due."""
        due = datetime.fromisoformat(self.row(path, host)["next_fetch_at"])
        assert due > self.now
        self.now = due + timedelta(minutes=1)

    def story(self, path: str = U104, host: str = NEWS) -> str:
        return self.crawl.explain(self.url(path, host), self.now)


def publish(scene: Scene) -> None:
    """The three publishers as the story finds them."""
    site = scene.site
    spellings = [
        f"HTTP://News-A.example.test:{site.port}{U104}#top",
        f"{U104}?utm_source=newsletter",
        "/archive/../articles/./chip-supply",
    ]
    distinct = ["/article?id=7", "/article?id=8", "/Docs/Setup", "/docs/setup"]
    others = [U105, U106, "/articles/bomb", site.url(INSIDE, "/payroll"), site.url(DOCS, "/guide")]
    shop = [site.url(STORE, path) for path in (U107, U108, HELP)]
    site.robots(NEWS, "User-agent: *", "Disallow: /drafts/")
    site.robots(STORE, *STORE_RULES)
    site.put(NEWS, "/", page("News A", "today's news", *spellings, *distinct, *others, *shop))
    for number, path in enumerate(distinct):
        site.put(NEWS, path, page(f"Page {number}", f"a text of its own, number {number}"))
    site.put(NEWS, U104, article("Chip supply recovers", etag='"v1"'))
    site.put(NEWS, PRINT, article("Chip supply recovers", head="<style>nav { display: none }</style>"))
    site.put(NEWS, U105, page("Ports", "ports are open", U104, etag='"p"'))
    site.put(NEWS, U106, page("The old fab", "a fab from another time"))
    site.put(NEWS, "/articles/bomb", zipped(300_000))
    site.put(DOCS, "/guide", page("Guide", "how chips are made", site.url(NEWS, U104)))
    site.put(STORE, U107, page("Orders", "your orders"))
    site.put(STORE, U108, page("Lamp", "a lamp", etag='"l"'))
    site.put(STORE, HELP, page("Help", "questions and answers"))


STORE_RULES: Final = (
    "User-agent: Atlas-Bot", "Disallow: /account/", "Allow: /account/help", "Disallow: /cart/", "",
    "User-agent: *", "Disallow: /",
)  # fmt: skip


def article(headline: str, *, head: str = "", etag: str | None = None) -> Reply:
    return page(headline, TEXT, PRINT, head=f'<link rel="canonical" href="{U104}">{head}', etag=etag)


# --- the chapters -------------------------------------------------------------------------------------------


def seed_and_discovery(scene: Scene) -> None:
    """Chapters 2 and 5: robots.txt before any page, then seed S-01; U-104 is a link on it, and waits."""
    scene.crawl.seed(scene.url("/"), now=scene.now)
    scene.round()
    assert [one.path for one in scene.site.asked(NEWS)] == ["/robots.txt", "/"]
    assert all("Atlas-Bot" in one.headers["User-Agent"] for one in scene.site.log)
    assert "https://atlas.example.org/bot" in scene.site.log[0].headers["User-Agent"]
    found = scene.row()
    assert (found["state"], found["found_by"], found["depth"]) == ("DISCOVERED", "link", 1)
    assert found["first_referrer_key"] == scene.row("/")["url_key"]


def identity(scene: Scene) -> None:
    """Chapter 6: three spellings are one URL, the one first met is kept; what may differ stays apart."""
    known = scene.row()
    links = scene.crawl.sql(f"SELECT anchor FROM links WHERE target_key = {known['url_key']} ORDER BY anchor")
    assert [link["anchor"] for link in links] == ["to 1", "to 2", "to 3"]
    assert canonical(known["discovered_url"]).partition("?")[0] == scene.url()
    for spelling in (
        f"HTTP://NEWS-A.example.test:{scene.site.port}{U104}#top",
        scene.url() + "?utm_source=x",
    ):
        assert scene.crawl.facts(spelling, scene.now)["url_key"] == known["url_key"]
    distinct = {
        scene.row(path)["url_key"]
        for path in ("/article?id=7", "/article?id=8", "/Docs/Setup", "/docs/setup")
    }
    assert len(distinct) == 4


def robots_and_politeness(scene: Scene) -> None:
    """Chapters 7, 8 and 11: who may be asked is asked, one at a time; U-107 and an inner address are not."""
    scene.now += timedelta(minutes=1)
    mark = len(scene.site.log)
    scene.round()
    asked = {one.path for one in scene.site.asked(STORE)}
    assert asked == {"/robots.txt", U108, HELP}
    blocked = scene.row(U107, STORE)
    assert (blocked["state"], blocked["last_outcome"]) == ("BLOCKED", "ROBOTS_DENIED")
    assert blocked["robots_version"] == scene.row(U108, STORE)["robots_version"] is not None
    assert "robots.txt forbids it: Disallow: /account/ (line 2)" in scene.story(U107, STORE)
    for host in (NEWS, DOCS, STORE):
        first, *_ = ones = scene.site.asked(host, since=mark)
        assert host == NEWS or first.path == "/robots.txt"
        assert all(after.start >= before.end + GAP_S - 0.002 for before, after in pairwise(ones))
    assert (scene.row(U104)["state"], scene.row(U104)["etag"]) == ("FETCHED", '"v1"')
    inner = scene.row("/payroll", INSIDE)
    assert (inner["state"], inner["last_outcome"]) == ("BLOCKED", "EGRESS_DENIED")
    assert scene.site.asked(INSIDE) == []
    bomb = scene.row("/articles/bomb")
    assert (bomb["state"], bomb["last_outcome"]) == ("QUARANTINED", "TOO_LARGE")
    assert scene.events() == ["new"]


def one_text_at_two_urls(scene: Scene) -> None:
    """Chapter 12: the print version has the very text of U-104: one document, two URLs, every link kept."""
    scene.now += timedelta(minutes=1)
    scene.round()
    known, printed = scene.row(), scene.row(PRINT)
    assert printed["document_key"] == known["document_key"]
    assert printed["content_hash"] != known["content_hash"]
    key = known["document_key"]
    assert scene.crawl.sql(f"SELECT count(*) AS n FROM documents WHERE document_key = {key}") == [{"n": 1}]
    pages = scene.crawl.sql(f"SELECT url FROM pages WHERE document_key = {key} ORDER BY url")
    assert [one["url"] for one in pages] == [scene.url(), scene.url(PRINT)]
    sources = scene.crawl.sql(
        f"SELECT DISTINCT u.url FROM links JOIN urls AS u ON u.url_key = source_key"
        f" WHERE target_key = {known['url_key']} ORDER BY u.url"
    )
    assert [one["url"] for one in sources] == sorted(
        [scene.url("/"), scene.url(U105), scene.url("/guide", DOCS)]
    )
    assert f"first found at {scene.url()}" in scene.story(PRINT)
    assert scene.events(PRINT) == ["new"]


def nothing_changed(scene: Scene) -> None:
    """Chapters 8 and 13: a recrawl asks with the validator and is told 304; robots.txt has changed meanwhile.

    U-108 was admitted by the copy of a week ago. It is judged by today's copy, and no connection is made.
    """
    before = scene.row()
    old_rules = scene.row(U108, STORE)["robots_version"]
    scene.site.robots(STORE, *STORE_RULES[:4], "Disallow: /products/", *STORE_RULES[4:])
    scene.site.put(NEWS, U106, Reply(status=404))
    scene.wait_until_due()
    scene.now = max(scene.now, START + timedelta(days=8))  # the others of that day too
    mark = len(scene.site.log)
    scene.round()
    (request,) = scene.site.asked(NEWS, U104, mark)
    assert (request.status, request.headers["If-None-Match"]) == (304, '"v1"')
    after, asked = scene.row(), scene.fetches()[-1]
    assert (asked["outcome"], asked["wire_bytes"]) == ("NOT_MODIFIED", 0)
    assert after["document_key"] == before["document_key"]
    assert datetime.fromisoformat(after["last_checked_at"]) == scene.now
    assert after["interval_s"] == 2 * before["interval_s"]
    assert scene.events() == ["new"]
    lamp = scene.row(U108, STORE)
    assert (lamp["state"], lamp["last_outcome"]) == ("BLOCKED", "ROBOTS_DENIED")
    assert lamp["robots_version"] != old_rules
    assert scene.site.asked(STORE, U108, mark) == []
    assert "robots.txt forbids it: Disallow: /products/ (line 5)" in scene.story(U108, STORE)


def a_corrected_headline(scene: Scene) -> None:
    """Chapters 8, 13 and 15: another headline is another text: a new document, an event, a shorter wait.

    The shop has taken its rule back: once its robots.txt was read again, the next round asks U-108. The old
    fab is missed a second time.
    """
    before = scene.row()
    scene.site.put(NEWS, U104, article("Chip supply recovers slowly (corrected)", etag='"v2"'))
    scene.site.robots(STORE, *STORE_RULES)
    scene.wait_until_due()
    mark = len(scene.site.log)
    scene.round()
    (request,) = scene.site.asked(NEWS, U104, mark)
    assert (request.status, request.headers["If-None-Match"]) == (200, '"v1"')
    after = scene.row()
    assert after["document_key"] != before["document_key"]
    assert (after["etag"], after["change_count"]) == ('"v2"', 1)
    assert after["interval_s"] == before["interval_s"] / 2
    assert scene.events() == ["new", "changed"]
    titles = scene.crawl.sql(f"SELECT title FROM pages WHERE url = '{scene.url()}'")
    assert titles == [{"title": "Chip supply recovers slowly (corrected)"}]
    assert scene.row(PRINT)["document_key"] == before["document_key"]
    assert scene.row(U106)["gone_sightings"] == 2
    assert scene.row(U106)["state"] == "FETCHED"
    scene.now += timedelta(minutes=1)
    scene.round()
    assert len(scene.site.asked(STORE, U108, mark)) == 1
    assert scene.row(U108, STORE)["state"] == "FETCHED"
    assert scene.row(U107, STORE)["state"] == "BLOCKED"


def a_crash_after_the_answer(scene: Scene) -> None:
    """Chapter 9: worker W-2 (fence 7) is answered as its driver dies and it freezes; fence 8 takes over.

    The publisher sees U-104 asked once more, and never a third time: W-2, woken later, sends nothing and
    commits nothing. The old fab is missed a third time, and is gone.
    """
    scene.site.put(NEWS, U104, article("Chip supply is back", etag='"v3"'))
    scene.wait_until_due()
    assert rounds.holder(scene.crawl.store).number == 6
    mark = len(scene.site.log)
    with processes.crawl(
        "run", str(scene.crawl.root), "--now", scene.now.isoformat(), "--workers", "1"
    ) as w2:
        stopped: list[psutil.Process] = []
        frozen = threading.Event()

        def freeze(host: str, path: str) -> None:
            if (host, path) == (NEWS, U104) and not frozen.is_set():
                stopped.extend(w2.workers())
                for worker in stopped:
                    worker.send_signal(signal.SIGSTOP)
                w2.kill()
                frozen.set()

        scene.site.reading = freeze
        assert frozen.wait(30), w2.text()
        assert len(stopped) == 1
        ours = rounds.Fence(number=7, version=0, who={})
        rounds.check_fence(scene.crawl.store, ours)
        number = scene.round()
        with pytest.raises(FenceLost, match=r"we are driver 7 .*driver 8"):
            rounds.check_fence(scene.crawl.store, ours)
        row = {
            "opened_at": scene.now,
            "now": scene.now,
            "driver": "W-2",
            "window_s": 1.0,
            "policy_version": "-",
        }
        with pytest.raises(FenceLost, match="driver 7"):
            rounds.seal(scene.crawl.store, ours, number + 1, (), (), row)
        before = len(scene.site.log)
        for worker in stopped:
            worker.send_signal(signal.SIGCONT)
        processes.until(lambda: not w2.orphans(), 30, "the woken worker to end")
    assert len(scene.site.log) == before
    assert len(scene.site.asked(NEWS, U104, mark)) == 2
    assert all(count <= 2 for count in Counter((a.host, a.path) for a in scene.site.log[mark:]).values())
    asked = [one for one in scene.fetches() if one["round"] == number]
    assert [(one["outcome"], one["fence"]) for one in asked] == [("OK", 8)]
    assert scene.crawl.sql(f"SELECT fence FROM rounds WHERE round = {number}") == [{"fence": 8}]
    assert scene.row()["etag"] == '"v3"'
    assert scene.events() == ["new", "changed", "changed"]
    assert scene.row(U106)["state"] == "GONE"
    assert scene.events(U106) == ["new", "deleted"]


def moved_elsewhere(scene: Scene) -> None:
    """Chapter 11: U-104 answers 301 to another host of its publisher, then to another publisher.

    The first is followed at once, but as a fresh candidate: the robots rules of its host come first. The
    second waits for the next round.
    """
    scene.site.robots(CDN, "User-agent: *", "Disallow: /internal/")
    moved = scene.site.put(CDN, U104, article("Chip supply is back", etag='"c"'))
    scene.site.put(NEWS, U104, Reply(status=301, headers={"Location": moved}))
    scene.wait_until_due()
    scene.round()
    assert [one.path for one in scene.site.asked(CDN)] == ["/robots.txt", U104]
    first, hop = scene.fetches()[-1], scene.fetches(U104, CDN)[-1]
    assert (first["status"], first["next_url"], first["hop"], hop["hop"]) == (301, moved, 0, 1)
    assert first["chain_id"] == hop["chain_id"]
    assert scene.row()["redirect_to_key"] == scene.row(U104, CDN)["url_key"]
    assert scene.row(U104, CDN)["found_by"] == "redirect"
    assert f"redirects to {moved}" in scene.story()

    away = scene.site.put(PARTNER, "/supply", page("Partner", "the partner's own words"))
    scene.site.put(NEWS, U104, Reply(status=302, headers={"Location": away}))
    scene.wait_until_due()
    last = scene.round()
    assert scene.site.asked(PARTNER) == []
    waiting = scene.row("/supply", PARTNER)
    assert (waiting["state"], waiting["found_by"], waiting["first_seen_round"]) == (
        "DISCOVERED",
        "redirect",
        last,
    )
    assert f"leads to {away}, which was not asked at once" in scene.story()


def too_many_requests(scene: Scene) -> None:
    """Chapter 7: one 429 with Retry-After, and the whole host cools: all its URLs wait, others do not."""
    scene.now = max(
        datetime.fromisoformat(scene.row(path, host)["next_fetch_at"])
        for path, host in ((U104, NEWS), (U105, NEWS), ("/guide", DOCS))
    ) + timedelta(minutes=1)
    scene.site.everything(NEWS, Reply(status=429, headers={"Retry-After": "60"}))
    mark = len(scene.site.log)
    number = scene.round(window=timedelta(seconds=5))
    asked = [one for one in scene.site.asked(NEWS, since=mark) if one.path != "/robots.txt"]
    assert [one.status for one in asked] == [429]
    assert scene.site.asked(DOCS, "/guide", mark)
    limited = scene.row(asked[0].path)
    assert (limited["state"], limited["last_outcome"], limited["attempts"]) == ("FETCHED", "RATE_LIMITED", 1)
    carried = scene.crawl.sql(f"SELECT reason, count FROM rejects WHERE round = {number} AND host = '{NEWS}'")
    assert [one["reason"] for one in carried] == ["retry_after"]
    cooling = scene.crawl.sql(f"SELECT backoff_until FROM host_health WHERE host = '{NEWS}'")
    assert datetime.fromisoformat(cooling[0]["backoff_until"]).timestamp() >= asked[0].end + 60 - 0.1
    others = {U104, U105} - {asked[0].path}
    assert all(
        "carried over (retry_after: its host asked to be left alone)" in scene.story(path) for path in others
    )

    mark = len(scene.site.log)
    number = scene.round(window=timedelta(seconds=5))
    assert scene.site.asked(NEWS, since=mark) == []
    cut = scene.crawl.sql(f"SELECT reason FROM frontier WHERE round = {number} AND host = '{NEWS}'")
    assert cut == [{"reason": "host_backoff"}]
    assert "left out (host_backoff: its host is left alone after errors)" in scene.story(others.pop())


def the_whole_story(scene: Scene) -> None:
    """Chapter 16: the lake tells all of it, each round shows what it left, and nothing was violated."""
    story = scene.story()
    for outcome in ("200 OK", "304 NOT_MODIFIED", "301 REDIRECT", "302 REDIRECT"):
        assert f"→ {outcome}" in story
    for number, states in scene.states.items():
        assert scene.counted(number) == states, number
    findings = list(check(open_lake(str(scene.crawl.root), {}), scene.now, None))
    assert [finding for finding in findings if finding.count] == []


CHAPTERS: tuple[Callable[[Scene], None], ...] = (
    publish,
    seed_and_discovery,
    identity,
    robots_and_politeness,
    one_text_at_two_urls,
    nothing_changed,
    a_corrected_headline,
    a_crash_after_the_answer,
    moved_elsewhere,
    too_many_requests,
    the_whole_story,
)


@pytest.mark.timeout(180)
def test_the_tracked_page_goes_through_its_chapters(tmp_path: Path, workers: str) -> None:
    with serving() as site:
        scene = Scene(site=site, crawl=Crawl(tmp_path / "lake", workers, SETTINGS))
        for chapter in CHAPTERS:
            begun = time.monotonic()
            print(f"--- {chapter.__name__}, {scene.now}")  # shown when a chapter fails
            chapter(scene)
            print(f"    {time.monotonic() - begun:.1f} s")
