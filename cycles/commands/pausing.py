"""Pausing hosts and letting them go on: rows of `suppressions`, read by plans and running fetches.

What always holds: the newest word on a name counts (view `suppressed`); nothing is ever deleted, so the table
tells who held what back, when and why. A name pauses the host of that name, and every host of the domain of
that name. A round that is being fetched leaves it alone within seconds (cycles.tasks.holds), and carries over
what it had planned of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa

from crawl.schema import SUPPRESSIONS
from cycles.session import ledger
from cycles.session.setup import Lake
from cycles.words.wording import counted
from lake import snapshot, sql

__all__ = ["known", "pause", "resume"]


def known(lake: Lake, host: str, now: datetime) -> str:
    """What the lake has of a host or domain, in words: a name that nothing is of may be mistyped."""
    with sql.connect(lake.store, snapshot.latest(lake.store), now) as reader:
        (found,) = reader.query("known-of-host", host=host).to_pylist()
    if found["urls"]:
        return counted(found["urls"], "known URL")
    if found["seeds"]:
        return f"no known URL yet, {counted(found['seeds'], 'seed')} waiting"
    return "no known URL is of it, and no seed; is it spelled right?"


def _held(lake: Lake, host: str, now: datetime) -> dict[str, Any] | None:
    """The row that pauses the host; None when none does."""
    with sql.connect(lake.store, snapshot.latest(lake.store), now) as reader:
        rows: list[dict[str, Any]] = reader.query("suppressed").to_pylist()
    return next((row for row in rows if (row["kind"], row["pattern"]) == ("pause", host)), None)


def _write(lake: Lake, row: dict[str, Any]) -> None:
    ledger.append(lake.store, "suppressions", [pa.Table.from_pylist([row], schema=SUPPRESSIONS)])


def pause(lake: Lake, host: str, *, reason: str | None, who: str, now: datetime) -> bool:
    """Hold a host or domain back from now on; False when it is already."""
    if _held(lake, host, now):
        return False
    row = {"kind": "pause", "pattern": host, "reason": reason, "requested_by": who, "requested_at": now}
    _write(lake, {**row, "verified_at": None, "withdrawn_at": None})
    ledger.audit(lake.store, at=now, who=who, action="pause", subject=host, detail=reason)
    return True


def resume(lake: Lake, host: str, *, who: str, now: datetime) -> bool:
    """Let it go on; False when it was not paused."""
    held = _held(lake, host, now)
    if held is None:
        return False
    row = {"kind": "pause", "pattern": host, "reason": held["reason"], "requested_by": who}
    _write(lake, {**row, "requested_at": held["requested_at"], "verified_at": None, "withdrawn_at": now})
    ledger.audit(lake.store, at=now, who=who, action="resume", subject=host)
    return True
