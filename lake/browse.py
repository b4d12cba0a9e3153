"""A lake for notebooks: SQL in, pandas out, at the newest round or as an earlier one left it.

    from lake.browse import browse
    lake = browse("my-lake")            # or s3://bucket/prefix
    lake.sql("SELECT state, count(*) AS urls FROM urls GROUP BY state")
    lake.at(1).frame("pages")

What always holds: it reads one round, whole, whatever is written meanwhile; it writes nothing. Whole numbers
stay whole: a column of them that has nulls is one of pandas' nullable integers, since a key made a float
would be another key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pandas as pd
import pyarrow as pa

from crawl.errors import UsageError
from crawl.schema import TABLES
from lake import identity, snapshot, sql
from lake.snapshot import Snapshot
from lake.store import Store, connect

__all__ = ["Browsed", "browse"]

_NULLABLE: Final[Mapping[pa.DataType, pd.api.extensions.ExtensionDtype]] = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
}


@dataclass(frozen=True, slots=True)
class Browsed:
    """A lake at one round."""

    store: Store
    snapshot: Snapshot
    now: datetime  # what `due` means in the view `urls`

    @property
    def round(self) -> int:
        """The round that is shown; 0 before the first."""
        return self.snapshot.round

    @property
    def rounds(self) -> list[int]:
        """Rounds up to this one."""
        numbers = {row["round"] for row in snapshot.entries(self.store).select(["round"]).to_pylist()}
        return sorted(number for number in numbers if number <= self.round)

    def at(self, round_: int) -> Browsed:
        """The lake as that round left it. Raises UsageError for a round that was never committed."""
        return Browsed(self.store, snapshot.at(self.store, round_), self.now)

    def sql(self, statement: str) -> pd.DataFrame:
        """The answer to a statement that reads. Raises UsageError with DuckDB's reason."""
        with sql.connect(self.store, self.snapshot, self.now) as reader:
            return _frame(reader.ask(statement).table())

    def frame(self, view: str) -> pd.DataFrame:
        """A table or view, whole. Raises UsageError for a name that is none."""
        names = (*TABLES, *sql.VIEWS)
        if view not in names:
            raise UsageError(f"no table or view {view!r}; there are: {', '.join(names)}")
        return self.sql(f'SELECT * FROM "{view}"')

    def __repr__(self) -> str:
        return f"Browsed({self.store.root!r}, round={self.round})"


def browse(root: str | os.PathLike[str], now: datetime | None = None) -> Browsed:
    """Open a lake at its newest round. `now` (default: real time) is what `due` means.

    Raises NoSuchLake, NewerFormat, LakeError.
    """
    store = connect(root)
    identity.load(store)
    return Browsed(store, snapshot.latest(store), now or datetime.now(UTC))


def _frame(rows: pa.Table) -> pd.DataFrame:
    """Rows in pandas, whole numbers exact."""
    frame: pd.DataFrame = rows.to_pandas()
    for at, column in enumerate(rows.columns):
        if column.null_count and column.type in _NULLABLE:
            frame.isetitem(at, column.to_pandas(types_mapper=_NULLABLE.get).array)
    return frame
