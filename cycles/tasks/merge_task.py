"""Merge a round, key range by key range: read slices, fold them (crawl.stages.merge), write runs and events.

    prepare ─► ranges ─► merge_range on the cluster ─► conclude;  host_files: clocks and robots copies of the
    groups

What always holds: ranges are cut by size, so that memory is bounded whatever the skew; a range is folded in
smaller pieces, which changes nothing; of `seen` only the key column is streamed, and whole rows of visited
URLs are read. A range that was merged stays merged: its result is kept in the work area, and a second run
finds it. Files are in their final place and invisible until committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl.columns import Ints, among, ints, take
from crawl.lifecycle import MOVES
from crawl.merging import retirement
from crawl.merging.candidates import LINK_COLUMNS, of_links
from crawl.merging.loops import looping, marked
from crawl.outcomes import FETCHED, TABLE, Outcome
from crawl.schema import CANDIDATES, HOSTS, ROBOTS, SEEN, VISITS, required
from crawl.sitemap import announced, hearsay
from crawl.stages import merge, publish
from crawl.state import State
from cycles.session.context import Context
from cycles.tasks import claim
from lake import files, ranges, runs, sql
from lake.entries import FileEntry
from lake.snapshot import Snapshot
from lake.store import Store

__all__ = ["Job", "conclude", "host_files", "merge_range", "prepare"]

#: rows folded at once: what a fold makes of them is some 100 MB
_PIECE: Final = 131_072
_ASKED: Final = [outcome.value for outcome, rule in TABLE.items() if rule.asked]
_FETCHED: Final = sorted(outcome.value for outcome in FETCHED)
#: outcomes that can end the life of a page that answered
_ENDING: Final = [o.value for o in Outcome if MOVES[State.FETCHED, o][1] in (State.GONE, State.TERMINAL)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the merge of one round works on."""

    ranges: tuple[tuple[int, int], ...]
    links: tuple[FileEntry, ...]
    merged_through: int  # links of rounds up to this one were merged before
    visits: tuple[str, ...]  # work files
    seen: tuple[FileEntry, ...]
    held: frozenset[str]  # hosts whose live pages are not retired
    unbelieved: frozenset[str]  # hosts whose sitemaps' dates are not worth a look
    rejects: str | None  # work file that tells of them
    loops: str | None  # work file of the keys whose redirects lead back to them


def prepare(
    context: Context, pinned: Mapping[str, Any], planned: Mapping[str, Any], fetched: Mapping[str, Any]
) -> Job:
    """Gather what there is to merge, cut it into ranges, and find hosts to be held back. Raises LakeError.

    `pinned`, `planned` and `fetched` are the contents of `open.json`, `plan.json` and `fetched.json`.
    """
    store = context.work.store
    snapshot = Snapshot(store, context.versions, context.round - 1)
    through = int(pinned["links_merged_through"])
    links = _links(snapshot, through, fetched) if pinned["merge_links"] else []
    visits = [one["visits"] for one in fetched["parsed"] if one["visits"]]
    sources: list[tuple[str, ranges.Source]] = [("target_key", entry) for entry in links]
    sources += [("url_key", path) for path in visits]
    if planned["seeds"]:
        sources.append(("target_key", context.work.path("seeds.parquet")))
    held = _held(context, snapshot, visits)
    rejects = None
    if len(held.rejects):
        rejects = context.work.path("guard.parquet")
        files.write_work(store, rejects, held.rejects)
    loops = _loops(store, visits, snapshot.files("seen"))
    at = context.work.path("loops.parquet") if len(loops) else None
    if at is not None:
        files.write_work(store, at, pa.table({"url_key": pa.array(loops)}))
    cut = ranges.cut(store, sources, context.settings.storage.merge_rows) if sources else []
    return Job(
        ranges=tuple(cut),
        links=tuple(links),
        merged_through=through,
        visits=tuple(visits),
        seen=tuple(snapshot.files("seen")),
        held=held.hosts,
        unbelieved=_unbelieved(store, snapshot.files("hosts")),
        rejects=rejects,
        loops=at,
    )


def _loops(store: Store, visits: Sequence[str], seen: Sequence[FileEntry]) -> Ints:
    """Keys of this round's redirects that lead back to themselves."""
    columns = VISITS.empty_table().select(_MOVES).schema
    parts = [files.read_work(store, path, _MOVES).cast(columns) for path in visits]

    def known(keys: Ints) -> tuple[Ints, Ints]:
        if not seen:
            return _NO_KEYS, _NO_KEYS
        rows = runs.rows(store, seen, keys, ["url_key", "redirect_to_key"])
        rows = rows.filter(pc.is_valid(rows["redirect_to_key"]))
        order = np.argsort(ints(rows["url_key"]))
        return ints(rows["url_key"])[order], ints(rows["redirect_to_key"])[order]

    return looping(pa.concat_tables([columns.empty_table(), *parts]), known)


_MOVES: Final = ["url_key", "outcome", "redirect_to_key"]
_NO_KEYS: Final = np.zeros(0, dtype=np.int64)


def _links(snapshot: Snapshot, through: int, fetched: Mapping[str, Any]) -> list[FileEntry]:
    """Links files of this round, and of those before it that were not merged yet."""
    own = [FileEntry.from_dict(entry) for one in fetched["parsed"] for entry in one["links"]]
    waiting = [] if snapshot.round <= through else snapshot.files("links")
    return own + [file for file in waiting if (span := file.bounds("round")) is None or span[1] > through]


def _held(context: Context, snapshot: Snapshot, visits: Sequence[str]) -> retirement.Held:
    """Hosts of which this round would retire too many live pages."""
    store, policy = context.work.store, context.settings.recrawl
    parts = [retirement.NOTHING_RETIRED]
    seen = snapshot.files("seen")
    for path in visits if seen else ():
        came = files.read_work(store, path).cast(VISITS)
        came = came.filter(pa.array(among(came["outcome"], _ENDING) >= 0))
        for start in range(0, len(came), _PIECE):
            some = came.slice(start, _PIECE)
            rows = runs.rows(store, seen, np.unique(ints(some["url_key"]))).cast(SEEN)
            parts.append(retirement.retiring(rows, some, settings=context.settings, now=context.now))
    retire = pa.concat_tables(parts)
    hosts = retirement.suspects(retire, policy)
    live: dict[str, int] = {}
    if hosts:
        with sql.connect(store, snapshot, context.now) as reader:
            live = {row["host"]: row["live"] for row in reader.query("live", hosts=hosts).to_pylist()}
    return retirement.hold(
        retire, live, policy, policy_version=context.policy_version, round=context.round, day=context.day
    )


def _unbelieved(store: Store, hosts: list[FileEntry]) -> frozenset[str]:
    """Hosts whose sitemaps' dates have told nothing so far."""
    found: frozenset[str] = frozenset()
    columns = ["host", "lastmod_looked", "lastmod_precision"]
    for lo, hi in ranges.cut(store, [("host_key", entry) for entry in hosts], _PIECE) if hosts else ():
        found |= hearsay.unbelieved(runs.newest_in(store, hosts, lo, hi, columns))
    return found


def merge_range(context: Context, job: Job, lo: int, hi: int) -> dict[str, Any]:
    """On a worker: fold the keys from `lo` to `hi`; its files and counts. Raises LakeError."""
    name = f"{lo}_{hi}.json"
    made = context.work.read("merged", name)
    if made is None:
        made = context.work.once(_merge_range(context, job, lo, hi), "merged", name)
    return dict(made)


def _merge_range(context: Context, job: Job, lo: int, hi: int) -> dict[str, Any]:
    store = context.work.store
    paths = _candidates(context, job, lo, hi)
    visits = _slices(store, job.visits, "url_key", lo, hi, VISITS)
    if job.loops is not None:
        visits = marked(visits, ints(ranges.slice(store, job.loops, "url_key", lo, hi)["url_key"]))
    keys = np.unique(np.concatenate([*(ints(part["target_key"]) for part in paths), ints(visits["url_key"])]))
    is_known = runs.known(store, job.seen, keys)
    visited = np.unique(ints(visits["url_key"]))
    previous = _previous(context, job, lo, hi, np.union1d(visited, _announced(paths, keys[is_known])))
    counts: Counter[str] = Counter()
    judged: list[pa.Table] = []
    with ExitStack() as stack:
        out = _Output(context, stack)
        for first, last in _pieces([*(ints(part["target_key"]) for part in paths), ints(visits["url_key"])]):
            merged = merge.fold(
                _between(previous, "url_key", first, last),
                pa.concat_tables([_between(part, "target_key", first, last) for part in paths]),
                _between(visits, "url_key", first, last),
                known=lambda asked: np.asarray(is_known[np.searchsorted(keys, asked)], dtype=np.bool_),
                held=job.held,
                unbelieved=job.unbelieved,
                settings=context.settings,
                policy_version=context.policy_version,
                now=context.now,
                round=context.round,
            )
            told = publish.events(
                merged.before, merged.seen, round=context.round, day=context.day, now=context.now
            )
            out.add("seen", merged.seen)
            out.add("signals", merged.signals)
            out.add("outbox", told)
            judged.append(merged.evidence)
            counts.update(_counted(merged, context.round))
    evidence = None
    if any(len(part) for part in judged):
        evidence = context.work.path("merged", f"evidence-{lo}_{hi}.parquet")
        files.write_work(store, evidence, hearsay.total(pa.concat_tables(judged)))
    return {
        "files": [entry.to_dict() for entry in out.entries()],
        "counts": dict(counts),
        "evidence": evidence,
    }


class _Output:
    """The files of one range: a writer a table, made when its first rows come."""

    def __init__(self, context: Context, stack: ExitStack) -> None:
        self._context = context
        self._stack = stack
        self._writers: dict[str, files.Writer] = {}

    def add(self, table: str, rows: pa.Table) -> None:
        """Append rows to the range's file of a table."""
        if not len(rows):
            return
        writer = self._writers.get(table)
        if writer is None:
            round_number = self._context.round
            is_run = table in runs.KEYS
            writer = files.Writer(
                self._context.work.store,
                table,
                name=runs.name(0, round_number, round_number) if is_run else files.new_name(round_number),
                day=None if is_run else self._context.day,
            )
            self._writers[table] = self._stack.enter_context(writer)
        writer.add(rows)

    def entries(self) -> list[FileEntry]:
        """The finished files."""
        return [writer.entry for writer in self._writers.values()]


def _counted(merged: merge.Merged, round_number: int) -> dict[str, int]:
    """Rows by what they tell; attempted: asked, whatever came of it."""
    visited = ints(merged.seen["visited_round"], 0) == round_number
    asked = visited & (among(merged.seen["last_outcome"], _ASKED) >= 0)
    fetched = visited & (among(merged.seen["last_outcome"], _FETCHED) >= 0)
    new = ints(merged.seen["first_seen_round"]) == round_number
    return {
        "attempted": int(asked.sum()),
        "fetched": int(fetched.sum()),
        "discovered": int(new.sum()),
        "linked": len(merged.signals),
    }


def _candidates(context: Context, job: Job, lo: int, hi: int) -> list[pa.Table]:
    """Paths to the keys of a range, each table sorted by target."""
    store, planning = context.work.store, context.settings.planning
    found = []
    for entry in job.links:
        if not runs.files_meeting([entry], "target_key", lo, hi):
            continue
        rows = ranges.slice(store, entry, "target_key", lo, hi, [*LINK_COLUMNS, "round"])
        rows = rows.filter(pa.array(ints(rows["round"]) > job.merged_through))
        found.append(_sorted(of_links(rows, planning), "target_key"))
    seeds = ranges.slice(store, context.work.path("seeds.parquet"), "target_key", lo, hi)
    return [*found, _sorted(seeds.select(CANDIDATES.names).cast(CANDIDATES), "target_key")]


def _announced(paths: Sequence[pa.Table], known: Ints) -> Ints:
    """Known keys that a sitemap or feed names, or that are named as one."""
    keys = [announced.reduce(part).keys for part in paths]
    return np.intersect1d(np.concatenate([known[:0], *keys]), known)


def _slices(
    store: Store, sources: Iterable[ranges.Source], key: str, lo: int, hi: int, schema: pa.Schema
) -> pa.Table:
    """Rows of several files in a range, sorted by key."""
    parts = [ranges.slice(store, source, key, lo, hi, schema.names) for source in sources]
    whole = pa.concat_tables(
        [schema.empty_table(), *(part.select(schema.names).cast(schema) for part in parts)]
    )
    return _sorted(whole, key)


def _previous(context: Context, job: Job, lo: int, hi: int, keys: Ints) -> pa.Table:
    """The newest rows of the visited keys, as the plan left them or, where it had none, from `seen`."""
    store = context.work.store
    planned = _slices(store, [context.work.path("planned.parquet")], "url_key", lo, hi, SEEN)
    planned = planned.filter(pa.array(np.isin(ints(planned["url_key"]), keys)))
    missing = np.setdiff1d(keys, ints(planned["url_key"]), assume_unique=True)
    if not len(missing) or not job.seen:
        return planned
    met = runs.rows(store, job.seen, missing).select(SEEN.names).cast(SEEN)
    return _sorted(pa.concat_tables([planned, met]), "url_key")


def _sorted(rows: pa.Table, key: str) -> pa.Table:
    """By key, in one piece; what is in order already is not moved."""
    keys = ints(rows[key])
    if np.all(keys[:-1] <= keys[1:]):
        return rows.combine_chunks()
    ordered: pa.Table = take(rows, np.argsort(keys, kind="stable")).combine_chunks()
    return ordered


def _pieces(columns: Sequence[Ints]) -> list[tuple[int, int]]:
    """Inclusive key spans of about `_PIECE` rows over all key columns; a key is never split."""
    keys = np.sort(np.concatenate(columns), kind="stable")
    if not len(keys):
        return []
    ends = np.unique(np.append(keys[_PIECE - 1 :: _PIECE], keys[-1]))
    starts = np.append(keys[0], ends[:-1] + 1)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _between(rows: pa.Table, key: str, lo: int, hi: int) -> pa.Table:
    """The rows of a span of a table sorted by key."""
    keys = ints(rows[key])
    start, stop = np.searchsorted(keys, lo), np.searchsorted(keys, hi, side="right")
    return rows.slice(int(start), int(stop - start))


def conclude(context: Context, job: Job, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Results of all ranges as one: the content of `merge.json`."""
    counts = Counter({"attempted": 0, "fetched": 0, "discovered": 0, "linked": 0})
    for result in results:
        counts.update(result["counts"])
    return {
        "files": [entry for result in results for entry in result["files"]],
        "counts": dict(counts),
        "rejects": [job.rejects] if job.rejects else [],
        "evidence": [path for result in results if (path := result.get("evidence")) is not None],
    }


def host_files(context: Context, groups: Iterable[int], evidence: Sequence[str] = ()) -> list[FileEntry]:
    """Clocks and robots copies that the groups left, as files of `hosts` (a run) and `robots`.

    `evidence`: work files about their sitemaps, which the merge left. Raises LakeError.
    """
    store, work = context.work.store, context.work
    numbers = list(groups)
    hosts = _left(context, numbers, "hosts.parquet", HOSTS)
    robots = _left(context, numbers, "robots.parquet", ROBOTS)
    entries = []
    if len(hosts):
        rows = runs.newest(_without_nulls(hosts), "host_key")
        if evidence:
            found = pa.concat_tables([files.read_work(store, path) for path in evidence])
            rows = hearsay.learnt(rows, found.cast(hearsay.EVIDENCE))
        name = runs.name(0, work.round, work.round)
        entries.append(files.write(store, "hosts", rows, name=name))
    if len(robots):
        entries.append(files.write(store, "robots", robots.sort_by("origin")))
    return entries


def _left(context: Context, groups: Sequence[int], name: str, schema: pa.Schema) -> pa.Table:
    """Rows of one work file of every group."""
    paths = [claim.folder(context.work, group, name) for group in groups]
    parts = [files.read_work(context.work.store, path).select(schema.names).cast(schema) for path in paths]
    return pa.concat_tables([schema.empty_table(), *parts])


def _without_nulls(rows: pa.Table) -> pa.Table:
    """Numbers that must be there, 0 where nobody counted them yet."""
    for name in required(rows.schema):
        at = rows.schema.get_field_index(name)
        if rows[name].null_count and not pa.types.is_string(rows[name].type):
            filled: Any = pc.fill_null(rows[name], pa.scalar(0, rows[name].type))
            rows = rows.set_column(at, rows.schema.field(at), filled)
    return rows
