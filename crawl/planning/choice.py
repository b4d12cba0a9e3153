"""Which of the due URLs a round asks, and why each other one waits.

What always holds: a host, and hosts that share a clock or a public address, get no more than that allows; the
best of what is due comes first: by tier, score, how long a URL has waited, within its host by what its
sitemap says of it, and key; a URL never fetched (tier discovery) stands where its score puts it. A host whose
Crawl-delay is longer than `long_crawl_delay` is kept to it, and no round waits for it. The same rows in any
order give the same choice. It groups nothing and reads no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from crawl.columns import Bools, Column, Floats, Ints, among, floats, ints, ranks
from crawl.planning.addressplan import beyond
from crawl.planning.capacity import Clocks
from crawl.planning.forecast import chains, work
from crawl.policy import Settings
from crawl.sitemap.announced import CHANGEFREQ, DEFAULT_PRIORITY

__all__ = ["Work", "choose"]

_TIERS: Final = ("critical", "high", "medium", "low")

Texts = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What there is to choose from: the due rows, and columns over their hosts (sorted by name)."""

    rows: pa.Table
    names: list[str]
    host: Ints  # of each due row
    clock: Clocks
    asks: Ints  # requests each host spends on robots.txt
    window_s: float


def choose(of: Work, settings: Settings, groups: int) -> tuple[Ints, Bools, Texts]:
    """All rows by host and preference; which of them are planned; why each other one is not."""
    clock = of.clock
    score = floats(of.rows["score"])
    tier = _rank(of.rows["tier"], score, settings.planning.cuts)
    better = (ints(of.rows["url_key"]), ints(of.rows["eligible_since"]), -score, tier)
    order = np.lexsort((better[0], *_hints(of.rows), *better[1:], of.host))
    host = of.host[order]
    picked = ranks(host) < clock.capacity[host]
    why = clock.reason[host]

    def cut(most: Ints, reason: str, of_whom: Ints) -> None:
        """Leaves `most` requests (given by host) to each host or line, the best of its rows."""
        at = np.flatnonzero(picked)
        at = at[np.lexsort((*(column[order[at]] for column in better), of_whom[host[at]]))]
        late = at[ranks(of_whom[host[at]]) >= most[host[at]]]
        picked[late] = False
        why[late] = reason

    if len(np.unique(clock.line)) < len(clock.line):
        cut(clock.line_capacity, "group_capacity", clock.line)
    if clock.spot_step_s.any():
        at = np.flatnonzero(picked)
        at = at[np.lexsort((*(column[order[at]] for column in better), clock.spot[host[at]]))]
        late = at[beyond(clock, host[at], of.asks, of.window_s)]
        picked[late] = False
        why[late] = "address_capacity"
    if clock.slow.any():
        pages = np.bincount(host[picked], minlength=len(of.names)).astype(np.int64)
        cut(_beside(of, pages, settings, groups), "long_crawl_delay", clock.line)
    over = int(picked.sum()) - settings.planning.urls
    if over > 0:
        at = np.flatnonzero(picked)
        columns = (*(column[order[at]] for column in better), clock.slow[host[at]])
        worst = at[np.lexsort(columns)][-over:]
        picked[worst] = False
        why[worst] = "round_cap"
    return order, picked, why


def _beside(of: Work, pages: Ints, settings: Settings, groups: int) -> Ints:
    """Page requests of each host that fit beside the others' work: all, but for those of long Crawl-delays.

    Those get what their clock allows until the others are done: however long they ask to be left alone, they
    are asked in a round that begins when that is over. Where there are no others, nobody is held up.
    """
    clock = of.clock
    requests = np.where(pages > 0, pages + of.asks, 0)
    others = np.where(clock.slow, 0, requests)
    if not others.any():
        return pages
    whole = work(clock, others, settings.fetching.in_flight).sum() / groups
    until = max(float(chains(clock, others).max()), float(whole))
    asks = np.bincount(clock.line, of.asks, len(of.names)).astype(np.int64)[clock.line]
    fits = np.ceil(np.maximum(until - clock.line_wait_s, 0.0) / clock.line_step_s).astype(np.int64)
    return np.where(clock.slow, np.where(fits > 0, np.maximum(fits - asks, 1), 0), np.iinfo(np.int64).max)


def _hints(rows: pa.Table) -> tuple[Floats, Floats]:
    """What sitemaps say that matters within a host alone, the lesser first: how often, and priority."""
    often = among(rows["changefreq"], CHANGEFREQ)
    asked = np.nan_to_num(floats(rows["sitemap_priority"]), nan=DEFAULT_PRIORITY)
    return np.where(often < 0, len(CHANGEFREQ) / 2, often).astype(np.float64), -asked


def _rank(tier: Column, score: Floats, cuts: tuple[float, float, float]) -> Ints:
    """0 for critical to 3 for low; discovery stands where its score puts it."""
    named = among(tier, _TIERS)
    by_score = len(cuts) - np.searchsorted(np.sort(np.asarray(cuts)), score, side="right")
    return np.where(named >= 0, named, by_score)
