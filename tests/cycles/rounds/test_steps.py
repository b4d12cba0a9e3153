"""Steps of a round: what stands is not done again, and only parts that count are counted.

Tasks run in this process, and parsing is made up: the tasks themselves are tested elsewhere.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawl.fetching.journal import RATIO
from cycles.dask import graph
from cycles.dask.lazycluster import LazyCluster
from cycles.rounds import steps
from cycles.session.context import Context
from cycles.tasks import fetch_task
from cycles.tasks.claim import Part
from cycles.tasks.parse_task import ParsedFiles
from cycles.words.progress import Progress
from tests.cycles import smallround

BIG = smallround.SETTINGS.fetching.part_bytes * RATIO


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return smallround.new(tmp_path).context()


@pytest.fixture
def desk(context: Context) -> steps.Desk:
    """A driver whose cluster would refuse to start."""
    pinned = {"merge_links": True, "links_merged_through": 0}
    return steps.Desk(context, pinned, LazyCluster("no address", None), Progress(io.StringIO()))


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Paths of the parts of each parse task that ran, in order."""
    ran: list[list[str]] = []

    def parse(context: Context, parts: Sequence[Part]) -> ParsedFiles:
        ran.append([part.path for part in parts])
        return manifest(*parts, parsed=len(ran))

    monkeypatch.setattr(steps, "parse_parts", parse)
    monkeypatch.setattr(steps, "_on_cluster", lambda desk, tasks: [task(*args) for task, args in tasks])
    return ran


def manifest(*parts: Part, parsed: int = 0) -> ParsedFiles:
    none: dict[str, Any] = dict.fromkeys(("visits", "bodies", "rejects"))
    empty: dict[str, Any] = dict.fromkeys(("fetches", "links", "documents"), ())
    return ParsedFiles(parts=parts, counts={"parsed": parsed}, **none, **empty)


def part(name: str, length: int = 10) -> Part:
    return Part(f"_work/round-00000001/{name}.jrnl", length)


A, B, C, ZOMBIE = part("a"), part("b"), part("c"), part("zombie")


# --- what stands is over ---


@pytest.mark.parametrize("name", ["plan", "fetched", "dedup", "merge"])
def test_a_step_whose_object_stands_is_over_whoever_made_it(desk: steps.Desk, name: str) -> None:
    desk.context.work.once({"made": "by another driver"}, f"{name}.json")
    before = desk.context.work.store.list("")
    done = {
        "plan": lambda: steps.plan(desk),
        "fetched": lambda: steps.fetch(desk, {"groups": [0]}),
        "dedup": lambda: steps.dedup(desk, {"parsed": [manifest(A).to_dict()]}),
        "merge": lambda: steps.merge(desk, {}, {}),
    }[name]()
    assert {"made": "by another driver"} == done
    assert before == desk.context.work.store.list("")


def test_with_nothing_due_all_steps_end_without_a_cluster_and_leave_their_objects(desk: steps.Desk) -> None:
    planned = steps.plan(desk)
    fetched = steps.fetch(desk, planned)
    stored = steps.dedup(desk, fetched)
    merged = steps.merge(desk, planned, fetched)
    assert (0, []) == (planned["planned"], planned["groups"])
    assert {"groups": [], "carried": [], "parsed": []} == fetched
    assert {"files": []} == stored
    assert {"attempted": 0, "fetched": 0, "discovered": 0, "linked": 0} == merged["counts"]
    names = ("plan.json", "fetched.json", "dedup.json", "merge.json")
    assert [planned, fetched, stored, merged] == [desk.context.work.read(name) for name in names]


def test_a_step_is_timed_under_its_name(desk: steps.Desk) -> None:
    assert "result" == steps.timed(desk, "plan", lambda: "result")
    assert ["plan"] == list(desk.stage_ms)


# --- parts on their way to parse tasks ---


def taken(tasks: Sequence[Any]) -> list[list[Part]]:
    assert all(task is steps.parse_once for task, _ in tasks)
    return [args[1] for _, args in tasks]


def test_small_parts_wait_for_each_other_and_a_full_load_goes_at_once(context: Context) -> None:
    queue = steps._PartQueue(context, [])
    half = BIG // 2
    one, two, three = (replace(p, length=half) for p in (A, B, C))
    assert [] == queue.add(one)
    assert [[one, two]] == taken(queue.add(two))
    assert [] == queue.add(three)
    assert [[three]] == taken(queue.flush())
    assert [] == queue.flush()


def test_a_large_part_takes_the_small_ones_along(context: Context) -> None:
    queue = steps._PartQueue(context, [])
    large = replace(B, length=BIG)
    assert [] == queue.add(A)
    assert [[A, large]] == taken(queue.add(large))


def test_a_part_is_handed_on_once_and_not_at_all_when_it_is_parsed(context: Context) -> None:
    queue = steps._PartQueue(context, [C])
    assert [] == [*queue.add(A), *queue.add(A), *queue.add(C)]
    assert [[A]] == taken(queue.flush())
    assert [] == [*queue.add(A), *queue.flush()]


def test_a_part_cut_elsewhere_is_another_part(context: Context) -> None:
    """What counts of a dead attempt's part ends where its successor measured, not where it was announced."""
    queue = steps._PartQueue(context, [A])
    shorter = replace(A, length=A.length - 1)
    queue.add(shorter)
    assert [[shorter]] == taken(queue.flush())


def test_parts_are_parsed_once_in_whatever_order_they_come(context: Context, parsed: list[list[str]]) -> None:
    first = steps.parse_once(context, [A, B])
    assert first == steps.parse_once(context, [B, A])
    assert [[A.path, B.path]] == parsed
    assert [A, B] == steps._parsed_so_far(context)
    other = steps.parse_once(context, [A, replace(B, length=3)])
    assert first["name"] != other["name"]


# --- what counts in the end ---


def stand(context: Context, *manifests: ParsedFiles) -> None:
    for number, made in enumerate(manifests):
        context.work.once(made.to_dict(), "parsed", f"{number}.json")


def test_results_of_parts_that_count_are_taken_as_they_stand(
    desk: steps.Desk, parsed: list[list[str]]
) -> None:
    stand(desk.context, manifest(A, B), manifest(C))
    assert [manifest(A, B), manifest(C)] == steps._parse_rest(desk, {A, B, C})
    assert [] == parsed


def test_a_result_that_holds_a_zombies_part_is_left_out_and_its_good_parts_are_parsed_again(
    desk: steps.Desk, parsed: list[list[str]]
) -> None:
    stand(desk.context, manifest(A, ZOMBIE, B), manifest(C), manifest(ZOMBIE))
    found = steps._parse_rest(desk, {A, B, C})
    assert {(C,), (A,), (B,)} == {made.parts for made in found}
    assert [[A.path], [B.path]] == parsed


def test_a_result_of_other_bytes_of_a_part_does_not_count(desk: steps.Desk, parsed: list[list[str]]) -> None:
    stand(desk.context, manifest(replace(A, length=99)))
    assert [(A,)] == [made.parts for made in steps._parse_rest(desk, {A})]


def test_each_part_is_counted_once_however_results_overlap(desk: steps.Desk, parsed: list[list[str]]) -> None:
    """As after two drivers grouped the same parts differently."""
    stand(desk.context, manifest(A, B), manifest(B, C), manifest(A), manifest(C))
    found = [p for made in steps._parse_rest(desk, {A, B, C}) for p in made.parts]
    assert [A, B, C] == sorted(found, key=lambda p: p.path)
    assert [] == parsed


def test_what_is_parsed_at_the_end_stays_parsed_when_the_driver_falls(
    desk: steps.Desk, parsed: list[list[str]]
) -> None:
    stand(desk.context, manifest(A, ZOMBIE))
    first = steps._parse_rest(desk, {A, B})
    again = steps._parse_rest(desk, {A, B})
    assert {made.parts: made for made in first} == {made.parts: made for made in again}
    assert [[A.path], [B.path]] == parsed


# --- fetch and parse side by side ---


def test_parts_are_parsed_as_they_come_and_the_rest_when_the_last_group_ends(
    desk: steps.Desk, parsed: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = replace(A, length=BIG)
    results = {
        0: {"parts": [[large.path, BIG], [B.path, 10]], "carried": [["b.test", "window", 2]]},
        1: {"parts": [[C.path, 10]], "carried": [["a.test", "circuit", 1]]},
    }
    ready: list[list[list[Part]]] = []

    def stream(
        client: Any,
        topic: str,
        work: Sequence[Any],
        *,
        on_event: Callable[[Mapping[str, Any]], Any],
        on_result: Callable[[dict[str, Any]], Any],
        on_further: Callable[[Mapping[str, Any]], None],
        tick: Callable[[], None],
    ) -> None:
        assert [(fetch_task.fetch_group, group) for group in (0, 1)] == [(f, args[1]) for f, args in work]
        events = [
            {"kind": "progress", "group": 0, "asked": 1},
            {"kind": "part", "path": large.path, "length": BIG},
            {"kind": "part", "path": ZOMBIE.path, "length": 10},
        ]
        for tasks in [*map(on_event, events), on_result(results[0]), on_result(results[1])]:
            ready.append(taken(tasks))
            for task, args in tasks:
                on_further(task(*args))

    monkeypatch.setattr(graph, "stream", stream)
    monkeypatch.setattr(LazyCluster, "client", None)
    fetched = steps.fetch(desk, {"groups": [0, 1]})
    assert [[], [[large]], [], [], [[ZOMBIE, B, C]]] == ready
    counted = [p["path"] for made in fetched["parsed"] for p in made["parts"]]
    assert [A.path, B.path, C.path] == sorted(counted)
    assert [["a.test", "circuit", 1], ["b.test", "window", 2]] == fetched["carried"]
    assert [0, 1] == fetched["groups"]
    assert fetched == desk.context.work.read("fetched.json")
