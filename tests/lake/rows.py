"""Rows for lake tests: whole, valid rows of any table from the few columns a test cares about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from crawl.schema import TABLES

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = date(2026, 3, 1)

_FILLER: Mapping[pa.DataType, Any] = {
    pa.int64(): 0,
    pa.int32(): 0,
    pa.float64(): 0.0,
    pa.string(): "",
    pa.bool_(): False,
    pa.timestamp("us", tz="UTC"): NOW,
    pa.date32(): DAY,
    pa.binary(): b"",
    pa.list_(pa.string()): [],
}


def table(name: str, **columns: Sequence[Any]) -> pa.Table:
    """Rows of a table: the columns given, nulls where a column may be null, and a filler elsewhere."""
    schema = TABLES[name]
    count = len(next(iter(columns.values())))
    filled = []
    for field in schema:
        may_be_null = (field.metadata or {}).get(b"nullable") == b"yes"
        default = None if may_be_null else _FILLER[field.type]
        filled.append(pa.array(columns.pop(field.name, [default] * count), field.type))
    assert not columns, f"{name} has no {sorted(columns)}"
    return pa.table(filled, schema=pa.schema([f.remove_metadata() for f in schema]))


def seen(keys: Sequence[int], round_number: int, **columns: Sequence[Any]) -> pa.Table:
    """Rows of `seen`: http://d<key>.test/ by default, all DISCOVERED and due at NOW."""
    count = len(keys)
    names = [f"d{key}.test" for key in keys]
    defaults: dict[str, Sequence[Any]] = {
        "url_key": keys,
        "url": [f"http://{name}/" for name in names],
        "discovered_url": [f"http://{name}/" for name in names],
        "origin": [f"http://{name}:80" for name in names],
        "host": names,
        "domain": names,
        "state": ["DISCOVERED"] * count,
        "tier": ["discovery"] * count,
        "found_by": ["seed"] * count,
        "round": [round_number] * count,
        "first_seen_round": [round_number] * count,
    }
    return table("seen", **{**defaults, **columns})
