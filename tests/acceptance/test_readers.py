"""Whoever reads a round, by whatever program, reads the same: every table, a filter on every column.

The lake is the crawled one with a pause in its books, and upkeep has since merged and thinned its newest
round: the older rounds must read as they were.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from crawl.schema import TABLES
from cycles.commands.pausing import pause, resume
from cycles.rounds.upkeep import upkeep
from cycles.session.setup import open_lake
from tests.acceptance.readers import READERS, Filter, Pinned, Reader, ask

ROUNDS = (1, 2, 3)
NOW = datetime(2026, 1, 11, tzinfo=UTC)

#: a value no row has, for a column that is null throughout
_NOWHERE: dict[Any, Any] = {
    pa.int64(): 1,
    pa.int32(): 1,
    pa.float64(): 1.5,
    pa.string(): "nowhere",
    pa.bool_(): True,
    pa.timestamp("us", tz="UTC"): NOW,
    pa.date32(): date(1970, 1, 1),
    pa.binary(): b"\x00",
}


@pytest.fixture(scope="module")
def lake(crawled: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crawled lake, a host of which was paused for a while, after an upkeep that found much to do."""
    root = tmp_path_factory.mktemp("read") / "lake"
    shutil.copytree(crawled, root)
    with (root / "crawl.toml").open("a") as settings:
        settings.write("\n[storage]\ntier_ratio = 2\n")
    opened = open_lake(str(root), {})
    pause(opened, "nobody.test", reason="its owner asked", who="ada", now=NOW)
    resume(opened, "nobody.test", who="bob", now=NOW)
    assert "of seen" in upkeep(str(root), lambda _: None)
    return root


@pytest.fixture(scope="module")
def opened(lake: Path) -> dict[tuple[str, int], list[Reader]]:
    """Every table at every round, opened by every reader."""
    found = {(table, round_): Pinned.find(lake, table, round_) for table in TABLES for round_ in ROUNDS}
    return {at: [reader(pinned) for reader in READERS] for at, pinned in found.items()}


def filters(pinned: Pinned) -> list[Filter | None]:
    """No filter; one for null and one for a value that some row has, on every column (lists: null alone)."""
    rows = DeltaTable(pinned.path, version=pinned.version).to_pyarrow_table()
    if pinned.above is not None:
        rows = rows.filter(pc.field("round") <= pinned.above)
    found: list[Filter | None] = [None]
    for column in TABLES[pinned.table]:
        found.append(Filter(column.name))
        if not pa.types.is_list(column.type):
            values = rows[column.name].drop_null()
            found.append(
                Filter(
                    column.name, values[len(values) // 2].as_py() if len(values) else _NOWHERE[column.type]
                )
            )
    return found


@pytest.mark.parametrize("round_", ROUNDS)
@pytest.mark.parametrize("table", TABLES)
def test_every_reader_gives_the_same_answer_to_a_filter_on_any_column(
    opened: dict[tuple[str, int], list[Reader]], table: str, round_: int
) -> None:
    readers = opened[table, round_]
    asked = filters(readers[0].pinned)
    by_sql, *others = (reader.answers(asked) for reader in readers)
    for question, told in zip(asked, by_sql, strict=True):
        assert told or not by_sql[0] or question is None or question.value in (None, *_NOWHERE.values())
    for reader, answers in zip(readers[1:], others, strict=True):
        for question, told, mine in zip(asked, by_sql, answers, strict=True):
            assert mine == told, f"{type(reader).__name__}: {table} where {question and question.sql}"


@pytest.mark.parametrize("round_", ROUNDS)
def test_a_round_shows_the_lake_as_that_round_left_it(lake: Path, crawled: str, round_: int) -> None:
    """What it shows follows from the rows that the rounds up to it wrote, and no later row is there."""
    rows = DeltaTable(Path(crawled) / "seen").to_pyarrow_table().to_pylist()  # before upkeep: every round's
    rows = [row for row in rows if row["round"] <= round_]
    newest = {row["url_key"]: row for row in sorted(rows, key=lambda row: row["round"])}
    states = ask(lake, "SELECT state, count(*) AS urls FROM urls GROUP BY state", round_)
    assert dict(zip(*states.to_pydict().values(), strict=True)) == Counter(
        r["state"] for r in newest.values()
    )

    entries = ask(
        lake, "SELECT round, counts FROM rounds WHERE kind = 'round' ORDER BY round", round_
    ).to_pylist()
    assert [entry["round"] for entry in entries] == list(range(1, round_ + 1))
    counts = [json.loads(entry["counts"]) for entry in entries]
    for table, count in (("fetches", "requests"), ("links", "links")):
        stored = ask(lake, f"SELECT count(*) AS n, max(round) AS newest FROM {table}", round_).to_pylist()[0]
        assert stored == {"n": sum(each[count] for each in counts), "newest": round_}
    assert len(newest) == sum(each["discovered"] for each in counts)


@pytest.mark.parametrize("round_", [ROUNDS[0], ROUNDS[-1]])
def test_upkeep_changes_nothing_that_a_round_shows(lake: Path, crawled: str, round_: int) -> None:
    """Older rounds keep every row. In the newest, runs keep the newest row of a key, and old events go."""
    if round_ < ROUNDS[-1]:
        same = TABLES.keys() - {"rounds"}
    else:
        same = {"seeds", "fetches", "frontier", "documents", "links", "rejects", "robots"}
    for table in (*sorted(same), "urls", "pages", "host_health"):
        statement = f"SELECT * FROM {table} ORDER BY ALL"
        assert ask(lake, statement, round_).equals(ask(Path(crawled), statement, round_)), table
