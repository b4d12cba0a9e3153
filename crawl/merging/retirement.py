"""The guard over whole hosts: no round retires much of what lives on a host.

What always holds: a host of which a round would make more than `Recrawl.retire_share` of the live pages GONE
or TERMINAL, and at least `retire_least` of them, keeps them all, and a row of `rejects` says so. A site that
was moved, misconfigured or put behind a wall answers 404 or 403 for everything: that is no evidence about its
pages.

The parts of a round are judged one by one (`retiring`) and added up (`hold`). Who moves states is
crawl.lifecycle; that held pages stay FETCHED is crawl.merging.visited's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from crawl.columns import Ints, ints, take
from crawl.merging import visited
from crawl.policy import Recrawl, Settings
from crawl.rejects import Rejects
from crawl.schema import REJECTS

__all__ = ["NOTHING_RETIRED", "Held", "hold", "retiring", "suspects"]

#: what `retiring` gives where no page would be retired
NOTHING_RETIRED: Final = pa.table(
    {"host": pa.nulls(0, pa.string()), "count": pa.nulls(0, pa.int64()), "example": pa.nulls(0, pa.string())}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Hosts whose pages this round does not retire."""

    hosts: frozenset[str]
    rejects: pa.Table  # REJECTS: one row a host


def retiring(previous: pa.Table, visits: pa.Table, *, settings: Settings, now: datetime) -> pa.Table:
    """Live pages that these visits would end: host, count and example (the smallest URL), by host.

    `previous` holds the rows (SEEN) of the visited keys that are known. Tables of several parts of a round
    add up.
    """
    visits = visited.one_each(visits)
    at = _places(ints(previous["url_key"]), ints(visits["url_key"]))
    rows, visits = take(previous, at[at >= 0]), take(visits, np.flatnonzero(at >= 0))
    gone = rows.filter(pa.array(visited.retiring(rows, visits, settings=settings, now=now)))
    grouped: Any = gone.group_by("host").aggregate([("url", "count"), ("url", "min")])
    renamed = grouped.select(["host", "url_count", "url_min"]).rename_columns(["host", "count", "example"])
    found: pa.Table = renamed.sort_by("host").cast(NOTHING_RETIRED.schema)
    return found


def _places(have: Ints, keys: Ints) -> Ints:
    """Where each key lies in `have`, which is distinct; -1 where it does not."""
    if not len(have):
        return np.full(len(keys), -1, dtype=np.int64)
    order = np.argsort(have)
    at = order[np.clip(np.searchsorted(have[order], keys), 0, len(have) - 1)]
    return np.where(have[at] == keys, at, -1)


def suspects(retire: pa.Table, policy: Recrawl) -> list[str]:
    """Hosts of which many pages would be retired: those whose live pages must be counted for `hold`."""
    return sorted(host for host, count, _ in _added(retire) if count >= policy.retire_least)


def _added(retire: pa.Table) -> list[tuple[str, int, str]]:
    """Host, count and example, parts of a round added up."""
    grouped: Any = retire.group_by("host").aggregate([("count", "sum"), ("example", "min")])
    return [(row["host"], row["count_sum"], row["example_min"]) for row in grouped.to_pylist()]


def hold(
    retire: pa.Table, live: Mapping[str, int], policy: Recrawl, *, policy_version: str, round: int, day: date
) -> Held:
    """Hosts of which a round would retire too many: more than `retire_share` of their live pages, and many.

    `retire` as `retiring` gives it, parts of a round one after another; `live` counts live pages before the
    round.
    """
    held = Rejects()
    hosts = set()
    for host, count, example in _added(retire):
        if count >= policy.retire_least and count > policy.retire_share * live.get(host, 0):
            hosts.add(host)
            held.add("retire_guard", host, example, count)
    rejects = held.rows("merge", day=day, round_=round, policy_version=policy_version)
    return Held(hosts=frozenset(hosts), rejects=rejects.cast(REJECTS))
