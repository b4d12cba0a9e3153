"""A data file as the Delta log knows it: where it lies, how large it is, and what its columns span.

What always holds: an entry is plain values and survives JSON; its statistics have a minimum, a maximum and a
null count for exactly the columns its table promises (a column wholly null has its null count alone), exact
to the microsecond and never cut short, since a reader drops a file on their word. It reads no file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["FileEntry", "Spans", "stats_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One data file of a table."""

    table: str
    path: str  # relative to the table's folder, as in the Delta log
    size: int  # bytes
    rows: int
    partition: Mapping[str, str] = field(default_factory=dict)  # e.g. {"day": "2026-01-31"}
    stats: str = "{}"  # JSON as in the Delta log

    @property
    def location(self) -> str:
        """Path relative to the lake's root."""
        return f"{self.table}/{self.path}"

    @property
    def name(self) -> str:
        """File name without folders."""
        return self.path.rsplit("/", 1)[-1]

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """(smallest, largest) value as JSON has it, int or str; None where none is known or all are null."""
        stats = json.loads(self.stats)
        low = stats.get("minValues", {}).get(column)
        high = stats.get("maxValues", {}).get(column)
        return None if low is None or high is None else (low, high)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "partition": dict(self.partition)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FileEntry:
        """The reverse of `to_dict`."""
        return cls(**values)


class Spans:
    """Minimum, maximum and null count of some columns, over batches of one file."""

    def __init__(self, columns: Iterable[str]) -> None:
        self._columns = tuple(columns)
        self._nulls = dict.fromkeys(self._columns, 0)
        self._low: dict[str, Any] = {}
        self._high: dict[str, Any] = {}
        self.rows = 0

    def add(self, rows: pa.Table) -> None:
        """Take another batch in."""
        self.rows += rows.num_rows
        for name in self._columns:
            column = rows[name]
            self._nulls[name] += column.null_count
            if column.null_count == len(column):
                continue
            both = pc.min_max(column)
            low, high = both["min"].as_py(), both["max"].as_py()
            self._low[name] = min(low, self._low.get(name, low))
            self._high[name] = max(high, self._high.get(name, high))

    def json(self) -> str:
        """Statistics of everything added."""
        return stats_json(self.rows, self._low, self._high, self._nulls)


def stats_json(rows: int, low: Mapping[str, Any], high: Mapping[str, Any], nulls: Mapping[str, int]) -> str:
    """Statistics of a file as the Delta log has them."""
    return json.dumps(
        {
            "numRecords": rows,
            "minValues": {name: _plain(value) for name, value in low.items()},
            "maxValues": {name: _plain(value) for name, value in high.items()},
            "nullCount": dict(nulls),
        },
        separators=(",", ":"),
    )


def _plain(value: Any) -> int | str:
    """A value as Delta writes it, to the microsecond: a maximum cut to milliseconds loses rows."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        return value
    raise TypeError(f"no statistics for {type(value).__name__}")
