"""Merge: fold what a round met and what it visited into the rows of `seen`.

What always holds: one row per URL, sorted by key; any split of the same input into key ranges, and any order
of its rows, gives the same rows. A URL nobody knew becomes a row, a visited URL gets its next row, a known
URL that was only linked to gets signals and no row. A URL that is met and visited in one round has one row.

Whole hosts are judged before: `hold` says whose pages a round must not retire, since a range may see a part
of a host only. What is known is asked through a function; this module reads no lake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from crawl import visited
from crawl.candidates import of_hops
from crawl.columns import Bools, Ints, among, ints, make, take
from crawl.discovery import Met, meet, new_rows
from crawl.outcomes import TABLE
from crawl.policy import Recrawl, Settings
from crawl.rejects import Rejects
from crawl.schema import REJECTS, SIGNALS

__all__ = ["NOTHING_RETIRED", "Held", "Merged", "fold", "hold", "retiring", "suspects"]

#: what `retiring` gives where no page would be retired
NOTHING_RETIRED: Final = pa.table(
    {
        "host": pa.array([], pa.string()),
        "count": pa.array([], pa.int64()),
        "example": pa.array([], pa.string()),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a fold gives."""

    seen: pa.Table  # SEEN, one row per key, sorted
    before: pa.Table  # url_key and document_key of the same rows before the round; null where there was none
    signals: pa.Table  # SIGNALS, one row per linked key, sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Hosts whose pages this round does not retire."""

    hosts: frozenset[str]
    rejects: pa.Table  # REJECTS: one row a host


def fold(
    previous: pa.Table,
    candidates: pa.Table,
    visits: pa.Table,
    *,
    known: Callable[[Ints], Bools],
    held: Collection[str] = (),
    settings: Settings,
    policy_version: str,
    now: datetime,
    round: int,
) -> Merged:
    """Fold a key range of a round.

    `previous`: the newest rows (SEEN, any order) of all known visited keys, more do no harm; `candidates` and
    `visits` as in `crawl.schema`; `known` answers for ascending distinct keys whether `seen` has them before
    this round. Raises ValueError when a visited URL is neither in `previous` nor met.
    """
    visits = _one_each(visits)
    paths = pa.concat_tables([candidates, of_hops(visits, settings.planning)])
    met = meet(paths)
    keys = ints(visits["url_key"])
    asked = np.union1d(met.keys, keys)
    is_known = known(asked)
    unknown = ~is_known[np.searchsorted(asked, met.keys)]
    options: Any = {"policy_version": policy_version, "now": now, "round": round}
    fresh = new_rows(paths, met, unknown, planning=settings.planning, **options)

    base = _base(previous, fresh, keys, is_known[np.searchsorted(asked, keys)])
    after = visited.after(base, visits, held=held, settings=settings, **options)
    rest = fresh.filter(pa.array(~np.isin(ints(fresh["url_key"]), keys)))
    seen = pa.concat_tables([after, rest])
    order = np.argsort(ints(seen["url_key"]), kind="stable")
    documents = pa.chunked_array([*base["document_key"].chunks, pa.nulls(len(rest), pa.int64())])
    seen = take(seen, order)
    return Merged(
        seen=seen,
        before=pa.table({"url_key": seen["url_key"], "document_key": take(documents, order)}),
        signals=_signals(met, round),
    )


def _one_each(visits: pa.Table) -> pa.Table:
    """One visit per URL, by key: a request before a decision not to ask, then the latest."""
    keys = ints(visits["url_key"])
    asked = np.array([rule.asked for rule in TABLE.values()])
    asked = asked[among(visits["outcome"], [str(outcome) for outcome in TABLE])]
    order = np.lexsort((ints(visits["fetched_at"]), asked, keys))
    last = np.diff(keys[order], append=keys[order[-1:]] + 1) != 0
    chosen = order[last]
    return visits if np.array_equal(chosen, np.arange(len(keys))) else take(visits, chosen)


def _base(previous: pa.Table, fresh: pa.Table, keys: Ints, known: Bools) -> pa.Table:
    """The row before its visit of each key: what the lake has, or the row just made."""
    rows = pa.concat_tables([previous, fresh])
    have = ints(rows["url_key"])
    # a planned seed may come with a row of its own that no file of `seen` holds yet: the one just made counts
    is_fresh = np.arange(len(rows)) >= len(previous)
    order = np.lexsort((is_fresh, have))
    have = have[order]
    last = np.searchsorted(have, keys, side="right") - 1
    at = np.where(known, np.searchsorted(have, keys), last)
    found = np.zeros(len(keys), dtype=np.bool_)
    if len(have):
        found = have[np.clip(at, 0, len(have) - 1)] == keys
    if not found.all():
        missing = keys[~found]
        raise ValueError(f"{len(missing)} visited URLs have no row and were not met, e.g. key {missing[0]}")
    return take(rows, order[at]) if len(keys) else rows.slice(0, 0)


def _signals(met: Met, round: int) -> pa.Table:
    """In-links and best values of every URL that some page led to."""
    at = np.flatnonzero(met.linked)
    return make(
        SIGNALS,
        len(at),
        url_key=met.keys[at],
        round=round,
        in_links=met.in_links[at],
        best_depth=met.depth[at],
        best_score=met.score[at],
    )


def retiring(previous: pa.Table, visits: pa.Table, *, settings: Settings, now: datetime) -> pa.Table:
    """Live pages that these visits would make GONE: host, count and example (the smallest URL), by host.

    `previous` holds the rows (SEEN) of the visited keys that are known. Tables of several parts of a round
    add up.
    """
    visits = _one_each(visits)
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
