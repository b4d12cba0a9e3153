"""SQL over a lake: one view a table, at pinned versions, and the named questions of `lake/sql/`.

What it is for: planning asks what is due, the commands ask for status, reports and explanations, `crawl
check` asks whether the invariants hold, and a user asks anything. The only importer of duckdb.

What always holds: a reader sees one snapshot, whatever is committed meanwhile; it can open nothing but that
snapshot's data files (no other file, no network, no extension, no write: the configuration is locked), so a
user's statement is as safe as ours; memory and threads are bounded, what does not fit is spilled to a
temporary folder. Times are shown in UTC. `now` is an argument and is what `due` means in the view `urls`.

What it does not do: it writes nothing to the lake, and holds no SQL in Python but the views of tables.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from itertools import pairwise
from types import TracebackType
from typing import Any, Final

import duckdb
import pyarrow as pa

from crawl.errors import LakeError, UsageError
from crawl.schema import TABLES
from lake import runs
from lake.entries import FileEntry
from lake.meanings import meanings
from lake.ranges import MAX, MIN
from lake.snapshot import Snapshot, latest
from lake.store import Store
from lake.tables import SPECS

__all__ = ["VIEWS", "Answer", "Reader", "connect", "names", "parameters", "question", "text"]

#: views beside the tables, in the order in which they build on each other
VIEWS: Final = ("suppressed", "urls", "pages", "changes", "host_health")

_TYPES: Final[Mapping[pa.DataType, str]] = {
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", tz="UTC"): "TIMESTAMPTZ",
    pa.date32(): "DATE",
    pa.binary(): "BLOB",
    pa.list_(pa.string()): "VARCHAR[]",
}

#: what a user may run; all else changes something, if only this connection
_READING: Final = frozenset(
    {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI}
)

_SETTINGS: Final = (
    "TimeZone = 'UTC'",
    "preserve_insertion_order = false",
    "python_enable_replacements = false",  # a name in SQL never means a variable of the caller
    "parquet_metadata_cache = true",
    "validate_external_file_cache = 'NO_VALIDATION'",  # a file name is never written twice
)

_LEASED: Final = pa.schema({"url_key": pa.int64()})
_FILE_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "table_name": pa.string(),
    "path": pa.string(),
    "size": pa.int64(),
    "rows": pa.int64(),
    "day": pa.date32(),
    "level": pa.int64(),
    "first_round": pa.int64(),
    "last_round": pa.int64(),
}
_FILES: Final = pa.schema(_FILE_COLUMNS)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement returned, batch by batch: `for batch in answer`, or all at once with `table()`."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(list(self.batches), self.schema)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a reader reads, and what must lie there."""

    store: Store
    files: Mapping[str, Sequence[FileEntry]]
    round: int

    def refuse_missing(self, doing: str, error: BaseException) -> None:
        """Raises LakeError, with the names, where files that the lake's log lists are not there."""
        gone = []
        for table, listed in self.files.items():
            there = {stat.path for stat in self.store.list(table)} if listed else set()
            gone += [file.location for file in listed if file.location not in there]
        if gone and self._swept(set(gone)):
            raise LakeError(
                f"round {self.round} of {self.store.root} cannot be read as it was any more: upkeep keeps"
                " that of the newest rounds only (retention.keep_versions). Ask for a newer one"
            ) from error
        if gone:
            more = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
            raise LakeError(
                f"cannot {doing} over {self.store.root}: the data file {gone[0]}{more} is missing; restore it"
                f" from a copy (`crawl check {self.store.root}` names all that is wrong)"
            ) from error

    def _swept(self, gone: set[str]) -> bool:
        """Whether all of these files went because the lake has no need of them since."""
        now = latest(self.store)
        needed = {file.location for table in self.files for file in now.files(table)}
        return self.round != now.round and gone.isdisjoint(needed)


class Reader:
    """One snapshot, opened for SQL. Use it as a context manager; not for several threads at once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, place: _Place, spill: str) -> None:
        self._connection = connection
        self._place = place
        self._spill = spill

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of memory, files and the spill folder."""
        self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    def query(self, name: str, **parameters: Any) -> pa.Table:
        """The answer to a named question of `lake/sql/`. Raises UsageError for an unknown name, LakeError."""
        sql = text(name)
        with _storage(self._place, f"answer {name!r}"):
            rows: pa.Table = self._connection.sql(sql, params=parameters or None).to_arrow_table()
        return rows

    def ask(self, sql: str) -> Answer:
        """A user's statement: one, and one that reads. Raises UsageError with the reason, LakeError."""
        statement = self._single(sql)
        with _mistake(self._place):
            relation = self._connection.sql(statement)
        if relation is None:
            raise UsageError("this statement answers nothing: write a SELECT")
        with _mistake(self._place):
            batches = relation.to_arrow_reader(10_000)
        return Answer(batches.schema, _told(batches, self._place))

    def _single(self, sql: str) -> str:
        with _mistake(self._place):
            statements = self._connection.extract_statements(sql)
        if not statements:
            raise UsageError(
                'there is no statement: write one, like "SELECT state, count(*) FROM urls GROUP BY state"'
            )
        if len(statements) != 1:
            raise UsageError(f"one statement at a time, got {len(statements)}")
        if statements[0].type not in _READING:
            raise UsageError(
                f"{statements[0].type.name} is refused: a lake is read with SELECT, FROM, WITH, DESCRIBE,"
                " SHOW, SUMMARIZE or EXPLAIN"
            )
        return str(statements[0].query)

    def due(self, lo: int = MIN, hi: int = MAX) -> pa.Table:
        """URLs due at the planning time and not held back, ascending by key, with what planning weighs."""
        return self.query("due", lo=lo, hi=hi)


def connect(
    store: Store,
    snapshot: Snapshot,
    now: datetime,
    *,
    leased: pa.Table | None = None,
    threads: int = 2,
    memory_mb: int = 700,
) -> Reader:
    """Open a snapshot for SQL at planning time `now`.

    `leased`: a table with the column `url_key`, the plan of the open round. Raises LakeError.
    """
    files = {table: snapshot.files(table) for table in TABLES}
    spill = tempfile.mkdtemp(prefix="crawl-sql-")
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": threads,
            "memory_limit": f"{memory_mb}MB",
            "temp_directory": spill,
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "allow_community_extensions": False,
        },
    )
    place = _Place(store, files, snapshot.round)
    reader = Reader(connection, place, spill)
    try:
        with _storage(place, "open the views"):
            _open(connection, store, snapshot, files, now)
            connection.register(
                "leased_keys", (_LEASED.empty_table() if leased is None else leased).select(["url_key"])
            )
            connection.register("files", _file_table(files))
            connection.register("column_meanings", meanings())
            for view in (*VIEWS, "columns"):
                connection.execute(f"CREATE VIEW {view} AS {text(f'view-{view}')}")
            connection.execute("SET lock_configuration = true")
    except BaseException:
        reader.close()
        raise
    return reader


def _open(
    connection: duckdb.DuckDBPyConnection,
    store: Store,
    snapshot: Snapshot,
    files: Mapping[str, Sequence[FileEntry]],
    now: datetime,
) -> None:
    """Settings and the views of plain tables."""
    if not store.is_local:
        connection.register_filesystem(store.filesystem())
    for setting in _SETTINGS:
        connection.execute(f"SET {setting}")
    urls = {table: [store.url(file.location) for file in found] for table, found in files.items()}
    connection.execute("SET allowed_paths = " + _literal([url for some in urls.values() for url in some]))
    connection.execute("SET enable_external_access = false")
    connection.execute("SET VARIABLE planning_now = $1::TIMESTAMPTZ", [now])
    for table in TABLES:
        body = _table_view(table, urls[table], snapshot.lacking(table))
        if table == "rounds":  # later rounds are no part of this snapshot
            body = f"SELECT * FROM ({body}) WHERE round <= {snapshot.round}"
        connection.execute(f'CREATE VIEW "{table}" AS {body}')
    newer = [store.url(file.location) for file in _newer(files["seen"])]
    newer_rows = _table_view("seen", newer, snapshot.lacking("seen"))
    connection.execute(f"CREATE VIEW seen_newer AS SELECT url_key, round FROM ({newer_rows})")


def _table_view(table: str, urls: Sequence[str], lacking: Collection[str] = ()) -> str:
    """`lacking`: columns that some of the files may not have; they are null there."""
    typed = ", ".join(f'NULL::{_TYPES[f.type]} AS "{f.name}"' for f in TABLES[table])
    nothing = f"SELECT {typed} WHERE false"
    if not urls:
        return nothing
    columns = ", ".join(f'"{name}"' for name in TABLES[table].names)
    days = "hive_partitioning = true, hive_types = {'day': DATE}"
    options = days if SPECS[table].partition else "hive_partitioning = false"
    if lacking:
        files = f"SELECT * FROM read_parquet({_literal(urls)}, {options}, union_by_name = true)"
        return f"SELECT {columns} FROM ({nothing} UNION ALL BY NAME {files})"
    return f"SELECT {columns} FROM read_parquet({_literal(urls)}, {options})"


def _newer(files: Sequence[FileEntry]) -> list[FileEntry]:
    """Files that can hold a row newer than another one: all but the oldest run.

    Where a foreign file leaves it open which rounds it holds, all of them.
    """
    grouped = runs.group(files)
    clear = all(older.name.last < newer.name.first for newer, older in pairwise(grouped)) and not any(
        run.foreign for run in grouped
    )
    return [file for run in (grouped[:-1] if clear else grouped) for file in run.files]


def _file_table(files: Mapping[str, Sequence[FileEntry]]) -> pa.Table:
    rows = []
    for table, found in files.items():
        for file in found:
            name = runs.parse(file.path)
            run = (name.level, name.first, name.last) if name.level >= 0 else (None, None, None)
            day = file.partition.get("day")
            rows.append((table, file.location, file.size, file.rows, day and _date(day), *run))
    return pa.Table.from_pylist([dict(zip(_FILES.names, row, strict=True)) for row in rows], schema=_FILES)


def _date(day: str) -> Any:
    return datetime.strptime(day, "%Y-%m-%d").date()  # noqa: DTZ007 - a partition's name is a date


def _literal(texts: Sequence[str]) -> str:
    return "[" + ", ".join("'" + value.replace("'", "''") + "'" for value in texts) + "]"


def names(prefix: str = "") -> list[str]:
    """Named questions that begin with `prefix`, e.g. `check-` or `metric-`."""
    files = resources.files("lake").joinpath("sql").iterdir()
    found = (file.name.removesuffix(".sql") for file in files if file.name.endswith(".sql"))
    return sorted(name for name in found if name.startswith(prefix))


@cache
def text(name: str) -> str:
    """SQL of a named question. Raises UsageError for a name that is none."""
    file = resources.files("lake").joinpath("sql", f"{name}.sql")
    if not file.is_file():
        raise UsageError(f"no question {name!r}; there are: {', '.join(names())}")
    return file.read_text(encoding="utf-8")


def parameters(name: str) -> frozenset[str]:
    """Names of the parameters of a named question, without `$`."""
    return frozenset(re.findall(r"\$([a-z_]+)", re.sub(r"--.*", "", text(name))))


def question(name: str) -> str:
    """The question a named SQL file answers, as its first line asks it."""
    return text(name).splitlines()[0].removeprefix("--").strip()


@contextmanager
def _mistake(place: _Place) -> Iterator[None]:
    """What DuckDB says about a user's statement, as our error; a missing file is none of theirs."""
    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, duckdb.PermissionException | duckdb.IOException):
            place.refuse_missing("answer", error)
        raise UsageError(_plain(error)) from error


@contextmanager
def _storage(place: _Place, doing: str) -> Iterator[None]:
    """What goes wrong in a statement of ours: storage or memory. All else is our mistake, and stays raw."""
    try:
        yield
    except (duckdb.PermissionException, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        place.refuse_missing(doing, error)
        raise LakeError(f"cannot {doing} over {place.store.root}: {_plain(error)}") from error


def _told(batches: pa.RecordBatchReader, place: _Place) -> Iterator[pa.RecordBatch]:
    while True:
        with _mistake(place):
            try:
                batch = batches.read_next_batch()
            except StopIteration:
                return
            except (pa.ArrowException, OSError) as error:
                place.refuse_missing("answer", error)
                raise UsageError(_plain(error)) from error
        yield batch


def _plain(error: BaseException) -> str:
    message = str(error)
    if message.startswith("{"):  # DuckDB may answer in JSON
        message = str(json.loads(message).get("exception_message", message))
    return message.split("\nStack Trace")[0].strip()
