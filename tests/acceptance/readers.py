"""The programs that read a lake: `crawl sql`, DuckDB over the files, Polars, and deltalake in both its ways.

Each opens one table at one Delta version and answers a filter with the rows it keeps, told by their `names`
columns. `Pinned` says which version a round names for a table, as any outside program would find it: from the
newest row of `rounds` for that round. `rounds` is read at its head, without the rows above the round.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from click.testing import CliRunner
from deltalake import DeltaTable, QueryBuilder

from crawl.schema import TABLES
from cycles.cli import command

__all__ = ["READERS", "Answer", "Filter", "Pinned", "Reader", "ask", "names"]

#: rows of an answer, told by the columns that name them
Answer = list[tuple[Any, ...]]

#: columns that name a row; no times among them, so that every reader gives the same Python values
_NAMES: Mapping[str, str] = {
    "seeds": "url kind priority",
    "seen": "url_key round",
    "signals": "url_key round",
    "frontier": "round group position host reason",
    "fetches": "round url_key kind attempt hop url",
    "bodies": "round body_hash",
    "documents": "round document_key",
    "links": "round source_key target_url anchor via depth",
    "rejects": "round stage reason host template",
    "clusters": "round url_key head_key",
    "hosts": "host_key round",
    "robots": "origin round version",
    "outbox": "event_id",
    "suppressions": "kind pattern reason",
    "audit": "action subject detail",
    "rounds": "round kind fence",
}


def names(table: str) -> list[str]:
    """The columns that name a row of a table."""
    return _NAMES[table].split()


@dataclass(frozen=True, slots=True)
class Filter:
    """`column = value`; `column IS NULL` where there is no value."""

    column: str
    value: Any = None

    @property
    def sql(self) -> str:
        """As both DuckDB and DataFusion understand it."""
        column = f'"{self.column}"'
        return f"{column} IS NULL" if self.value is None else f"{column} = {_literal(self.value)}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"TIMESTAMPTZ '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, int):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A table as a round names it."""

    root: Path
    table: str
    round: int
    version: int

    @classmethod
    def find(cls, root: Path, table: str, round_: int) -> Pinned:
        """Look into `rounds`."""
        rounds = DeltaTable(root / "rounds")
        rows = [row for row in rounds.to_pyarrow_table().to_pylist() if row["round"] == round_]
        newest = max(rows, key=lambda row: row["committed_at"])
        versions = json.loads(newest["versions"])
        return cls(root, table, round_, rounds.version() if table == "rounds" else versions[table])

    @property
    def path(self) -> str:
        return str(self.root / self.table)

    @property
    def above(self) -> int | None:
        """Rows of a higher round are no part of it; None where there are none."""
        return self.round if self.table == "rounds" else None


class Reader(ABC):
    """One program with one table open."""

    def __init__(self, pinned: Pinned) -> None:
        self.pinned = pinned
        self.names = names(pinned.table)

    def answers(self, filters: Sequence[Filter | None]) -> list[Answer]:
        """The rows that each filter keeps (None: all), in order of their names."""
        return [_sorted(self.keep(each)) for each in filters]

    @abstractmethod
    def keep(self, filter_: Filter | None) -> pa.Table:
        """The `names` columns of the rows that a filter keeps."""

    def select(self, filter_: Filter | None, source: str, *before: str) -> str:
        """The question in SQL."""
        columns = ", ".join([*before, *(f'"{name}"' for name in self.names)])
        return f"SELECT {columns} FROM {source}" + (f" WHERE {filter_.sql}" if filter_ else "")


def _sorted(rows: pa.Table) -> Answer:
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True), key=repr)


class CrawlSql(Reader):
    """`crawl sql LAKE … --round N --format parquet`, in this process; all filters in one statement."""

    def answers(self, filters: Sequence[Filter | None]) -> list[Answer]:
        table = self.pinned.table
        parts = [self.select(each, table, f"{number} AS which") for number, each in enumerate(filters)]
        rows = ask(self.pinned.root, " UNION ALL ".join(parts), self.pinned.round)
        return [
            _sorted(rows.filter(pc.field("which") == n).drop_columns("which")) for n in range(len(filters))
        ]

    def keep(self, filter_: Filter | None) -> pa.Table:
        return ask(self.pinned.root, self.select(filter_, self.pinned.table), self.pinned.round)


def ask(root: Path, statement: str, round_: int) -> pa.Table:
    """The answer of `crawl sql` for a round. Raises AssertionError with what it said instead."""
    words = ["sql", str(root), statement, "--round", str(round_), "--format", "parquet"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    rows: pa.Table = pq.read_table(io.BytesIO(done.stdout_bytes))
    return rows


class DuckDb(Reader):
    """DuckDB over the files of the version."""

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(config={"threads": 2})
        connection.execute("SET TimeZone = 'UTC'")
        found = self.pinned
        table = DeltaTable(found.path, version=found.version)
        files = [path.removeprefix("file://") for path in table.file_uris()]
        if files:
            body = f"SELECT * FROM read_parquet({files}, hive_types_autocast = true)"
        else:  # an empty table has no file that says its columns
            connection.register("nothing", TABLES[found.table].empty_table())
            body = "SELECT * FROM nothing"
        below = "" if found.above is None else f" WHERE round <= {found.above}"
        connection.execute(f"CREATE VIEW found AS {body}{below}")
        return connection

    def keep(self, filter_: Filter | None) -> pa.Table:
        rows: pa.Table = self._connection.sql(self.select(filter_, "found")).to_arrow_table()
        return rows


class Polars(Reader):
    """Polars' own Delta reader."""

    @cached_property
    def _frame(self) -> pl.LazyFrame:
        frame = pl.scan_delta(self.pinned.path, version=self.pinned.version)
        return frame if self.pinned.above is None else frame.filter(pl.col("round") <= self.pinned.above)

    def keep(self, filter_: Filter | None) -> pa.Table:
        frame = self._frame
        if filter_ is not None:
            column = pl.col(filter_.column)
            frame = frame.filter(column.is_null() if filter_.value is None else column == filter_.value)
        return frame.select(self.names).collect().to_arrow()


class DeltaDataset(Reader):
    """deltalake's `to_pyarrow_dataset`: files are left out by the statistics of the log."""

    @cached_property
    def _dataset(self) -> ds.Dataset:
        return DeltaTable(self.pinned.path, version=self.pinned.version).to_pyarrow_dataset()

    def keep(self, filter_: Filter | None) -> pa.Table:
        wanted = None if self.pinned.above is None else ds.field("round") <= self.pinned.above
        if filter_ is not None:
            field = ds.field(filter_.column)
            kind = self._dataset.schema.field(filter_.column).type
            this = field.is_null() if filter_.value is None else field == pa.scalar(filter_.value, kind)
            wanted = this if wanted is None else wanted & this
        return self._dataset.to_table(columns=self.names, filter=wanted)


class DeltaQuery(Reader):
    """deltalake's `QueryBuilder` (DataFusion)."""

    @cached_property
    def _builder(self) -> QueryBuilder:
        return QueryBuilder().register("found", DeltaTable(self.pinned.path, version=self.pinned.version))

    def keep(self, filter_: Filter | None) -> pa.Table:
        above = self.pinned.above
        source = "found" if above is None else f"(SELECT * FROM found WHERE round <= {above})"
        return pa.table(self._builder.execute(self.select(filter_, source)).read_all())


READERS: Sequence[type[Reader]] = (CrawlSql, DuckDb, Polars, DeltaDataset, DeltaQuery)
