"""Rounds one after another: none starts what it does not need, none is lost, one driver at a time."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from crawl.errors import LakeBusy, NoSuchLake, UsageError
from crawl.policy import Round, Settings
from cycles.dask import cluster as clusters
from cycles.rounds import round as round_module
from cycles.session import opening
from cycles.session.holding import hold
from cycles.session.setup import Lake
from cycles.settings.options import RunOptions
from cycles.words.progress import Progress
from lake import delta, files, rounds, snapshot
from tests.cycles import smallround
from tests.lake import lakes, rows
from tests.lake.driver import row

NOW = rows.NOW
AT_NOW = RunOptions(now=NOW)
LEASE = timedelta(seconds=30)


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is due, no cluster may be started."""

    @contextmanager
    def cluster(scheduler: str | None, workers: int | None) -> Iterator[None]:
        raise AssertionError("a cluster was started")
        yield

    monkeypatch.setattr(clusters, "cluster", cluster)


def run(root: str, options: RunOptions = AT_NOW) -> tuple[list[round_module.Done], str]:
    """What came of it, and what a person saw."""
    stream = io.StringIO()
    done = round_module.run(root, options, Progress(stream))
    return done, stream.getvalue()


def sealed(lake: Lake, number: int = 1, **counts: int) -> None:
    """A round of which the driver fell between seal and commit."""
    zero = dict.fromkeys(("planned", "attempted", "fetched", "parsed", "documents", "discovered"), 0)
    counts = {**zero, "links_merged_through": number, **counts}
    listing = [files.write(lake.store, "seen", rows.seen([number], number, next_fetch_at=[NOW + LEASE]))]
    fence = rounds.take_fence(lake.store, {})
    rounds.seal(lake.store, fence, number, listing, [], {**row(lake.store), "counts": counts, "now": NOW})


def test_a_round_with_nothing_due_is_committed_and_idle(lake: Lake) -> None:
    (done,), seen = run(lake.root)
    assert (1, 0, True) == (done.round, done.planned, done.idle)
    newest = snapshot.newest(lake.store)
    assert newest is not None
    assert (1, "round", NOW) == (newest["round"], newest["kind"], newest["now"])
    assert f"process {os.getpid()} on " in newest["driver"]
    assert None is opening.is_open(lake.store)
    assert "round 1: 0 planned, 0 asked, 0 fetched" in seen


def test_of_a_round_that_fetched_nothing_a_person_is_told_why(lake: Lake) -> None:
    known = rows.seen([1], 1, state=["DISCOVERED"], last_outcome=["ROBOTS_UNREACHABLE"])
    planned = rows.table("frontier", round=[1], position=[0], url_key=[1], host=["d1.test"])
    lakes.commit_round(lake.store, 1, seen=known, frontier=planned)
    context, _ = opening.preview(lake.store, lake.settings, AT_NOW, groups=1)
    told = round_module._why_nothing(replace(context, round=1))
    assert told.startswith("round 1: nothing was fetched (robots.txt could not be read: 1); `crawl report ")


def test_a_run_is_of_as_many_rounds_as_asked_for_and_of_one_until_idle(lake: Lake) -> None:
    assert [1, 2] == [done.round for done in run(lake.root, replace(AT_NOW, rounds=2))[0]]
    assert [3] == [done.round for done in run(lake.root, replace(AT_NOW, until_idle=True))[0]]


def test_rounds_that_recur_rest_in_between(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []

    def sleep(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        run(lake.root, replace(AT_NOW, every=timedelta(hours=1)))
    assert [1, 2] == snapshot.entries(lake.store)["round"].to_pylist()
    assert all(3000 < rest < 3600 for rest in rests)
    assert None is opening.is_open(lake.store)


def test_a_sealed_round_is_committed_as_it_was_sealed_and_nothing_else_is_done(lake: Lake) -> None:
    sealed(lake, planned=4)
    assert [] == snapshot.latest(lake.store).files("seen")
    (done,), seen = run(lake.root)
    assert (1, 4, False) == (done.round, done.planned, done.idle)
    assert "round 1 is sealed: committing it" in seen
    assert 1 == snapshot.latest(lake.store).round
    assert [1] == [entry.rows for entry in snapshot.latest(lake.store).files("seen")]
    assert None is opening.is_open(lake.store)


def test_after_a_sealed_round_a_run_until_idle_goes_on(lake: Lake) -> None:
    sealed(lake)
    assert [(1, False), (2, True)] == [
        (done.round, done.idle) for done in run(lake.root, replace(AT_NOW, until_idle=True))[0]
    ]


def test_an_open_round_is_finished_with_what_its_steps_left(lake: Lake) -> None:
    settings = replace(Settings(), round=replace(Round(), window=timedelta(seconds=77)))
    context, _ = opening.open_round(
        lake.store, settings, AT_NOW, fence=1, token="gone", groups=3, tell=lambda _: None
    )
    context.work.once({"files": []}, "dedup.json")
    (done,), seen = run(lake.root, RunOptions(now=NOW + timedelta(days=1)))
    assert 1 == done.round
    assert "round 1 is open: finishing it at its own planning time" in seen
    newest = snapshot.newest(lake.store)
    assert newest is not None
    assert (77.0, NOW) == (newest["window_s"], newest["now"])


def test_a_round_that_merges_no_links_is_never_idle_since_earlier_ones_may_wait(tmp_path: Path) -> None:
    lake = smallround.new(tmp_path)
    lake.seed("http://a.test/")
    found = smallround.link("http://a.test/", "http://a.test/new")
    lake.play(([smallround.visit("http://a.test/")], [found]), merge_links=False)
    settings = replace(lake.settings, round=replace(Round(), merge_every=9))
    opening.open_round(lake.store, settings, AT_NOW, fence=1, token="gone", groups=1, tell=lambda _: None)
    (done,), _ = run(lake.store.root, replace(AT_NOW, rounds=1))
    assert (2, 0, 0) == (done.round, done.planned, done.counts["links"])
    assert not done.idle
    assert {"http://a.test/"} == set(lake.seen())


def test_links_that_waited_are_merged_and_a_round_that_discovers_is_not_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = smallround.new(tmp_path)
    lake.seed("http://a.test/")
    found = smallround.link("http://a.test/", "http://a.test/new")
    lake.play(([smallround.visit("http://a.test/")], [found]), merge_links=False)
    in_place: Any = lambda desk, tasks: [task(*args) for task, args in tasks]  # noqa: E731
    monkeypatch.setattr(round_module.steps, "_on_cluster", in_place)
    (done,), _ = run(lake.store.root)
    assert (0, 1, False) == (done.planned, done.counts["discovered"], done.idle)
    assert {"http://a.test/", "http://a.test/new"} == set(lake.seen())


def test_a_lake_in_use_is_left_alone_and_a_run_that_fails_lets_go_of_it(lake: Lake) -> None:
    with hold(lake.store, LEASE, print), pytest.raises(LakeBusy):
        run(lake.root)
    assert None is opening.is_open(lake.store)
    run(lake.root)
    with pytest.raises(UsageError, match="before that of round 1"):
        run(lake.root, RunOptions(now=NOW - timedelta(days=1)))
    assert [2] == [done.round for done in run(lake.root)[0]]


def test_a_lake_that_another_driver_took_after_the_round_is_left_to_its_upkeep(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidy = round_module.upkeep

    def taken(root: str, tell: Any) -> str:
        with hold(lake.store, LEASE, print):
            return tidy(root, tell)

    worked = round_module.Done(round=1, planned=1, idle=False, counts={})
    monkeypatch.setattr(round_module, "_one", lambda *_: worked)  # one with nothing to do leaves no upkeep
    monkeypatch.setattr(round_module, "upkeep", taken)
    (done,), seen = run(lake.root)
    assert 1 == done.round
    assert f"upkeep is left to others: the lake is in use by process {os.getpid()}" in seen


def test_a_place_without_a_lake_is_told_first(tmp_path: Path) -> None:
    with pytest.raises(NoSuchLake):
        run(str(tmp_path), RunOptions(scheduler="tcp://127.0.0.1:1"))
    assert [] == list(tmp_path.iterdir())


def test_hosts_that_may_be_public_are_asked_only_under_a_name(tmp_path: Path) -> None:
    lake = smallround.new(tmp_path)
    lake.seed("http://public.example/")
    with pytest.raises(UsageError, match=r"agent\.name"):
        run(lake.store.root)
    assert 0 == delta.version(lake.store, "fetches")


def test_a_preview_tells_what_a_run_would_refuse(tmp_path: Path) -> None:
    lake = smallround.new(tmp_path)
    lake.seed(
        "http://93.184.216.34/", "http://93.184.216.34:6667/", "http://192.168.1.1/", "http://127.0.0.1:1/"
    )
    lake.store.write("crawl.toml", b'[egress]\nallow = ["127.0.0.0/8"]\n')
    found = round_module.preview(lake.store.root, replace(AT_NOW, workers=2))
    assert (4, 2) == (found["pages"], found["unasked"])
    assert "agent.name" in found["refused"]


def test_a_file_of_authorities_that_is_gone_stops_the_round_before_anything_is_asked(tmp_path: Path) -> None:
    lake = smallround.new(tmp_path)
    lake.seed("http://a.test/")
    lake.store.write("crawl.toml", f'[tls]\nca_file = "{tmp_path}/gone.pem"\n'.encode())
    with pytest.raises(UsageError, match=r"tls\.ca_file = .* cannot be read"):
        run(lake.store.root)
    assert 0 == delta.version(lake.store, "fetches")


def test_a_preview_tells_what_the_next_round_would_fetch_and_writes_nothing(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=rows.seen([1, 2], 1))
    before = lake.store.list("")
    found = round_module.preview(lake.root, replace(AT_NOW, workers=2, window=timedelta(seconds=60)))
    assert (2, NOW, 60.0, False) == (found["round"], found["now"], found["window_s"], found["open"])
    assert (2, 2) == (found["pages"], found["hosts"])
    assert before == lake.store.list("")
