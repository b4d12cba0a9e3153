"""For which hosts each planned sitemap may speak, beside its own place: found when a round is planned.

A host's robots.txt vouches for the sitemaps it names, and an index that somebody vouches for vouches for what
it names in turn (as far as indexes may be nested); an operator's seed may speak for its whole host.
What always holds: the answer comes from the lake at the round's pinned versions and lies in the work area, so
that whoever parses an answer of the round, whenever, finds the same; a redirect's target speaks for the hosts
that its beginning speaks for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from crawl import url
from crawl.keys import Keyer
from crawl.records import Fetch
from cycles.session.context import Context
from lake import files, runs, sql
from lake.entries import FileEntry
from lake.snapshot import Snapshot

__all__ = ["Vouching", "anew", "write"]

_COLUMNS: Final[dict[str, pa.DataType]] = {
    "url_key": pa.int64(),
    "hosts": pa.list_(pa.string()),
    "anew": pa.bool_(),  # somebody vouches for it who did not when it was last read
}
_ROWS: Final = pa.schema(_COLUMNS)
_NAME: Final = "vouching.parquet"
#: ways by which one sitemap leads to another: an index names it, or it redirects there
_LED: Final = ("sitemap", "redirect")
_ASKED: Final = ["url_key", "url", "found_by", "first_referrer_key"]


def write(context: Context, planned: pa.Table, snapshot: Snapshot) -> None:
    """Leave the hosts that vouch for each of these planned sitemaps (rows of `seen`) in the work area.

    `snapshot`: the lake as the round reads it. Raises LakeError.
    """
    work = context.work
    rows = planned.select([*_ASKED, "last_checked_at", "visited_round", "round"]).to_pylist()
    lines = _lines(rows, context, snapshot.files("seen"))
    named: Mapping[str, dict[str, int | None]] = {}
    if lines:
        with sql.connect(work.store, snapshot, context.now) as reader:
            named = _named(reader, sorted({one["url"] for line in lines.values() for one in line}))
    hosts = {
        key: sorted({host for one in line for host in (*named.get(one["url"], ()), *_given(one))})
        for key, line in lines.items()
    }
    anew = {row["url_key"]: _anew(row, lines[row["url_key"]], named) for row in rows}
    columns: dict[str, list[Any]] = {
        "url_key": list(hosts),
        "hosts": list(hosts.values()),
        "anew": [anew[key] for key in hosts],
    }
    table = pa.table(columns, schema=_ROWS)
    files.write_work(work.store, work.path(_NAME), table.sort_by("url_key"))


def _given(row: Mapping[str, Any]) -> list[str]:
    """The host of a seed: it may be too new for `seen` to have it."""
    return [url.host(row["url"])] if row["found_by"] == "seed" else []


def _anew(
    row: Mapping[str, Any],
    line: Sequence[Mapping[str, Any]],
    named: Mapping[str, Mapping[str, int | None]],
) -> bool:
    """Whether a sitemap that was read before has a new voucher: what it names may be taken now."""
    if row["last_checked_at"] is None:
        return False
    # what a round plans by is what the rounds before it learnt
    read = row["visited_round"] or row["round"]
    since = (at for one in line for at in named.get(one["url"], {}).values())
    return any(at is not None and at >= read for at in since)


def anew(context: Context) -> frozenset[int]:
    """Keys of the planned sitemaps that must be read again, changed or not. Raises LakeError."""
    path = context.work.path(_NAME)
    if not context.work.store.exists(path):  # a plan of before there were sitemaps
        return frozenset()
    rows = files.read_work(context.work.store, path).to_pylist()
    return frozenset(row["url_key"] for row in rows if row["anew"])


def _lines(
    rows: Sequence[Mapping[str, Any]], context: Context, seen: Sequence[FileEntry]
) -> dict[int, list[Mapping[str, Any]]]:
    """Each sitemap with those that led to it, the nearest first."""
    lines: dict[int, list[Mapping[str, Any]]] = {row["url_key"]: [row] for row in rows}
    for _ in range(context.settings.sitemaps.nesting):
        ends = {
            line[-1]["first_referrer_key"]
            for line in lines.values()
            if line[-1]["found_by"] in _LED and line[-1]["first_referrer_key"] is not None
        }
        if not ends or not seen:
            break
        keys = np.array(sorted(ends), dtype=np.int64)
        above_rows = runs.rows(context.work.store, seen, keys, _ASKED).to_pylist()
        found = {row["url_key"]: row for row in above_rows}
        for line in lines.values():
            above = found.get(line[-1]["first_referrer_key"]) if line[-1]["found_by"] in _LED else None
            if above is not None and above not in line:
                line.append(above)
    return lines


def _named(reader: sql.Reader, urls: Sequence[str]) -> Mapping[str, dict[str, int | None]]:
    """Hosts that vouch for each of these URLs, and since which round (of a seed: None)."""
    named: defaultdict[str, dict[str, int | None]] = defaultdict(dict)
    if urls:
        for row in reader.query("sitemaps-named", urls=list(urls)).to_pylist():
            named[row["url"]][url.host(row["origin"] + "/")] = row["since"]
        for row in reader.query("sitemaps-seeded", urls=list(urls)).to_pylist():
            named[row["url"]].setdefault(url.host(row["url"]), None)
    return named


class Vouching:
    """What `write` left, for who parses; read when a sitemap comes. Those of redirects are found by chain."""

    def __init__(self, context: Context, keyer: Keyer) -> None:
        self._context = context
        self._keyer = keyer
        self._by_key: dict[int, tuple[str, ...]] | None = None
        self._by_chain: dict[int, tuple[str, ...]] = {}

    def of(self, record: Fetch) -> tuple[str, ...]:
        """Hosts for which an answer may speak, besides its own place. Raises LakeError."""
        if record.kind == "page":
            return ()
        if self._by_key is None:
            self._by_key = self._read()
        return self._by_key.get(record.url_key) or self._by_chain.get(record.chain_id, ())

    def _read(self) -> dict[int, tuple[str, ...]]:
        work, round_number = self._context.work, self._context.round
        rows = files.read_work(work.store, work.path(_NAME)).to_pylist()
        by_key = {row["url_key"]: tuple(row["hosts"]) for row in rows}
        self._by_chain = {self._keyer.chain_id(key, round_number): hosts for key, hosts in by_key.items()}
        return by_key
