"""One driver at a time, with real processes: refused while it lives, followed at once when it is dead."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from crawl.errors import LakeBusy, LakeError
from cycles.session import holder
from cycles.session.clock import boottime
from cycles.session.holder import Heartbeat, Lock, Who, drive, heartbeat_path, lock_is_free
from lake.store import connect
from tests.lake import lakes

Start = Callable[[float], "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, repo_root: Path) -> Iterator[Start]:
    """Starts drivers of one lake; those still there at the end are killed, stopped ones too."""
    lakes.new(tmp_path)
    with ExitStack() as started:

        def one(lease: float) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.cycles.driver", str(tmp_path), str(lease)],
                cwd=repo_root,
                env={**os.environ, "PYTHONPATH": str(repo_root)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield one


def says(process: subprocess.Popen[str]) -> str:
    """Its next line."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ends(process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None
    process.stdin.close()
    return process.wait(20)


@pytest.mark.parametrize("time", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 20))])
def test_of_two_drivers_started_together_one_runs_and_the_other_names_it(start: Start, time: int) -> None:
    both = [start(15), start(15)]
    lines = {says(process): process for process in both}
    runs = next(process for line, process in lines.items() if line == "holds 1")
    refused = next(line for line in lines if line.startswith("busy"))
    assert str(runs.pid) in refused
    assert socket.gethostname() in refused
    assert 3 == lines[refused].wait(20)


def test_a_driver_that_comes_later_is_refused_while_the_first_lives(start: Start) -> None:
    first = start(15)
    assert "holds 1" == says(first)
    second = start(15)
    assert f"process {first.pid} on" in says(second)
    assert 3 == second.wait(20)


def test_a_driver_that_released_is_followed_without_a_wait(start: Start) -> None:
    first = start(600)
    assert "holds 1" == says(first)
    assert 0 == ends(first)
    assert "holds 2" == says(start(600))


def test_a_killed_driver_on_this_machine_is_followed_without_a_wait(start: Start) -> None:
    first = start(600)  # a lease that no test could sit out
    assert "holds 1" == says(first)
    first.kill()
    first.wait(20)
    assert "holds 2" == says(start(600))


def test_of_several_that_follow_a_killed_driver_one_runs_and_none_blames_the_dead(start: Start) -> None:
    first = start(600)
    assert "holds 1" == says(first)
    first.kill()
    first.wait(20)
    lines = sorted(says(process) for process in [start(600) for _ in range(3)])
    assert ["holds 2"] == [line for line in lines if line.startswith("holds")]
    assert [] == [line for line in lines if f"process {first.pid} " in line]


def test_a_stopped_driver_is_followed_only_after_its_heartbeat_stood_still_for_two_leases(
    start: Start, tmp_path: Path
) -> None:
    lease = 1.0
    first = start(lease)
    assert "holds 1" == says(first)
    first.send_signal(signal.SIGSTOP)
    stopped = boottime()
    while (line := says(second := start(lease))).startswith("busy"):
        assert boottime() - stopped < 20
        second.wait(20)
    assert line.startswith("told the last driver")
    assert f"process {first.pid}" in line
    assert "holds 2" == says(second)
    assert boottime() - stopped >= 2 * lease
    first.send_signal(signal.SIGCONT)
    assert 0 == ends(first)  # what it may still do ends at the fence, which is newer now


def dead(store_root: Path, **changes: str) -> Who:
    """A driver whose lock this machine cannot judge, with a heartbeat that somebody else may move."""
    plain = {"host": "far", "pid": "7", "boot": "another", "token": "tt", "lock": "/nowhere", "since": "then"}
    who = Who.from_plain({**plain, **changes})
    connect(store_root).write(
        heartbeat_path(who.token),
        json.dumps({"beat": 1, "state": "running", "boottime": 1e12, "who": who.plain()}).encode(),
    )
    return who


def hold(root: Path, who: Who, lease: float, sleep: Callable[[float], None]) -> int:
    with drive(
        connect(root),
        timedelta(seconds=lease),
        last_holder=who.plain,
        take=lambda _: 5,
        sleep=sleep,
        tell=lambda _: None,
    ) as (number, _):
        return int(number)


def test_a_driver_elsewhere_that_beats_while_watched_is_left_alone(tmp_path: Path) -> None:
    who, store = dead(tmp_path), connect(tmp_path)

    def beats(_: float) -> None:
        store.write(
            heartbeat_path("tt"),
            json.dumps({"beat": 2, "state": "running", "boottime": 0, "who": who.plain()}).encode(),
        )

    with pytest.raises(LakeBusy, match="process 7 on far"):
        hold(tmp_path, who, 600, beats)


def test_a_driver_elsewhere_that_stands_still_is_followed_whatever_its_clock_says(tmp_path: Path) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        threading.Event().wait(seconds)

    assert 5 == hold(tmp_path, dead(tmp_path), 0.2, sleep)
    assert sum(slept) >= 0.3


@pytest.mark.parametrize("content", [b"", b'{"beat": 3, "sta', b"[]", b"null"])
def test_a_heartbeat_that_cannot_be_read_is_watched_like_any_other(tmp_path: Path, content: bytes) -> None:
    """As a machine that lost power leaves it: followed when it stood still, left alone when it moves."""
    who, store = dead(tmp_path), connect(tmp_path)
    store.write(heartbeat_path("tt"), content)
    assert 5 == hold(tmp_path, who, 0.2, lambda seconds: None)

    def beats(_: float) -> None:
        store.write(heartbeat_path("tt"), content + b" ")

    with pytest.raises(LakeBusy, match="process 7 on far"):
        hold(tmp_path, who, 600, beats)


def test_a_driver_that_says_goodbye_while_watched_is_followed_at_once(tmp_path: Path) -> None:
    who, store = dead(tmp_path), connect(tmp_path)

    def goodbye(_: float) -> None:
        store.write(
            heartbeat_path("tt"),
            json.dumps({"beat": 2, "state": "released", "boottime": 0, "who": who.plain()}).encode(),
        )

    assert 5 == hold(tmp_path, who, 600, goodbye)


def test_a_lock_is_free_only_when_its_owner_is_surely_gone(tmp_path: Path) -> None:
    lock = Lock.take()
    who = Who.me(lock)
    assert not lock_is_free(who)
    os.close(lock._file)  # as the system does when a process ends
    assert lock_is_free(who)
    assert not lock_is_free(Who.from_plain({**who.plain(), "boot": "another"}))
    assert not lock_is_free(Who.from_plain({**who.plain(), "token": "another"}))
    lock.path.unlink()
    assert not lock_is_free(who)  # no file proves nothing


def test_a_lock_is_not_inherited_by_programs_it_starts() -> None:
    lock = Lock.take()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        os.close(lock._file)
        deadline = boottime() + 20  # another test's cluster may be starting a process at this very moment
        while not lock_is_free(Who.me(lock)):
            assert boottime() < deadline
    finally:
        child.communicate(b"\n", 20)
        lock.path.unlink()


def test_a_process_is_named_the_same_on_both_sides_of_json() -> None:
    lock = Lock.take()
    try:
        who = Who.me(lock)
        assert who == Who.from_plain(json.loads(json.dumps(who.plain())))
        assert str(os.getpid()) in str(who)
        assert who.host in str(who)
    finally:
        lock.drop()


def test_a_heartbeat_moves_and_its_last_word_is_released(tmp_path: Path) -> None:
    lock = Lock.take()
    heart = Heartbeat(connect(tmp_path), Who.me(lock), timedelta(milliseconds=30))
    heart.start()
    first = holder.read_beat(connect(tmp_path), lock.token)
    deadline = boottime() + 20
    while (later := holder.read_beat(connect(tmp_path), lock.token)) == first:
        assert boottime() < deadline
    assert first is not None
    assert later is not None
    assert later["beat"] > first["beat"]
    heart.release()
    last = holder.read_beat(connect(tmp_path), lock.token)
    assert last is not None
    assert "released" == last["state"]
    lock.drop()


def test_storage_that_fails_at_the_first_beat_is_told_and_leaves_no_lock(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file where the lake should be")
    before = held_locks()
    with (
        pytest.raises(LakeError),
        drive(
            connect(tmp_path / "lake"),
            timedelta(seconds=15),
            last_holder=lambda: None,
            take=lambda _: 1,
            sleep=lambda _: None,
            tell=lambda _: None,
        ),
    ):
        pass
    assert before == held_locks()


def test_a_driver_that_cannot_say_goodbye_leaves_word_on_its_machine(tmp_path: Path) -> None:
    store, said = connect(tmp_path / "lake"), list[str]()

    def hold(last: Who | None) -> Who:
        with drive(
            store,
            timedelta(seconds=15),
            last_holder=lambda: last.plain() if last else None,
            take=lambda _: 1,
            sleep=lambda _: pytest.fail("nobody has to wait"),
            tell=said.append,
        ) as (_, who):
            if last is None:  # storage fails from now on
                (tmp_path / "lake").rename(tmp_path / "elsewhere")
                (tmp_path / "lake").write_text("a file where the lake should be")
        return who

    first = hold(None)
    assert "could not leave word" in said[0]
    (tmp_path / "lake").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / "lake")
    assert holder.read_beat(store, first.token) is not None
    assert lock_is_free(first)
    hold(first)
    assert 1 == len(said)
    Path(first.lock).unlink()


def test_where_no_lock_file_can_be_made_that_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    with pytest.raises(LakeError, match="TMPDIR"):
        Lock.take()


def held_locks() -> set[Path]:
    """Lock files that this process holds open."""
    links = (link.readlink() for link in list(Path("/proc/self/fd").iterdir()) if link.is_symlink())
    return {target for target in links if target.suffix == ".lock"}
