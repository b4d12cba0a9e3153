"""URLs met in a round, reduced to one entry a key, and the first row of those nobody knew.

What always holds: the result depends on the candidates alone, not on their order or on how they were cut into
ranges. The path that counts as first is the smallest (depth, source key), a seed before all; among links of
one page it is the smallest text. Of a known URL only its signals are told, never a row.

Numbers are reduced by key first and text is looked at for new URLs alone, so that a candidate costs a
fraction of a microsecond. What is known is the caller's question to the lake; what a URL is worth is
`crawl.priority`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl import priority
from crawl.columns import Bools, Floats, Ints, flags, floats, ints, make, take, texts
from crawl.merging import candidates as candidates_of
from crawl.policy import Planning
from crawl.schema import SEEN
from crawl.sitemap import announced
from crawl.state import State
from crawl.url import RULES_VERSION, split_many

__all__ = ["Met", "meet", "new_rows"]

#: stands for "no source": a seed is met before any link
_NOBODY: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Candidates by key: one entry per distinct target, ascending."""

    keys: Ints
    in_links: Ints  # paths that count
    depth: Ints  # fewest links from a seed
    importance: Floats  # most that a path gives
    score: Floats  # best that a path gives
    source: Ints  # smallest source of a path of that depth; the smallest number where it is a seed
    linked: Bools  # some path has a source: not only a seed
    order: Ints  # places of the candidates, by key
    starts: Ints  # where each key's candidates begin in `order`


def meet(candidates: pa.Table) -> Met:
    """Reduce candidates (columns CANDIDATES) by target."""
    target = ints(candidates["target_key"])
    # Candidates come as slices that are each sorted: a stable sort finds those runs and merges them.
    order = np.argsort(target, kind="stable")
    ordered = target[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    if not len(starts):
        return _nothing()
    depth = ints(candidates["depth"])[order]
    source = ints(candidates["source_key"], _NOBODY)[order]
    lengths = np.diff(starts, append=len(order))
    best = np.minimum.reduceat(depth, starts)
    nearest = np.where(depth == np.repeat(best, lengths), source, np.iinfo(np.int64).max)
    return Met(
        keys=ordered[starts],
        in_links=np.add.reduceat(flags(candidates["counts"])[order].astype(np.int64), starts),
        depth=best,
        importance=np.maximum.reduceat(floats(candidates["importance"])[order], starts),
        score=np.maximum.reduceat(floats(candidates["score"])[order], starts),
        source=np.minimum.reduceat(nearest, starts),
        linked=np.maximum.reduceat(source, starts) != _NOBODY,
        order=order,
        starts=starts,
    )


def _nothing() -> Met:
    none = np.zeros(0, dtype=np.int64)
    return Met(
        keys=none,
        in_links=none,
        depth=none,
        importance=np.zeros(0),
        score=np.zeros(0),
        source=none,
        linked=np.zeros(0, dtype=np.bool_),
        order=none,
        starts=none,
    )


def new_rows(
    candidates: pa.Table,
    met: Met,
    unknown: Bools,
    told: announced.Announced | None = None,
    *,
    planning: Planning,
    policy_version: str,
    now: datetime,
    round: int,
) -> pa.Table:
    """Rows of `seen` (SEEN, by url_key) for the met keys that `unknown` marks: DISCOVERED, due at once."""
    at = np.flatnonzero(unknown)
    told = announced.reduce(candidates) if told is None else told
    first = take(candidates, _first(candidates, met, at))
    urls = first["target_url"].to_pylist()
    origins, hosts, domains = split_many(urls)
    importance = met.importance[at]
    score = candidates_of.first_score(importance, met.depth[at], planning)
    source = met.source[at]
    return make(
        SEEN,
        len(at),
        url_key=met.keys[at],
        url=first["target_url"],
        discovered_url=pc.coalesce(first["discovered_url"], first["target_url"]),
        origin=texts(origins),
        host=texts(hosts),
        domain=texts(domains),
        rules_version=RULES_VERSION,
        depth=met.depth[at],
        kind=announced.kinds(told, met.keys[at]),
        found_by=first["found_by"],
        first_referrer_key=pa.array(source, mask=source == _NOBODY),
        chain_id=first["chain_id"],
        chain_hop=first["chain_hop"],
        first_seen_at=now,
        first_seen_round=round,
        state=State.DISCOVERED.value,
        policy_version=policy_version,
        attempts=0,
        crawl_count=0,
        change_count=0,
        changed_exposure_s=0.0,
        unchanged_exposure_s=0.0,
        checks_decayed=0.0,
        changes_decayed=0.0,
        gone_sightings=0,
        importance=importance,
        score=score,
        tier=texts(priority.tier(score, np.zeros(len(at), dtype=np.bool_), planning)),
        **announced.hints(told, met.keys[at]),
        eligible_since=now,
        next_fetch_at=now,
        interval_s=0.0,
        round=round,
    )


#: among paths of one depth and source the smallest of these leads; null is last, so a chain goes before none
_TIES: Final = ["target_url", "discovered_url", "found_by", "chain_id", "chain_hop"]


def _first(candidates: pa.Table, met: Met, at: Ints) -> Ints:
    """For each of the met keys at these places: the candidate that is its first path."""
    ends = np.append(met.starts[1:], len(met.order))
    lengths = (ends - met.starts)[at]
    # places in `order` of all candidates of these keys, one key after another
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = met.order[np.repeat(met.starts[at], lengths) + within]
    of = np.repeat(np.arange(len(at)), lengths)
    some = take(candidates.select(["depth", "source_key", *_TIES]), rows)
    nearest = ints(some["depth"]) == met.depth[at][of]
    leads = nearest & (ints(some["source_key"], _NOBODY) == met.source[at][of])
    places, of = np.flatnonzero(leads), of[leads]
    count = np.bincount(of, minlength=len(at))
    chosen = np.empty(len(at), dtype=np.int64)
    alone = count[of] == 1
    chosen[of[alone]] = rows[places[alone]]
    tied, of = places[~alone], of[~alone]
    if len(tied):
        found: Any = take(some.select(_TIES), tied)
        found = found.append_column("of", pa.array(of)).append_column("row", pa.array(rows[tied]))
        by_text = found.sort_by([(name, "ascending") for name in ("of", *_TIES)])
        keys, first = np.unique(ints(by_text["of"]), return_index=True)
        chosen[keys] = ints(by_text["row"])[first]
    return chosen
