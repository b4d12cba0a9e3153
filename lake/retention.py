"""Retention: which rows are old enough to go, and the files without them.

A row's age counts from its last confirmation. Requests, plans, rejects, labels, delivered events and
entries of `rounds` go by whole files. A text stays while a live URL has it; a body while a URL that has
it was checked lately; a page's links while the page is live and was not parsed anew. Links not merged yet
stay; so do events that no relay has delivered, however old.

What always holds: a file is rewritten only where a fifth of its rows may go, so that rows which stay are
not copied day after day; memory is bounded by a row group and the keys that may go. Nothing here is
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl.policy import Retention
from lake import compaction, files, ranges
from lake.entries import FileEntry
from lake.ranges import Mask
from lake.sql import Reader
from lake.store import Store

__all__ = ["Change", "Limits", "changes"]

#: share of a file's rows that must be free to go before the others are copied
_SHARE: Final = 0.2

#: of a batch of rows (key columns only), which may go
Judge = Callable[[pa.Table], Mask]


@dataclass(frozen=True, slots=True)
class Change:
    """Files of one table to be taken away, and those that hold what stays of them."""

    table: str
    removes: tuple[FileEntry, ...]
    adds: tuple[FileEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far retention may go, beside the ages of `Retention`."""

    now: datetime  # planning time
    round: int  # the newest
    merged_through: int  # links of later rounds stay
    delivered_through: int  # events of later rounds stay; 0: nobody has delivered any


def changes(
    store: Store,
    reader: Reader,
    entries: Mapping[str, Sequence[FileEntry]],
    keep: Retention,
    limits: Limits,
    *,
    target_bytes: int,
) -> Iterator[Change]:
    """What to change, table by table. `reader` shows the files of `entries` at planning time `limits.now`."""
    days = {
        "fetches": keep.fetches,
        "frontier": keep.frontier,
        "rejects": keep.frontier,
        "clusters": keep.documents,
        "outbox": keep.outbox,
    }
    for table, age in days.items():
        old = [file for file in entries[table] if _day(file) < _before(limits.now, age)]
        if table == "outbox":
            old = [file for file in old if _last_round(file) <= limits.delivered_through]
        if old:
            yield Change(table, tuple(old))
    ended = [file for file in entries["rounds"] if _ended(file, keep, limits)]
    if ended:
        yield Change("rounds", tuple(ended))
    for table, judges in _judges(reader, keep, limits).items():
        change = _thinned(store, table, entries[table], judges, target_bytes)
        if change.removes:
            yield change


def _judges(
    reader: Reader, keep: Retention, limits: Limits
) -> dict[str, tuple[list[str], Mapping[str, Judge]]]:
    """For each table that is thinned row by row: its key columns, and a judge for each day ("" = no days)."""
    now = limits.now
    documents = reader.query(
        "retention-documents", before=_before(now, keep.documents), since=now - keep.documents
    )
    bodies = reader.query("retention-bodies", before=_before(now, keep.bodies), since=now - keep.bodies)
    links = reader.query("retention-links", before=_before(now, keep.links), merged=limits.merged_through)
    robots = reader.query("retention-robots", since=now - keep.robots)
    return {
        "documents": (
            ["document_key"],
            {day: _member(part, ["document_key"]) for day, part in _by_day(documents)},
        ),
        "bodies": (["body_hash"], {day: _member(part, ["body_hash"]) for day, part in _by_day(bodies)}),
        "links": (
            ["round", "source_key"],
            {d: _member(part, ["round", "source_key"]) for d, part in _by_day(links)},
        ),
        "robots": (
            ["round", "origin"],
            {"": _member(robots, ["round", "origin"])} if robots.num_rows else {},
        ),
    }


def _by_day(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    days: list[Any] = rows["day"].to_pylist()
    for day in sorted(set(days)):
        yield day.isoformat(), rows.filter(pc.equal(rows["day"], pa.scalar(day, pa.date32())))


def _member(free: pa.Table, columns: Sequence[str]) -> Judge:
    """Judges a row by whether its key (one column, or round and another) is among `free`."""
    *outer, inner = columns
    if not outer:
        values = free[inner].combine_chunks()
        return lambda rows: np.asarray(pc.is_in(rows[inner], value_set=values))
    rounds: list[Any] = free["round"].to_pylist()
    by_round = {
        number: free.filter(pc.equal(free["round"], pa.scalar(number, pa.int64())))[inner].combine_chunks()
        for number in sorted(set(rounds))
    }

    def judge(rows: pa.Table) -> Mask:
        mask = np.zeros(rows.num_rows, dtype=bool)
        rounds = rows["round"].to_numpy()
        for number in np.unique(rounds).tolist():
            if number in by_round:
                mask |= (rounds == number) & np.asarray(pc.is_in(rows[inner], value_set=by_round[number]))
        return mask

    return judge


def _thinned(
    store: Store,
    table: str,
    entries: Sequence[FileEntry],
    judges: tuple[list[str], Mapping[str, Judge]],
    target_bytes: int,
) -> Change:
    columns, by_day = judges
    removes: list[FileEntry] = []
    adds: list[FileEntry] = []
    for file in entries:
        judge = by_day.get(file.partition.get("day", ""))
        if judge is None:
            continue
        rows, free = _count(store, file, columns, judge)
        if free == rows:
            removes.append(file)
        elif free >= _SHARE * rows:
            removes.append(file)
            adds += _without(store, file, judge, target_bytes)
    return Change(table, tuple(removes), tuple(adds))


def _count(store: Store, file: FileEntry, columns: list[str], judge: Judge) -> tuple[int, int]:
    rows = free = 0
    with ranges.opened(store, file) as parquet:
        for number in range(parquet.metadata.num_row_groups):
            mask = judge(parquet.read_row_group(number, columns=columns, use_threads=False))
            rows += len(mask)
            free += int(mask.sum())
    return rows, free


def _without(store: Store, file: FileEntry, judge: Judge, target_bytes: int) -> list[FileEntry]:
    day = file.partition.get("day")
    name = compaction.gathered_name if compaction.is_gathered(file) else files.new_name
    return compaction.write_all(
        store,
        file.table,
        (part.filter(pa.array(~judge(part))) for part in compaction.row_groups(store, file)),
        target_bytes=target_bytes,
        bytes_per_row=file.size / max(1, file.rows),
        name=name,
        day=date.fromisoformat(day) if day else None,
    )


def _before(now: datetime, age: timedelta) -> date:
    return (now - age).date()


def _day(file: FileEntry) -> date:
    return date.fromisoformat(file.partition["day"])


def _ended(file: FileEntry, keep: Retention, limits: Limits) -> bool:
    """Does a file of `rounds` tell only of rounds that are old, and long out of those that stay readable?"""
    span = file.bounds("committed_at")
    old = span is not None and datetime.fromisoformat(str(span[1])) < limits.now - keep.rounds
    return old and _last_round(file) <= limits.round - keep.keep_versions


def _last_round(file: FileEntry) -> int:
    span = file.bounds("round")
    return int(span[1]) if span else 0
