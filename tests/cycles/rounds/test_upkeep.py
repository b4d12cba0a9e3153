"""Upkeep is a driver like any other: fenced, refused while another works, and told in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawl.errors import LakeBusy, NoSuchLake
from cycles.rounds.upkeep import upkeep
from cycles.session.holder import Heartbeat, Lock, Who
from cycles.session.setup import Lake
from lake import delta, rounds, runs, snapshot
from tests.lake import lakes, rows


def told(lake: Lake) -> str:
    return upkeep(lake.root, lambda _: None)


def test_a_new_lake_needs_none(lake: Lake) -> None:
    assert "nothing to do" == told(lake)
    assert 1 == rounds.holder(lake.store).number


def test_many_runs_are_merged_and_no_row_is_lost(lake: Lake) -> None:
    for number in range(1, 11):
        lakes.commit_round(lake.store, number, seen=rows.seen([number], number))
    assert "files of seen" in told(lake)
    assert len(delta.files(lake.store, "seen")) < 10
    pinned = snapshot.latest(lake.store)
    assert (
        list(range(1, 11)) == runs.newest_in(lake.store, pinned.files("seen"), 0, 100)["url_key"].to_pylist()
    )
    assert "nothing to do" == told(lake)


def test_it_is_refused_while_another_driver_works(lake: Lake) -> None:
    lock = Lock.take()
    heart = Heartbeat(lake.store, Who.me(lock), lake.settings.fetching.lease)
    heart.start()
    rounds.take_fence(lake.store, Who.me(lock).plain())
    with pytest.raises(LakeBusy, match="in use by process"):
        told(lake)
    heart.release()
    lock.drop()
    assert "nothing to do" == told(lake)


def test_there_must_be_a_lake(tmp_path: Path) -> None:
    with pytest.raises(NoSuchLake):
        upkeep(str(tmp_path), lambda _: None)
