"""Rows on their way out: a table for the eye, CSV, JSON or Parquet for the next program.

What always holds: CSV, JSON and Parquet hold every row and every column, whole, streamed batch by batch; in
CSV and JSON times are ISO 8601 with their zone, bytes are hexadecimal, what is null is empty or null. A table
shows the first rows only, of a long value its beginning, and says so; of a fraction four digits. Texts of
strangers (URLs, titles, headers) reach a terminal without control characters. A file that is asked for
appears when it is whole.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from io import IOBase
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

from crawl.errors import UsageError

__all__ = [
    "CELL",
    "FORMATS",
    "ROWS",
    "clipped",
    "emit",
    "form_of",
    "grid",
    "opened",
    "plain",
    "safe",
    "shown",
    "to_json",
]

FORMATS: Final = ("table", "csv", "json", "parquet")
#: rows a table for the eye shows
ROWS: Final = 1_000
#: characters of a value that a table for the eye shows
CELL: Final = 100

Batches = Iterable[pa.RecordBatch]


def emit(schema: pa.Schema, batches: Batches, form: str, out: BinaryIO) -> str | None:
    """Write all rows in one of FORMATS; a remark for the user when not everything was shown."""
    writers: Mapping[str, Callable[[pa.Schema, Batches, BinaryIO], str | None]] = {
        "table": _table,
        "csv": _csv,
        "json": _json,
        "parquet": _parquet,
    }
    return writers[form](schema, batches, out)


def form_of(path: str | None) -> str:
    """The format that a file's name asks for, by its ending; a table where it says nothing."""
    ending = Path(path).suffix.lower().removeprefix(".") if path else ""
    return ending if ending in FORMATS else "table"


@contextmanager
def opened(path: str | None, stdout: BinaryIO) -> Iterator[BinaryIO]:
    """A file that appears when the block ends well, or standard output. Raises UsageError."""
    if path is None:
        yield stdout
        stdout.flush()
        return
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            yield file
        beside.replace(target)
    except OSError as exc:
        raise UsageError(f"cannot write {path}: {exc.strerror or exc}") from exc
    finally:
        beside.unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):  # what SQL's sums are
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def to_json(value: Any) -> str:
    """Indented JSON of anything rows are made of."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def safe(text: str) -> str:
    """Without control characters: what a page says must not steer a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(value: Any) -> str:
    """A value for the eye."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(" ", "milliseconds" if value.microsecond else "seconds").removesuffix("+00:00")
    if isinstance(value, float):  # four digits; every one of what is before the point
        return f"{value:.0f}" if 1000 <= abs(value) < math.inf else f"{value:.4g}"
    if isinstance(value, Decimal):
        return str(plain(value))
    if isinstance(value, bytes):
        return value[:16].hex() + ("…" if len(value) > 16 else "")
    return safe(
        json.dumps(plain(value), ensure_ascii=False) if isinstance(value, list | dict) else str(value)
    )


def clipped(text: str, longest: int = CELL) -> str:
    """No longer than that many characters; what was longer ends in an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def grid(
    names: list[str], rows: Iterable[Iterable[Any]], numbers: Iterable[str] = (), longest: int = CELL
) -> str:
    """Aligned columns under their names; `numbers` names those that stand at the right.

    Values of more than `longest` characters are clipped.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    right = frozenset(numbers)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in names:
        # a pipe has no width: there each row stays on its line
        table.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(clipped(shown(value), longest)) for value in row))
    out = io.StringIO()
    width = None if sys.stdout.isatty() else 100_000
    console = Console(file=out, width=width, color_system=None, highlight=False)
    console.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").splitlines()) + "\n"


def _numbers(schema: pa.Schema) -> list[str]:
    return [f.name for f in schema if pa.types.is_integer(f.type) or pa.types.is_floating(f.type)]


def _table(schema: pa.Schema, batches: Batches, out: BinaryIO) -> str | None:
    rows: list[list[Any]] = []
    total = 0
    for batch in batches:
        total += batch.num_rows
        part = batch.slice(0, max(0, ROWS - len(rows)))
        rows += map(list, zip(*(column.to_pylist() for column in part.columns), strict=True))
    cells = [[shown(value) for value in row] for row in rows]
    out.write(grid(schema.names, cells, _numbers(schema)).encode())
    left_out = []
    if total > len(rows):
        left_out.append(f"{len(rows):,} of {total:,} rows shown")
    if any(len(cell) > CELL for row in cells for cell in row):
        left_out.append(f"values cut to {CELL} characters")
    return f"{', '.join(left_out)}; --format csv, json or parquet gives all" if left_out else None


def _csv(schema: pa.Schema, batches: Batches, out: BinaryIO) -> None:
    text = io.TextIOWrapper(out, "utf-8", newline="", write_through=True)
    try:
        rows = csv.writer(text)
        rows.writerow(schema.names)
        for batch in batches:
            columns = [[_cell(value) for value in column.to_pylist()] for column in batch.columns]
            rows.writerows(zip(*columns, strict=True))
    finally:
        text.detach()  # `out` is not ours to close


def _cell(value: Any) -> Any:
    found = plain(value)
    if isinstance(found, bool):
        return "true" if found else "false"
    return json.dumps(found, ensure_ascii=False) if isinstance(found, list | dict) else found


def _json(schema: pa.Schema, batches: Batches, out: BinaryIO) -> None:
    """An array of objects, one a line."""
    before = b"[\n"
    for batch in batches:
        for row in batch.to_pylist():
            out.write(before + json.dumps(plain(row), ensure_ascii=False).encode())
            before = b",\n"
    out.write(b"\n]\n" if before == b",\n" else b"[]\n")


class _Counted:
    """A stream that can tell where it stands, which a pipe cannot, and that Parquet asks."""

    closed = False

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._at = out, 0

    def write(self, data: Any) -> int:
        self._out.write(data)
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        self._out.flush()

    def close(self) -> None:
        self.closed = True


def _parquet(schema: pa.Schema, batches: Batches, out: BinaryIO) -> None:
    import pyarrow.parquet as pq

    if out.isatty():
        raise UsageError("Parquet is nothing for a terminal: give --output FILE, or a pipe")
    with pq.ParquetWriter(
        pa.PythonFile(cast(IOBase, _Counted(out)), mode="w"), schema, compression="zstd"
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)
