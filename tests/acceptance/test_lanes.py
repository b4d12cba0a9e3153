"""A host of one's own that may have several requests open: by the commands, the server's log and the lake.

Of four hosts, three may have requests open at once; one of these states a Crawl-delay, one answers 429. That
everything holds is seen by the server and proven from the lake, in which violations are planted.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from cycles import cli
from lake.browse import browse
from tests.acceptance.processes import crawl, done, until
from tests.acceptance.test_politeness import Crawled, changed, failing, planted, shifted
from tests.acceptance.watched import Line, Watched, Watching, watching
from tests.web.serve import toml

FLOOR, MS, TOLERANCE = 0.1, 1e-3, 0.002
IN_FLIGHT = {"wide.a.test": 4, "told.b.test": 4, "pushed.c.test": 3}
KINDS = [
    Watched(name="wide.a.test", pages=12, latency_s=0.25),
    Watched(name="told.b.test", pages=4, crawl_delay="0.15"),
    Watched(name="pushed.c.test", pages=9, latency_s=0.05, pushes={4: (429, "1")}),
    Watched(name="one.d.test", pages=3, latency_s=0.05),
]

pytestmark = pytest.mark.timeout(240)


def typed(*arguments: object) -> str:
    """A command, run in this process: what it prints. Raises AssertionError if it fails."""
    result = CliRunner().invoke(cli.command, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@contextmanager
def prepared(root: Path, kinds: Sequence[Watched]) -> Iterator[Watching]:
    """A lake with the pages of these hosts for seeds, while they are served."""
    settings: dict[str, dict[str, Any]] = {
        "agent": {"name": "tester", "contact": "mailto:tester@example.org"},
        "egress": {"allow": ["127.0.0.0/8"]},
        "dns": {"hosts": {"*.test": "127.0.0.1"}},
        "politeness": {"min_delay": f"{FLOOR * 1000:g}ms", "factor": 0.5, "in_flight": IN_FLIGHT},
        "storage": {"upkeep": False},
    }
    with watching({each.name: each for each in kinds}) as site:
        typed("init", root)
        (root / "crawl.toml").write_text(toml(settings), encoding="utf-8")
        urls = [site.url(each.name, f"/p{n}") for each in kinds for n in range(1, each.pages + 1)]
        typed("seed", root, *urls, "--now", "2026-01-01")
        yield site


def asked(root: Path) -> list[dict[str, Any]]:
    found = browse(root).sql("SELECT * FROM fetches ORDER BY started_at, finished_at")
    rows: list[dict[str, Any]] = pa.Table.from_pandas(found).to_pylist()
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The lake, what the server saw, and what was foreseen."""

    lake: Crawled
    plan: dict[str, Any]

    def lines(self, host: str) -> list[Line]:
        return sorted((line for line in self.lake.site.log if line.host == host), key=lambda line: line.start)

    def lanes(self, host: str) -> dict[int | None, list[dict[str, Any]]]:
        found = defaultdict(list)
        for row in self.lake.rows:
            if row["host"] == host:
                found[row["lane"]].append(row)
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Iterator[Made]:
    root = tmp_path_factory.mktemp("lanes") / "lake"
    with prepared(root, KINDS) as site:
        plan = json.loads(typed("plan", root, "--now", "2026-01-01", "--format", "json"))
        typed("run", root, "--now", "2026-01-01", "--scheduler", workers)
        yield Made(lake=Crawled(root=root, site=site, groups={}, rows=asked(root)), plan=plan)


def most_open(lines: Sequence[Line]) -> int:
    return max(sum(other.start <= line.start < other.end for other in lines) for line in lines)


def test_four_are_open_at_once_and_never_five_each_lane_with_its_gap(made: Made) -> None:
    lines = made.lines("wide.a.test")
    assert len({line.path for line in lines}) == len(lines) == 13
    assert most_open(lines) == 4
    lanes = made.lanes("wide.a.test")
    assert set(lanes) == {0, 1, 2, 3}
    for rows in lanes.values():
        for before, row in pairwise(rows):
            gap = (row["started_at"] - before["finished_at"]).total_seconds()
            assert gap >= row["required_gap_ms"] * MS >= FLOOR
    assert most_open(made.lines("one.d.test")) == 1
    assert set(made.lanes("one.d.test")) == {None}


def test_a_crawl_delay_is_seen_in_full_and_a_429_by_all_lanes(made: Made) -> None:
    for before, line in pairwise(made.lines("told.b.test")):
        assert line.start - before.end >= 0.15 - TOLERANCE
    lines = made.lines("pushed.c.test")
    (pushed,) = [line for line in lines if line.status == 429]
    probe, *others = [line for line in lines if line.start > pushed.end + 0.01]
    assert probe.start - pushed.end >= 1 - TOLERANCE
    assert others
    assert all(line.start - probe.end >= FLOOR - TOLERANCE for line in others)


def test_the_plan_counts_lanes_and_the_rows_of_hosts_tell_them(made: Made) -> None:
    wide = next(cap for cap in made.plan["caps"] if cap["host"] == "wide.a.test")
    # nothing was known of it but its gap: of 13 requests, the last is the fourth of its lane
    assert wide["seconds"] == pytest.approx(3 / (wide["per_second"] / 4) + 0.25, abs=0.2)
    assert made.plan["cap"] == "host"
    rows = browse(made.lake.root).sql("SELECT host, max_in_flight FROM hosts ORDER BY host")
    told = dict(zip(rows["host"], rows["max_in_flight"], strict=True))
    assert told == {**IN_FLIGHT, "one.d.test": 1}


def test_the_lake_passes_every_check(made: Made) -> None:
    assert failing(made.lake.root) == set()


# --- violations planted in a copy ---------------------------------------------------------------------------

Rows = list[dict[str, Any]]


def plant(made: Made, place: Path, host: str, move: Callable[[Rows, int], dict[str, Any] | None]) -> set[str]:
    """The checks that fail once `move` says of a row (by its place among the host's) what it is to be."""

    def change(rows: pa.Table) -> pa.Table:
        all_rows = rows.to_pylist()
        at = [i for i, row in enumerate(all_rows) if row["host"] == host]
        of_host = [all_rows[i] for i in at]
        for n, i in enumerate(at):
            values = move(of_host, n)
            if values is not None:
                start = values.pop("started_at", None)
                return changed(rows, i, **values) if start is None else shifted(rows, i, start, **values)
        raise AssertionError("no such request")

    return planted(made.lake, place, change)


def before(rows: Rows, n: int) -> dict[str, Any] | None:
    """The last request on the same lane."""
    return next((row for row in reversed(rows[:n]) if row["lane"] == rows[n]["lane"]), None)


def test_a_request_too_early_by_the_clock_of_its_lane_is_found(made: Made, tmp_path: Path) -> None:
    def move(rows: Rows, n: int) -> dict[str, Any] | None:
        last = before(rows, n)
        if last is None or n < 7:
            return None
        return {"started_at": last["finished_at"] + (rows[n]["started_at"] - last["finished_at"]) / 2}

    assert "politeness" in plant(made, tmp_path, "wide.a.test", move)


def test_a_fifth_request_at_a_time_is_found_and_one_on_a_lane_that_there_is_none_of(
    made: Made, tmp_path: Path
) -> None:
    def fifth(rows: Rows, n: int) -> dict[str, Any] | None:
        if n < len(rows) - 1:
            return None
        four = rows[1:5]  # the first is that of robots.txt
        return {"started_at": max(row["started_at"] for row in four), "required_gap_ms": 0.0}

    assert "lanes-open" in plant(made, tmp_path / "fifth", "wide.a.test", fifth)
    other = plant(made, tmp_path / "other", "wide.a.test", lambda rows, n: {"lane": 4} if n == 5 else None)
    assert "lanes-open" in other


def test_a_request_on_another_lane_during_the_wait_that_a_429_asks_for_is_found(
    made: Made, tmp_path: Path
) -> None:
    def move(rows: Rows, n: int) -> dict[str, Any] | None:
        hit = next(row for row in rows if row["status"] == 429)
        if rows[n]["started_at"] < hit["finished_at"] or rows[n]["lane"] == hit["lane"]:
            return None
        last = before(rows, n)
        gap = 0.0 if last is None else (hit["finished_at"] - last["finished_at"]).total_seconds() * 1e3
        start = hit["finished_at"] + (rows[n]["started_at"] - hit["finished_at"]) / 4
        return {"started_at": start, "required_gap_ms": max(gap, FLOOR * 1e3)}

    assert "lanes-wait" in plant(made, tmp_path, "pushed.c.test", move)


def test_beside_a_request_that_knew_of_a_crawl_delay_none_may_be_open(made: Made, tmp_path: Path) -> None:
    def move(rows: Rows, n: int) -> dict[str, Any] | None:
        if n < 2:
            return None
        return {"started_at": rows[n - 1]["started_at"], "lane": 1 + (rows[n - 1]["lane"] or 0) % 3}

    assert "lanes-open" in plant(made, tmp_path, "told.b.test", move)


# --- kill -9 ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_with_lanes_under_way_each_waits_a_full_gap_and_only_those_are_asked_again(
    tmp_path: Path,
) -> None:
    root = tmp_path / "lake"
    kinds = [Watched(name="wide.a.test", pages=60, latency_s=0.3)]
    with prepared(root, kinds) as site:
        with crawl("run", str(root), "--now", "2026-01-01") as command:
            until(lambda: len(site.log) >= 12, 60, "some pages")
            for worker in command.workers():
                worker.kill()
            command.kill()
            broken = time.time()
        began = len(site.log)
        done("run", str(root), "--now", "2026-01-01")
        lines = sorted(site.log, key=lambda line: line.start)
        again = len(lines) - len({line.path for line in lines})
        assert again <= 4
        assert most_open(lines) <= 4
        later = [line for line in lines[began:] if line.start > broken]
        assert later[0].start >= broken + FLOOR
        assert failing(root) == set()
        assert len(asked(root)) == 61
