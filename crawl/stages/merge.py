"""Merge: fold what a round met and what it visited into the rows of `seen`.

What always holds: one row per URL, sorted by key; any split of the same input into key ranges, and any order
of its rows, gives the same rows. A URL nobody knew becomes a row, a visited URL gets its next row, a known
URL that was only linked to gets signals and no row, but
where a sitemap or feed tells news of it. A URL that is met and visited in one round has one row.

Whole hosts are judged before: `hold` says whose pages a round must not retire, since a range may see a part
of a host only. What is known is asked through a function; this module reads no lake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from crawl.columns import Bools, Ints, among, ints, make, take
from crawl.merging import visited, withholding
from crawl.merging.candidates import of_hops
from crawl.merging.discovery import Met, meet, new_rows
from crawl.policy import Settings
from crawl.schema import SIGNALS
from crawl.sitemap import announced, hearsay

__all__ = ["Merged", "fold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a fold gives."""

    seen: pa.Table  # SEEN, one row per key, sorted
    before: pa.Table  # url_key and document_key of the same rows before the round; null where there was none
    signals: pa.Table  # SIGNALS, one row per linked key, sorted
    evidence: pa.Table  # sitemap.hearsay.EVIDENCE: how right sitemaps were about the visited pages, by host


def fold(
    previous: pa.Table,
    candidates: pa.Table,
    visits: pa.Table,
    *,
    known: Callable[[Ints], Bools],
    held: Collection[str] = (),
    unbelieved: Collection[str] = (),
    settings: Settings,
    policy_version: str,
    now: datetime,
    round: int,
) -> Merged:
    """Fold a key range of a round.

    `previous`: the newest rows (SEEN, any order) of all known visited keys, and of those that a sitemap or
    feed names, more do no harm; `candidates` and `visits` as in `crawl.schema`; `known` answers for ascending
    distinct keys whether `seen` has them before this round; `unbelieved`: hosts whose sitemaps' dates no page
    is asked for. Raises ValueError when a visited URL is neither in `previous` nor met.
    """
    visits = visited.one_each(visits)
    paths = pa.concat_tables([candidates, of_hops(visits, settings.planning)])
    met, told = meet(paths), announced.reduce(paths)
    keys = ints(visits["url_key"])
    asked = np.union1d(met.keys, keys)
    is_known = known(asked)
    unknown = ~is_known[np.searchsorted(asked, met.keys)]
    options: Any = {"policy_version": policy_version, "now": now, "round": round}
    fresh = new_rows(paths, met, unknown, told, planning=settings.planning, **options)

    base = _base(previous, fresh, keys, is_known[np.searchsorted(asked, keys)])
    after = visited.after(base, visits, held=held, settings=settings, **options)
    judged = hearsay.evidence(base, after)
    rest = fresh.filter(pa.array(~np.isin(ints(fresh["url_key"]), keys)))
    heard = _heard(previous, told, keys, unbelieved, now, round)
    after = announced.apply(after, told, _believed(after, unbelieved), visited=True, now=now, round=round)[0]
    seen = pa.concat_tables([after, rest, heard])
    order = np.argsort(ints(seen["url_key"]), kind="stable")
    documents = pa.chunked_array(
        [
            *_published(base).chunks,
            pa.nulls(len(rest), pa.int64()),
            *_published(heard).chunks,
        ]
    )
    seen = take(seen, order)
    return Merged(
        seen=seen,
        before=pa.table({"url_key": seen["url_key"], "document_key": take(documents, order)}),
        signals=_signals(met, round),
        evidence=judged,
    )


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


def _published(rows: pa.Table) -> pa.ChunkedArray[Any]:
    """The documents that an indexer was told of."""
    return pa.chunked_array(withholding.published(rows["document_key"], rows["withheld"]))


def _heard(
    previous: pa.Table,
    told: announced.Announced,
    visited_keys: Ints,
    unbelieved: Collection[str],
    now: datetime,
    round: int,
) -> pa.Table:
    """Rows of known URLs, not visited, that an announcement changes."""
    have = ints(previous["url_key"])
    rows = previous.filter(pa.array(np.isin(have, told.keys) & ~np.isin(have, visited_keys)))
    made, changed = announced.apply(rows, told, _believed(rows, unbelieved), now=now, round=round)
    return made.filter(pa.array(changed))


def _believed(rows: pa.Table, unbelieved: Collection[str]) -> Bools:
    return among(rows["host"], sorted(unbelieved)) < 0


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
