"""The steps of a round between its opening and its seal: plan, fetch and parse, dedup, merge.

Each step leaves one object in the work area, written at most once; a step whose object stands is over and its
result is read from there, whoever made it. Inside a step, finished tasks are kept the same way, so a resumed
round repeats only what was under way. Steps run on the driver or hand stage functions to the cluster
(cycles.dask.graph); they hold no rule of crawling themselves.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crawl.fetching.journal import RATIO
from cycles.dask.lazycluster import LazyCluster
from cycles.session.context import Context
from cycles.settings import soundness
from cycles.tasks import dedup_task, merge_task, plan_task
from cycles.tasks.claim import Part
from cycles.tasks.parse_task import ParsedFiles, parse_parts
from cycles.words.progress import Progress

if TYPE_CHECKING:
    from cycles.dask.graph import Work

__all__ = ["Desk", "dedup", "fetch", "merge", "plan"]


@dataclass(slots=True)
class Desk:
    """What the driver of one round has at hand: its context, its cluster, and somebody to tell."""

    context: Context
    pinned: Mapping[str, Any]
    cluster: LazyCluster
    progress: Progress
    stage_ms: dict[str, float] = field(default_factory=dict)


def _on_cluster(desk: Desk, tasks: Sequence[Work]) -> list[Any]:
    """Results of tasks, in order; without tasks no cluster is started (nor Dask imported: 0.6 s)."""
    if not tasks:
        return []
    from cycles.dask.graph import run_all

    return run_all(desk.cluster.client, tasks, desk.progress.steps)


def check_workers(desk: Desk) -> None:
    """What settings name and rounds need must be on the workers' machines as well. Raises SettingsError.

    A task a worker: they are spread over those that idle, which all do before a fetch.
    """
    check: Work = (soundness.check_files, (desk.context.settings, "on a worker"))
    _on_cluster(desk, [check] * desk.cluster.slots)


def plan(desk: Desk) -> Mapping[str, Any]:
    """Choose what to fetch: `plan.json`."""
    work = desk.context.work
    made = work.read("plan.json")
    if made is None:
        made = work.once(plan_task.make(desk.context), "plan.json")
    return dict(made)


def fetch(desk: Desk, planned: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fetch every group, parse what comes in meanwhile: `fetched.json` (carried, parse tasks' files)."""
    work = desk.context.work
    made = work.read("fetched.json")
    if made is not None:
        return dict(made)
    groups = [int(g) for g in planned["groups"]]
    done = _fetch_and_parse(desk, groups) if groups else []
    counted = {Part(path, length) for one in done for path, length in one["parts"]}
    parsed = _parse_rest(desk, counted)
    value = {
        "groups": groups,
        "carried": sorted(row for one in done for row in one["carried"]),
        "parsed": [p.to_dict() for p in parsed],
    }
    return dict(work.once(value, "fetched.json"))


def _fetch_and_parse(desk: Desk, groups: Sequence[int]) -> list[dict[str, Any]]:
    """Done objects of all groups; parse tasks for finished parts run beside the fetch tasks."""
    context = desk.context
    queue = _PartQueue(context, _parsed_so_far(context))
    done: list[dict[str, Any]] = []

    def on_event(event: Mapping[str, Any]) -> list[Work]:
        if event["kind"] == "progress":
            desk.progress.group(event["group"], event)
            return []
        return queue.add(Part(event["path"], event["length"]))

    def on_result(result: dict[str, Any]) -> list[Work]:
        done.append(result)
        more = [task for path, length in result["parts"] for task in queue.add(Part(path, length))]
        return more + (queue.flush() if len(done) == len(groups) else [])

    def on_further(result: Mapping[str, Any]) -> None:
        desk.progress.parsed(int(result["counts"]["parsed"]))

    # Both bring much along; a round with nothing to fetch needs neither.
    from cycles.dask import graph
    from cycles.tasks import fetch_task

    graph.stream(
        desk.cluster.client,
        f"crawl-{context.token}-{context.round}",
        [(fetch_task.fetch_group, (context, group, context.window_s)) for group in groups],
        on_event=on_event,
        on_result=on_result,
        on_further=on_further,
        tick=desk.progress.tick,
    )
    return done


class _PartQueue:
    """Finished parts on their way to parse tasks: large ones at once, small ones together."""

    def __init__(self, context: Context, parsed: Iterable[Part]) -> None:
        self._context = context
        self._seen = set(parsed)
        # parts in a folder are not compressed: several make a task, or its files would be many and small
        self._enough = context.settings.fetching.part_bytes * (RATIO if context.work.store.is_local else 1)
        self._waiting: list[Part] = []
        self._bytes = 0

    def add(self, part: Part) -> list[Work]:
        """Tasks that this part makes ready."""
        if part in self._seen:
            return []
        self._seen.add(part)
        self._waiting.append(part)
        self._bytes += part.length
        return self.flush() if self._bytes >= self._enough else []

    def flush(self) -> list[Work]:
        """A task for what waits."""
        parts, self._waiting, self._bytes = self._waiting, [], 0
        return [(parse_once, (self._context, parts))] if parts else []


def parse_once(context: Context, parts: Sequence[Part]) -> dict[str, Any]:
    """On a worker: parse some parts and leave `parsed/<name>.json`; a second run finds the first's result."""
    name = hashlib.blake2b(
        repr(sorted((p.path, p.length) for p in parts)).encode(), digest_size=8
    ).hexdigest()
    made = context.work.read("parsed", f"{name}.json")
    if made is not None:
        return dict(made)
    result = parse_parts(context, parts).to_dict()
    return dict(context.work.once({**result, "name": name}, "parsed", f"{name}.json"))


def _manifests(context: Context) -> list[ParsedFiles]:
    names = [stat.path.rsplit("/", 1)[-1] for stat in context.work.store.list(context.work.path("parsed"))]
    return [
        ParsedFiles.from_dict(made)
        for name in sorted(names)
        if (made := context.work.read("parsed", name)) is not None
    ]


def _parsed_so_far(context: Context) -> list[Part]:
    return [part for made in _manifests(context) for part in made.parts]


def _parse_rest(desk: Desk, counted: set[Part]) -> list[ParsedFiles]:
    """Parse results that cover exactly the parts that count.

    A result that holds a part which does not count (a zombie announced it) is left out whole, and the good
    parts in it are parsed again.
    """
    chosen, covered = [], set[Part]()
    for made in _manifests(desk.context):
        parts = set(made.parts)
        if parts <= counted and not parts & covered:
            chosen.append(made)
            covered |= parts
    missing = sorted(counted - covered, key=lambda p: p.path)
    if missing:
        work: list[Work] = [(parse_once, (desk.context, [part])) for part in missing]
        chosen += [ParsedFiles.from_dict(r) for r in _on_cluster(desk, work)]
    return chosen


def dedup(desk: Desk, fetched: Mapping[str, Any]) -> Mapping[str, Any]:
    """Store each new document and body once: `dedup.json` (files)."""
    work = desk.context.work
    made = work.read("dedup.json")
    if made is not None:
        return dict(made)
    parsed = [ParsedFiles.from_dict(p) for p in fetched["parsed"]]
    bundles = dedup_task.plan_dedup(desk.context, parsed) if parsed else []
    tasks: list[Work] = [(dedup_task.store_bundle, (desk.context, bundle)) for bundle in bundles]
    stored = _on_cluster(desk, tasks)
    value = {"files": [entry.to_dict() for entries in stored for entry in entries]}
    return dict(work.once(value, "dedup.json"))


def merge(desk: Desk, planned: Mapping[str, Any], fetched: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fold results and links into what is known: `merge.json` (files, counts)."""
    work = desk.context.work
    made = work.read("merge.json")
    if made is not None:
        return dict(made)
    job = merge_task.prepare(desk.context, desk.pinned, planned, fetched)
    tasks: list[Work] = [(merge_task.merge_range, (desk.context, job, lo, hi)) for lo, hi in job.ranges]
    results = _on_cluster(desk, tasks)
    return dict(work.once(merge_task.conclude(desk.context, job, results), "merge.json"))


def timed(desk: Desk, name: str, step: Callable[[], Any]) -> Any:
    """Run a step and note how long it took."""
    began = time.monotonic()
    result = step()
    desk.stage_ms[name] = round(1000 * (time.monotonic() - began), 1)
    return result
