"""Sorted runs: how `seen`, `signals` and `hosts` are laid out, and how a key is found in them.

A run is what one round, or one compaction, wrote: files sorted by key that share (level, first round, last
round) in their names, `run-L<level>-<first>-<last>-<id>.parquet`. Runs of a table cover disjoint spans of
rounds, so the newest row of a key lies in the newest run that has it. A file named otherwise (a foreign
OPTIMIZE) is a run of unknown rounds and is sorted when read.

What always holds: `known` and `rows` are exact; files are streamed by row group, so memory is bounded by a
row group and the answer; row groups whose bounds exclude all keys asked for are not decoded.

What it does not do: it decides nothing about compaction (`lake.compaction`) and writes nothing.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl.schema import TABLES
from lake import ranges
from lake.entries import FileEntry
from lake.ranges import MAX, MIN, Keys, Mask
from lake.store import Store
from lake.tables import complete

__all__ = [
    "KEYS",
    "NEVER",
    "Name",
    "Run",
    "files_meeting",
    "group",
    "key_batches",
    "known",
    "known_texts",
    "name",
    "newest",
    "newest_in",
    "parse",
    "rows",
]

#: key column of every table that is laid out as runs
KEYS: Final = {"seen": "url_key", "signals": "url_key", "hosts": "host_key"}

#: last round of a file that does not say: newer than any
NEVER: Final = MAX

_NAME: Final = re.compile(r"run-L(\d+)-(\d+)-(\d+)-[0-9A-Za-z]+\.parquet")


@dataclass(frozen=True, slots=True)
class Name:
    """What a run's file name says. `level` -1: nothing."""

    level: int
    first: int
    last: int


_FOREIGN: Final = Name(-1, 0, NEVER)


@dataclass(frozen=True, slots=True)
class Run:
    """Files of one run."""

    name: Name
    files: tuple[FileEntry, ...]

    @property
    def rows(self) -> int:
        """Rows of all its files."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(file.size for file in self.files)

    @property
    def foreign(self) -> bool:
        """Not written by this software: unsorted, of unknown rounds."""
        return self.name.level < 0


def name(level: int, first: int, last: int, id: str | None = None) -> str:
    """File name of (a part of) a run over rounds `first` to `last`; `id` None = random."""
    return f"run-L{level}-{first:08d}-{last:08d}-{id or secrets.token_hex(8)}.parquet"


def parse(path: str) -> Name:
    """What the last part of a path says; level -1 where it is not one of our names."""
    found = _NAME.fullmatch(path.rsplit("/", 1)[-1])
    return Name(*map(int, found.groups())) if found else _FOREIGN


def group(files: Sequence[FileEntry]) -> list[Run]:
    """Runs, newest rounds first; foreign files, which may hold anything, before all others."""
    by_name: dict[Name, list[FileEntry]] = {}
    for file in files:
        by_name.setdefault(parse(file.path), []).append(file)
    return [Run(key, tuple(by_name[key])) for key in sorted(by_name, key=lambda n: (-n.last, n.level))]


def files_meeting(files: Sequence[FileEntry], column: str, lo: Any, hi: Any) -> list[FileEntry]:
    """Files that may hold values from `lo` to `hi` in a column."""
    told = ((file, file.bounds(column)) for file in files)
    return [file for file, bound in told if bound is None or (bound[0] <= hi and bound[1] >= lo)]


def key_batches(
    store: Store, files: Sequence[FileEntry], lo: int = MIN, hi: int = MAX, column: str | None = None
) -> Iterator[Keys]:
    """Keys from `lo` to `hi`, one sorted array a row group; a key comes once for every row that has it.

    `column` None = the key column of the files' table.
    """
    for file in files:
        key = column or KEYS[file.table]
        if not files_meeting([file], key, lo, hi):
            continue
        for keys in _key_groups(store, file, key, ranges.spans(store, file, key).meeting(lo, hi)):
            yield keys[np.searchsorted(keys, lo) : np.searchsorted(keys, hi, side="right")]


def _key_groups(store: Store, file: FileEntry, column: str, groups: Sequence[int]) -> Iterator[Keys]:
    if not groups:
        return
    with ranges.opened(store, file) as parquet:
        for number in groups:
            keys, ascending = ranges.read_keys(parquet, number, column)
            yield keys if ascending else np.sort(keys)


def known(store: Store, files: Sequence[FileEntry], keys: Keys, column: str | None = None) -> Mask:
    """For each of the ascending, distinct `keys`: does any file have it?

    `column` None = the key column of the files' table.
    """
    keys = np.asarray(keys, dtype=np.int64)
    found = np.zeros(len(keys), dtype=bool)
    if not len(keys) or not files:
        return found
    key = column or KEYS[files[0].table]
    for file in files_meeting(files, key, int(keys[0]), int(keys[-1])):
        spans = ranges.spans(store, file, key)
        starts, stops = _asked(spans, keys)
        asked = np.flatnonzero(stops > starts)
        for number, there in zip(asked, _key_groups(store, file, key, asked.tolist()), strict=True):
            part = keys[starts[number] : stops[number]]
            found[starts[number] : stops[number]] |= _members(part, there)
    return found


def _asked(spans: ranges.Spans, keys: Keys) -> tuple[Keys, Keys]:
    """For each row group, which part of the ascending `keys` lies within its bounds."""
    return np.searchsorted(keys, spans.lo), np.searchsorted(keys, spans.hi, side="right")


def _members(keys: Keys, there: Keys) -> Mask:
    """Which of `keys` are among the ascending `there`."""
    at = np.searchsorted(there, keys)
    at[at == len(there)] = 0
    return np.asarray(there[at] == keys) if len(there) else np.zeros(len(keys), dtype=bool)


def known_texts(store: Store, files: Sequence[FileEntry], texts: pa.StringArray, column: str) -> Mask:
    """For each of the distinct `texts` (say body hashes, in any order): does any file have it in `column`?"""
    found = np.zeros(len(texts), dtype=bool)
    if not len(texts):
        return found
    ends = pc.min_max(texts)
    for file in files_meeting(files, column, ends["min"].as_py(), ends["max"].as_py()):
        with ranges.opened(store, file) as parquet:
            for number in range(parquet.metadata.num_row_groups):
                there = parquet.read_row_group(number, columns=[column], use_threads=False).column(0)
                hits = pc.index_in(there, value_set=texts).drop_null().to_numpy()
                found[hits] = True
    return found


def newest(rows: pa.Table, key: str) -> pa.Table:
    """One row per key, that of the newest `round`, ascending by key; of several in one round the last."""
    keys, rounds = rows.column(key).to_numpy(), rows.column("round").to_numpy()
    order = np.lexsort((rounds, keys))  # stable: what was given later comes later
    ordered = keys[order]
    last = np.append(ordered[1:] != ordered[:-1], True) if len(ordered) else np.zeros(0, bool)
    chosen = order[last]
    if len(chosen) == len(keys) and np.array_equal(chosen, np.arange(len(keys))):
        return rows
    return rows.take(pa.array(chosen))


def rows(
    store: Store, files: Sequence[FileEntry], keys: Keys, columns: Sequence[str] | None = None
) -> pa.Table:
    """The newest whole row of each of the ascending, distinct `keys` that is there, ascending by key.

    `columns` None = all of the table. Runs are asked newest first, older ones only for keys not found yet.
    """
    if not files:
        raise ValueError("no files to read rows from")
    keys = np.asarray(keys, dtype=np.int64)
    key = KEYS[files[0].table]
    wanted = list(columns) if columns is not None else TABLES[files[0].table].names
    read = list(dict.fromkeys([*wanted, key, "round"]))
    found: list[pa.Table] = []
    left = keys
    for run in group(files):
        if not len(left):
            break
        parts = [
            part
            for file in files_meeting(run.files, key, int(left[0]), int(left[-1]))
            for part in _matching(store, file, key, left, read)
        ]
        found.extend(reversed(parts))
        if parts and not run.foreign:
            there = np.concatenate([part.column(key).to_numpy() for part in parts])
            left = left[~_members(left, np.unique(there))]
    if not found:
        schema = TABLES[files[0].table]
        return schema.empty_table().select(wanted)
    return newest(pa.concat_tables(reversed(found)), key).select(wanted)


def _matching(store: Store, file: FileEntry, key: str, keys: Keys, columns: list[str]) -> Iterator[pa.Table]:
    """Rows of a file whose key is among `keys`, one table a row group.

    Columns beside the key are read only in row groups where one matches.
    """
    starts, stops = _asked(ranges.spans(store, file, key), keys)
    with ranges.opened(store, file) as parquet:
        for number in np.flatnonzero(stops > starts).tolist():
            part = keys[starts[number] : stops[number]]
            there = parquet.read_row_group(number, columns=[key], use_threads=False).column(0).to_numpy()
            mask = _members(there, part)
            if mask.any():
                found = parquet.read_row_group(number, columns=columns, use_threads=False)
                yield complete(file.table, found.filter(pa.array(mask)), columns).select(columns)


def newest_in(
    store: Store, files: Sequence[FileEntry], lo: int, hi: int, columns: Sequence[str] | None = None
) -> pa.Table:
    """The newest row of every key from `lo` to `hi`, ascending by key: how a compaction reads one range."""
    key = KEYS[files[0].table]
    wanted = list(columns) if columns is not None else TABLES[files[0].table].names
    read = list(dict.fromkeys([*wanted, key, "round"]))
    parts = [
        ranges.slice(store, file, key, lo, hi, read)
        for run in reversed(group(files))
        for file in files_meeting(run.files, key, lo, hi)
    ]
    if not parts:
        return TABLES[files[0].table].empty_table().select(wanted)
    return newest(pa.concat_tables(parts), key).select(wanted)
