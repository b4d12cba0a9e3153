"""How each table lies in the lake: partition, order of rows, columns with statistics, and what it is for.

What always holds: every table is created with exactly the statistics columns named here, and every file
written by `lake.files` carries them. A reader that meets a column with statistics in some files only returns
no rows for it, silently; so the list never depends on a file. Left out are booleans, lists, bytes, floats
(NaN has no place in an order) and texts of unbounded length (URLs, titles, headers): a cut maximum would hide
rows, a full one would swell the log. Columns and their meaning are `crawl.schema`'s.

Columns are added over time. A lake made before does without them until a round `grow`s its tables; files
written before keep lacking them, and every reader takes a column that a file lacks as null (where none may
be, as nothing: 0, false, empty), which `complete` does for readers of files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from crawl import schema
from lake import delta
from lake.store import Store

__all__ = ["OUTSIDE", "SPECS", "Spec", "complete", "create_all", "grow", "spec"]

#: tables that commands write between rounds: a reader of "now" takes their newest version, not the round's
OUTSIDE: Final = ("seeds", "suppressions", "audit", "rounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One table."""

    name: str
    schema: pa.Schema
    partition: tuple[str, ...]  # ("day",) for append tables
    sort: tuple[str, ...]  # rows of every file are in this order; () = none
    stats: tuple[str, ...]  # columns for which every file carries minimum, maximum and null count
    description: str

    @property
    def stored(self) -> pa.Schema:
        """Columns inside the files: all but the partition, which readers take from the log or the folder."""
        return pa.schema([f for f in self.schema if f.name not in self.partition])


_PINNED: Final = (
    " A round is complete once `rounds` names it: read at the versions there, or keep rows with"
    " round <= (select max(round) from rounds where kind = 'round')."
)

#: name -> (order, statistics, description); one line of thought a table: what is it filtered by?
_LAYOUT: Final[Mapping[str, tuple[str, str, str]]] = {
    "seeds": ("", "url_key kind added_at verdict", "What the operator asked to crawl."),
    "seen": (
        "url_key",
        "url_key host domain depth first_seen_at first_seen_round state http_status last_checked_at"
        " last_changed_at document_key next_fetch_at round",
        "Every known URL: whole rows, one per (url_key, round), the newest wins; runs sorted by url_key.",
    ),
    "signals": (
        "url_key",
        "url_key round",
        "In-links and best depth of known URLs: sum over rounds by url_key.",
    ),
    "frontier": (
        "group position",
        "round group url_key host",
        "What each round planned, in order, and what it cut.",
    ),
    "fetches": (
        "",
        "round kind url_key host domain group started_at finished_at status outcome",
        "Every request sent, with its phases and its outcome.",
    ),
    "bodies": ("", "round body_hash length first_url_key", "Bodies by SHA-256, compressed with zstd."),
    "documents": ("document_key", "round document_key first_url_key", "One row per distinct text."),
    "links": (
        "target_key",
        "round source_key target_key target_domain",
        "Links found, sorted by target in each file.",
    ),
    "rejects": ("", "round stage reason host", "What was left out, refused or dropped, counted by reason."),
    "clusters": ("", "round url_key document_key head_key", "Near-duplicate labels."),
    "hosts": (
        "host_key",
        "host_key host domain next_allowed_at round",
        "State of each host; the newest round wins.",
    ),
    "robots": ("", "round origin fetched_at valid_until how", "Every robots.txt copy obtained."),
    "outbox": (
        "",
        "round kind url_key document_key created_at",
        "Events for an indexer: new, changed, deleted.",
    ),
    "suppressions": ("", "kind requested_at", "Paused hosts and opt-outs."),
    "audit": ("", "at action", "Who did what by hand."),
    "rounds": (
        "",
        "round kind committed_at fence",
        "One row per committed round and per upkeep, with all versions.",
    ),
}


def _spec(name: str) -> Spec:
    columns = schema.schema(name)
    order, stats, description = _LAYOUT[name]
    append = "day" in columns.names and name in schema.append_tables()
    rounds = "round" in columns.names and name not in OUTSIDE
    return Spec(
        name=name,
        schema=columns,
        partition=("day",) if append else (),
        sort=tuple(order.split()),
        stats=tuple(stats.split()),
        description=description + (_PINNED if rounds else ""),
    )


#: every table of the lake by name
SPECS: Final[Mapping[str, Spec]] = {name: _spec(name) for name in schema.TABLES}


def spec(name: str) -> Spec:
    """Layout of a table. Raises KeyError for a name that is none."""
    return SPECS[name]


def complete(table: str, rows: pa.Table, wanted: Sequence[str] | None = None) -> pa.Table:
    """Rows of a file of a table with all its columns (or those wanted), which an older file may lack."""
    have = set(rows.column_names)
    columns = spec(table).stored
    for name in columns.names if wanted is None else wanted:
        if name not in have and name in columns.names:
            field = columns.field(name)
            rows = rows.append_column(field.remove_metadata(), _nothing(field, len(rows)))
    return rows


def _nothing(field: pa.Field[Any], count: int) -> Any:
    if (field.metadata or {}).get(b"nullable") != b"no":
        return pa.nulls(count, field.type)
    kind = field.type
    if pa.types.is_list(kind):
        return pa.array([[]] * count, kind)
    value = "" if pa.types.is_string(kind) else b"" if pa.types.is_binary(kind) else False
    return pa.repeat(pa.scalar(value if not pa.types.is_temporal(kind) else 0).cast(kind), count)


def grow(store: Store, lacking: Mapping[str, Collection[str]]) -> None:
    """Add to each table the columns that it lacks: name -> columns. Raises LakeError."""
    for table, names in lacking.items():
        delta.add_columns(store, table, [SPECS[table].schema.field(name) for name in sorted(names)])


def create_all(store: Store) -> None:
    """Make every table that is not there yet, empty. Safe beside another creator. Raises LakeError."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda table: _create(store, table), SPECS.values()))


def _create(store: Store, table: Spec) -> None:
    delta.create(
        store,
        table.name,
        table.schema,
        partition=table.partition,
        stats=table.stats,
        description=table.description,
    )
