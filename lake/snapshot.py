"""A lake as one round left it: a Delta version for every table, taken from `rounds`.

What always holds: a snapshot never mixes rounds. Tables that commands write between rounds (seeds,
suppressions, audit) and `rounds` itself are taken as they are now by `latest`, and as the round had them by
`at`. It opens no data but the rows of `rounds`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crawl.errors import UsageError
from lake import delta
from lake.entries import FileEntry
from lake.files import read
from lake.store import Store
from lake.tables import OUTSIDE, SPECS

__all__ = ["Snapshot", "at", "entries", "heads", "latest", "newest"]


class Snapshot:
    """Versions of all tables, and their files (listed once a table, then kept).

    `round` is the round it belongs to; 0 before the first. Rows of `rounds` above it are no part of it.
    """

    def __init__(self, store: Store, versions: Mapping[str, int], round_number: int = 0) -> None:
        self.store = store
        self.versions: Mapping[str, int] = dict(versions)
        self.round = round_number
        self._files: dict[str, list[FileEntry]] = {}
        self._listed: dict[str, delta.Listing] = {}

    def __repr__(self) -> str:
        return f"Snapshot({self.store.root!r}, round={self.round})"

    def files(self, table: str) -> list[FileEntry]:
        """Files of a table at its version; none for a table this lake does not have yet."""
        if table not in self._files:
            pinned = self.versions.get(table)
            if pinned is not None:
                self._listed[table] = delta.listing(self.store, table, pinned)
            self._files[table] = self._listed[table].files if pinned is not None else []
        return self._files[table]

    def lacking(self, table: str) -> frozenset[str]:
        """Columns that files of this table may lack, because it was made before there were any."""
        self.files(table)
        listed = self._listed.get(table)
        return frozenset() if listed is None else frozenset(SPECS[table].schema.names) - listed.began

    def missing(self) -> dict[str, frozenset[str]]:
        """Columns that tables of this lake do not have yet, by table."""
        self.load()
        wanted = {
            table: frozenset(SPECS[table].schema.names) - listed.began - listed.added
            for table, listed in self._listed.items()
        }
        return {table: names for table, names in wanted.items() if names}

    def load(self, *tables: str) -> Snapshot:
        """List the files of several tables (none named: all) at once, in parallel. Returns itself."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.files, tables or tuple(self.versions)))
        return self


def heads(store: Store, tables: tuple[str, ...] = tuple(SPECS)) -> dict[str, int]:
    """Newest version of each table that exists."""
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(
            lambda table: delta.version(store, table) if delta.exists(store, table) else None, tables
        )
        return {table: number for table, number in zip(tables, found, strict=True) if number is not None}


def entries(store: Store, round_number: int | None = None) -> pa.Table:
    """Rows of `rounds` (of one round, if given), oldest first: by round, then by committed_at."""
    return _rows(store, delta.files(store, "rounds"), round_number)


def newest(store: Store) -> dict[str, Any] | None:
    """The newest row of `rounds` (an upkeep of round r comes after round r); None before the first round."""
    listed = delta.files(store, "rounds")
    spans = [span[1] for entry in listed if (span := entry.bounds("round"))]
    return _rows(store, listed, max(spans)).to_pylist()[-1] if spans else None


def latest(store: Store) -> Snapshot:
    """The lake as the newest round (or its upkeep) left it; table heads before the first."""
    row = newest(store)
    if row is None:
        return Snapshot(store, heads(store))
    return Snapshot(store, {**json.loads(row["versions"]), **heads(store, OUTSIDE)}, row["round"])


def at(store: Store, round_number: int) -> Snapshot:
    """The lake as a round left it, with what upkeep has since rewritten of it.

    Raises UsageError for a round that was never committed, LakeError where its versions are no longer kept.
    """
    rows = entries(store, round_number).to_pylist()
    if not rows:
        last = newest(store)
        known = f"the newest is {last['round']}" if last else "no round was committed yet"
        raise UsageError(f"no round {round_number} in {store.root}: {known}")
    versions = {**json.loads(rows[-1]["versions"]), **heads(store, ("rounds",))}
    return Snapshot(store, versions, round_number)


def _rows(store: Store, listed: Sequence[FileEntry], round_number: int | None) -> pa.Table:
    wanted = []
    for entry in listed:
        span = entry.bounds("round")
        if round_number is None or span is None or span[0] <= round_number <= span[1]:
            wanted.append(read(store, entry))
    rows = pa.concat_tables(wanted) if wanted else SPECS["rounds"].stored.empty_table()
    if round_number is not None:
        rows = rows.filter(pc.equal(rows["round"], pa.scalar(round_number, pa.int64())))
    return rows.sort_by([("round", "ascending"), ("committed_at", "ascending")])
