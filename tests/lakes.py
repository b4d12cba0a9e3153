"""Compare two lakes row by row, in every column but those that follow from real time.

What may differ between an undisturbed run and one that was killed and resumed: times of the real clock,
phases, addresses, attempts, fences, file names, and what follows from durations or their order (gaps, delays,
latency, predictions and the grouping made from them, connection reuse, the Date header, bytes and times of
rounds).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from crawl.schema import TABLES
from lake import files, snapshot
from lake.store import connect

__all__ = ["differences", "rows"]

REAL_TIME: Final[Mapping[str, frozenset[str]]] = {
    "seeds": frozenset({"added_at"}),
    "frontier": frozenset({"group", "position", "predicted_start_ms"}),
    "fetches": frozenset(
        [
            "group",
            "fence",
            "attempt",
            "started_at",
            "finished_at",
            "required_gap_ms",
            "group_gap_ms",
            "gap_rule",
            "address",
            "dns_ms",
            "dns_cached",
            "connect_ms",
            "tls_ms",
            "first_byte_ms",
            "total_ms",
            "conn_reused",
        ]
    ),
    "hosts": frozenset(
        [
            "next_allowed_at",
            "delay_ms",
            "latency_ema_ms",
            "first_ms",
            "excess_ms",
            "slowed_ms",
            "backoff_until",
            "addresses",
            "addresses_expire_at",
        ]
    ),
    "suppressions": frozenset({"requested_at", "verified_at", "withdrawn_at"}),
    "audit": frozenset({"at"}),
    "rounds": frozenset(
        [
            "opened_at",
            "committed_at",
            "fence",
            "driver",
            "bytes_read",
            "bytes_written",
            "stage_ms",
            "plan",
            "actual",
        ]
    ),
}


def rows(root: str, table: str) -> Counter[str]:
    """The table's rows at the newest round, as text, without the columns that follow from real time."""
    shot = snapshot.latest(connect(root))
    left_out = REAL_TIME.get(table, frozenset())
    names = [n for n in TABLES[table].names if n not in left_out]
    parts = [files.read(shot.store, entry, [n for n in names if n != "day"]) for entry in shot.files(table)]
    found: Counter[str] = Counter()
    for part in parts:
        found.update(_text(row) for row in part.to_pylist())
    return found


def _text(row: dict[str, Any]) -> str:
    if row.get("response_headers"):
        lines = row["response_headers"].split("\n")
        row["response_headers"] = [line for line in lines if not line.lower().startswith("date:")]
    if "versions" in row:
        row["versions"] = {k: v for k, v in json.loads(row["versions"]).items() if k != "rounds"}
    return repr(sorted(row.items()))


def differences(one: str, other: str) -> dict[str, tuple[list[str], list[str]]]:
    """Table → (rows only in `one`, rows only in `other`), for the tables that differ."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for table in TABLES:
        a, b = rows(one, table), rows(other, table)
        if a != b:
            found[table] = (sorted((a - b).elements())[:20], sorted((b - a).elements())[:20])
    return found


def count(root: str, table: str) -> int:
    """Rows of a table at the newest round."""
    return sum(rows(root, table).values())
