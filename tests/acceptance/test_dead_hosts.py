"""Hosts that die, stall or refuse among as many that are well, and a network that is cut.

Rounds end in time all the same; a host that is down is asked at most once in every round after the first;
nothing that was live is taken for gone, and everything comes back by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from cycles.commands import checking
from cycles.rounds.round import Done, run
from cycles.session.setup import open_lake
from cycles.settings.options import RunOptions
from cycles.words.progress import Progress
from lake.browse import browse
from tests.acceptance.processes import done
from tests.acceptance.watched import Watched, Watching, looping, watching
from tests.web.serve import toml
from tests.web.server import NoNames

#: how hosts are down, by the last part of their names: every second of .ill in another way
ILL = ("silent", "aborts", "refusing", "slow")
START = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = 60.0

pytestmark = pytest.mark.timeout(400)


def pages(site: Watching, host: str) -> list[str]:
    return [site.url(host), site.url(host, "/p1"), site.url(host, "/p2")]


@contextmanager
def no_names() -> Iterator[int]:
    """The port of a name server that knows no name."""

    async def end(transport: asyncio.BaseTransport) -> None:
        transport.close()
        await asyncio.sleep(0)

    with looping() as loop:
        starting = loop.create_datagram_endpoint(NoNames, local_addr=("127.0.0.1", 0))
        transport, _ = asyncio.run_coroutine_threadsafe(starting, loop).result(10)
        try:
            yield int(transport.get_extra_info("sockname")[1])
        finally:
            asyncio.run_coroutine_threadsafe(end(transport), loop).result(10)


@dataclass(slots=True, kw_only=True)
class Story:
    """What the lake knew after each visit, and what was asked in it."""

    site: Watching
    lake: Path
    well: list[str]
    dead: list[str]
    states: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)  # visit → URL → row of `urls`
    fine: dict[str, set[str]] = field(default_factory=dict)  # visit → URLs that brought content
    asked: dict[str, Counter[str]] = field(default_factory=dict)  # visit → host → requests
    rounds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # visit → rows of `rounds`

    def live(self, visit: str) -> set[str]:
        return {url for url, row in self.states[visit].items() if row["state"] == "FETCHED"}


def told(root: Path, workers: str, count: int, patience_s: int) -> Story:
    """The whole story: all is well; half of the hosts go down; the network is cut; all is well again.

    `patience_s`: so long a host may be silent. More hosts on one small server take longer to answer.
    """
    well = [f"h{n}.a{n}.well" for n in range(count)]
    dead = [f"h{n}.a{n}.{'refused' if n % 5 == 4 else 'ill'}" for n in range(count - count // 10)]
    lost = [f"h{n}.a{n}.lost" for n in range(count // 10)]  # names that never were
    hosts = {name: Watched(name=name, pages=2) for name in (*well, *dead)}
    with ExitStack() as stack:
        dns = stack.enter_context(no_names())
        up = stack.enter_context(ExitStack())
        site = up.enter_context(watching(hosts))
        half = up.enter_context(ExitStack())
        half.enter_context(watching(site.hosts, "127.0.0.3", site.port))
        story = Story(site=site, lake=root, well=well, dead=[*dead, *lost])
        _lake(root, story, dns, patience_s)

        def visit(name: str, at: timedelta, **more: Any) -> None:
            _visit(story, name, START + at, workers, **more)

        # intervals double where nothing changed, so each visit finds everything due that is not down
        visit("well", timedelta(0), rounds=2)
        half.close()
        for number, host in enumerate(name for name in dead if name.endswith(".ill")):
            site.hosts[host] = _fallen(hosts[host], ILL[number % len(ILL)])
        visit("down", timedelta(days=9))
        visit("still down", timedelta(days=26))
        up.close()
        visit("cut", timedelta(days=60))
        with watching(hosts, port=site.port) as back, watching(back.hosts, "127.0.0.3", site.port):
            visit("back", timedelta(days=62))
            visit("all back", timedelta(days=64))
    return story


def _fallen(host: Watched, how: str) -> Watched:
    match how:
        case "refusing":
            return replace(host, always=503)
        case "slow":
            return replace(host, latency_s=0.2)
        case _:
            return replace(host, silent=how == "silent", aborts=how == "aborts")


def _lake(root: Path, story: Story, dns: int, patience_s: int) -> None:
    settings = {
        "agent": {"name": "tester", "contact": "mailto:tester@example.org"},
        "egress": {"allow": ["127.0.0.0/8"]},
        "dns": {
            "hosts": {"*.well": "127.0.0.1", "*.ill": "127.0.0.1", "*.refused": "127.0.0.3"},
            "servers": [f"127.0.0.1:{dns}"],
            "timeout": "1s",
        },
        "politeness": {"min_delay": "5ms", "factor": 0.0, "backoff_base": "50ms"},
        "limits": {
            "idle": f"{patience_s}s",
            "connect_timeout": f"{patience_s}s",
            "request_deadline": f"{2 * patience_s}s",
        },
        "round": {"window": f"{WINDOW:g}s"},
        "storage": {"upkeep": False},
    }
    done("init", str(root))
    (root / "crawl.toml").write_text(toml(settings), encoding="utf-8")
    seeds = root / "seeds.txt"
    seeds.write_text("\n".join(story.site.url(host) for host in (*story.well, *story.dead)))
    done("seed", str(root), "--file", str(seeds), "--now", START.isoformat())


def _visit(story: Story, name: str, now: datetime, workers: str, *, rounds: int = 1) -> None:
    """Some rounds at that planning time, and what the lake knows then."""
    options = RunOptions(now=now, scheduler=workers, rounds=rounds)
    made: list[Done] = run(str(story.lake), options, Progress(StringIO()))
    lake = browse(story.lake, now)
    known = lake.sql("SELECT url, host, state, last_outcome, gone_sightings FROM urls").to_dict("records")
    story.states[name] = {row["url"]: row for row in known}
    numbers = ", ".join(str(each.round) for each in made)
    of_these = f"FROM fetches WHERE round IN ({numbers})"
    fine = lake.sql(f"SELECT url {of_these} AND kind = 'page' AND outcome IN ('OK', 'NOT_MODIFIED')")
    story.fine[name] = set(fine["url"])
    # a robots.txt that is read is asked beside a canary
    asked = lake.sql(
        f"SELECT host {of_these} AND NOT (kind = 'robots' AND coalesce(status, 0) IN (200, 404))"
    )
    story.asked[name] = Counter(asked["host"])
    rounds = lake.sql(f"SELECT window_s, stage_ms FROM rounds WHERE kind = 'round' AND round IN ({numbers})")
    story.rounds[name] = rounds.to_dict("records")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Story:
    return told(tmp_path_factory.mktemp("dead") / "lake", workers, 40, 1)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Story:
    return told(tmp_path_factory.mktemp("dead") / "lake", workers, 1_000, 8)


@pytest.fixture(params=["few", pytest.param("many", marks=pytest.mark.slow)])
def story(request: pytest.FixtureRequest) -> Story:
    found: Story = request.getfixturevalue(request.param)
    return found


def ill(story: Story) -> set[str]:
    """Hosts that are down, those aside that only became slow."""
    return {host for host in story.dead if story.site.hosts.get(host, Watched(name="")).latency_s == 0}


def urls(story: Story, hosts: set[str] | list[str]) -> set[str]:
    return {url for host in hosts if not host.endswith(".lost") for url in pages(story.site, host)}


def test_all_was_well_before(story: Story) -> None:
    assert story.fine["well"] == urls(story, [*story.well, *story.dead])


def test_rounds_end_within_their_window(story: Story) -> None:
    for rows in story.rounds.values():
        for row in rows:
            # what was under way at the end of the window may take its deadline
            assert json.loads(row["stage_ms"])["fetch"] / 1e3 <= row["window_s"] + 10


@pytest.mark.parametrize("visit", ["down", "still down"])
def test_hosts_that_are_well_are_crawled_whole_beside_the_dead(story: Story, visit: str) -> None:
    assert urls(story, story.well) <= story.fine[visit]
    slow = set(story.dead) - ill(story)
    assert slow
    assert urls(story, slow) <= story.fine[visit]


def test_a_dead_host_is_asked_once_in_every_round_after_the_first(story: Story) -> None:
    first, second = (story.asked[visit] for visit in ("down", "still down"))
    dead = ill(story)
    assert max(first[host] for host in dead) <= 4  # three errors open its circuit, and one canary
    assert Counter(second[host] for host in dead).keys() <= {0, 1}
    assert sum(second[host] for host in dead) > len(dead) / 2


@pytest.mark.parametrize("visit", ["down", "still down", "cut", "back", "all back"])
def test_nothing_that_was_live_is_taken_for_gone(story: Story, visit: str) -> None:
    assert story.live(visit) >= story.live("well")
    assert not any(row["gone_sightings"] for row in story.states[visit].values())


def test_with_the_network_cut_nothing_comes_and_nothing_is_lost(story: Story) -> None:
    assert story.fine["cut"] == set()
    states = Counter(row["state"] for row in story.states["cut"].values())
    assert states.keys() <= {"FETCHED", "FAILED_RETRYABLE", "DISCOVERED"}


def test_everything_comes_back_by_itself(story: Story) -> None:
    back = story.fine["back"] | story.fine["all back"]
    assert back == urls(story, [*story.well, *story.dead])


def test_the_lake_stays_right(story: Story) -> None:
    lake = open_lake(str(story.lake), {})
    assert [found for found in checking.check(lake, START) if not found.holds] == []
