"""A lake opened for SQL by a command: which snapshot, at which time, and what the open round holds.

What always holds: what is read is one round's state, the newest or the one asked for; keys that the open
round has planned count as leased. It writes nothing.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from cycles.session.opening import is_open
from cycles.session.workspace import Workspace
from lake import files, ranges, snapshot, sql
from lake.store import Store

__all__ = ["leased_at", "merged_through", "query", "reader", "stage"]

#: what a step leaves behind when it is over → the step that comes next
_STEPS: Final = {
    "plan.json": "fetch",
    "fetched.json": "dedup",
    "dedup.json": "merge",
    "merge.json": "seal",
}


def reader(store: Store, now: datetime, round_: int | None = None) -> sql.Reader:
    """Open the newest round's state, or that of `round_`. Raises UsageError for a round that is not kept."""
    if round_ is not None:
        return sql.connect(store, snapshot.at(store, round_), now)
    return sql.connect(store, snapshot.latest(store), now, leased=_leased(store))


def _leased(store: Store) -> pa.Table | None:
    """Keys that the open round has planned."""
    number = is_open(store)
    if number is None:
        return None
    path = Workspace(store.root, number).path("planned.parquet")
    return files.read_work(store, path, ["url_key"]) if store.exists(path) else None


def leased_at(store: Store, url_key: int) -> dict[str, Any] | None:
    """Where a URL stands in the open round's plan: round, stage, group, position; None where it does not."""
    found = stage(store)
    if found is None:
        return None
    path = Workspace(store.root, found["round"]).path("planned.parquet")
    if not store.exists(path):
        return None
    rows = ranges.slice(store, path, "url_key", url_key, url_key, ["group", "position"]).to_pylist()
    return {"round": found["round"], "stage": found["stage"], **rows[0]} if rows else None


def query(of: sql.Reader, name: str, **values: Any) -> list[dict[str, Any]]:
    """Rows of a named question, given those of `values` that it has a parameter for."""
    body = re.sub(r"--.*", "", sql.text(name))
    rows: list[dict[str, Any]] = of.query(
        name, **{key: value for key, value in values.items() if re.search(rf"\${key}\b", body)}
    ).to_pylist()
    return rows


def merged_through(store: Store, round_: int | None = None) -> int:
    """Last round whose links were merged, as the newest round (or `round_`) left it; 0 when none were."""
    rows = snapshot.entries(store, round_).to_pylist() if round_ is not None else []
    row = rows[-1] if rows else snapshot.newest(store)
    return int(json.loads(row["counts"]).get("links_merged_through", 0)) if row else 0


def stage(store: Store) -> dict[str, Any] | None:
    """The open round and how far it is, from what lies in its work area; None when no round is open."""
    from lake.seal import open_seal

    number = is_open(store)
    if number is None:
        return None
    work = Workspace(store.root, number)
    opened = work.read("open.json") or {}
    found = {"round": number, "now": opened.get("now"), "opened_at": opened.get("opened_at")}
    names = {stat.path.removeprefix(work.path() + "/") for stat in store.list(work.path())}
    over = [step for step in _STEPS if step in names]
    done = sum(1 for name in names if re.fullmatch(r"group-\d+/done\.json", name))
    if open_seal(store) is not None:
        at = "commit"
    else:
        at = _STEPS[over[-1]] if over else "plan"
    return {**found, "stage": at, "groups_done": done}
