"""Two at once: of two drivers one runs; two upkeeps double nothing, and what is kept reads whole."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from crawl.schema import TABLES
from tests.acceptance.processes import Command, crawl, done
from tests.acceptance.rehearsal import FIRST, Rehearsal, checked, equal

Fact = tuple[int, str]

#: what the runs say, which upkeep must not change
_RUNS = {
    "seen": "SELECT * FROM seen QUALIFY row_number() OVER (PARTITION BY url_key ORDER BY round DESC) = 1",
    "hosts": "SELECT * FROM hosts QUALIFY row_number() OVER (PARTITION BY host_key ORDER BY round DESC) = 1",
    "signals": "SELECT url_key, sum(in_links), min(best_depth), max(best_score) FROM signals GROUP BY ALL",
}
#: the other tables, but for the one in which upkeep makes its entry
_PLAIN = tuple(name for name in TABLES if name not in _RUNS and name != "rounds")


def race(rehearsal: Rehearsal) -> None:
    """Two drivers, started together on a lake that has never been crawled."""
    lake = rehearsal.copy(rehearsal.seeded())
    with rehearsal.run(lake, FIRST) as one, rehearsal.run(lake, FIRST) as other:
        codes = [one.ended(), other.ended()]
        said = f"{one.text()}\n---\n{other.text()}"
        assert sorted(codes) == [0, 3], said
        winner, loser = (one, other) if codes[0] == 0 else (other, one)
        names(loser, winner)
    equal(lake, rehearsal.after(1))


def names(loser: Command, winner: Command) -> None:
    """The last words of the one that stopped say which process, on which machine, holds the lake."""
    last = loser.text()
    assert re.search(rf"\b{winner.pid}\b", last), last
    assert socket.gethostname() in last, last


@pytest.mark.timeout(180)
def test_of_two_drivers_started_together_one_runs_and_the_other_names_it(rehearsal: Rehearsal) -> None:
    for _ in range(3):
        race(rehearsal)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_of_two_drivers_started_together_one_runs_twenty_times(rehearsal: Rehearsal) -> None:
    for _ in range(20):
        race(rehearsal)


@pytest.mark.timeout(240)
def test_two_upkeeps_at_once_double_nothing_and_every_kept_round_reads_whole(rehearsal: Rehearsal) -> None:
    lake = rehearsal.copy(rehearsal.after(3))
    told = {number: facts(lake, number) for number in (1, 2, 3)}
    with crawl("upkeep", str(lake)) as one, crawl("upkeep", str(lake)) as other:
        codes = sorted((one.ended(), other.ended()))
        assert codes in ([0, 0], [0, 3]), f"{one.text()}\n---\n{other.text()}"
    doubles_nothing(facts(lake), told[3])
    done("upkeep", str(lake))  # with vacuum: the first may have left something to the second
    doubles_nothing(facts(lake), told[3])
    assert {number: facts(lake, number) for number in (1, 2)} == {number: told[number] for number in (1, 2)}
    checked(lake)
    rehearsal.finish(lake, "2026-03-01T00:00:00Z")  # and the crawl goes on
    checked(lake)


def doubles_nothing(now: Mapping[str, Fact], then: Mapping[str, Fact]) -> None:
    """Rows of runs are the same, however many files they are in; of others some may have been let go."""
    assert {name: now[name] for name in _RUNS} == {name: then[name] for name in _RUNS}
    for name, (count, digest) in now.items():
        assert count <= then[name][0], name
        assert count < then[name][0] or digest == then[name][1], name


def facts(lake: Path, number: int | None = None) -> dict[str, Fact]:
    """Of each table as of a round: how many rows, and a sum over all they say (so each is read whole)."""
    question = " UNION ALL ".join(
        f"SELECT '{name}' AS name, count(*) AS n, coalesce(bit_xor(hash(t)), 0)::VARCHAR AS h"
        f" FROM ({rows}) AS t"
        for name, rows in (_RUNS | {name: f"SELECT * FROM {name}" for name in _PLAIN}).items()
    )
    of = ("--round", str(number)) if number else ()
    rows = json.loads(done("sql", str(lake), question, *of, "--format", "json"))
    return {row["name"]: (row["n"], row["h"]) for row in rows}
