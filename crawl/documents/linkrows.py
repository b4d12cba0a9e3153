"""Rows of the table `links` from the links of many pages: keys, scope and depth, as columns.

What always holds: no work is done twice for a target that several pages link to; what is not admitted keeps
its row and is counted with its reason; rows do not depend on which other pages are in the batch.
It reads no page and stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from crawl import scope, url
from crawl.columns import Bools, Ints, among, ints, take
from crawl.keys import Keyer
from crawl.policy import Settings
from crawl.rejects import Rejects
from crawl.schema import LINKS

__all__ = ["CHAINED", "COLUMNS", "Hints", "LinkRows", "chained"]

#: the table's columns without those that are the round's
COLUMNS: Final = pa.schema([field for field in LINKS if field.name not in {"day", "round"}])

#: columns that only sitemaps and feeds fill, and how the first comes
_TOLD: Final = ("lastmod", "changefreq", "sitemap_priority")
_AS: Final[dict[str, pa.DataType]] = {"lastmod": pa.int64()}

#: reasons of crawl.scope that go before depth
_BEFORE_DEPTH: Final = frozenset({"url_credentials", "scope_host", "scope_excluded"})


#: ways that a page's own links are never found by: what an operator says of links does not concern them
_LISTED: Final = ("sitemap", "feed", "robots", "well_known", "alternate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a sitemap or feed says of the URLs it names, as parallel columns. `refused`: why not taken."""

    kind: str  # page, sitemap or feed: of all of them
    lastmod: Sequence[int | None]  # microseconds since 1970
    changefreq: Sequence[str | None]
    sitemap_priority: Sequence[float | None]
    refused: Sequence[str | None]
    host: str = ""  # whose list it is: under it what is refused is counted

    @classmethod
    def nothing(cls, kind: str, count: int) -> Hints:
        """No more than what kind the URLs are of."""
        none = [None] * count
        return cls(kind=kind, lastmod=none, changefreq=none, sitemap_priority=none, refused=none)


#: kinds of links by which a redirect chain goes on
CHAINED: Final = ("redirect", "refresh")


def chained(rows: pa.Table, chains: Mapping[int, tuple[int, int]], most: int) -> pa.Table:
    """The rows with the chains of redirects and refreshes: those of their sources, one hop on.

    `chains` gives chain and hop of each source asked. A refresh beyond `most` hops is a link like any other.
    """
    on = np.flatnonzero(among(rows["via"], CHAINED) >= 0)
    if not len(on):
        return rows
    ids: list[int | None] = [None] * len(rows)
    hops: list[int | None] = [None] * len(rows)
    for place, source in zip(on.tolist(), ints(rows["source_key"])[on].tolist(), strict=True):
        chain_id, hop = chains.get(source, (None, most))
        if chain_id is not None and hop < most:
            ids[place], hops[place] = chain_id, hop + 1
    for name, values in (("chain_id", ids), ("chain_hop", hops)):
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, pa.array(values, field.type))
    return rows


class _Numbers(dict[str, int]):
    """Numbers texts in the order they are first asked for."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


class LinkRows:
    """Gathers links page by page, then judges all targets at once."""

    def __init__(self, keyer: Keyer, settings: Settings) -> None:
        self._keyer = keyer
        self._settings = settings
        self._targets = _Numbers()
        self._domains = _Numbers()
        self._at: list[int] = []  # one a link
        self._anchors: list[str | None] = []
        self._rels: list[str | None] = []
        self._vias: list[str] = []
        self._pages: list[tuple[int, int, int, int, bool, bool]] = []
        self._hints: list[tuple[int, Hints]] = []  # and the number of the first link that they are of

    def __len__(self) -> int:
        return len(self._at)

    def add(
        self,
        urls: Sequence[str],
        anchors: Sequence[str | None],
        rels: Sequence[str | None],
        vias: Sequence[str],
        *,
        source_key: int,
        source_domain: str,
        depth: int,
        first_parse: bool,
        nofollow: bool = False,
        hints: Hints | None = None,
    ) -> None:
        """Links of one page as parallel columns, targets canonical. `depth` is theirs; `nofollow` all."""
        targets = self._targets
        if hints is not None:
            self._hints.append((len(self._at), hints))
        self._at += [targets[target] for target in urls]
        self._anchors += anchors
        self._rels += rels
        self._vias += vias
        page = (len(urls), source_key, self._domains[source_domain], depth, first_parse, nofollow)
        self._pages.append(page)

    def finish(self) -> tuple[pa.Table, Rejects]:
        """All rows (COLUMNS) in the order given, equal ones once, and a tally of those not admitted."""
        urls = list(self._targets)
        _, hosts, domains = url.split_many(urls)
        keys = self._keyer.url_keys(urls, domains)
        settings = self._settings
        # Depth is the page's matter: whatever a batch holds, a target is judged as if it were a seed, then by
        # depth.
        within, reasons = scope.admit(urls, hosts, domains, 0, settings.scope, settings.limits)
        numbers = np.array([self._domains[name] for name in domains], dtype=np.int64)

        at = np.array(self._at, dtype=np.int64)
        counts, sources, own, depths, first, nofollow = np.array(self._pages, dtype=np.int64).reshape(-1, 6).T
        page = np.repeat(np.arange(len(counts)), counts)
        allowed = self._vias_allowed()
        unfollowed = self._unfollowed(nofollow[page].astype(bool))
        deep = depths[page] > settings.limits.depth
        told, refused = self._told(len(at))
        barred = np.zeros(len(at), dtype=bool)
        if self._hints:
            barred = np.array([reason is not None for reason in refused.tolist()], dtype=bool)
        admitted = within[at] & ~deep & allowed & ~unfollowed & ~barred
        early = np.array([reason in _BEFORE_DEPTH for reason in reasons], dtype=bool)
        why = np.select([early[at], deep, ~within[at], ~allowed], [0, 1, 0, 2], 3)

        columns: dict[str, Any] = {
            "source_key": sources[page],
            "source_domain": take(pa.array(list(self._domains), pa.string()), own[page]),
            "target_key": keys[at],
            "target_url": take(pa.array(urls, pa.string()), at),
            "target_domain": take(pa.array(domains, pa.string()), at),
            "is_internal": own[page] == numbers[at],
            "anchor": pa.array(self._anchors, pa.string()),
            "rel": pa.array(self._rels, pa.string()),
            "via": pa.array(self._vias, pa.string()),
            **told,
            "depth": depths[page].astype(np.int32),
            "first_parse": first[page].astype(bool),
            "admitted": admitted,
            "chain_id": pa.nulls(len(at), pa.int64()),
            "chain_hop": pa.nulls(len(at), pa.int32()),
        }
        rows = pa.table(columns, schema=COLUMNS)
        listed = self._listed(len(at))
        keep = self._first_of_equals(page, keys, at)
        if keep is not None:
            rows = rows.filter(pa.array(keep))
            admitted, why, at, barred = admitted[keep], why[keep], at[keep], barred[keep]
            refused, listed = refused[keep], listed[keep]
        tally = _tally(urls, hosts, reasons, at[~admitted & ~barred], why[~admitted & ~barred])
        if barred.any():
            self._tally_refused(tally, at[barred], refused[barred], listed[barred], urls)
        return rows, tally

    def _tally_refused(self, tally: Rejects, at: Ints, reasons: Any, listed: Ints, urls: list[str]) -> None:
        """Count what lists may not name: one row a list's host and reason, however many hosts it names."""
        for number, (_, hints) in enumerate(self._hints):
            for reason in set(reasons[listed == number].tolist()):
                found = at[(listed == number) & (reasons == reason)]
                tally.add(reason, hints.host, min(urls[target] for target in found.tolist()), len(found))

    def _listed(self, count: int) -> Ints:
        """By which of the lists each row is named; -1 for none."""
        number = np.full(count, -1, dtype=np.int64)
        for at, (start, hints) in enumerate(self._hints):
            number[start : start + len(hints.refused)] = at
        return number

    def _told(self, count: int) -> tuple[dict[str, Any], Any]:
        """Columns of what sitemaps say, and reasons of what is not taken."""
        if not self._hints:
            nothing = np.full(count, None, dtype=object)
            kinds: Any = pa.repeat(pa.scalar("page", pa.string()), count)
            return {
                "target_kind": kinds,
                **{n: pa.nulls(count, COLUMNS.field(n).type) for n in _TOLD},
            }, nothing
        kind = np.full(count, "page", dtype=object)
        columns: dict[str, Any] = {name: np.full(count, None, dtype=object) for name in (*_TOLD, "refused")}
        for start, hints in self._hints:
            part = slice(start, start + len(hints.refused))
            kind[part] = hints.kind
            for name, column in columns.items():
                column[part] = getattr(hints, name)
        refused = columns.pop("refused")
        made = {
            name: pa.array(column, _AS.get(name, COLUMNS.field(name).type))
            for name, column in columns.items()
        }
        made["lastmod"] = made["lastmod"].cast(COLUMNS.field("lastmod").type)
        return {"target_kind": pa.array(kind, pa.string()), **made}, refused

    def _vias_allowed(self) -> Bools:
        allowed = {*self._settings.parsing.via, *_LISTED}
        if set(self._vias) <= allowed:
            return np.ones(len(self._vias), dtype=bool)
        return np.array([via in allowed for via in self._vias], dtype=bool)

    def _unfollowed(self, whole_page: Bools) -> Bools:
        """Links that the page asks not to follow, where the operator obeys that."""
        if self._settings.parsing.follow_nofollow:
            return np.zeros(len(whole_page), dtype=bool)
        said = [rel is not None and "nofollow" in rel.split() for rel in self._rels]
        unfollowed: Bools = np.logical_or(whole_page, np.array(said, dtype=bool))
        return unfollowed

    def _first_of_equals(self, page: Ints, keys: Ints, at: Ints) -> Bools | None:
        """Which rows to keep where spellings of one key make rows equal; None: all.

        A page's own list has each spelling once, so that only keys with several can make equal rows.
        """
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        if len(first) == len(keys):
            return None
        several = np.isin(keys, keys[first[counts > 1]])[at]
        keep = np.ones(len(at), dtype=bool)
        seen: set[tuple[int, int, str, str | None, str | None]] = set()
        for row in np.flatnonzero(several).tolist():
            same = (int(page[row]), int(keys[at[row]]), self._vias[row], self._anchors[row], self._rels[row])
            keep[row] = same not in seen
            seen.add(same)
        return keep


def _tally(urls: list[str], hosts: list[str], reasons: Sequence[str | None], at: Ints, why: Ints) -> Rejects:
    """Counts of links not admitted: `at` their targets, `why` 0 for scope, else depth, kind or nofollow."""
    tally = Rejects()
    if not len(at):
        return tally
    pairs, counts = np.unique(at * 4 + why, return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        target, code = divmod(pair, 4)
        reason = ("", "depth", "via", "nofollow")[code] or reasons[target] or "scope"
        tally.add(reason, hosts[target], urls[target], count)
    return tally
