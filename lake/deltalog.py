"""The Delta logs as files: what commits added and removed, and how old a log may be cut.

What it is for: vacuum asks which files the versions still kept refer to, and trims logs that nobody will
read. What always holds: a version at or above the one to be kept stays readable: entries are deleted only
below the newest checkpoint that is not above it. Only `lake.upkeep` deletes log entries
(`delta.enableExpiredLogCleanup` is off). It commits nothing (lake.delta does).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from lake import delta
from lake.store import Store

__all__ = ["referenced", "removed_up_to", "trim"]

_ENTRY: Final = re.compile(r"_delta_log/(\d{20})\.(json|checkpoint\b.*\.parquet)$")


def referenced(store: Store, table: str, oldest: int, newest: int) -> set[str]:
    """Locations (relative to the lake's root) of all files that any version from `oldest` to `newest` may
    refer to.
    """
    found = {entry.location for entry in delta.files(store, table, oldest)}
    for action in _actions(store, table, oldest + 1, newest):
        if "add" in action:
            found.add(f"{table}/{unquote(action['add']['path'])}")
    return found


def removed_up_to(store: Store, table: str, version: int) -> set[str]:
    """Locations of files that no version from `version` on refers to, as far back as the log is kept."""
    found: set[str] = set()
    for action in _actions(store, table, 0, version):
        if "remove" in action:
            found.add(f"{table}/{unquote(action['remove']['path'])}")
    return found


def trim(store: Store, table: str, oldest: int) -> int:
    """Delete log entries that reading versions from `oldest` on does not need. Returns how many."""
    entries: dict[str, int] = {}
    checkpoints = set()
    for stat in store.list(f"{table}/_delta_log"):
        named = _ENTRY.search(stat.path)
        if named:
            entries[stat.path] = int(named[1])
            if named[2] != "json":
                checkpoints.add(int(named[1]))
    base = max((number for number in checkpoints if number <= oldest), default=0)
    old = [path for path, number in entries.items() if number < base]
    store.delete(old)
    return len(old)


def _actions(store: Store, table: str, first: int, last: int) -> Iterator[dict[str, Any]]:
    for number in range(last, first - 1, -1):
        raw = store.get(f"{table}/_delta_log/{number:020d}.json")
        if raw is None:
            return  # trimmed
        for line in raw.splitlines():
            if line.strip():
                yield json.loads(line)
