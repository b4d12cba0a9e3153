"""What sitemaps and feeds say of URLs, reduced to one word a URL, and what that changes of a row of `seen`.

What always holds: the result depends on the candidates alone, not on their order: of several announcements
the newest date counts, then the smallest source. A URL that is named as a sitemap or feed is one, whoever
links to it as a page. What is announced makes a URL due now at most; it makes nothing gone, and brings
nothing back that was given up, denied, or failed and waits.
Which announcements are believed is the host's record (columns of `hosts`); what URLs are worth is
crawl.priority's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl import recrawl
from crawl.columns import Bools, Column, Ints, among, choose, equals, flags, floats, ints, take, texts
from crawl.policy import Sitemaps
from crawl.state import State

__all__ = [
    "CHANGEFREQ",
    "DEFAULT_PRIORITY",
    "KINDS",
    "Announced",
    "apply",
    "hints",
    "kinds",
    "reduce",
    "turned",
]

#: sitemaps.org `changefreq`, from often to hardly ever
CHANGEFREQ: Final = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")
#: sitemaps.org: what an entry's priority is taken for that gives none, or one we cannot use
DEFAULT_PRIORITY: Final = 0.5
#: from what most candidates are to what says most
KINDS: Final = ("page", "feed", "sitemap")
_NEVER: Final = np.iinfo(np.int64).min
_TIME: Final = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """Announcements by key: ascending distinct keys and columns in that order."""

    keys: Ints
    kind: Ints  # place in KINDS
    named: Bools  # a sitemap or feed names it (else only its kind is told)
    lastmod: Ints  # microseconds; the smallest number where none is given
    rows: pa.Table  # source_key, changefreq, sitemap_priority of the announcement that counts


def reduce(candidates: pa.Table) -> Announced:
    """Announcements among candidates (CANDIDATES, any order)."""
    kind = among(candidates["kind"], KINDS)
    named = flags(candidates["announced"])
    at = np.flatnonzero(named | (kind > 0))
    some = take(
        candidates.select(["target_key", "source_key", "lastmod", "changefreq", "sitemap_priority"]), at
    )
    key, kind, named = ints(some["target_key"]), kind[at], named[at]
    lastmod, source = ints(some["lastmod"], _NEVER), ints(some["source_key"], _NEVER)
    often = among(some["changefreq"], CHANGEFREQ)
    worth = np.nan_to_num(floats(some["sitemap_priority"]), nan=-1.0)
    order = np.lexsort((-worth, often, source, -np.maximum(lastmod, -(2**62)), ~named, key))
    starts = np.flatnonzero(np.diff(key[order], prepend=key[order[:1]] - 1))
    if not len(starts):
        none = np.zeros(0, dtype=np.int64)
        return Announced(
            keys=none, kind=none, named=none.astype(np.bool_), lastmod=none, rows=some.slice(0, 0)
        )
    first = order[starts]
    return Announced(
        keys=key[first],
        kind=np.maximum.reduceat(kind[order], starts),
        named=named[first],
        lastmod=lastmod[first],
        rows=take(some.select(["source_key", "changefreq", "sitemap_priority"]), first),
    )


def kinds(announced: Announced, keys: Ints) -> Any:
    """Kind (text) of each of these keys; `page` where nothing else is told."""
    at, there = _find(announced, keys)
    told = np.where(there, announced.kind[at], 0) if len(announced.keys) else np.zeros(len(keys), np.int64)
    return take(texts(KINDS), told)


def hints(announced: Announced, keys: Ints) -> dict[str, Any]:
    """Columns of `seen` that tell what was announced of these keys; null where nothing was."""
    at, there = _find(announced, keys)
    if not len(announced.keys):
        return {
            "announced_by": pa.nulls(len(keys), pa.int64()),
            "lastmod": pa.nulls(len(keys), _TIME),
            "changefreq": pa.nulls(len(keys), pa.string()),
            "sitemap_priority": pa.nulls(len(keys), pa.float64()),
        }
    said = there & announced.named[at]
    places: Any = pa.array(at, mask=~said)
    rows: Any = announced.rows.take(places)
    dated = said & (announced.lastmod[at] != _NEVER)
    return {
        "announced_by": rows["source_key"],
        "lastmod": pa.array(announced.lastmod[at], mask=~dated).cast(_TIME),
        "changefreq": rows["changefreq"],
        "sitemap_priority": rows["sitemap_priority"],
    }


def _find(announced: Announced, keys: Ints) -> tuple[Ints, Bools]:
    """Place of each key, and whether it is there."""
    at = np.searchsorted(announced.keys, keys)
    at[at == len(announced.keys)] = 0
    there = announced.keys[at] == keys if len(announced.keys) else np.zeros(len(keys), dtype=np.bool_)
    return at, np.asarray(there, dtype=np.bool_)


#: states in which an announced change is worth a look
_OPEN: Final = (State.FETCHED.value, State.DISCOVERED.value, State.GONE.value)


def apply(
    rows: pa.Table, announced: Announced, believed: Bools, *, visited: bool = False, now: datetime, round: int
) -> tuple[pa.Table, Bools]:
    """The rows (SEEN) after what was announced, and which of them that changed.

    `believed`: of each row, whether its host's dates are worth looking at. `visited`: in this round, so that
    their dates are decided already.
    """
    keys = ints(rows["url_key"])
    at, there = _find(announced, keys)
    if not there.any():
        return rows, np.zeros(len(rows), dtype=np.bool_)
    given = hints(announced, keys)
    kind: Any = pc.coalesce(rows["kind"], pa.scalar("page"))
    told = pc.if_else(pa.array(there & (announced.kind[at] > 0)), kinds(announced, keys), kind)
    turned = ~_same(told, kind)
    before = ints(rows["lastmod"], _NEVER)
    after = ints(given["lastmod"], _NEVER)
    newer = after > before
    # what is gone was looked at when it was missed first, and again since
    checked = np.maximum(ints(rows["last_checked_at"], _NEVER), ints(rows["gone_since"], _NEVER))
    moment = recrawl.micros(now)
    open_now = among(rows["state"], _OPEN) >= 0
    later = ints(rows["next_fetch_at"]) > moment
    # a date in the future announces nothing yet; one before the last check is known
    due = open_now & later & (turned | (newer & believed & (after > checked) & (after <= moment)))
    due &= not visited
    changed = turned | due | newer | _news(rows, given, there & announced.named[at])
    columns: dict[str, Any] = {name: rows[name] for name in rows.column_names}
    columns |= {
        "kind": told,
        "lastmod": pc.if_else(pa.array(newer), given["lastmod"], rows["lastmod"]),
        **{
            name: pc.coalesce(given[name], rows[name])
            for name in ("announced_by", "changefreq", "sitemap_priority")
        },
        "next_fetch_at": pc.if_else(pa.array(due), pa.scalar(now, _TIME), rows["next_fetch_at"]),
        "eligible_since": pc.if_else(pa.array(due), pa.scalar(now, _TIME), rows["eligible_since"]),
        # a row written before there was such a column was written by its last visit
        "visited_round": pc.coalesce(
            rows["visited_round"], pc.if_else(pc.is_valid(rows["last_outcome"]), rows["round"], None)
        ),
        "round": pa.array(np.full(len(rows), round, dtype=np.int64)),
    }
    return pa.table(columns).select(rows.column_names).cast(rows.schema), changed


def _news(rows: pa.Table, given: dict[str, Any], named: Bools) -> Bools:
    """Where a hint is told for the first time or anew; another source alone is none."""
    other = named & ~_given(rows["announced_by"])
    for name in ("changefreq", "sitemap_priority"):
        other |= named & _given(given[name]) & ~_same(given[name], rows[name])
    return np.asarray(other, dtype=np.bool_)


def _given(column: Column) -> Bools:
    return np.asarray(pc.is_valid(column), dtype=np.bool_)


def _same(one: Column, other: Column) -> Bools:
    """Where two columns agree; null agrees with nothing."""
    compare: Any = pc.equal
    return flags(compare(one, other))


#: types of pages that are lists of pages
_FEEDS: Final = ("application/rss+xml", "application/atom+xml", "application/x-rss+xml")
_LISTS: Final = ("text/xml", "application/xml", "application/gzip", "application/x-gzip")


def turned(rows: pa.Table, media: Column, asked: Bools, policy: Sitemaps) -> Any:
    """How URLs (SEEN) are to be read: what was `asked` as a page and came as a feed is one, and so is a
    sitemap, of which only XML (or gzip) can be seen (`media`), and the word `sitemap` in its name.
    """
    kind: Any = pc.coalesce(rows["kind"], pa.scalar("page", pa.string()))
    if not asked.any():
        return kind
    asked = asked & equals(kind, "page")
    feed = asked & (among(media, _FEEDS) >= 0) & policy.feeds
    matches: Any = pc.match_substring_regex(rows["url"], r"(?i)sitemap[^/?]*(\?|$)")
    listed = asked & (among(media, _LISTS) >= 0) & flags(matches)
    return choose(feed, "feed", "sitemap", listed & policy.follow, kind)
