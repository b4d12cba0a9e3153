"""Vacuum: delete files that no kept round refers to, orphans of dead rounds, and old work areas.

What always holds: every version that a kept entry of `rounds` or an open round names stays whole, and so
does the newest of every table. A file is deleted only after a commit of ours (app id `rewrite`) on its
table: whoever wrote it and is about to commit it under an older fence finds that commit in its way,
decides anew, and stops. Tables that commands write without a fence lose only files that their own log has
removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from crawl.errors import Conflict, LakeError
from lake import delta, deltalog, snapshot
from lake.entries import FileEntry
from lake.fence import ROUNDS, Fence, check_fence, require
from lake.store import Store
from lake.tables import OUTSIDE

__all__ = ["REWRITE", "open_round", "pins", "rewrite", "sweep_work", "vacuum"]

#: app id of everything upkeep commits to the tables
REWRITE: Final = "rewrite"
_ROUND_FOLDER: Final = re.compile(r"_work/round-(\d+)/")
#: heartbeats (cycles.session.holder)
_DRIVERS: Final = "_work/drivers/"
#: names this software gives to data files, others are left alone
_OURS: Final = re.compile(r"(?:run-L\d+-\d+-(?:\d+)-|(?:\d{8})-|gathered-)[0-9a-f]+\.parquet")
#: work areas of committed rounds that stay, for looking into
KEEP_WORK: Final = 2
#: commits that `rounds` gets for a round at most, when all goes well: fence, seal, entry, upkeep, gathering
_COMMITS: Final = 5


def rewrite(
    store: Store,
    fence: Fence,
    table: str,
    *,
    adds: Sequence[FileEntry] = (),
    removes: Sequence[FileEntry] = (),
    same_rows: bool = True,
) -> int:
    """Commit under app id `rewrite`, our fence and the inputs checked on the very handle that commits.

    The fence is asked after the handle was opened: a driver that takes over in between commits to this
    table before it deletes anything, so our commit fails and we find the new fence. Raises FenceLost,
    Conflict (plan again), LakeError.
    """
    tries = 0

    def decide(head: delta.Head) -> delta.Intent:
        nonlocal tries
        tries += 1
        if table == ROUNDS:
            require(store, head, fence)
        else:
            check_fence(store, fence)
        if tries > 1 and not all(store.exists(entry.location) for entry in adds):
            raise Conflict(f"{table}: what we wrote was swept while somebody else committed: plan again")
        return delta.Intent(
            apps={REWRITE: head.app(REWRITE) + 1},
            adds=adds,
            removes=removes,
            metadata={"purpose": REWRITE},
            rewrite=same_rows,
        )

    version = delta.commit_if(store, table, decide)
    if version is None:
        raise LakeError("a rewrite is always committed")
    return version


def open_round(store: Store, number: int) -> Mapping[str, Any] | None:
    """What an unfinished round has pinned (its `open.json`); None when it was not begun."""
    raw = store.get(f"_work/round-{number:08d}/open.json")
    if raw is None:
        return None
    pinned: dict[str, Any] = json.loads(raw)
    return pinned


def pins(store: Store, keep_rounds: int) -> dict[str, int]:
    """The oldest version of each table that must stay readable: of the newest rounds and of an open one."""
    rows = snapshot.entries(store).select(["round", "versions"]).to_pylist()
    numbers = sorted({row["round"] for row in rows})
    kept = set(numbers[-max(1, keep_rounds) :])
    named = [json.loads(row["versions"]) for row in rows if row["round"] in kept]
    opened = open_round(store, (numbers[-1] if numbers else 0) + 1)
    if opened is not None:
        named.append(opened["versions"])
    heads = snapshot.heads(store)
    named.append({ROUNDS: max(0, heads[ROUNDS] - _COMMITS * keep_rounds)})
    return {table: min([head, *(v[table] for v in named if table in v)]) for table, head in heads.items()}


def vacuum(store: Store, fence: Fence, keep_rounds: int) -> int:
    """Delete what no version from the pinned ones on refers to, and trim the logs. Returns files deleted."""
    newest = snapshot.newest(store)
    committed = newest["round"] if newest else 0
    pinned = pins(store, keep_rounds)
    orphans = open_round(store, committed + 1) is None  # an unfinished round may still want its files
    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(lambda table: _table(store, fence, table, pinned[table], orphans), pinned))


def _table(store: Store, fence: Fence, table: str, oldest: int, orphans: bool) -> int:
    there = {stat.path for stat in store.list(table) if stat.path.endswith(".parquet")}
    dead = there & deltalog.removed_up_to(store, table, oldest)
    store.delete(sorted(dead))
    lost: set[str] = set()
    if orphans and (table == ROUNDS or table not in OUTSIDE):
        ours = {path for path in there - dead if _OURS.fullmatch(path.rsplit("/", 1)[-1])}
        lost = _unreferenced(store, table, oldest, ours)
        if lost:
            # what another driver wrote and has not committed must become impossible to commit first
            rewrite(store, fence, table)
            lost = _unreferenced(store, table, oldest, lost)
            store.delete(sorted(lost))
    deltalog.trim(store, table, oldest)
    return len(dead) + len(lost)


def _unreferenced(store: Store, table: str, oldest: int, paths: set[str]) -> set[str]:
    return paths - deltalog.referenced(store, table, oldest, delta.version(store, table)) if paths else paths


def sweep_work(store: Store, committed: int) -> int:
    """Delete work areas of committed rounds but the last two, and the last words of drivers that are done.

    Returns files of work areas deleted: every driver leaves a last word, which is not worth telling.
    """
    old, said, folders = [], [], set()
    for stat in store.list("_work"):
        found = _ROUND_FOLDER.match(stat.path)
        if found and int(found[1]) <= committed - KEEP_WORK:
            old.append(stat.path)
            folders.add(found[0])
        elif stat.path.startswith(_DRIVERS) and _said_goodbye(store.get(stat.path)):
            said.append(stat.path)
    store.delete([*old, *said])
    for folder in sorted(folders):
        store.drop_folder(folder)
    return len(old)


def _said_goodbye(beat: bytes | None) -> bool:
    """Whether a heartbeat is a driver's last: it tells no more than that there is none."""
    try:
        return beat is not None and json.loads(beat).get("state") == "released"
    except (ValueError, AttributeError):
        return False  # damaged, or of somebody who just writes it
