"""Upkeep: what keeps a lake small and quick, between rounds, under a driver's fence.

    merge runs -> gather small files -> retention -> an entry in `rounds` -> vacuum, logs, work areas

What always holds: every step is one commit per table (app id `rewrite`), made on a handle on which its
inputs are live and our fence is the newest; on a conflict it is planned again, so two upkeeps at once
never double or lose a row. An entry of kind `upkeep` (same round, new versions) makes the rewritten
tables the round's; kept rounds stay readable as they were. Killed at any moment, the next upkeep
finishes: what was rewritten has the same rows. It fetches nothing, decides nothing about URLs, and never
runs without a fence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from crawl.errors import Conflict
from crawl.policy import Retention, Storage
from lake import compaction, delta, retention, seal, snapshot, sql, vacuum
from lake.entries import FileEntry
from lake.fence import ROUNDS, Fence, check_fence
from lake.runs import KEYS
from lake.store import Store
from lake.tables import OUTSIDE, SPECS

__all__ = ["Upkept", "run"]

#: how often a table is planned again when somebody else rewrites it
_TRIES: Final = 5
#: app id under which a relay commits the last round whose events it has delivered, on `outbox`
RELAY: Final = "relay"
#: DuckDB's share while it looks for rows that may go
_SQL_MB: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkept:
    """What one upkeep did."""

    merged: Mapping[str, int] = field(default_factory=dict)  # files taken away by merging, by table
    dropped: Mapping[str, int] = field(
        default_factory=dict
    )  # files taken away or thinned by retention, by table
    deleted: int = 0  # files deleted from storage
    recorded: bool = False  # the lake has changed


class _Work:
    """One upkeep in progress: what it has changed so far."""

    def __init__(self, store: Store, fence: Fence, storage: Storage) -> None:
        self.store = store
        self.fence = fence
        self.storage = storage
        self.merged: dict[str, int] = {}
        self.dropped: dict[str, int] = {}

    def change(
        self,
        table: str,
        plan: Callable[[list[FileEntry]], tuple[Sequence[FileEntry], Callable[[], list[FileEntry]]] | None],
    ) -> int:
        """Plan, write and commit one rewrite;

        again when an input is gone. Returns files taken away, 0 = nothing to do.
        """
        for _ in range(_TRIES):
            todo = plan(delta.files(self.store, table))
            if todo is None:
                return 0
            removes, write = todo
            adds = write()
            try:
                vacuum.rewrite(self.store, self.fence, table, adds=adds, removes=removes)
            except Conflict:
                self.store.delete([entry.location for entry in adds])
                continue
            return len(removes)
        return 0  # somebody else is at it: next time


def run(
    store: Store,
    fence: Fence,
    *,
    retention_policy: Retention,
    storage: Storage,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Upkept:
    """One upkeep. Finishes a sealed round first; an unfinished one keeps all it has pinned.

    `clock`: real time, for the entry in `rounds`; ages count from the newest round's planning time.
    Raises FenceLost, LakeError.
    """
    check_fence(store, fence)
    sealed = seal.open_seal(store)
    if sealed is not None:
        seal.roll_forward(store, sealed, clock())
    started = clock()
    newest = snapshot.newest(store)
    if newest is None:
        return Upkept()
    work = _Work(store, fence, storage)
    for table in KEYS:
        _merge_runs(work, table)
    for table in SPECS:
        if table not in KEYS:
            _gather(work, table, newest)
    day = _retain(work, newest, retention_policy)
    recorded = _record(work, newest, started, day, clock())
    deleted = vacuum.vacuum(store, fence, retention_policy.keep_versions)
    deleted += vacuum.sweep_work(store, newest["round"])
    return Upkept(merged=work.merged, dropped=work.dropped, deleted=deleted, recorded=recorded)


def _merge_runs(work: _Work, table: str) -> None:
    def plan(entries: list[FileEntry]) -> Any:
        todo = compaction.tiers(entries, work.storage.tier_ratio)
        if todo is None:
            return None
        return todo.files, lambda: compaction.merge(work.store, todo, work.storage.target_bytes)

    if gone := work.change(table, plan):
        work.merged[table] = gone


def _gather(work: _Work, table: str, newest: Mapping[str, Any]) -> None:
    merged = _counts(newest).get("links_merged_through", 0)
    today = newest["now"].date()

    def plan(entries: list[FileEntry]) -> Any:
        if table == "links":  # links that wait are read by their round: their files stay as they are
            entries = [file for file in entries if (span := file.bounds("round")) and span[1] <= merged]
        groups = compaction.loose(entries, today)
        if not groups:
            return None
        return groups[0], lambda: compaction.unite(work.store, groups[0], work.storage.target_bytes)

    while gone := work.change(table, plan):
        work.merged[table] = work.merged.get(table, 0) + gone


def _retain(work: _Work, newest: Mapping[str, Any], keep: Retention) -> str | None:
    """Apply retention, once a planning day and never beside an open round.

    Returns the last day it was applied.
    """
    store = work.store
    today: str = newest["now"].date().isoformat()
    done = _last_retention(store)
    if done is not None and done >= today:
        return done
    if vacuum.open_round(store, newest["round"] + 1) is not None:
        return done
    shown = snapshot.Snapshot(store, snapshot.heads(store), newest["round"]).load()
    limits = retention.Limits(
        now=newest["now"],
        round=newest["round"],
        merged_through=int(_counts(newest).get("links_merged_through", 0)),
        delivered_through=delta.app_version(store, "outbox", RELAY),
    )
    entries = {table: shown.files(table) for table in SPECS}
    target = work.storage.target_bytes
    with sql.connect(store, shown, newest["now"], memory_mb=_SQL_MB) as reader:
        for change in retention.changes(store, reader, entries, keep, limits, target_bytes=target):
            _drop(work, change)
    return today


def _drop(work: _Work, change: retention.Change) -> None:
    adds, removes = change.adds, change.removes
    try:
        vacuum.rewrite(work.store, work.fence, change.table, adds=adds, removes=removes, same_rows=False)
    except Conflict:  # somebody else has rewritten these files: tomorrow's upkeep finds the same rows again
        work.store.delete([entry.location for entry in adds])
    else:
        work.dropped[change.table] = len(removes)


def _last_retention(store: Store) -> str | None:
    rows = snapshot.entries(store).select(["kind", "counts"]).to_pylist()
    days = (_counts(row).get("retention_day") for row in rows if row["kind"] == seal.UPKEEP)
    return max((str(day) for day in days if day), default=None)


def _record(
    work: _Work, newest: Mapping[str, Any], started: datetime, retention_day: str | None, now: datetime
) -> bool:
    """Name the new versions in `rounds`, if there are any."""
    heads = {table: version for table, version in snapshot.heads(work.store).items() if table != ROUNDS}
    named = json.loads(newest["versions"])
    if all(named.get(table) == version for table, version in heads.items() if table not in OUTSIDE):
        return False
    counts = {
        "links_merged_through": _counts(newest).get("links_merged_through", 0),
        "merged": work.merged,
        "dropped": work.dropped,
    }
    if retention_day is not None:
        counts["retention_day"] = retention_day
    seal.record(
        work.store,
        work.fence,
        {
            **{name: newest[name] for name in ("round", "now", "window_s", "settings", "policy_version")},
            "opened_at": started,
            "driver": ":".join(work.fence.who.get(part, "?") for part in ("host", "pid")),
            "versions": heads,
            "counts": counts,
        },
        now,
    )
    return True


def _counts(row: Mapping[str, Any]) -> dict[str, Any]:
    counts: dict[str, Any] = json.loads(row["counts"] or "{}")
    return counts
