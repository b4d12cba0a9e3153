"""Tasks on a real cluster: results in order, errors of ours as they are, a lost cluster told as such."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from crawl.errors import ClusterError, FenceLost, LakeError
from cycles.dask import cluster as cluster_module
from cycles.dask import graph
from cycles.dask.graph import Work, run_all, stream


def double(n: int) -> int:
    time.sleep(0.01 * (5 - n))  # later ones end earlier
    return 2 * n


def fails(error: Exception) -> None:
    raise error


def dies() -> None:
    os._exit(1)


def fetches(group: int, folder: str, announce: Callable[[str, Mapping[str, Any]], None]) -> int:
    """Announces two parts and ends only when the first was parsed: both must run side by side."""
    for part in range(2):
        announce("part", {"group": group, "part": part})
    deadline = time.monotonic() + 20
    while not Path(folder, f"{group}.0").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return group


def parses(group: int, part: int, folder: str) -> tuple[int, int]:
    Path(folder, f"{group}.{part}").touch()
    return group, part


def test_results_come_in_the_order_of_the_work(client: Client) -> None:
    told: list[tuple[int, int]] = []
    assert [0, 2, 4, 6] == run_all(client, [(double, (n,)) for n in range(4)], lambda *at: told.append(at))
    assert [(1, 4), (2, 4), (3, 4), (4, 4)] == told


def test_no_work_needs_no_cluster(client: Client) -> None:
    assert [] == run_all(client, [], lambda *_: None)


@pytest.mark.parametrize("error", [LakeError("disk full"), FenceLost("newer driver"), KeyError("bug")])
def test_what_a_task_raises_is_raised_here_as_it_is(client: Client, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        run_all(client, [(double, (1,)), (fails, (error,))], lambda *_: None)
    assert error.args == caught.value.args


def follow(client: Client, work: Sequence[Work], **calls: Any) -> list[Any]:
    further: list[Any] = []
    quiet: dict[str, Any] = {"on_event": lambda _: [], "on_result": lambda _: [], "tick": lambda: None}
    stream(client, f"topic-{time.monotonic_ns()}", work, on_further=further.append, **{**quiet, **calls})
    return further


def test_what_is_announced_is_worked_on_while_fetching_goes_on(client: Client, tmp_path: Path) -> None:
    seen: set[tuple[int, int]] = set()
    ended: list[int] = []

    def on_event(event: Mapping[str, Any]) -> list[Work]:
        key = (event["group"], event["part"])
        fresh = key not in seen
        seen.add(key)
        return [(parses, (*key, str(tmp_path)))] if fresh else []

    def on_result(group: int) -> list[Work]:
        ended.append(group)
        return on_event({"group": group, "part": 0}) + on_event({"group": group, "part": 1})

    groups = [0, 1, 2]  # more than there are slots
    results = follow(
        client, [(fetches, (g, str(tmp_path))) for g in groups], on_event=on_event, on_result=on_result
    )
    assert [(g, p) for g in groups for p in (0, 1)] == sorted(results)
    assert groups == sorted(ended)


def overlap(folder: str, announce: Callable[..., None]) -> None:
    """Leaves a mark while it runs, and fails beside another one's on the same worker."""
    mark = Path(folder, str(os.getpid()))
    mark.touch(exist_ok=False)
    time.sleep(0.05)
    mark.unlink()


def test_a_worker_fetches_one_group_at_a_time(client: Client, tmp_path: Path) -> None:
    assert [] == follow(client, [(overlap, (str(tmp_path),))] * 8)


def breaks(announce: Callable[..., None]) -> None:
    raise FenceLost("a newer driver took over")


def test_an_error_of_a_fetch_ends_the_stream_as_it_is(client: Client) -> None:
    with pytest.raises(FenceLost, match="newer driver"):
        follow(client, [(breaks, ())])


def test_ticks_come_while_work_goes_on(client: Client, tmp_path: Path) -> None:
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(len(ticks))
        if len(ticks) == 2:
            Path(tmp_path, "0.0").touch()

    follow(client, [(fetches, (0, str(tmp_path)))], tick=tick)
    assert len(ticks) >= 2


def test_workers_that_keep_dying_are_a_cluster_error_and_the_cluster_lives_on(client: Client) -> None:
    with pytest.raises(ClusterError, match="run again"):
        run_all(client, [(dies, ())], lambda *_: None)
    client.wait_for_workers(2, timeout=30)
    assert [2] == run_all(client, [(double, (1,))], lambda *_: None)


@contextmanager
def joined(address: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process without a nanny; killed in the end."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def test_a_scheduler_that_is_killed_is_a_cluster_error(
    scheduler: tuple[str, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, process = scheduler
    monkeypatch.setattr(cluster_module, "_ANSWER", 2)
    with joined(address), cluster_module.cluster(address, None) as doomed:
        threading.Timer(0.3, process.kill).start()
        with pytest.raises(ClusterError, match="run again"):
            run_all(doomed, [(time.sleep, (30,))], lambda *_: None)


def test_a_cluster_that_has_lost_its_last_worker_is_a_cluster_error(
    scheduler: tuple[str, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "_LOOK", 0.1)
    monkeypatch.setattr(graph, "_NOBODY", 1.0)
    address, _ = scheduler
    with joined(address) as worker, cluster_module.cluster(address, None) as left:
        threading.Timer(0.3, worker.kill).start()
        with pytest.raises(ClusterError, match="no worker was left"):
            run_all(left, [(time.sleep, (30,))], lambda *_: None)


def babbles(announce: Callable[..., None]) -> None:
    """Announces without a pause until it is heard to have been ticked."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        announce("progress", {})
        time.sleep(0.01)


def test_announcements_without_a_pause_hold_nothing_up(client: Client) -> None:
    ticks: list[float] = []
    follow(client, [(babbles, ())], tick=lambda: ticks.append(time.monotonic()))
    assert len(ticks) >= 4
    assert max(after - before for before, after in pairwise(ticks)) < 2
