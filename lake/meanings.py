"""What each column of each table and view means, as rows: the view `columns` of lake.sql.

What always holds: a table's meanings are those of crawl.schema; a view's are those of the tables it is made
from, and said here where it works a column out. It reads no lake.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import pyarrow as pa

from crawl.schema import TABLES

__all__ = ["COMPUTED", "SOURCES", "meanings"]

#: view → tables that its columns come from; the first that has a name says what it means
SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "suppressed": ("suppressions",),
    "urls": ("seen",),
    "pages": ("documents", "seen"),
    "changes": ("outbox", "seen"),
    "host_health": ("hosts",),
}
#: (view, column) → meaning, where the view works it out
COMPUTED: Final[Mapping[tuple[str, str], str]] = {
    ("urls", "due"): "its time has come, at the time asked for",
    ("urls", "paused"): "held back by the operator: the URL, its host, origin or domain",
    ("urls", "status"): "LEASED: in the open round's plan; ELIGIBLE: due and not held back; else the state",
    ("urls", "round"): "round that wrote this row, the newest one of the URL",
    ("pages", "round"): "round that wrote the URL's newest row",
    ("pages", "document_day"): "day of the round that stored the text",
    ("pages", "document_round"): "round that stored the text",
    ("host_health", "paused"): "held back by the operator: the host or its domain",
    ("host_health", "urls"): "known URLs",
    ("host_health", "never_fetched"): "known URLs in state DISCOVERED",
    ("host_health", "live"): "known URLs in state FETCHED",
    ("host_health", "given_up"): "known URLs in state GONE or TERMINAL",
    ("host_health", "due"): "known URLs that are due",
    ("host_health", "requests"): "requests in the newest round that sent any, robots.txt included",
    ("host_health", "failures"): "those of them that brought neither content nor a redirect",
    ("host_health", "pushed_back"): "those of them that were answered 429 or 503",
    ("host_health", "mean_ms"): "their mean duration",
    ("host_health", "last_request_at"): "real time at which the last of them ended",
    ("host_health", "round"): "round that wrote the host's newest state",
    ("files", "table_name"): "table",
    ("files", "path"): "path of a data file, relative to the lake",
    ("files", "size"): "bytes",
    ("files", "rows"): "rows",
    ("files", "day"): "partition; null where the table has none",
    ("files", "level"): "of a run: how often it was merged; null for files of other tables",
    ("files", "first_round"): "of a run: first round it holds rows of",
    ("files", "last_round"): "of a run: last round it holds rows of",
    ("columns", "table_name"): "table or view",
    ("columns", "column_name"): "column",
    ("columns", "type"): "its type in SQL",
    ("columns", "meaning"): "what it means, with its unit and when it is null",
}


@cache
def meanings() -> pa.Table:
    """Rows of table_name, column_name, meaning; of views, all that their sources have."""
    found: dict[tuple[str, str], str] = {}
    for table, schema in TABLES.items():
        found |= {(table, field.name): _comment(field) for field in schema}
    for view, tables in SOURCES.items():
        for table in reversed(tables):
            found |= {(view, field.name): _comment(field) for field in TABLES[table]}
    found |= COMPUTED
    return pa.table(
        {
            "table_name": [table for table, _ in found],
            "column_name": [column for _, column in found],
            "meaning": list(found.values()),
        }
    )


def _comment(field: pa.Field[Any]) -> str:
    return (field.metadata or {}).get(b"comment", b"").decode()
