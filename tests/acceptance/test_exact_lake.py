"""A crawl by the command line gives exactly the lake that the web's truth says, and keeps it so.

A seeded web is crawled until nothing is left, then again when everything is due and the web has changed, then
twice more while pages that were lost come back or are given up. After each visit every row, document, link,
event and request is compared with `tests.acceptance.expected`, which knows the web and nothing of the
crawler; URLs are compared by their key form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from crawl.url import key_form
from lake.browse import Browsed, browse
from tests.acceptance import commands
from tests.acceptance.expected import ASKED, FAILING, LISTED, Expected, Row, Visit, looping
from tests.web.grow import Web
from tests.web.model import DAY, EPOCH, Features, Robots, when
from tests.web.serve import Running, running, toml
from tests.web.server import identity_path
from tests.web.truth import Fate, Recheck, Rules, Truth, rechecks

HOUR = 3600
#: planning times of the visits
FIRST = EPOCH
LATER = EPOCH + 40 * DAY  # all is due (a week and its jitter have passed), a robots.txt has opened
AGAIN = LATER + 16 * HOUR  # 404s are due (half a day and its jitter), 410s are not
LAST = LATER + 32 * HOUR  # 410s are due too, and there was more than a day for evidence
ALL = Rules(via=Rules().via | {"sitemap"})
NAMES = ("first", "later", "again", "last")
#: a web in which something of everything happens between these times
SEED = 10
#: robots.txt, and where one of them redirects to
ROBOTS = frozenset({"/robots.txt", "/robots/real.txt"})

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A visit, and what the lake and the server showed after it."""

    visit: Visit
    rows: Mapping[str, Row]
    texts: frozenset[str]
    refused: frozenset[str]
    lake: Browsed
    rounds: tuple[int, int]  #: first and last
    log: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All visits of a web."""

    web: Web
    stages: Mapping[str, Stage]


class Crawl:
    """A lake, the web it is about, and what must be in it."""

    def __init__(self, served: Running, root: Path, rules: Rules) -> None:
        self.served, self.root = served, root
        self.expected = Expected(served.web, rules)
        commands.crawl("init", str(root))
        settings = {
            **served.settings,
            # quick: the web is our own; hosts that are down are not waited for
            "politeness": {"min_delay": "1ms", "factor": 0.0, "backoff_base": "5ms"},
            "limits": {"depth": rules.max_depth},
            "storage": {"upkeep": False},
        }
        (root / "crawl.toml").write_text(toml(settings), encoding="utf-8")
        commands.crawl("seed", str(root), *served.web.seed_urls, "--now", when(FIRST).isoformat())

    def visit(self, due: Iterable[str], at: int, web_time: int | None = None) -> Stage:
        """Crawl until idle at a planning time; the web's clock says `web_time`, or the same."""
        shown = at if web_time is None else web_time
        self.served.control(now=shown)
        mark, before = len(self.served.log()), browse(self.root).round
        commands.crawl("run", str(self.root), "--until-idle", "--now", when(at).isoformat())
        commands.crawl("check", str(self.root))
        visit = self.expected.visit(shown, due, at)
        lake = browse(self.root, when(at))
        return Stage(
            visit=visit,
            rows=dict(self.expected.rows),
            texts=frozenset(self.expected.texts),
            refused=frozenset(self.expected.refused),
            lake=lake,
            rounds=(before + 1, lake.round),
            log=self.served.log(mark),
        )


@contextmanager
def crawling(web: Web, root: Path, rules: Rules | None = None) -> Iterator[Crawl]:
    """Serve a web and make a lake for it."""
    with running(web) as served:
        yield Crawl(served, root, rules or ALL)


def told(web: Web, root: Path) -> Story:
    """The four visits."""
    with crawling(web, root) as crawl:
        web = crawl.served.web
        stages = {"first": crawl.visit(web.seed_urls, FIRST)}
        stages["later"] = crawl.visit(_unblocked(web, crawl.expected.rows), LATER)
        rows = crawl.expected.rows
        back = max(_deaths(web, rows)) - 1  # before the last of the lost pages went
        stages["again"] = crawl.visit(_failing(rows, FAILING), AGAIN, back)
        stages["last"] = crawl.visit(_failing(rows, FAILING | {"GONE"}), LAST)
    return Story(web=web, stages=stages)


def _unblocked(web: Web, rows: Mapping[str, Row]) -> list[str]:
    """What is asked later: all but what robots.txt still forbids."""
    truth = Truth(web, LATER)
    return [url for url, row in rows.items() if row.state != "BLOCKED" or truth.allowed(url)]


def _deaths(web: Web, rows: Mapping[str, Row]) -> list[int]:
    """When the pages that were lost went: those that were there once."""
    found = [web.find(url) for url, row in rows.items() if row.sightings and row.shown is not None]
    return [made.dies for made in found if made is not None and made.dies is not None]


def _failing(rows: Mapping[str, Row], outcomes: Iterable[str]) -> list[str]:
    return [url for url, row in rows.items() if row.outcome in set(outcomes) and row.state != "GONE"]


def grown(seed: int, hosts: int, pages: int) -> Web:
    """A web with every feature but the trap, and enough frames for one of each kind."""
    features = replace(
        Features().without("trap"), frames=0.025, vanishing=0.04, errors=0.01, noindex=0.02, latency_ms=20
    )
    return Web(seed, hosts=hosts, pages=pages, features=features, mean_bytes=2_000)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return told(grown(SEED, 18, 210), tmp_path_factory.mktemp("exact") / "lake")


# --- what must hold after every visit -----------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_url_is_known_once_in_the_state_that_the_web_deserves(story: Story, name: str) -> None:
    assert differing_rows(story.stages[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_document_has_the_text_and_title_of_its_page_and_equal_texts_are_one(
    story: Story, name: str
) -> None:
    assert differing_documents(story.stages[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_links_are_those_of_the_pages_that_were_new_or_changed(story: Story, name: str) -> None:
    assert differing_links(story.stages[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_events_tell_exactly_what_is_new_changed_or_gone(story: Story, name: str) -> None:
    assert differing_events(story.stages[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_server_was_asked_for_each_url_once_and_for_nothing_else(story: Story, name: str) -> None:
    assert differing_requests(story.web, story.stages[name]) == []


# --- the first visit ----------------------------------------------------------------------------------------


def test_the_expectation_is_what_the_truth_reaches(story: Story) -> None:
    rows = story.stages["first"].rows
    facts = Truth(story.web, FIRST, ALL).reach()
    within = {url: fact for url, fact in facts.items() if fact.fate is not Fate.OUT_OF_SCOPE}
    assert {url: row.fate for url, row in rows.items()} == {url: fact.fate for url, fact in within.items()}
    # a URL keeps the depth by which it was met first: a sitemap that is read later brings it no nearer
    assert all(row.depth >= within[url].depth for url, row in rows.items())
    assert {"robots", "sitemap", "feed", "link", "redirect", "seed"} == {
        kind for row in rows.values() for kind in row.found_by
    }
    assert {row.fate for row in rows.values()} == set(Fate) - {Fate.OUT_OF_SCOPE}
    assert {"SERVER_ERROR", "UNAVAILABLE", "UNSUPPORTED_TYPE"} <= {row.outcome for row in rows.values()}
    assert story.stages["first"].texts == set(Truth(story.web, FIRST, ALL).documents(facts))
    assert "" in story.stages["first"].texts


def test_robots_txt_was_read_once_of_every_host_that_was_met(story: Story) -> None:
    first = story.stages["first"]
    asked = Counter(line["host"] for line in first.log if line["path"] == "/robots.txt")
    truth = Truth(story.web, FIRST, ALL)
    assert asked == dict.fromkeys(truth.robots_asked(truth.reach()), 1)


def test_what_is_refused_is_counted_and_never_known(story: Story) -> None:
    first = story.stages["first"]
    rejects = first.lake.sql("SELECT stage, reason, example, count FROM rejects WHERE stage = 'parse'")
    assert set(rejects["reason"]) == {"url_too_long", "noindex"}
    refused = rejects[rejects["reason"] == "url_too_long"]
    assert set(refused["example"].map(key_form)) == {key_form(url) for url in first.refused}
    assert first.refused


def test_pages_that_ask_not_to_be_indexed_are_followed_and_no_document_has_their_text(story: Story) -> None:
    first = story.stages["first"]
    hidden = {url for url, row in first.rows.items() if row.withheld}
    assert hidden
    assert {first.rows[url].state for url in hidden} == {"FETCHED"}
    told = first.lake.sql("SELECT url, reason, withheld FROM urls WHERE withheld IS NOT NULL")
    assert {key_form(url) for url in told["url"]} == {key_form(url) for url in hidden}
    assert set(told["reason"]) == set(told["withheld"]) == {"noindex"}
    assert first.lake.sql("SELECT sum(count) AS n FROM rejects WHERE reason = 'noindex'")["n"][0] == len(
        hidden
    )


# --- later ones ---------------------------------------------------------------------------------------------


def test_asked_again_every_page_answers_as_the_truth_says(story: Story) -> None:
    facts = Truth(story.web, FIRST, ALL).reach()
    due = rechecks(Truth(story.web, FIRST), Truth(story.web, LATER), facts)
    assert set(due.values()) == set(Recheck)
    first, later = story.stages["first"], story.stages["later"]
    hashes = keyed(first.lake.frame("urls"))
    lo, hi = later.rounds
    asked = keyed(
        later.lake.sql(f"SELECT * FROM fetches WHERE kind <> 'robots' AND round BETWEEN {lo} AND {hi}")
    )
    for url, recheck in due.items():
        then, now = hashes[key_form(url)], asked[key_form(url)]
        same = now["body_hash"] == then["content_hash"]
        match recheck:
            case Recheck.NOT_MODIFIED:
                assert (now["status"], now["outcome"]) == (304, "NOT_MODIFIED"), url
            case Recheck.EQUAL:
                assert (now["status"], now["request_validators"], same) == (200, None, True), url
            case Recheck.CHANGED:
                unread = now["outcome"] == "UNSUPPORTED_TYPE"  # nothing of it is taken, so nothing compared
                assert (now["status"], same) == (200, unread), url
            case Recheck.LOST:
                assert now["status"] in (404, 410), url


def test_a_folder_that_robots_txt_opened_is_crawled(story: Story) -> None:
    before, after = story.stages["first"].rows, story.stages["later"].rows
    opened = {host.name for host in story.web.hosts if host.robots.kind is Robots.OPENING}
    freed = {url for url, row in before.items() if row.state == "BLOCKED" and after[url].state == "FETCHED"}
    assert freed
    assert {url.split("/")[2].split(":")[0] for url in freed} <= opened


def test_lost_pages_stay_until_the_evidence_is_in_and_one_that_returns_is_kept(story: Story) -> None:
    rows = [story.stages[name].rows for name in NAMES]
    lost = {url for url, row in rows[1].items() if row.sightings and row.state == "FETCHED"}
    back = {url for url in lost if rows[2][url].sightings == 0}
    gone = {url for url in lost if rows[3][url].state == "GONE"}
    assert lost == back | gone
    assert back
    assert gone
    assert all(rows[2][url].state == "FETCHED" for url in lost)
    deleted = {url for kind, url in story.stages["last"].visit.events if kind == "deleted"}
    assert deleted == {url for url in gone if rows[1][url].text is not None}
    assert deleted
    assert {rows[3][url].outcome for url in gone} == {"NOT_FOUND", "GONE"}


# --- other webs ---------------------------------------------------------------------------------------------


def test_the_calendar_ends_at_the_depth_limit(tmp_path: Path) -> None:
    features = Features.only("trap")
    rules = Rules(max_depth=3)
    web = Web(3, hosts=2, pages=12, features=features, mean_bytes=1_000)
    with crawling(web, tmp_path / "lake", rules) as crawl:
        stage = crawl.visit(crawl.served.web.seed_urls, FIRST)
        facts = Truth(crawl.served.web, FIRST, rules).reach()
        assert set(stage.rows) == set(facts)
        assert max(row.depth for row in stage.rows.values()) == 3
        assert differences(crawl.served.web, stage) == []
        refused = stage.lake.sql("SELECT reason, sum(count) AS count FROM rejects GROUP BY reason")
        assert refused.to_dict("records") == [{"reason": "depth", "count": 1}]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_larger_webs_are_crawled_as_exactly(tmp_path: Path, seed: int) -> None:
    story = told(grown(seed, 60, 1_200), tmp_path / "lake")
    found = {name: differences(story.web, stage) for name, stage in story.stages.items()}
    assert not any(found.values()), found


# --- comparing ----------------------------------------------------------------------------------------------


def differences(web: Web, stage: Stage) -> list[str]:
    """All there are."""
    return [
        *differing_rows(stage),
        *differing_documents(stage),
        *differing_links(stage),
        *differing_events(stage),
        *differing_requests(web, stage),
    ]


def keyed(frame: Any) -> dict[str, dict[str, Any]]:
    """Rows by the key form of their URL; nulls as None. Raises AssertionError if a URL is there twice."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    found = {key_form(row["url"]): row for row in rows}
    assert len(found) == len(rows), "a URL is there in two spellings"
    return found


def _unequal(what: str, found: Iterable[Any], wanted: Iterable[Any]) -> list[str]:
    found, wanted = set(found), set(wanted)
    more = [f"{what} too many: {each}" for each in sorted(found - wanted, key=str)]
    return more + [f"{what} missing: {each}" for each in sorted(wanted - found, key=str)]


def differing_rows(stage: Stage) -> list[str]:
    """Of `urls`: which there are, and their state, outcome, status, depth, origin and target."""
    found = keyed(stage.lake.frame("urls"))
    url_of = {row["url_key"]: key for key, row in found.items()}
    complaints = _unequal("URL", found, map(key_form, stage.rows))
    for url, row in stage.rows.items():
        have = found.get(key_form(url))
        if have is None:
            continue
        pairs = {
            "state": (have["state"], row.state),
            "outcome": (have["last_outcome"], row.outcome),
            "status": (have["http_status"], row.status),
            "depth": (have["depth"], row.depth),
            "found_by": (have["found_by"] if have["found_by"] not in row.found_by else None, None),
            "gone_sightings": (have["gone_sightings"], row.sightings),
            "redirect": (
                url_of.get(have["redirect_to_key"]),
                key_form(row.location) if row.location else None,
            ),
        }
        if looping(stage.rows, url):  # whichever is asked last closes the loop
            pairs = {name: pairs[name] for name in ("depth", "found_by")}
            if have["last_outcome"] not in ("REDIRECT", "REDIRECT_LOOP"):
                complaints.append(f"{url}: {have['last_outcome']}, but it redirects to itself")
        complaints += [f"{url}: {name} {a}, not {b}" for name, (a, b) in pairs.items() if a != b]
    return complaints


def differing_documents(stage: Stage) -> list[str]:
    """Of `pages` and `documents`."""
    pages = keyed(stage.lake.frame("pages"))
    held = {url: row for url, row in stage.rows.items() if row.text is not None}
    complaints = _unequal("document of", pages, map(key_form, held))
    for url, row in held.items():
        have = pages.get(key_form(url))
        text = "" if row.withheld else row.text
        if have is not None and (have["text"], have["title"], bool(have["withheld"])) != (
            text,
            row.title,
            row.withheld,
        ):
            complaints.append(f"{url}: its document is another: {have['title']!r}, not {row.title!r}")
    documents = stage.lake.sql("SELECT document_key, text FROM documents WHERE withheld IS NULL")
    complaints += _unequal("text", documents["text"], stage.texts)
    if documents["document_key"].duplicated().any() or documents["text"].duplicated().any():
        complaints.append("a text is stored twice")
    return complaints


def differing_links(stage: Stage) -> list[str]:
    """Of `links`: (source, target, kind, depth) of those that were admitted in the visit."""
    lo, hi = stage.rounds
    rows = stage.lake.sql(
        "SELECT u.url, l.target_url, l.via, l.depth"
        " FROM links AS l JOIN urls AS u ON u.url_key = l.source_key"
        f" WHERE l.admitted AND l.round BETWEEN {lo} AND {hi}"
    )
    found = [(key_form(url), key_form(to), via, deep) for url, to, via, deep in rows.itertuples(index=False)]
    wanted = []
    for source, links in stage.visit.read.items():
        depth = stage.rows[source].depth + 1
        wanted += [(key_form(source), key_form(to), via, 1 if via in LISTED else depth) for to, via in links]
    for source, to in stage.visit.redirects.items():
        wanted.append((key_form(source), key_form(to), "redirect", stage.rows[source].depth))
    closing = {key_form(url) for url in stage.rows if looping(stage.rows, url)}
    return _unequal(
        "link",
        (link for link in found if link[0] not in closing),
        (link for link in wanted if link[0] not in closing),
    )


def differing_events(stage: Stage) -> list[str]:
    """Of `outbox`: what was told in the visit, and of which document."""
    lo, hi = stage.rounds
    rows = stage.lake.sql(f"SELECT * FROM changes WHERE round BETWEEN {lo} AND {hi}")
    found = [(kind, key_form(url)) for kind, url in zip(rows["kind"], rows["url"], strict=True)]
    complaints = _unequal("event", found, ((kind, key_form(url)) for kind, url in stage.visit.events))
    complaints += [f"event twice: {event}" for event, n in Counter(found).items() if n > 1]
    current = stage.lake.sql(
        f"SELECT count(*) AS wrong FROM outbox AS o JOIN urls AS u USING (url_key)"
        f" WHERE o.round BETWEEN {lo} AND {hi}"
        " AND o.document_key IS DISTINCT FROM CASE WHEN u.withheld IS NULL THEN u.document_key END"
    )
    return complaints + (["events name other documents"] if current["wrong"][0] else [])


def differing_requests(web: Web, stage: Stage) -> list[str]:
    """In the server's log: each URL that could be asked was, once; robots.txt at most once a host."""
    requests = Counter((line["host"], identity_path(line["path"])) for line in stage.log)
    wanted = {url for url in stage.visit.asked if stage.rows[url].fate in ASKED}
    found = {web.url(host, path) for host, path in requests if path not in ROBOTS}
    optional = {url for url in stage.rows if looping(stage.rows, url)}
    complaints = _unequal("request", found - optional, wanted - optional)
    return complaints + [f"asked {n} times: {key}" for key, n in requests.items() if n > 1]
