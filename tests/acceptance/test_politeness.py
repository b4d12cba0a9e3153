"""A crawler keeps its distance: proven from the servers' log and from the lake; a planted violation is found.

Hosts with every kind of gap (floor, Crawl-delay, slow answers, 429 and 503 with and without Retry-After,
redirects of pages and of robots.txt, hosts with one clock) are crawled by two workers in some rounds. What
each gap had to be is worked out here, from what the server saw and said; in the lake it must be no less.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from crawl.politeness import retry_after
from cycles.commands import checking
from cycles.session.setup import open_lake
from lake import snapshot
from lake.browse import browse
from lake.store import connect
from tests.acceptance.processes import done
from tests.acceptance.watched import Line, Watched, Watching, watching
from tests.lake import lakes
from tests.web.serve import toml

FLOOR, FACTOR, BACKOFF = 0.05, 4.0, 0.25
#: what clocks are granted
TOLERANCE = 0.002
DATES = ("2026-01-01", "2026-01-09")
MS = timedelta(milliseconds=1)

pytestmark = pytest.mark.timeout(240)


def host(number: int, pages: int) -> Watched:
    """One of ten kinds."""
    name = f"h{number}.d{number}.test"
    kinds: list[dict[str, Any]] = [
        {},
        {"crawl_delay": "0.35"},
        {"crawl_delay": "1"},
        {"latency_s": 0.06},
        {"pushes": {3: (429, "1")}},
        {"pushes": {3: (429, None), 4: (429, None)}},
        {"pushes": {2: (503, "date:1")}},
        {"pushes": {2: (503, None), 3: (500, "1")}},
        {"redirects": True, "crawl_delay": "0.2"},
        {"crawl_delay": "0.15", "latency_s": 0.03, "pushes": {4: (429, None)}},
    ]
    return Watched(name=name, pages=pages, **kinds[number % len(kinds)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """The lake, what the server saw, and which hosts have one clock."""

    root: Path
    site: Watching
    groups: dict[str, list[str]]
    rows: list[dict[str, Any]]  # of `fetches`, in order


def crawled(root: Path, hosts: int, pages: int, dates: Sequence[str], workers: str) -> Iterator[Crawled]:
    """Crawl so many hosts of all kinds until idle at each of these times, by the command."""
    kinds = [host(number, pages) for number in range(hosts)]
    joined = [each.name for each in kinds[:2]] + [kinds[-1].name]
    settings = {
        "agent": {"name": "tester", "contact": "mailto:tester@example.org"},
        "egress": {"allow": ["127.0.0.0/8"]},
        "dns": {"hosts": {"*.test": "127.0.0.1"}},
        "politeness": {
            "min_delay": f"{FLOOR * 1000:g}ms",
            "factor": FACTOR,
            "backoff_base": f"{BACKOFF * 1000:g}ms",
            "groups": {"together": joined},
        },
        "storage": {"upkeep": False},
    }
    with watching({each.name: each for each in kinds}) as site:
        done("init", str(root))
        (root / "crawl.toml").write_text(toml(settings), encoding="utf-8")
        done("seed", str(root), *(site.url(each.name) for each in kinds), "--now", dates[0])
        for now in dates:
            done("run", str(root), "--until-idle", "--now", now, "--scheduler", workers, "--window", "60s")
        asked = browse(root).sql("SELECT * FROM fetches ORDER BY started_at, finished_at")
        rows: list[dict[str, Any]] = pa.Table.from_pandas(asked).to_pylist()
        yield Crawled(root=root, site=site, groups={"together": joined}, rows=rows)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Iterator[Crawled]:
    yield from crawled(tmp_path_factory.mktemp("polite") / "lake", 10, 3, DATES[:1], workers)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Iterator[Crawled]:
    yield from crawled(tmp_path_factory.mktemp("polite") / "lake", 200, 12, DATES, workers)


@pytest.fixture(params=["few", pytest.param("many", marks=pytest.mark.slow)])
def made(request: pytest.FixtureRequest) -> Crawled:
    found: Crawled = request.getfixturevalue(request.param)
    return found


# --- the server's log ---------------------------------------------------------------------------------------


def demanded(lines: list[Line], site: Watching) -> list[float]:
    """Seconds that each request of one host demands until the next, by what the server saw and said."""
    rules, faults, found = False, 0, []
    for line in lines:
        of = site.hosts[line.host]
        rules |= line.status == 200 and line.path in ("/robots.txt", "/rules.txt")
        wait = max(FLOOR, FACTOR * (line.end - line.start))
        if rules and of.crawl_delay is not None:
            wait = max(wait, float(of.crawl_delay))
        faults = faults + 1 if line.status >= 429 else 0
        if faults:
            wait = max(wait, BACKOFF * 2**faults)
            if line.retry_after is not None:
                # the answer was read a little later than it was sent, so a date is nearer by then
                at = datetime.fromtimestamp(line.end).astimezone()
                slack = 0.1 if ":" in line.retry_after else 0.0
                wait = max(wait, (retry_after(line.retry_after, at) or 0.0) - slack)
        found.append(wait)
    return found


def by_host(made: Crawled) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in made.site.log:
        found[line.host].append(line)
    return found


def test_by_the_servers_own_log_no_request_came_before_its_time(made: Crawled) -> None:
    early = []
    for host, lines in by_host(made).items():
        for before, line, wait in zip(lines, lines[1:], demanded(lines, made.site), strict=False):
            if line.start - before.end < wait - TOLERANCE:
                early.append((host, before, line, wait))
    assert early == []


def test_hosts_with_one_clock_were_asked_one_after_the_other(made: Crawled) -> None:
    for members in made.groups.values():
        lines = [line for line in made.site.log if line.host in members]
        assert {line.host for line in lines} == set(members)
        delay, early = 0.0, []
        for before, line in pairwise(lines):
            if before.status == 200 and before.path in ("/robots.txt", "/rules.txt"):
                delay = max(delay, float(made.site.hosts[before.host].crawl_delay or 0.0))
            wait = max(FLOOR, FACTOR * (before.end - before.start), delay)
            if line.start - before.end < wait - TOLERANCE:
                early.append((before, line, wait))
        assert early == []


def test_every_kind_of_gap_was_met_and_every_page_was_asked(made: Crawled) -> None:
    rules = {row["gap_rule"] for row in made.rows}
    # on a busy machine answers take long, and the factor is all that is met of floor and recovery
    assert rules >= {"none", "crawl_delay", "factor", "backoff", "retry_after"}
    asked = {(line.host, line.path) for line in made.site.log}
    pages = {(host.name, f"/p{n}") for host in made.site.hosts.values() for n in range(1, host.pages + 1)}
    assert pages <= asked


# --- the lake -----------------------------------------------------------------------------------------------


def test_the_lake_tells_the_same_requests_and_gaps_as_the_servers_log(made: Crawled) -> None:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in made.rows:
        rows[row["host"]].append(row)
    for host, lines in by_host(made).items():
        told = rows[host]
        assert [row["status"] for row in told] == [line.status for line in lines]
        for before, line, row in zip(lines, lines[1:], told[1:], strict=False):
            assert line.start - before.end >= row["required_gap_ms"] / 1e3 - TOLERANCE, (before, line, row)
        for wait, row in zip(demanded(lines, made.site), told[1:], strict=False):
            # what the server saw of a request is a little less than what its client did
            assert row["required_gap_ms"] >= wait * 1e3 - 1, (host, row)


def test_a_rate_never_rises_after_an_answer_429(made: Crawled) -> None:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in made.rows:
        rows[row["host"]].append(row)
    pushed = [
        (row, after) for told in rows.values() for row, after in pairwise(told) if row["status"] in (429, 503)
    ]
    assert pushed
    assert all(after["required_gap_ms"] >= row["required_gap_ms"] for row, after in pushed)


def test_the_lake_passes_every_check(made: Crawled) -> None:
    assert failing(made.root) == set()


# --- violations planted in a copy ---------------------------------------------------------------------------


def failing(root: Path) -> set[str]:
    """Names of the checks that fail."""
    lake = open_lake(str(root), {})
    return {found.name for found in checking.check(lake, datetime.now(UTC)) if not found.holds}


def planted(made: Crawled, place: Path, change: Callable[[pa.Table], pa.Table]) -> set[str]:
    """Names of the checks that fail in a copy of the lake whose `fetches` were changed."""
    root = place / "copy"
    shutil.copytree(made.root, root)
    table = deltalake.DeltaTable(str(root / "fetches"))
    rows = pa.table(table.to_pyarrow_table()).sort_by([("started_at", "ascending")])
    deltalake.write_deltalake(table, change(rows), mode="overwrite")
    store = connect(root)
    newest = snapshot.newest(store)
    assert newest is not None
    lakes.add_entry(
        store,
        newest["round"],
        {**snapshot.latest(store).versions, "fetches": table.version()},
        now=newest["now"],
        kind="upkeep",
        fence=newest["fence"],
        committed_at=newest["committed_at"] + MS,
    )
    return failing(root)


def changed(rows: pa.Table, at: int, **values: Any) -> pa.Table:
    """The rows with some columns of one changed."""
    for column, value in values.items():
        column_values = rows[column].to_pylist()
        column_values[at] = value
        place = rows.column_names.index(column)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, pa.array(column_values, field.type))
    return rows


def shifted(rows: pa.Table, at: int, start: datetime, **values: Any) -> pa.Table:
    """The rows with one moved in time."""
    row = rows.slice(at, 1).to_pylist()[0]
    end = start + (row["finished_at"] - row["started_at"])
    return changed(rows, at, started_at=start, finished_at=end, **values)


def pair(
    rows: pa.Table, wanted: Callable[[dict[str, Any], dict[str, Any]], bool]
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Two requests, one after the other, to one host or two that share a clock; the place of the second."""
    last: dict[str, dict[str, Any]] = {}
    for at, row in enumerate(rows.to_pylist()):
        clock = row["politeness_group"] or row["host"]
        if clock in last and wanted(last[clock], row):
            return last[clock], row, at
        last[clock] = row
    raise AssertionError("no such requests")


def alone(before: dict[str, Any], row: dict[str, Any]) -> bool:
    return row["politeness_group"] is None


def test_a_request_moved_50_ms_too_early_is_found(few: Crawled, tmp_path: Path) -> None:
    def change(rows: pa.Table) -> pa.Table:
        before, row, at = pair(rows, alone)
        return shifted(rows, at, before["finished_at"] + (row["required_gap_ms"] - 50) * MS)

    assert planted(few, tmp_path, change) == {"politeness"}


def test_a_request_too_near_to_one_of_a_host_with_the_same_clock_is_found(
    few: Crawled, tmp_path: Path
) -> None:
    def change(rows: pa.Table) -> pa.Table:
        before, row, at = pair(rows, lambda before, row: before["host"] != row["host"])
        return shifted(rows, at, before["finished_at"] + (row["group_gap_ms"] - 50) * MS)

    assert "politeness-groups" in planted(few, tmp_path, change)


def test_a_gap_recorded_as_less_than_an_answer_429_demanded_is_found(few: Crawled, tmp_path: Path) -> None:
    """Who forges the gap along with the time is found by what the answer before asked for."""

    def change(rows: pa.Table) -> pa.Table:
        before, _, at = pair(rows, lambda before, row: alone(before, row) and before["status"] == 429)
        return shifted(rows, at, before["finished_at"] + 60 * MS, required_gap_ms=60.0)

    assert planted(few, tmp_path, change) == {"gap-recorded"}


def test_a_request_that_is_missing_is_found(few: Crawled, tmp_path: Path) -> None:
    def change(rows: pa.Table) -> pa.Table:
        _, _, at = pair(rows, alone)
        return rows.filter(pc.not_equal(pa.array(range(len(rows))), at))

    assert "requests-kept" in planted(few, tmp_path, change)
