"""A snapshot is one round, whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crawl.errors import UsageError
from lake import delta, files, rounds, snapshot, tables
from lake.store import Store, connect
from tests.lake import rows

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = connect(tmp_path)
    tables.create_all(made)
    return made


def _row(store: Store, **more: Any) -> Mapping[str, Any]:
    return {
        "opened_at": NOW,
        "driver": "a test",
        "now": NOW,
        "window_s": 600.0,
        "policy_version": "p",
        "versions": snapshot.heads(store),
        **more,
    }


def _round(store: Store, number: int, keys: Sequence[int]) -> rounds.Fence:
    fence = rounds.take_fence(store, {"host": "here"})
    entry = files.write(store, "seen", rows.seen(keys, number))
    rounds.roll_forward(store, rounds.seal(store, fence, number, [entry], [], _row(store)), NOW)
    return fence


def _count(shot: snapshot.Snapshot) -> int:
    return sum(entry.rows for entry in shot.files("seen"))


def test_before_the_first_round_the_heads_are_the_lake(store: Store) -> None:
    shot = snapshot.latest(store)
    assert shot.round == 0
    assert set(shot.versions) == set(tables.SPECS)
    assert shot.files("seen") == []
    assert snapshot.newest(store) is None


def test_each_round_reads_as_it_was(store: Store) -> None:
    for number in (1, 2, 3):
        _round(store, number, range(number))
    assert [_count(snapshot.at(store, number)) for number in (1, 2, 3)] == [1, 3, 6]
    assert _count(snapshot.latest(store)) == 6
    assert snapshot.latest(store).round == 3


def test_what_a_round_has_not_finished_is_not_seen(store: Store) -> None:
    _round(store, 1, [1])
    delta.commit(
        store, "seen", app="round", app_version=2, adds=[files.write(store, "seen", rows.seen([9], 2))]
    )
    assert _count(snapshot.latest(store)) == 1


def test_what_commands_write_between_rounds_is_seen_now_but_not_in_the_past(store: Store) -> None:
    _round(store, 1, [1])
    seed = files.write(store, "seeds", rows.table("seeds", url=["http://a.test/"]))
    delta.commit(store, "seeds", app="seeds", adds=[seed])
    assert snapshot.latest(store).files("seeds") == [seed]
    assert snapshot.at(store, 1).files("seeds") == []


def test_an_upkeep_of_a_round_stands_for_it(store: Store) -> None:
    fence = _round(store, 1, [1])
    old = delta.files(store, "seen")
    new = files.write(store, "seen", rows.seen([1], 1))
    version = delta.commit(store, "seen", app="rewrite", adds=[new], removes=old, rewrite=True)
    rounds.record(store, fence, _row(store, round=1, versions={**snapshot.heads(store), "seen": version}))
    assert snapshot.at(store, 1).files("seen") == [new]
    kinds = snapshot.entries(store, 1)["kind"].to_pylist()
    assert kinds == ["round", "upkeep"]


def test_a_round_that_never_was_is_a_usage_error(store: Store) -> None:
    with pytest.raises(UsageError, match="no round was committed"):
        snapshot.at(store, 1)
    _round(store, 1, [1])
    with pytest.raises(UsageError, match="the newest is 1"):
        snapshot.at(store, 2)


def test_a_table_that_a_later_version_adds_has_no_files_in_older_rounds(store: Store) -> None:
    assert snapshot.Snapshot(store, {}).files("clusters") == []
    assert snapshot.latest(store).load("seen", "links").files("links") == []
