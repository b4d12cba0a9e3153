"""One driver at a time: a number wins, all older ones have lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawl.errors import FenceLost, LakeBusy
from lake import delta, rounds, tables
from lake.store import Store, connect
from tests import proxy, s3

ROOT = Path(__file__).resolve().parents[2]
DRIVERS = 4


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made = connect(request.getfixturevalue("s3_lake") if request.param == "s3" else tmp_path / "lake")
    _rounds(made)
    return made


def _rounds(store: Store) -> None:
    table = tables.spec("rounds")
    delta.create(store, "rounds", table.schema, stats=table.stats)


def test_nobody_holds_a_new_lake_and_the_last_taker_is_named(store: Store) -> None:
    assert rounds.holder(store) == rounds.Holder()
    assert str(rounds.holder(store)) == "nobody"
    fence = rounds.take_fence(store, {"host": "ada", "pid": "7", "since": "noon"}, after=0)
    assert fence.number == 1
    assert rounds.holder(store).who == {"host": "ada", "pid": "7", "since": "noon"}
    assert str(rounds.holder(store)) == "driver 1 (host ada, pid 7, since noon)"
    rounds.check_fence(store, fence)


def test_who_comes_late_is_told_who_was_first(store: Store) -> None:
    rounds.take_fence(store, {"host": "ada", "pid": "7"}, after=0)
    with pytest.raises(LakeBusy, match=r"driver 1 \(host ada, pid 7\)"):
        rounds.take_fence(store, {"host": "bob"}, after=0)
    assert rounds.holder(store).number == 1


def test_fence_seven_is_refused_after_eight(store: Store) -> None:
    fences = [rounds.take_fence(store, {"host": str(n)}) for n in range(1, 9)]
    assert [f.number for f in fences] == list(range(1, 9))
    rounds.check_fence(store, fences[7])
    with pytest.raises(FenceLost, match=r"we are driver 7 .*driver 8"):
        rounds.check_fence(store, fences[6])


_RACER = """
import sys
from crawl.errors import LakeBusy
from lake import rounds
from lake.store import connect
store = connect(sys.argv[1])
print("READY", flush=True)
for line in sys.stdin:
    try:
        rounds.take_fence(store, {"pid": sys.argv[2]}, after=int(line))
        print("won", flush=True)
    except LakeBusy:
        print("lost", flush=True)
"""


def test_of_four_drivers_that_saw_the_same_holder_one_wins_every_time(store: Store) -> None:
    command = [sys.executable, "-c", _RACER, store.root]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    racers = [subprocess.Popen([*command, str(i)], **pipes) for i in range(DRIVERS)]  # type: ignore[call-overload]
    try:
        assert [racer.stdout.readline() for racer in racers] == ["READY\n"] * DRIVERS
        for number in range(8):
            for racer in racers:
                racer.stdin.write(f"{number}\n")
                racer.stdin.flush()
            told = [racer.stdout.readline().strip() for racer in racers]
            assert told.count("won") == 1, told
            assert rounds.holder(store).number == number + 1
            assert rounds.holder(store).who == {"pid": str(told.index("won"))}
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()


@pytest.fixture
def deaf(s3_lake: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with proxy.swallowing(s3_endpoint) as endpoint:
        for name, setting in s3.environment(endpoint).items():
            monkeypatch.setenv(name, setting)
        yield connect(s3_lake)


def test_a_fence_whose_answer_was_lost_is_ours(deaf: Store) -> None:
    _rounds(deaf)
    assert rounds.take_fence(deaf, {"host": "ada"}, after=0).number == 1
    assert rounds.take_fence(deaf, {"host": "ada"}, after=1).number == 2
    assert delta.version(deaf, "rounds") == 2
