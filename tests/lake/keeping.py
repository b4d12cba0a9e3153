"""An upkeep as a driver runs it, for tests: real time goes on from one to the next."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

from crawl.policy import Retention, Storage
from lake import fence, snapshot, sql, upkeep
from lake.fence import Fence
from lake.store import Store
from tests.lake import lakes, rows
from tests.lake.rows import NOW

TICKS = itertools.count(1)
#: merges nothing
ROOMY = Storage(tier_ratio=100)


def take(store: Store) -> Fence:
    return fence.take_fence(store, {"host": "test", "pid": "1"})


def upkept(
    store: Store, *, keep: Retention | None = None, storage: Storage | None = None, held: Fence | None = None
) -> upkeep.Upkept:
    return upkeep.run(
        store,
        held or take(store),
        retention_policy=keep or Retention(),
        storage=storage or Storage(tier_ratio=3),
        clock=lambda: NOW + next(TICKS) * timedelta(seconds=1),
    )


def seen_rounds(store: Store, count: int, *, first: int = 1, tables: Any = None) -> None:
    """Rounds of one new URL each and one that all of them rewrite."""
    for number in range(first, first + count):
        more = tables(number) if tables else {}
        lakes.commit_round(store, number, seen=rows.seen([0, number], number), **more)


def asked(
    store: Store, sql_text: str, *, at: int | None = None, now: datetime = NOW
) -> list[tuple[Any, ...]]:
    pinned = snapshot.latest(store) if at is None else snapshot.at(store, at)
    with sql.connect(store, pinned, now) as reader:
        return [tuple(row.values()) for row in reader.ask(sql_text).table().to_pylist()]
