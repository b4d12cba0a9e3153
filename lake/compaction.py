"""Compaction: the same rows in fewer files. What is worth merging, and the merge itself.

Runs (`seen`, `signals`, `hosts`) merge in tiers: as many runs of a level as the ratio says become one run
of the next, so a row is rewritten O(log n) times. Newest rows win; signals are summed. Append tables: the
small files of a day that has passed (or of one that has very many) become large ones; one document per
text.

What always holds: rows are streamed, so memory is bounded by `RANGE_ROWS` whole rows and the row groups
kept by `ranges.Sweep`; what comes out is sorted as its table wants it; runs stay disjoint in their
rounds. Nothing here is committed: the caller commits inputs and outputs in one step, on a handle on which
the inputs are live.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

import pyarrow as pa

from lake import files, ranges, runs
from lake.entries import FileEntry
from lake.runs import Name, Run
from lake.store import Store
from lake.tables import SPECS, complete

__all__ = [
    "RANGE_ROWS",
    "Merge",
    "gathered_name",
    "is_gathered",
    "loose",
    "merge",
    "row_groups",
    "tiers",
    "unite",
    "write_all",
]

#: whole rows a merge holds at once: about 32 MB of `seen`, several times over while they are sorted and
#: written
RANGE_ROWS: Final = 65_536
#: Arrow bytes sorted in memory where rows have no single key to cut ranges by
_SORT_BYTES: Final = 64 << 20
_GATHERED: Final = "gathered-"
#: files of one day, or of a table without days, that are many enough to be gathered before the day has passed
_MANY: Final = 256
_SOME: Final = 32

Rows = Iterator[pa.Table]


@dataclass(frozen=True, slots=True)
class Merge:
    """Runs to be merged into one."""

    runs: tuple[Run, ...]
    name: Name

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """Inputs, oldest first."""
        return tuple(file for run in self.runs for file in run.files)


def tiers(entries: Sequence[FileEntry], ratio: int) -> Merge | None:
    """What to merge next in a table of runs; None when every level holds fewer runs than `ratio`.

    A level that is full takes the next one along if that becomes full by it, so nothing is written twice.
    Foreign files are merged with every run whose rounds they may touch.
    """
    grouped = list(reversed(runs.group(entries)))
    foreign = [run for run in grouped if run.foreign]
    if foreign:
        return _with_foreign(grouped, foreign)
    ratio = max(2, ratio)  # a run alone is no tier
    by_level: dict[int, list[Run]] = {}
    for run in grouped:
        by_level.setdefault(run.name.level, []).append(run)
    full = [level for level, some in by_level.items() if len(some) >= ratio]
    if not full:
        return None
    level = min(full)
    taken = by_level[level]
    while len(by_level.get(level + 1, ())) + 1 >= ratio:
        level += 1
        taken = by_level.get(level, []) + taken
    return _merge_of(taken, level + 1)


def _with_foreign(grouped: Sequence[Run], foreign: Sequence[Run]) -> Merge:
    spans = [file.bounds("round") for run in foreign for file in run.files]
    first = min((span[0] for span in spans if span), default=0)
    last = max((span[1] for span in spans if span), default=runs.NEVER)
    if any(span is None for span in spans):
        first, last = 0, runs.NEVER
    taken: list[Run] = []
    left = [run for run in grouped if not run.foreign]
    while more := [run for run in left if run.name.first <= last and run.name.last >= first]:
        taken += more
        left = [run for run in left if run not in more]
        first, last = min(first, *(r.name.first for r in more)), max(last, *(r.name.last for r in more))
    if last == runs.NEVER:
        last = max((run.name.last for run in taken), default=0)
    level = max((run.name.level for run in taken), default=1)
    both = sorted(taken, key=lambda run: run.name.first) + list(foreign)
    return Merge(tuple(both), Name(max(level, 1), first, last))


def _merge_of(taken: Sequence[Run], level: int) -> Merge:
    first, last = min(run.name.first for run in taken), max(run.name.last for run in taken)
    return Merge(tuple(sorted(taken, key=lambda run: run.name.first)), Name(level, first, last))


def merge(store: Store, todo: Merge, target_bytes: int) -> list[FileEntry]:
    """Write the merged run, in files of about `target_bytes`."""
    table = todo.files[0].table
    key = runs.KEYS[table]
    reduce: Callable[[pa.Table], pa.Table] = (
        _summed if table == "signals" else lambda rows: runs.newest(rows, key)
    )
    return write_all(
        store,
        table,
        _by_key(store, todo.files, key, reduce),
        target_bytes=target_bytes,
        bytes_per_row=_bytes_per_row(todo.files),
        name=lambda: runs.name(todo.name.level, todo.name.first, todo.name.last),
    )


def _by_key(
    store: Store, inputs: Sequence[FileEntry], key: str, reduce: Callable[[pa.Table], pa.Table]
) -> Rows:
    """Rows of all inputs, range by range, ascending by key."""
    sources = [(key, file) for file in inputs]
    columns = SPECS[inputs[0].table].stored.names
    with ranges.Sweep(store, sources, columns) as sweep:
        for lo, hi in ranges.cut(store, sources, RANGE_ROWS):
            rows = pa.concat_tables(sweep.take(lo, hi))
            if rows.num_rows:
                yield reduce(rows)


def _summed(rows: pa.Table) -> pa.Table:
    """Signals of each URL over all rounds given; the newest round names the sum."""
    total = rows.group_by("url_key", use_threads=False).aggregate(
        [("round", "max"), ("in_links", "sum"), ("best_depth", "min"), ("best_score", "max")]
    )
    named = total.select(["url_key", "round_max", "in_links_sum", "best_depth_min", "best_score_max"])
    return named.rename_columns(["url_key", "round", "in_links", "best_depth", "best_score"]).sort_by(
        "url_key"
    )


def _first_stored(rows: pa.Table) -> pa.Table:
    """One row per text, as first stored; ascending by document_key."""
    ordered = rows.sort_by(_ascending(["document_key", "round", "first_url_key"]))
    keys = ordered["document_key"].to_numpy()
    first = [True, *(keys[1:] != keys[:-1]).tolist()]
    return ordered.filter(pa.array(first))


def is_gathered(entry: FileEntry) -> bool:
    """Was this file written by `unite`? It is not gathered again."""
    return entry.name.startswith(_GATHERED)


def loose(entries: Sequence[FileEntry], today: date) -> list[list[FileEntry]]:
    """Files worth gathering, by day.

    Of a day before `today` two are enough; of today, or of a table without days, it takes many.
    """
    by_day: dict[str, list[FileEntry]] = {}
    for entry in entries:
        if not is_gathered(entry):
            by_day.setdefault(entry.partition.get("day", ""), []).append(entry)
    found = []
    for day, some in sorted(by_day.items()):
        enough = _SOME if not day else 2 if day < today.isoformat() else _MANY
        if len(some) >= enough:
            found.append(some)
    return found


def unite(store: Store, inputs: Sequence[FileEntry], target_bytes: int) -> list[FileEntry]:
    """Write the rows of some files of one table and day into as few as may be; a text only once."""
    table = inputs[0].table
    sort = SPECS[table].sort
    if table == "documents":
        rows = _by_key(store, inputs, "document_key", _first_stored)
    elif len(sort) == 1:
        order = _ascending([sort[0], "round"])
        rows = _by_key(store, inputs, sort[0], lambda part: part.sort_by(order))
    elif sort:
        return _sorted_apart(store, inputs, sort)
    else:
        rows = (part for file in inputs for part in row_groups(store, file))
    day = inputs[0].partition.get("day")
    return write_all(
        store,
        table,
        rows,
        target_bytes=target_bytes,
        bytes_per_row=_bytes_per_row(inputs),
        name=gathered_name,
        day=date.fromisoformat(day) if day else None,
    )


def _sorted_apart(store: Store, inputs: Sequence[FileEntry], sort: Sequence[str]) -> list[FileEntry]:
    """Where no single key cuts ranges: as many files together as can be sorted in memory."""
    order = _ascending(sort)
    day = inputs[0].partition.get("day")
    out, waiting, held = [], [], 0
    for number, file in enumerate(inputs):
        rows = files.read(store, file)
        waiting.append(rows)
        held += rows.nbytes
        if held >= _SORT_BYTES or number == len(inputs) - 1:
            together = pa.concat_tables(waiting).sort_by(order)
            waiting, held = [], 0
            out.append(
                files.write(
                    store,
                    file.table,
                    together,
                    name=gathered_name(),
                    day=date.fromisoformat(day) if day else None,
                )
            )
    return out


def _ascending(names: Sequence[str]) -> list[tuple[str, Literal["ascending", "descending"]]]:
    return [(name, "ascending") for name in names]


def gathered_name() -> str:
    """A new name that says the file was gathered from others."""
    return f"{_GATHERED}{secrets.token_hex(8)}.parquet"


def row_groups(store: Store, file: FileEntry) -> Rows:
    """Rows of a file, a row group at a time."""
    with ranges.opened(store, file) as parquet:
        for number in range(parquet.metadata.num_row_groups):
            yield complete(file.table, parquet.read_row_group(number, use_threads=False))


def _bytes_per_row(inputs: Sequence[FileEntry]) -> float:
    return sum(file.size for file in inputs) / max(1, sum(file.rows for file in inputs))


def write_all(
    store: Store,
    table: str,
    rows: Rows,
    *,
    target_bytes: int,
    bytes_per_row: float,
    name: Callable[[], str],
    day: date | None = None,
) -> list[FileEntry]:
    """Write batches into files of about `target_bytes`, judged by the inputs' `bytes_per_row`; none for
    no rows.

    When it fails, files already finished are deleted: nobody knows them yet.
    """
    limit = max(RANGE_ROWS, int(target_bytes / max(bytes_per_row, 1e-9)))
    batches = (batch for batch in rows if batch.num_rows)
    done: list[FileEntry] = []
    try:
        for first in batches:
            with files.Writer(store, table, name=name(), day=day) as writer:
                writer.add(first)
                while writer.rows < limit and (batch := next(batches, None)) is not None:
                    writer.add(batch)
            done.append(writer.entry)
    except BaseException:
        store.delete([entry.location for entry in done])
        raise
    return done
