"""Store what is new: one document per text, one body per hash, of all that a round's parse tasks brought.

Two steps, so that the second can run on many workers: `plan_dedup` elects (numbers and hashes only, one key
range at a time), `store_bundle` copies the elected rows of some parse tasks to files in their final place.
A body that is stored is compressed here, once, unless the journal has it so already; text is read once.
What always holds: exact; who is elected is the smallest (depth, url_key) of the round, whatever order things
were parsed in; what the lake had at the round's pinned versions is not stored again. Nothing is committed
here.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl.fetching import journal as frames
from crawl.stages import dedup
from cycles.session.context import Context
from cycles.tasks.parse_task import ParsedFiles
from lake import files, ranges, runs
from lake.entries import FileEntry
from lake.snapshot import Snapshot
from lake.store import Store

__all__ = ["Bundle", "plan_dedup", "store_bundle"]

#: claims that are looked at together
_CLAIMS: Final = 250_000
#: bytes that one bundle stores, roughly: characters of text, or bytes of compressed bodies
_BUNDLE: Final = 128_000_000
#: bytes held before they are written
_HELD: Final = 32_000_000


@dataclass(frozen=True, slots=True)
class Bundle:
    """Elected rows of some work files."""

    kind: str  # documents or bodies
    chosen: str  # work file: source (path of a work file), row (number in it); sorted


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one of the two tables is elected."""

    table: str
    key: str  # what is distinct
    order: str  # int64 column that its work files are sorted by
    url_key: str
    size: str


_KINDS: Final = (
    _Kind("documents", "document_key", "document_key", "first_url_key", "text_chars"),
    _Kind("bodies", "body_hash", "hash_key", "url_key", "size"),
)


def plan_dedup(context: Context, parsed: Sequence[ParsedFiles]) -> list[Bundle]:
    """Elect documents and bodies of a round, and bundle them for `store_bundle`. Raises LakeError."""
    store = context.work.store
    snapshot = Snapshot(store, context.versions, context.round)
    bundles: list[Bundle] = []
    for kind in _KINDS:
        sources = _sources(kind, parsed)
        read = [0] * len(sources)  # rows of each source in the ranges so far: they ascend, as its rows do
        cuts = ranges.cut(store, [(kind.order, source) for source in sources], _CLAIMS) if sources else []
        chosen = [_elected(store, kind, sources, read, snapshot.files(kind.table), lo, hi) for lo, hi in cuts]
        bundles += _bundled(context, kind, sources, chosen)
    return bundles


def _sources(kind: _Kind, parsed: Sequence[ParsedFiles]) -> list[str]:
    if kind.table == "documents":
        return sorted(path for files_ in parsed for path in files_.documents)
    return sorted(files_.bodies for files_ in parsed if files_.bodies)


def _elected(
    store: Store,
    kind: _Kind,
    sources: Sequence[str],
    read: list[int],
    stored: Sequence[FileEntry],
    lo: int,
    hi: int,
) -> pa.Table:
    """Winners among the claims of one key range: columns source (its number), row, size."""
    claims = pa.concat_tables(_claims(store, kind, sources, read, lo, hi))
    keys: Any = claims["key"].combine_chunks().unique()
    if kind.table == "documents":
        distinct = np.sort(keys.to_numpy())
        known: pa.Array[Any] = pa.array(distinct[runs.known(store, stored, distinct, kind.key)])
    else:
        known = keys.filter(pa.array(runs.known_texts(store, stored, keys, kind.key)))
    return dedup.elect(claims, known).select(["source", "row", "size"])


def _claims(
    store: Store, kind: _Kind, sources: Sequence[str], read: list[int], lo: int, hi: int
) -> Iterator[pa.Table]:
    """Who claims a key of this range, source by source, with the number of the row in its file."""
    columns = list(dict.fromkeys([kind.order, kind.key, "depth", kind.url_key, kind.size]))
    for number, source in enumerate(sources):
        before = read[number]
        rows = ranges.slice(store, source, kind.order, lo, hi, columns)
        count = rows.num_rows
        read[number] += count
        found: dict[str, Any] = {
            "key": rows[kind.key],
            "depth": rows["depth"],
            "url_key": rows[kind.url_key],
            "size": rows[kind.size].cast(pa.int64()),
            "source": np.full(count, number, np.int32),
            "row": np.arange(before, before + count),
        }
        yield pa.table(found)


def _bundled(
    context: Context, kind: _Kind, sources: Sequence[str], chosen: Sequence[pa.Table]
) -> list[Bundle]:
    """Winners by source, sources together until they are large enough."""
    if not chosen:
        return []
    rows = pa.concat_tables(chosen).sort_by([("source", "ascending"), ("row", "ascending")])
    if not rows.num_rows:
        return []
    number = rows["source"].to_numpy()
    starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    sizes = np.add.reduceat(rows["size"].to_numpy(), starts)
    cuts, held = [0], 0
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        if held and held + size > _BUNDLE:
            cuts.append(start)
            held = 0
        held += size
    cuts.append(rows.num_rows)
    paths = pa.array(list(sources)).take(rows["source"].combine_chunks())
    table = pa.table({"source": paths, "row": rows["row"].combine_chunks()})
    bundles = []
    for low, high in pairwise(cuts):
        path = context.work.path("dedup", f"{secrets.token_hex(6)}-{kind.table}.parquet")
        files.write_work(context.work.store, path, table.slice(low, high - low))
        bundles.append(Bundle(kind.table, path))
    return bundles


def store_bundle(context: Context, bundle: Bundle) -> list[FileEntry]:
    """Write the elected rows of one bundle to files of their table. Raises LakeError."""
    store = context.work.store
    chosen = files.read_work(store, bundle.chosen)
    source = chosen["source"].combine_chunks()
    by_source = [(name.as_py(), chosen.filter(pc.equal(source, name))["row"]) for name in source.unique()]
    if bundle.kind == "documents":
        return _store_documents(context, by_source)
    return _store_bodies(context, by_source)


def _store_documents(context: Context, by_source: Sequence[tuple[str, Any]]) -> list[FileEntry]:
    """Files sorted by document_key, each of about `_HELD` bytes."""
    entries: list[FileEntry] = []
    held: list[pa.Table] = []
    size = 0
    for position, (path, at) in enumerate(by_source):
        held.append(files.read_work(context.work.store, path).take(at).drop_columns(["depth"]))
        size += held[-1].nbytes
        if size >= _HELD or position == len(by_source) - 1:
            rows = pa.concat_tables(held)
            held, size = (
                [],
                0,
            )  # texts are large: a copy that nobody needs any more must go before the next is made
            rows = rows.sort_by("document_key")
            rows = rows.append_column("round", pa.repeat(pa.scalar(context.round, pa.int64()), len(rows)))
            entries.append(files.write(context.work.store, "documents", rows, day=context.day))
    return entries


def _store_bodies(context: Context, by_source: Sequence[tuple[str, Any]]) -> list[FileEntry]:
    """One file, in the order of the journal parts."""
    store = context.work.store
    name = files.new_name(context.round)
    with files.Writer(store, "bodies", name=name, day=context.day) as writer:
        for path, at in by_source:
            index = (
                files.read_work(store, path)
                .take(at)
                .sort_by([("part", "ascending"), ("offset", "ascending")])
            )
            for part in index["part"].combine_chunks().unique():
                rows = index.filter(pc.equal(index["part"], part))
                writer.add(_bodies(context.round, rows, store.read(part.as_py())))
    return [writer.entry]


def _bodies(round_: int, rows: pa.Table, data: bytes) -> pa.Table:
    """Rows of `bodies` for some frames of one journal part."""
    view = memoryview(data)
    offsets: list[Any] = rows["offset"].to_pylist()
    columns: dict[str, Any] = {
        "round": pa.repeat(pa.scalar(round_, pa.int64()), len(rows)),
        "body_hash": rows["body_hash"],
        "bytes": pa.array([_packed(view, offset) for offset in offsets], pa.binary()),
        "length": rows["length"],
        "media_type": rows["media_type"],
        "sniffed_type": rows["sniffed_type"],
        "truncated": rows["truncated"],
        "first_url_key": rows["url_key"],
    }
    return pa.table(columns)


def _packed(view: memoryview, offset: int) -> bytes | None:
    body = frames.frame_at(view, offset)[1]
    return None if body is None else body.packed()
