"""Do the data files keep their promises? What `crawl check` asks that neither SQL nor a footer alone can
show.

What always holds: a check only reads, answers with what violates it, and says nothing where it holds.
Memory is bounded by the key column of a row group. Invariants of rows are `lake/sql/check-*.sql`. It
repairs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pyarrow.parquet as pq

from crawl.errors import LakeError
from lake import ranges, runs
from lake.entries import FileEntry
from lake.snapshot import Snapshot
from lake.store import Store
from lake.tables import SPECS

__all__ = ["disordered", "overlapping"]


def disordered(store: Store, snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Files whose key does not ascend, or lies outside the bounds that the log tells.

    A foreign file among runs may be in any order: it is sorted when read.
    """
    for table, spec in SPECS.items():
        if len(spec.sort) != 1:
            continue
        for file in snapshot.files(table):
            foreign = table in runs.KEYS and runs.parse(file.path).level < 0
            try:
                with ranges.opened(store, file) as parquet:
                    faults = list(_faults(file, parquet, spec.sort[0], ordered=not foreign))
            except LakeError:  # missing or damaged: the checks of sizes and footers tell
                continue
            for what in faults:
                yield {"file": file.location, "what": what}


def _faults(file: FileEntry, parquet: pq.ParquetFile, key: str, *, ordered: bool) -> Iterator[str]:
    told = file.bounds(key)
    last: int | None = None
    for number in range(parquet.metadata.num_row_groups):
        keys, ascending = ranges.read_keys(parquet, number, key)
        if not len(keys):
            continue
        if ordered and (not ascending or (last is not None and int(keys[0]) < last)):
            yield f"{key} does not ascend in row group {number}"
        last = int(keys[-1])
        low, high = int(keys.min()), int(keys.max())
        if told is not None and (low < told[0] or high > told[1]):
            yield f"{key} spans {low} to {high} in row group {number}, the log says {told[0]} to {told[1]}"


def overlapping(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Runs of one table that claim the same rounds: which of their rows is newest would be unclear."""
    for table in runs.KEYS:
        ours = [run for run in runs.group(snapshot.files(table)) if not run.foreign]
        for newer, older in combinations(ours, 2):
            if newer.name.first <= older.name.last and older.name.first <= newer.name.last:
                yield {"table": table, "one": newer.files[0].path, "other": older.files[0].path}
