"""Data files: rows in, a file in its final place and its log entry out. Nothing is visible until committed.

What always holds: a file has exactly its table's columns and types, no null where the table allows none, rows
in the table's order (checked, not sorted), the promised statistics, and a name that was never used before.
Work files (`write_work`) are plain Parquet of any columns, for what passes between the stages of one round.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import date
from types import TracebackType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crawl import schema as words
from crawl.errors import UsageError
from lake.entries import FileEntry, Spans
from lake.store import Output, Store, advice
from lake.tables import Spec, complete, spec

__all__ = ["FileEntry", "Writer", "new_name", "read", "read_work", "write", "write_work", "write_work_parts"]

#: rows a row group; enough for key columns to pack well, few enough to skip
ROW_GROUP: Final = 131_072
#: Arrow bytes a row group may hold: tables of texts and bodies get fewer rows
_GROUP_BYTES: Final = 32 << 20
#: texts whose values rarely repeat: a dictionary only costs; statistics of them help nobody
# fmt: off
_WIDE: Final = frozenset({
    "url", "discovered_url", "target_url", "next_url", "canonical_hint", "text", "title", "description",
    "anchor", "bytes", "minhash", "etag", "response_headers", "content_hash", "body_hash", "event_id",
    "example", "settings", "counts", "versions", "plan", "actual", "last_error", "sitemaps", "addresses",
})
# fmt: on


def new_name(round_number: int = 0) -> str:
    """A file name nobody used before; it begins with the round only for the eye."""
    return f"{round_number:08d}-{secrets.token_hex(6)}.parquet"


def write(
    store: Store, table: str, rows: pa.Table, *, name: str | None = None, day: date | None = None
) -> FileEntry:
    """Write rows as one file of a table, in its final place.

    `rows`: the table's columns in any order (`day` may be left out); sorted as the table wants it. `day`: the
    partition; without it, the one day in the column `day`. Raises UsageError for no rows, wrong columns,
    nulls where none may be, or rows out of order; LakeError for storage.
    """
    if not rows.num_rows:
        raise UsageError(f"{table}: no rows to write; leave the file out")
    if name is None:
        rounds = pc.max(rows["round"]).as_py() if "round" in rows.column_names else 0
        name = new_name(rounds or 0)
    with Writer(store, table, name=name, day=day or _day(table, rows)) as writer:
        writer.add(rows)
    return writer.entry


class Writer:
    """One file from many batches: `with Writer(…) as w: w.add(rows)`, then `w.entry`.

    Leaving the block by an error leaves nothing behind. Batches are gathered into row groups.
    """

    def __init__(self, store: Store, table: str, *, name: str | None = None, day: date | None = None) -> None:
        self._spec: Final[Spec] = spec(table)
        if bool(self._spec.partition) != (day is not None):
            raise UsageError(f"{table}: a day is given exactly for tables partitioned by day, got {day}")
        self._store = store
        self._partition = {"day": day.isoformat()} if day else {}
        self._path = (f"day={day.isoformat()}/" if day else "") + (name or new_name())
        self._columns = pa.schema([f.remove_metadata() for f in self._spec.stored])
        self._spans = Spans(self._spec.stats)
        self._required = [n for n in words.required(self._spec.schema) if n in self._columns.names]
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self._last: pa.Table | None = None
        self._entry: FileEntry | None = None
        self._output: Output = store.open_write(f"{table}/{self._path}")
        self._parquet = _parquet(self._output.sink, self._columns, self._spec.sort)

    @property
    def entry(self) -> FileEntry:
        """The finished file. Raises UsageError before the end of the block."""
        if self._entry is None:
            raise UsageError(f"{self._path} is not finished")
        return self._entry

    @property
    def rows(self) -> int:
        """Rows added so far."""
        return self._spans.rows

    def add(self, rows: pa.Table) -> None:
        """Append rows. Raises as `write` does."""
        if not rows.num_rows:
            return
        batch = self._fit(rows)
        self._check(batch)
        self._spans.add(batch)
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows >= ROW_GROUP or self._waiting_bytes >= _GROUP_BYTES:
            self._flush(last=False)

    def _fit(self, rows: pa.Table) -> pa.Table:
        want = set(self._columns.names)
        have = set(rows.column_names)
        if have - set(self._spec.partition) != want:
            raise UsageError(
                f"{self._spec.name}: missing columns {sorted(want - have)}, unknown columns"
                f" {sorted(have - want - set(self._spec.partition))}"
            )
        try:
            return rows.select(self._columns.names).cast(self._columns)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise UsageError(f"{self._spec.name}: {error}") from error

    def _check(self, batch: pa.Table) -> None:
        nulls = [name for name in self._required if batch[name].null_count]
        if nulls:
            raise UsageError(f"{self._spec.name}: null in {nulls}, where none may be")
        if self._spec.sort:
            edge = batch if self._last is None else pa.concat_tables([self._last, batch])
            if not _in_order(edge.select(self._spec.sort)):
                raise UsageError(f"{self._spec.name}: rows must be sorted by {', '.join(self._spec.sort)}")
            self._last = batch.slice(batch.num_rows - 1)

    def _flush(self, *, last: bool) -> None:
        """Write whole row groups; what is left waits for the next batch, or is written at the end."""
        rows = pa.concat_tables(self._waiting)
        group = min(ROW_GROUP, max(1, rows.num_rows * _GROUP_BYTES // max(1, rows.nbytes)))
        whole = rows.num_rows if last else max(group, rows.num_rows // group * group)
        try:
            self._parquet.write_table(rows.slice(0, whole), row_group_size=group)
        except OSError as error:
            raise advice(self._store.root, f"write {self._spec.name}/{self._path}", error) from error
        rest = rows.slice(whole)
        self._waiting = [rest] if rest.num_rows else []
        self._waiting_rows = rest.num_rows
        self._waiting_bytes = rest.nbytes if rest.num_rows else 0

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            if self._entry is None:
                self._drop()

    def _finish(self) -> None:
        if self._waiting:
            self._flush(last=True)
        if not self._spans.rows:
            raise UsageError(f"{self._spec.name}: no rows to write; leave the file out")
        try:
            self._parquet.close()
            size = self._output.sink.tell()
        except OSError as error:
            raise advice(self._store.root, f"write {self._spec.name}/{self._path}", error) from error
        self._output.commit()
        self._entry = FileEntry(
            table=self._spec.name,
            path=self._path,
            size=size,
            rows=self._spans.rows,
            partition=self._partition,
            stats=self._spans.json(),
        )

    def _drop(self) -> None:
        try:
            self._parquet.close()
        except OSError:
            pass  # the file is thrown away
        self._output.abort()


def read(store: Store, entry: FileEntry, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of one data file (without the partition column)."""
    return complete(entry.table, read_work(store, entry.location, columns), columns)


def write_work(store: Store, path: str, table: pa.Table) -> int:
    """Write any rows as a Parquet file under a path, replacing what is there. Returns its bytes."""
    return write_work_parts(store, path, table.schema, [table])


def write_work_parts(store: Store, path: str, schema: pa.Schema, parts: Iterable[pa.Table]) -> int:
    """As `write_work`, from tables taken one after another: they need not be in memory together."""
    output = store.open_write(path)
    done = False
    try:
        with pq.ParquetWriter(output.sink, schema, compression="zstd", compression_level=1) as writer:
            for part in parts:
                writer.write_table(part, row_group_size=ROW_GROUP)
        size: int = output.sink.tell()
        output.commit()
        done = True
    except OSError as error:
        raise advice(store.root, f"write {path}", error) from error
    finally:
        if not done:
            output.abort()
    return size


def read_work(store: Store, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of a Parquet file. Raises LakeError where it is missing or damaged."""
    with store.open_read(path) as source:
        try:
            # ParquetFile, not read_table: no column is to be guessed from a folder's name
            return pq.ParquetFile(source).read(columns=None if columns is None else list(columns))
        except (pa.ArrowInvalid, OSError) as error:
            raise advice(store.root, f"read {path}", error) from error


def _parquet(sink: pa.NativeFile, columns: pa.Schema, sort: Sequence[str]) -> pq.ParquetWriter:
    keys = [f.name for f in columns if f.type == pa.int64()]
    plain = {
        *keys,
        *(n for n in columns.names if n in _WIDE),
        *(f.name for f in columns if f.type == pa.float64()),
    }
    codecs: dict[str, str] = {n: "NONE" if n == "bytes" else "ZSTD" for n in columns.names}
    leaves = {f.name: f"{f.name}.list.element" if pa.types.is_list(f.type) else f.name for f in columns}
    options: dict[str, Any] = {
        "use_dictionary": [leaves[n] for n in columns.names if n not in plain],
        "column_encoding": dict.fromkeys(keys, "DELTA_BINARY_PACKED"),
        "compression": {leaves[n]: codec for n, codec in codecs.items()},
        "compression_level": {leaves[n]: 1 for n, codec in codecs.items() if codec == "ZSTD"},
        "write_statistics": [leaves[n] for n in columns.names if n not in _WIDE],
    }
    if sort:
        options["sorting_columns"] = [pq.SortingColumn(columns.get_field_index(n)) for n in sort]
    return pq.ParquetWriter(sink, columns, store_schema=False, **options)


def _day(table: str, rows: pa.Table) -> date | None:
    if not spec(table).partition:
        return None
    if "day" not in rows.column_names:
        raise UsageError(f"{table}: give the day of the round's start")
    days = pc.unique(rows["day"]).to_pylist()
    if len(days) != 1 or days[0] is None:
        raise UsageError(f"{table}: one file holds one day, got {days[:3]}")
    found: date = days[0]
    return found


def _in_order(keys: pa.Table) -> bool:
    """Are rows in ascending order of these columns, the first deciding first? No column holds null."""
    if keys.num_rows < 2:
        return True
    decided: Any = None  # rows already told apart by an earlier column
    for name in keys.column_names:
        column = keys[name].combine_chunks()
        before, after = column.slice(0, len(column) - 1), column.slice(1)
        wrong = pc.greater(before, after)
        if decided is not None:
            wrong = pc.and_not(wrong, decided)
        if pc.any(wrong).as_py():
            return False
        less = pc.less(before, after)
        decided = less if decided is None else pc.or_(decided, less)
    return True
