"""The paths by which a round met URLs, in one form: from links, from seeds, and from redirects followed.

What always holds: one row a path (CANDIDATES), nothing dropped but links that were not admitted. A seed has
no source; a target elsewhere than where its redirect began waits for the next round with more importance than
a link gives, since the page that led there has nothing else to show. It reduces nothing
(crawl.merging.discovery) and knows nothing of what the lake holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl import priority
from crawl.columns import Column, Floats, Ints, among, flags, ints, make, take, texts
from crawl.policy import Planning
from crawl.schema import CANDIDATES

__all__ = [
    "LINK_COLUMNS",
    "LISTED_IMPORTANCE",
    "REDIRECT_IMPORTANCE",
    "first_score",
    "kind_of",
    "of_hops",
    "of_links",
    "of_seeds",
]

#: importance that a redirect gives its target: a high seed's
REDIRECT_IMPORTANCE: Final = priority.SEED_IMPORTANCE["high"]

#: columns of `links` that matter here
LINK_COLUMNS: Final = (
    "target_key",
    "target_url",
    "target_domain",
    "source_key",
    "via",
    "depth",
    "first_parse",
    "admitted",
    "is_internal",
    "target_kind",
    "lastmod",
    "changefreq",
    "sitemap_priority",
    "chain_id",
    "chain_hop",
)

_FOUND: Final = ("redirect", "sitemap", "feed", "robots", "well_known")
#: importance that a site's own list gives: a high seed's
LISTED_IMPORTANCE: Final = priority.SEED_IMPORTANCE["high"]


def of_links(links: pa.Table, planning: Planning) -> pa.Table:
    """From rows of `links` (LINK_COLUMNS), in their order."""
    rows = links.filter(links["admitted"])
    told = among(rows["via"], _FOUND)
    # what a feed names elsewhere is a link like any other; a sitemap names only what it may speak for
    announced = (told == 1) | ((told == 2) & flags(rows["is_internal"]))
    listed = announced | (told > 2)
    onward = (told == 0) | flags(rows["chain_id"].is_valid())  # a refresh leads on like a redirect
    importance = np.select(
        [onward, listed], [REDIRECT_IMPORTANCE, LISTED_IMPORTANCE], priority.LINK_IMPORTANCE
    )
    depth = ints(rows["depth"])
    return make(
        CANDIDATES,
        len(rows),
        target_key=rows["target_key"],
        target_url=rows["target_url"],
        target_domain=rows["target_domain"],
        source_key=rows["source_key"],
        depth=depth,
        found_by=take(texts([*_FOUND, "link"]), np.where(told < 0, len(_FOUND), told)),
        kind=kind_of(rows["target_kind"]),
        announced=announced,
        lastmod=rows["lastmod"],
        changefreq=rows["changefreq"],
        sitemap_priority=rows["sitemap_priority"],
        counts=rows["first_parse"],
        chain_id=rows["chain_id"],
        chain_hop=rows["chain_hop"],
        importance=importance,
        score=first_score(importance, depth, planning),
    )


def of_seeds(
    keys: Column,
    urls: Sequence[str],
    spellings: Column,
    domains: Sequence[str],
    priorities: Column,
    kinds: Column,
    planning: Planning,
) -> pa.Table:
    """From accepted seeds: parallel columns, `urls` canonical, `priorities` of `crawl.priority`."""
    given = np.array([*priority.SEED_IMPORTANCE.values(), priority.LINK_IMPORTANCE])
    importance = given[among(priorities, list(priority.SEED_IMPORTANCE))]
    depth = np.zeros(len(importance), dtype=np.int64)
    return make(
        CANDIDATES,
        len(importance),
        target_key=keys,
        target_url=texts(urls),
        discovered_url=spellings,
        target_domain=texts(domains),
        depth=depth,
        found_by="seed",
        kind=kinds,
        announced=False,
        counts=False,
        importance=importance,
        score=first_score(importance, depth, planning),
    )


def of_hops(visits: pa.Table, planning: Planning) -> pa.Table:
    """From visits that were no part of the plan: targets of redirects that were followed at once."""
    hops = visits.filter(pa.array(~flags(visits["planned"]) & ~_none(visits["referrer_key"])))
    depth = ints(hops["depth"])
    importance = np.full(len(hops), REDIRECT_IMPORTANCE)
    return make(
        CANDIDATES,
        len(hops),
        target_key=hops["url_key"],
        target_url=hops["url"],
        target_domain="",
        source_key=hops["referrer_key"],
        depth=depth,
        found_by="redirect",
        kind=hops["kind"],
        announced=False,
        counts=False,
        importance=importance,
        score=first_score(importance, depth, planning),
    )


def kind_of(column: Column) -> Any:
    """Kinds as told; a page where a row is older than kinds are."""
    return pc.coalesce(column, pa.scalar("page", pa.string()))


def first_score(importance: Floats, depth: Ints, planning: Planning) -> Floats:
    """Score of a URL just met: it has waited for nothing yet, and nobody knows how often it changes."""
    nothing = np.zeros(len(importance))
    return priority.score(
        importance=importance,
        waited_s=nothing,
        interval_s=nothing,
        changes=nothing,
        checks=nothing,
        depth=depth,
        age_s=nothing,
        policy=planning,
    )


def _none(column: Column) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return flags(column.is_null())
