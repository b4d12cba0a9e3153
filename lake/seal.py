"""Seal a round, then commit it: one moment decides what a round is, and anybody can carry it out.

    list written (unique name) -> seal: a commit on `rounds` naming the list, under our fence
      -> changed tables, in parallel -> seen, signals -> rounds

What always holds: a round has at most one seal (app id `seal`, version = round). Before it nothing of the
round is visible; after it nobody fetches or computes for this round, and any driver, however often killed,
commits exactly the listed files, each table once (app id `round`, version = round). `rounds` comes last and
names the versions of all tables. A driver that finds a seal adopts it; one that finds a newer fence stops.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from crawl import schema as words
from crawl.errors import Conflict, FenceLost, LakeError, UsageError
from lake import delta
from lake.entries import FileEntry
from lake.fence import FENCE, ROUNDS, Fence, require
from lake.files import write
from lake.snapshot import heads
from lake.store import Store
from lake.tables import SPECS

__all__ = ["Seal", "open_seal", "record", "roll_forward", "seal"]

SEAL: Final = "seal"
ROUND: Final = "round"
UPKEEP: Final = "upkeep"
#: committed after all they refer to
LAST: Final = ("seen", "signals")
_JSON: Final = ("settings", "versions", "counts", "bytes_read", "bytes_written", "stage_ms", "plan", "actual")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What a round is: files it adds and takes away, and its row in `rounds` but for versions and time."""

    round: int
    path: str  # of the list, relative to the lake's root
    adds: tuple[FileEntry, ...]
    removes: tuple[FileEntry, ...]
    row: Mapping[str, Any]

    def tables(self) -> tuple[str, ...]:
        """Tables that change, sorted."""
        return tuple(sorted({entry.table for entry in (*self.adds, *self.removes)}))


def seal(
    store: Store,
    fence: Fence,
    round_number: int,
    listing: Sequence[FileEntry],
    removes: Sequence[FileEntry],
    row: Mapping[str, Any],
) -> Seal:
    """Decide what the round is. Returns our seal, or the one that was there before us.

    `row`: columns of `rounds` (times as datetime or ISO text, JSON columns as dict or text). `versions`
    (those pinned at the opening) and `committed_at` are completed by `roll_forward`; `round`, `kind` and
    `fence` by us; JSON columns not given are "{}". Raises FenceLost, UsageError for an entry of `rounds`
    itself or a row with something missing, LakeError.
    """
    if any(entry.table not in SPECS or entry.table == ROUNDS for entry in (*listing, *removes)):
        raise UsageError(
            "a round is listed by files of the lake's tables; its row in `rounds` is made by itself"
        )
    row = {**row, "round": round_number, "kind": ROUND, "fence": fence.number}
    _row(row, {}, datetime.now(UTC))  # what is wrong with it must show now: a seal cannot be taken back
    path = f"_work/round-{round_number:08d}/seal-{secrets.token_hex(8)}.json"
    content = {
        "round": round_number,
        "adds": [entry.to_dict() for entry in listing],
        "removes": [entry.to_dict() for entry in removes],
        "row": {name: _plain(value) for name, value in row.items()},
    }
    store.write(path, json.dumps(content).encode())

    def decide(head: delta.Head) -> delta.Intent | None:
        require(store, head, fence)
        if head.app(SEAL) >= round_number:
            return None
        # our fence number in the same commit: a newer fence taken meanwhile is a conflict, not a neighbour
        return delta.Intent(
            apps={SEAL: round_number, FENCE: fence.number},
            metadata={"purpose": SEAL, "list": path, "round": str(round_number)},
        )

    if delta.commit_if(store, ROUNDS, decide) is not None:
        return _load(store, path)
    store.delete([path])
    return _find(store, round_number)


def open_seal(store: Store) -> Seal | None:
    """The seal of a round that is not wholly committed; None when there is none. Raises LakeError."""
    head = delta.Head(delta.handle(store, ROUNDS))
    sealed = head.app(SEAL)
    return _find(store, sealed) if sealed > head.app(ROUND) else None


def roll_forward(store: Store, sealed: Seal, now: datetime | None = None) -> Mapping[str, int]:
    """Commit what the seal lists: every changed table once, `seen` after what it refers to, `rounds` last.

    Safe to repeat and to race: what is committed is left as it is. Returns the version of every table that
    belongs to the round, without `rounds`. `now`: real time, for `committed_at`. Raises Conflict when a file
    to remove is gone.
    """
    first = [table for table in sealed.tables() if table not in LAST]
    versions: dict[str, int] = {}
    for wave in (first, [table for table in sealed.tables() if table in LAST]):
        with ThreadPoolExecutor(max_workers=max(1, min(8, len(wave)))) as pool:
            versions.update(
                zip(wave, pool.map(lambda table: _commit(store, sealed, table), wave), strict=True)
            )
    pinned = _pinned(sealed.row)
    missing = tuple(t for t in SPECS if t != ROUNDS and t not in versions and t not in pinned)
    versions = {**heads(store, missing), **pinned, **versions}
    versions.pop(ROUNDS, None)
    _commit_row(store, sealed, versions, now or datetime.now(UTC))
    return versions


def record(store: Store, fence: Fence, row: Mapping[str, Any], now: datetime | None = None) -> int:
    """Add an entry to `rounds` outside a round (kind `upkeep`: same round, new versions), under our fence.

    Returns the Delta version of `rounds`. Raises FenceLost, LakeError.
    """
    if not _pinned(row):
        raise UsageError("an entry of `rounds` names the versions of all tables: give them as `versions`")
    full = _row({"kind": UPKEEP, "fence": fence.number, **row}, _pinned(row), now or datetime.now(UTC))
    entry = write(store, ROUNDS, full)

    def decide(head: delta.Head) -> delta.Intent:
        require(store, head, fence)
        return delta.Intent(
            apps={UPKEEP: head.app(UPKEEP) + 1, FENCE: fence.number},
            adds=(entry,),
            metadata={"purpose": UPKEEP},
        )

    try:
        version = delta.commit_if(store, ROUNDS, decide)
    except (FenceLost, Conflict):  # surely not committed; after another error the file may be in use
        store.delete([entry.location])
        raise
    if version is None:
        raise LakeError("an entry is always committed")
    return version


def _commit(store: Store, sealed: Seal, table: str) -> int:
    return delta.commit(
        store,
        table,
        app=ROUND,
        app_version=sealed.round,
        adds=[entry for entry in sealed.adds if entry.table == table],
        removes=[entry for entry in sealed.removes if entry.table == table],
        metadata={"purpose": ROUND, "round": str(sealed.round)},
    )


def _commit_row(store: Store, sealed: Seal, versions: Mapping[str, int], now: datetime) -> None:
    if delta.app_version(store, ROUNDS, ROUND) >= sealed.round:
        return
    entry = write(store, ROUNDS, _row(sealed.row, versions, now))

    def decide(head: delta.Head) -> delta.Intent | None:
        if head.app(ROUND) >= sealed.round:
            return None
        return delta.Intent(
            apps={ROUND: sealed.round},
            adds=(entry,),
            metadata={"purpose": ROUND, "round": str(sealed.round)},
        )

    if delta.commit_if(store, ROUNDS, decide) is None:
        store.delete([entry.location])  # another driver's row stands


def _row(row: Mapping[str, Any], versions: Mapping[str, int], now: datetime) -> pa.Table:
    columns = SPECS[ROUNDS].schema
    unknown = set(row) - set(columns.names)
    full: dict[str, Any] = {}
    for column in columns:
        value = row.get(column.name, "{}" if column.name in _JSON else None)
        if isinstance(value, str) and pa.types.is_timestamp(column.type):
            value = datetime.fromisoformat(value)
        full[column.name] = json.dumps(value, sort_keys=True) if isinstance(value, (dict, list)) else value
    full["versions"] = json.dumps(dict(versions), sort_keys=True)
    full["committed_at"] = now
    missing = [name for name in words.required(columns) if full[name] is None]
    if unknown or missing:
        raise UsageError(f"a row of `rounds` lacks {missing} and has unknown {sorted(unknown)}")
    return pa.Table.from_pylist([full], schema=columns)


def _pinned(row: Mapping[str, Any]) -> dict[str, int]:
    versions = row.get("versions") or {}
    found: dict[str, int] = json.loads(versions) if isinstance(versions, str) else dict(versions)
    return {table: number for table, number in found.items() if table != ROUNDS}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _find(store: Store, round_number: int) -> Seal:
    found = delta.tagged(store, ROUNDS, SEAL, round_number)
    if found is None:
        raise LakeError(
            f"round {round_number} of {store.root} is sealed, but the log of `rounds` no longer says how"
        )
    return _load(store, str(found.metadata["list"]))


def _load(store: Store, path: str) -> Seal:
    content = json.loads(store.read(path))
    return Seal(
        round=content["round"],
        path=path,
        adds=tuple(map(FileEntry.from_dict, content["adds"])),
        removes=tuple(map(FileEntry.from_dict, content["removes"])),
        row=content["row"],
    )
