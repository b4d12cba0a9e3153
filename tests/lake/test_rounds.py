"""The protocol of rounds as a driver walks it: it holds no state, so any driver goes on where one fell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawl.errors import FenceLost, LakeBusy
from lake import delta, files, rounds, snapshot
from lake.entries import FileEntry
from lake.store import Store
from tests.lake import lakes, rows
from tests.lake.driver import row


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return lakes.new(tmp_path)


def start(store: Store, name: str) -> rounds.Fence:
    """A driver that found the last one gone."""
    return rounds.take_fence(store, {"host": name}, after=rounds.holder(store).number)


def work(store: Store, number: int, by: str) -> list[FileEntry]:
    return [files.write(store, "seen", rows.seen([number], number, found_by=[by]))]


def found_by(store: Store) -> dict[int, str]:
    shot = snapshot.latest(store)
    return {
        row["url_key"]: row["found_by"]
        for entry in shot.files("seen")
        for row in files.read(store, entry).to_pylist()
    }


def test_rounds_follow_each_other(store: Store) -> None:
    for number in (1, 2, 3):
        fence = start(store, f"d{number}")
        assert None is rounds.open_seal(store)
        sealed = rounds.seal(store, fence, number, work(store, number, f"d{number}"), [], row(store))
        rounds.roll_forward(store, sealed)
    assert {1: "d1", 2: "d2", 3: "d3"} == found_by(store)
    assert [1, 2, 3] == snapshot.entries(store)["round"].to_pylist()
    assert "d3" == rounds.holder(store).who["host"]


def test_a_driver_that_fell_before_the_seal_leaves_nothing_and_the_next_does_the_round(store: Store) -> None:
    start(store, "first")
    work(store, 1, "first")
    fence = start(store, "second")
    assert None is rounds.open_seal(store)
    rounds.roll_forward(store, rounds.seal(store, fence, 1, work(store, 1, "second"), [], row(store)))
    assert {1: "second"} == found_by(store)


def test_a_driver_that_fell_after_the_seal_is_finished_with_its_own_files(store: Store) -> None:
    rounds.seal(store, start(store, "first"), 1, work(store, 1, "first"), [], row(store))
    assert {} == found_by(store)
    start(store, "second")
    sealed = rounds.open_seal(store)
    assert sealed is not None
    rounds.roll_forward(store, sealed)
    assert {1: "first"} == found_by(store)
    assert None is rounds.open_seal(store)


def test_a_woken_driver_can_neither_seal_nor_record_nor_undo_the_round_of_its_successor(store: Store) -> None:
    zombie = start(store, "first")
    listing = work(store, 1, "first")
    fence = start(store, "second")
    with pytest.raises(FenceLost, match="second"):
        rounds.check_fence(store, zombie)
    with pytest.raises(FenceLost):
        rounds.seal(store, zombie, 1, listing, [], row(store))
    rounds.check_fence(store, fence)
    rounds.roll_forward(store, rounds.seal(store, fence, 1, work(store, 1, "second"), [], row(store)))
    with pytest.raises(FenceLost):
        rounds.record(store, zombie, {**row(store), "round": 1})
    assert {1: "second"} == found_by(store)
    assert 1 == snapshot.entries(store).num_rows


def test_of_two_that_found_the_last_driver_gone_one_is_refused_by_name(store: Store) -> None:
    last = rounds.holder(store).number
    rounds.take_fence(store, {"host": "quick"}, after=last)
    with pytest.raises(LakeBusy, match="quick"):
        rounds.take_fence(store, {"host": "slow"}, after=last)


def test_upkeep_makes_its_own_entry_for_the_round_it_follows(store: Store) -> None:
    fence = start(store, "first")
    rounds.roll_forward(store, rounds.seal(store, fence, 1, work(store, 1, "first"), [], row(store)))
    delta.commit(store, "signals", app="rewrite", app_version=1)
    rounds.record(store, fence, {**row(store), "round": 1})
    newest = snapshot.newest(store)
    assert newest is not None
    assert (1, "upkeep") == (newest["round"], newest["kind"])
    assert 1 == json.loads(newest["versions"])["signals"] == snapshot.latest(store).versions["signals"]
    assert {1: "first"} == found_by(store)
