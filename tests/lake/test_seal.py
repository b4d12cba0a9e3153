"""A round is sealed once and committed once, whoever is killed when."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from crawl.errors import FenceLost, LakeError, UsageError
from lake import delta, files, rounds, seal, snapshot, tables
from lake.entries import FileEntry
from lake.store import Store, connect
from tests.lake import rows
from tests.lake.driver import row

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = connect(tmp_path)
    tables.create_all(made)
    return made


def _listing(store: Store, number: int = 1) -> list[FileEntry]:
    return [
        files.write(store, "seen", rows.seen([1, 2], number)),
        files.write(store, "signals", rows.table("signals", url_key=[1], round=[number])),
        files.write(store, "links", rows.table("links", target_key=[1, 2], round=[number] * 2)),
    ]


def test_nothing_of_a_round_is_visible_before_it_is_rolled_forward(store: Store) -> None:
    fence = rounds.take_fence(store, {})
    sealed = rounds.seal(store, fence, 1, _listing(store), [], row(store))
    assert delta.files(store, "seen") == []
    assert rounds.open_seal(store) == sealed
    versions = rounds.roll_forward(store, sealed)
    assert {t: n for t, n in versions.items() if n} == {"seen": 1, "signals": 1, "links": 1}
    assert rounds.open_seal(store) is None
    newest = snapshot.newest(store)
    assert newest is not None
    assert json.loads(newest["versions"]) == versions
    assert (newest["round"], newest["kind"], newest["fence"]) == (1, "round", 1)


def test_seen_follows_what_it_refers_to_and_rounds_comes_last(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real = delta.commit_if

    def noted(store_: Store, table: str, decide: Any) -> int | None:
        order.append(table)
        return real(store_, table, decide)

    fence = rounds.take_fence(store, {})
    sealed = rounds.seal(store, fence, 1, _listing(store), [], row(store))
    monkeypatch.setattr(delta, "commit_if", noted)
    rounds.roll_forward(store, sealed)
    assert order[0] == "links"
    assert set(order[1:3]) == {"seen", "signals"}
    assert order[3] == "rounds"


def test_rolling_forward_again_changes_nothing(store: Store) -> None:
    fence = rounds.take_fence(store, {})
    sealed = rounds.seal(store, fence, 1, _listing(store), [], row(store))
    first = rounds.roll_forward(store, sealed)
    heads = snapshot.heads(store)
    assert rounds.roll_forward(store, sealed) == first
    assert snapshot.heads(store) == heads
    assert snapshot.entries(store).num_rows == 1


@pytest.mark.parametrize("reached", range(5))
def test_a_driver_killed_after_any_commit_is_finished_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch, reached: int
) -> None:
    class Killed(BaseException):
        pass

    made = 0
    real = delta.commit_if

    def counted(store_: Store, table: str, decide: Any) -> int | None:
        nonlocal made
        if made >= reached:
            raise Killed
        made += 1
        return real(store_, table, decide)

    fence = rounds.take_fence(store, {})
    listing = _listing(store)
    monkeypatch.setattr(delta, "commit_if", counted)
    try:
        rounds.roll_forward(store, rounds.seal(store, fence, 1, listing, [], row(store)))
    except Killed:
        pass
    monkeypatch.setattr(delta, "commit_if", real)
    after = rounds.take_fence(store, {})
    sealed = rounds.open_seal(store)
    if reached == 0:
        assert sealed is None
        sealed = rounds.seal(store, after, 1, listing, [], row(store))
    if sealed is not None:
        rounds.roll_forward(store, sealed)
    assert {
        table: len(delta.files(store, table)) for table in ("seen", "signals", "links", "rounds")
    } == dict.fromkeys(("seen", "signals", "links", "rounds"), 1)


def test_a_second_seal_adopts_the_first(store: Store) -> None:
    fence = rounds.take_fence(store, {})
    first = rounds.seal(store, fence, 1, _listing(store), [], row(store))
    assert rounds.seal(store, fence, 1, _listing(store), [], row(store)) == first
    later = rounds.take_fence(store, {})
    assert rounds.seal(store, later, 1, _listing(store), [], row(store)) == first


def test_an_older_driver_cannot_seal(store: Store) -> None:
    old = rounds.take_fence(store, {})
    rounds.take_fence(store, {"host": "new"})
    with pytest.raises(FenceLost, match="host new"):
        rounds.seal(store, old, 1, _listing(store), [], row(store))
    assert rounds.open_seal(store) is None


def test_a_fence_taken_between_check_and_commit_of_a_seal_stops_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fence lands after we looked and before we commit: the seal must fail, not land beside it."""
    old = rounds.take_fence(store, {})
    real = delta._write
    taken = []

    def late(*args: Any) -> None:
        if not taken:
            taken.append(True)
            rounds.take_fence(store, {"host": "new"})
        real(*args)

    monkeypatch.setattr(delta, "_write", late)
    with pytest.raises(FenceLost):
        rounds.seal(store, old, 1, _listing(store), [], row(store))
    assert rounds.open_seal(store) is None


def test_what_could_not_be_committed_is_refused_before_the_seal(store: Store) -> None:
    fence = rounds.take_fence(store, {})
    with pytest.raises(UsageError, match="lacks"):
        rounds.seal(store, fence, 1, [], [], {})
    with pytest.raises(UsageError, match="unknown"):
        rounds.seal(store, fence, 1, [], [], {**row(store), "colour": "red"})
    with pytest.raises(UsageError, match="made by itself"):
        rounds.seal(store, fence, 1, [FileEntry(table="rounds", path="x", size=1, rows=1)], [], row(store))
    assert rounds.open_seal(store) is None


def test_a_round_with_nothing_to_commit_has_its_row(store: Store) -> None:
    fence = rounds.take_fence(store, {})
    pinned = {**row(store), "versions": {**snapshot.heads(store), "seeds": 0}}
    versions = rounds.roll_forward(store, rounds.seal(store, fence, 1, [], [], pinned))
    assert set(versions.values()) == {0}
    assert snapshot.latest(store).round == 1


def test_files_a_round_takes_away_are_gone_after_it(store: Store) -> None:
    fence = rounds.take_fence(store, {})
    first = _listing(store)
    rounds.roll_forward(store, rounds.seal(store, fence, 1, first, [], row(store)))
    second = _listing(store, 2)
    rounds.roll_forward(store, rounds.seal(store, fence, 2, second[:1], first[:1], row(store)))
    assert delta.files(store, "seen") == second[:1]
    assert snapshot.at(store, 1).files("seen") == first[:1]


def test_an_entry_outside_a_round_needs_our_fence_and_all_versions(store: Store) -> None:
    old = rounds.take_fence(store, {})
    with pytest.raises(UsageError, match="versions"):
        rounds.record(store, old, {**row(store), "round": 0, "versions": {}})
    rounds.record(store, old, {**row(store), "round": 0})
    rounds.take_fence(store, {})
    before = store.list("rounds")
    with pytest.raises(FenceLost):
        rounds.record(store, old, {**row(store), "round": 0})
    assert store.list("rounds") == before


def test_a_seal_whose_list_was_deleted_is_told(store: Store) -> None:
    fence = rounds.take_fence(store, {})
    sealed = rounds.seal(store, fence, 1, _listing(store), [], row(store))
    store.delete([sealed.path])
    with pytest.raises(LakeError, match="not there"):
        rounds.open_seal(store)


def test_a_round_works_on_s3(s3_lake: str) -> None:
    store = connect(s3_lake)
    tables.create_all(store)
    fence = rounds.take_fence(store, {}, after=0)
    sealed = rounds.seal(store, fence, 1, _listing(store), [], row(store))
    assert seal.open_seal(store) == sealed
    rounds.roll_forward(store, sealed)
    assert [e.rows for e in snapshot.latest(store).files("links")] == [2]


def _rivals(store: Store, last: int, seconds: float, chance: random.Random, pace: float = 1.0) -> int:
    """Three drivers at a time, killed and stopped at random, until `last` rounds stand. Returns the kills."""
    began = time.monotonic()
    living: list[subprocess.Popen[bytes]] = []
    started = kills = 0
    try:
        while (stands := delta.app_version(store, "rounds", "round")) < last:
            assert time.monotonic() - began < seconds, f"only {stands} rounds stand"
            living = [p for p in living if p.poll() is None]
            while len(living) < 3:
                started += 1
                command = [sys.executable, "-m", "tests.lake.driver", store.root, str(started), str(last)]
                living.append(subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL))
            time.sleep(pace * (0.4 + chance.random() * 0.8))  # starting takes about half a second
            victim = chance.choice(living)
            if chance.random() < 0.6:
                victim.kill()
                victim.wait()
                kills += 1
            else:
                os.kill(victim.pid, signal.SIGSTOP)
                time.sleep(0.15)
                os.kill(victim.pid, signal.SIGCONT)
    finally:
        for one in living:
            one.kill()
            one.wait()
    return kills


def _check(store: Store, last: int, columns: Sequence[tuple[str, str, int]]) -> None:
    authors: dict[int, set[str]] = defaultdict(set)
    for table, author, expected in columns:
        count: dict[int, int] = defaultdict(int)
        for entry in delta.files(store, table):
            for found in files.read(store, entry, ["round", author]).to_pylist():
                count[found["round"]] += 1
                authors[found["round"]].add(found[author])
        assert {n: count[n] for n in range(1, last + 1)} == dict.fromkeys(range(1, last + 1), expected), table
    assert {n: len(authors[n]) for n in range(1, last + 1)} == dict.fromkeys(range(1, last + 1), 1)
    assert snapshot.entries(store)["round"].to_pylist()[:last] == list(range(1, last + 1))


_AUTHORS = [("seen", "found_by", 3), ("links", "via", 2), ("rejects", "reason", 1)]


def test_rival_drivers_killed_at_random_commit_every_round_once(store: Store) -> None:
    assert _rivals(store, 25, 60, random.Random(3)) >= 2
    _check(store, 25, _AUTHORS)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_rival_drivers_killed_at_random_commit_a_hundred_rounds_once(store: Store) -> None:
    assert _rivals(store, 100, 250, random.Random(11)) >= 10
    _check(store, 100, _AUTHORS)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_rival_drivers_killed_at_random_commit_every_round_once_on_s3(s3_lake: str) -> None:
    store = connect(s3_lake)
    tables.create_all(store)
    _rivals(store, 8, 250, random.Random(5), pace=5)  # a round takes seconds there: kill less often
    _check(store, 8, _AUTHORS)
