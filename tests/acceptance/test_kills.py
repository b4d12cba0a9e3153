"""Killed at any moment, stopped and woken: the lake ends up as if nothing had happened.

Real processes, real signals. Each test starts from a copy of one prepared lake, disturbs the second round,
lets `crawl run` finish it, and compares every row with the round that nobody disturbed. What the web's server
saw shows that only requests under way were sent again.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from lake import snapshot
from lake.store import connect
from tests.acceptance.clusters import cluster
from tests.acceptance.processes import Command, finished, until
from tests.acceptance.rehearsal import FIRST, SECOND, THIRD, Rehearsal, asked_again, checked, equal, gone

STAGES = ("plan", "fetch", "dedup", "merge", "seal", "commit")
#: kill points of the random tests: seeds × kills each
SEEDS, KILLS = range(10), 6


def finish(rehearsal: Rehearsal, lake: Path, number: int = 2) -> None:
    """`crawl run` until that round is committed: once, or not at all if it is."""
    if last_round(lake) < number:
        rehearsal.finish(lake, (FIRST, SECOND, THIRD)[number - 1])
    assert last_round(lake) == number


def last_round(lake: Path) -> int:
    row = snapshot.newest(connect(str(lake)))
    return int(row["round"]) if row else 0


def proves(rehearsal: Rehearsal, lake: Path, mark: int, breaks: Sequence[float]) -> None:
    """The lake equals the undisturbed one, and only what was under way was asked again."""
    undisturbed = rehearsal.after(2)
    assert asked_again(rehearsal.served.log(mark), breaks) == []
    equal(lake, undisturbed)


@pytest.fixture
def lake(rehearsal: Rehearsal) -> Path:
    """A copy of the lake after its first round."""
    rehearsal.after(2)  # made beforehand: its requests are none of the test's
    return rehearsal.copy(rehearsal.after(1))


@pytest.mark.timeout(180)
def test_a_driver_killed_at_every_stage_boundary_leaves_no_trace(rehearsal: Rehearsal, lake: Path) -> None:
    mark, breaks = rehearsal.mark(), []
    for stage in STAGES:
        with rehearsal.run(lake) as command:
            command.wait_for(f"^round 2: {stage}")
            command.kill()
            breaks.append(gone(command))
    finish(rehearsal, lake)
    proves(rehearsal, lake, mark, breaks)
    checked(lake)


@pytest.mark.timeout(120)
def test_a_driver_killed_in_mid_fetch_leaves_no_trace(rehearsal: Rehearsal, lake: Path) -> None:
    mark = rehearsal.mark()
    with rehearsal.run(lake) as command:
        rehearsal.wait_for_pages(mark, 40)
        command.kill()
        broken = gone(command)
    assert last_round(lake) == 1
    finish(rehearsal, lake)
    proves(rehearsal, lake, mark, [broken])


@pytest.mark.timeout(120)
def test_a_worker_killed_in_mid_fetch_is_replaced_and_leaves_no_trace(
    rehearsal: Rehearsal, lake: Path
) -> None:
    mark = rehearsal.mark()
    with rehearsal.run(lake) as command:
        rehearsal.wait_for_pages(mark, 40)
        command.workers()[0].kill()
        broken = time.time()
        assert command.ended() == 0, command.text()
    proves(rehearsal, lake, mark, [broken])


@pytest.mark.timeout(120)
def test_a_parse_process_killed_as_it_starts_and_at_work_costs_no_page(
    rehearsal: Rehearsal, lake: Path
) -> None:
    mark = rehearsal.mark()
    with rehearsal.run(lake) as command:
        until(lambda: bool(command.parsers()), 60, "a parse process", pause=0.005)
        first = command.parsers()[0]
        first.kill()
        until(lambda: set(command.parsers()) - {first} != set(), 60, "another one", pause=0.005)
        second = (set(command.parsers()) - {first}).pop()
        with suppress(psutil.NoSuchProcess):  # where parsing was over already
            until(lambda: sum(second.cpu_times()[:2]) > 0.5, 60, "it to be at work")
            second.kill()
        assert command.ended() == 0, command.text()
    proves(rehearsal, lake, mark, [])


@pytest.mark.timeout(120)
def test_a_worker_that_was_stopped_wakes_to_do_nothing(rehearsal: Rehearsal, lake: Path) -> None:
    """Its driver is dead, and another has taken over, when it wakes in mid-fetch of the successor."""
    mark = rehearsal.mark()
    with rehearsal.run(lake) as command:
        rehearsal.wait_for_pages(mark, 40)
        workers = command.workers()
        stopped = stop(workers)
        command.kill()
        asked = rehearsal.mark()
        with rehearsal.run(lake) as successor:
            rehearsal.wait_for_requests(asked, 5)
            woken = rehearsal.mark()
            wake(workers)
            assert successor.ended() == 0, successor.text()
        assert woken > asked
        gone(command)
    proves(rehearsal, lake, mark, [stopped])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_stopped_worker_of_a_living_driver_is_replaced(rehearsal: Rehearsal, lake: Path) -> None:
    """Its nanny ends it when the scheduler has given it up; a new attempt takes over what it had done."""
    mark = rehearsal.mark()
    with rehearsal.run(lake) as command:
        rehearsal.wait_for_pages(mark, 40)
        stopped = stop(command.workers()[:1])
        assert command.ended(240) == 0, command.text()
    proves(rehearsal, lake, mark, [stopped])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_stopped_worker_without_a_nanny_wakes_beside_its_successor_and_does_nothing(
    rehearsal: Rehearsal, lake: Path, tmp_path: Path
) -> None:
    """On a cluster of others its task runs again elsewhere, and nobody ends the old one."""
    short = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5s"}
    with cluster(tmp_path / "cluster", 3, environ=short, nanny=False) as made:
        mark = rehearsal.mark()
        with rehearsal.run(lake, SECOND, "--scheduler", made.address) as command:
            rehearsal.wait_for_pages(mark, 40)
            worker = at_work(made.workers)
            stopped = stop([worker])
            claims = attempts(lake)
            until(lambda: attempts(lake) > claims, 60, "another attempt")
            asked = rehearsal.mark()
            rehearsal.wait_for_requests(asked, 5)
            wake([worker])
            assert command.ended() == 0, command.text()
        proves(rehearsal, lake, mark, [stopped])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_stopped_worker_that_wakes_after_the_end_changes_nothing(rehearsal: Rehearsal, lake: Path) -> None:
    mark = rehearsal.mark()
    with rehearsal.run(lake) as command:
        rehearsal.wait_for_pages(mark, 40)
        workers = command.workers()
        stopped = stop(workers)
        command.kill()
        finish(rehearsal, lake)
        wakes_to_nothing(rehearsal, lake, command, workers)
    proves(rehearsal, lake, mark, [stopped])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("stage", ["plan", "fetch", "dedup", "merge", "seal", "commit"])
def test_a_driver_that_was_stopped_is_followed_and_wakes_to_do_nothing(
    rehearsal: Rehearsal, lake: Path, stage: str
) -> None:
    """Another one takes over when the heartbeat has stood still for long enough, not before."""
    mark = rehearsal.mark()
    with rehearsal.run(lake) as command:
        command.wait_for(f"^round 2: {stage}")
        driver = psutil.Process(command.pid)
        if stage == "fetch":
            rehearsal.wait_for_pages(mark, 40)
        command.tree()
        stop([driver])
        code = finished(*rehearsal.arguments(lake, SECOND)).code
        assert code == 3, "its last heartbeat is fresh"
        until(lambda: heartbeat_age(lake) > 4, 30, "the heartbeat to grow old")
        finish(rehearsal, lake)
        asked, before = rehearsal.mark(), files(lake)
        wake([driver])
        assert command.ended() in (0, 3), command.text()
        assert rehearsal.mark() == asked
        assert last_round(lake) == 2
        assert {path for path in files(lake) - before if "_delta_log" in path} == set()
    asked_at_most(rehearsal.served.log(mark), 1)
    equal(lake, rehearsal.after(2))
    checked(lake)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_at_random_again_and_again_it_ends_as_if_undisturbed(rehearsal: Rehearsal, seed: int) -> None:
    """So many kills a seed, over as many rounds as it takes: second ones, and third ones that recrawl."""
    dice, kills, number = random.Random(seed), 0, 2 + seed % 2
    now = (SECOND, THIRD)[seed % 2]
    rehearsal.after(number)
    while kills < KILLS:
        lake, mark = rehearsal.copy(rehearsal.after(number - 1)), rehearsal.mark()
        before = kills
        with ExitStack() as commands:  # left open to the end: what a killed driver leaves behind may live on
            while kills < KILLS and last_round(lake) < number:
                command = commands.enter_context(rehearsal.run(lake, now))
                command.wait_for(f"^round {number}: plan|^round {number} is sealed")
                time.sleep(dice.uniform(0.0, dice.choice([0.5, 3.0, 6.0])))
                if command.code is not None:
                    break
                kills += 1
                if not kill_one(command, dice):
                    # 5: workers of our own that are killed while they start are told, not waited for
                    assert command.ended() in (0, 5), command.text()
                elif dice.random() < 0.5:
                    gone(command)
            finish(rehearsal, lake, number)
        asked_at_most(rehearsal.served.log(mark), kills - before)
        equal(lake, rehearsal.after(number))
        checked(lake)


def kill_one(command: Command, dice: random.Random) -> bool:
    """Kill the driver, a worker, or a parse process; whether it was the driver."""
    victims: list[Callable[[], Sequence[psutil.Process]]] = [command.workers, command.parsers]
    found = dice.choice(victims)() if dice.random() < 0.4 else []
    if not found:
        command.kill()
        return True
    try:
        dice.choice(list(found)).kill()
    except psutil.NoSuchProcess:
        pass
    return False


def asked_at_most(log: Sequence[Mapping[str, Any]], kills: int) -> None:
    """A host's requests beyond the first of each URL are no more than the kills: one is under way a time."""
    times = Counter((one["host"], one["path"]) for one in log)
    again = Counter[str]()
    for (host, _), count in times.items():
        again[host] += count - 1
    assert {host: count for host, count in again.items() if count > kills} == {}


def stop(processes: Sequence[psutil.Process]) -> float:
    """SIGSTOP; the moment when all stand still."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    until(lambda: all(p.status() == psutil.STATUS_STOPPED for p in processes), 10, "processes to stop")
    return time.time()


def wake(processes: Sequence[psutil.Process]) -> None:
    """SIGCONT."""
    for process in processes:
        process.send_signal(signal.SIGCONT)


def wakes_to_nothing(
    rehearsal: Rehearsal, lake: Path, command: Command, processes: Sequence[psutil.Process]
) -> None:
    """Processes of a killed command wake, ask nothing, write no table, and end."""
    asked, before = rehearsal.mark(), files(lake)
    wake(processes)
    gone(command)
    assert rehearsal.mark() == asked
    assert {path for path in files(lake) - before if not path.startswith("_work/")} == set()


def at_work(workers: Sequence[Command]) -> psutil.Process:
    """One of the workers that hold a host group: those that hold a lock."""
    found = [
        process
        for worker in workers
        for process in (psutil.Process(worker.pid), *worker.tree())
        if any(file.path.endswith(".lock") and "crawl-cycles" in file.path for file in process.open_files())
    ]
    assert found, "no worker is at work"
    return found[0]


def attempts(lake: Path) -> int:
    """How many attempts at host groups of the second round there were."""
    return len(list(lake.glob("_work/round-00000002/group-*/claim-*.json")))


def heartbeat_age(lake: Path) -> float:
    """Seconds since a driver last showed that it lives."""
    return time.time() - max(path.stat().st_mtime for path in lake.glob("_work/drivers/*.json"))


def files(lake: Path) -> set[str]:
    return {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file()}
