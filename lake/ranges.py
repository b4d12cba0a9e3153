"""Key ranges: cut by size, read by slice.

What it is for: a merge or a compaction works on one key range at a time, so that its memory is bounded
whatever the skew. `cut` finds the ranges from the row-group statistics of all files concerned, `slice` reads
one range of one file.

What always holds: ranges are inclusive, ascending, without gaps and cover [MIN, MAX]; each holds at most
`max_rows` rows (but where one key alone has more: a key is never split). Key columns are int64 without nulls.

What it does not do: it knows neither rounds nor newest rows (`lake.runs`), and it writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from types import TracebackType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lake.entries import FileEntry
from lake.store import Store, advice, connect
from lake.tables import complete

__all__ = [
    "MAX",
    "MIN",
    "Keys",
    "Mask",
    "Source",
    "Spans",
    "Sweep",
    "cut",
    "location",
    "opened",
    "read_keys",
    "slice",
    "spans",
]

MIN: Final = -(2**63)
MAX: Final = 2**63 - 1

Keys = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: a file of a table, or the path of a work file relative to the lake's root
Source = FileEntry | str


class Spans(NamedTuple):
    """The row groups of one file, in file order; one whose footer tells no bounds spans all keys."""

    lo: Keys
    hi: Keys
    rows: Keys

    def meeting(self, lo: int, hi: int) -> list[int]:
        """Numbers of the row groups that may hold keys from `lo` to `hi`."""
        return np.flatnonzero((self.lo <= hi) & (self.hi >= lo) & (self.rows > 0)).tolist()


def location(source: Source) -> str:
    """Path relative to the lake's root."""
    return source if isinstance(source, str) else source.location


@contextmanager
def opened(store: Store, source: Source) -> Iterator[pq.ParquetFile]:
    """The Parquet file, closed afterwards. A file that is damaged or stops answering is a LakeError."""
    path = location(source)
    with store.open_read(path) as file:
        try:
            with pq.ParquetFile(file) as parquet:
                yield parquet
        except (OSError, pa.ArrowInvalid) as error:
            raise advice(store.root, f"read {path}", error) from error


def spans(store: Store, source: Source, column: str) -> Spans:
    """Bounds and size of every row group, from the footer alone."""
    if isinstance(source, str):  # a work file may be written anew by a later attempt
        return _read_spans(store, source, column)
    return _known_spans(store.root, location(source), column)


# A table's file name is never written twice, so its footer stays true. 1,024 files of 100 M rows: 18 MB.
@lru_cache(maxsize=1024)
def _known_spans(root: str, path: str, column: str) -> Spans:
    return _read_spans(connect(root), path, column)


def _read_spans(store: Store, path: str, column: str) -> Spans:
    with opened(store, path) as parquet:
        meta = parquet.metadata
        at = meta.schema.to_arrow_schema().get_field_index(column)
        found = []
        for number in range(meta.num_row_groups):
            group = meta.row_group(number)
            stats = group.column(at).statistics
            bounds = (stats.min, stats.max) if stats is not None and stats.has_min_max else (MIN, MAX)
            found.append((*bounds, group.num_rows))
    columns = np.array(found, dtype=np.int64).reshape(-1, 3)
    return Spans(*(np.ascontiguousarray(columns[:, i]) for i in range(3)))


def read_keys(parquet: pq.ParquetFile, group: int, column: str) -> tuple[Keys, bool]:
    """Keys of one row group in file order, and whether they ascend."""
    keys: Keys = parquet.read_row_group(group, columns=[column], use_threads=False).column(0).to_numpy()
    return keys, bool(np.all(keys[:-1] <= keys[1:]))


def slice(
    store: Store, source: Source, column: str, lo: int, hi: int, columns: Sequence[str] | None = None
) -> pa.Table:
    """Rows of a file with `lo` ≤ key ≤ `hi`, in file order; `columns` None = all.

    Decodes only row groups that may match.
    """
    with Sweep(store, [(column, source)], columns, memory=0) as sweep:
        return sweep.take(lo, hi)[0]


def _within(rows: pa.Table, column: str, lo: int, hi: int) -> pa.Table:
    """Rows with `lo` ≤ key ≤ `hi`, copied: a view would hold on to the whole row group."""
    keys = rows.column(column).to_numpy()
    return rows.filter(pa.array((keys >= lo) & (keys <= hi)))


class Sweep:
    """Slices of several files, range after range in ascending order, as a merge takes them.

    A row group that reaches into later ranges is kept decoded while all that is kept stays within `memory`
    bytes; beyond, it is decoded again. So memory is bounded, and small wide files are not read over and over.
    """

    def __init__(
        self,
        store: Store,
        sources: Sequence[tuple[str, Source]],
        columns: Sequence[str] | None = None,
        *,
        memory: int = 128 << 20,
    ) -> None:
        self._store = store
        self._sources = list(sources)
        self._columns = None if columns is None else list(columns)
        self._memory = memory
        self._stack = ExitStack()
        self._files: dict[int, pq.ParquetFile] = {}
        self._kept: dict[tuple[int, int], pa.Table] = {}
        self._kept_bytes = 0

    def __enter__(self) -> Sweep:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kept.clear()
        self._stack.close()

    def take(self, lo: int, hi: int) -> list[pa.Table]:
        """Rows from `lo` to `hi`: one table a file, in file order."""
        return [
            self._of(number, column, source, lo, hi) for number, (column, source) in enumerate(self._sources)
        ]

    def _of(self, number: int, column: str, source: Source, lo: int, hi: int) -> pa.Table:
        wanted = None if self._columns is None else list(dict.fromkeys([*self._columns, column]))
        bounds = spans(self._store, source, column)
        parts = []
        for group in bounds.meeting(lo, hi):
            part = self._read(number, source, group, wanted, later=int(bounds.hi[group]) > hi)
            parts.append(_within(part, column, lo, hi))
        if not parts:
            parts = [self._open(number, source).schema_arrow.empty_table()]
        whole = pa.concat_tables(parts)
        if isinstance(source, FileEntry):
            whole = complete(source.table, whole, self._columns)
        return whole if self._columns is None else whole.select(self._columns)

    def _read(
        self, number: int, source: Source, group: int, columns: list[str] | None, *, later: bool
    ) -> pa.Table:
        part = self._kept.pop((number, group), None)
        if part is None:
            part = self._open(number, source).read_row_group(group, columns=columns, use_threads=False)
        else:
            self._kept_bytes -= part.nbytes
        if later and self._kept_bytes + part.nbytes <= self._memory:
            self._kept[number, group] = part
            self._kept_bytes += part.nbytes
        return part

    def _open(self, number: int, source: Source) -> pq.ParquetFile:
        if number not in self._files:
            self._files[number] = self._stack.enter_context(opened(self._store, source))
        return self._files[number]


class _Pieces(NamedTuple):
    """Disjoint sets of rows with bounds, and where they come from; group -1: split as far as it goes."""

    lo: Keys
    hi: Keys
    rows: Keys
    source: Keys
    group: Keys

    def only(self, mask: Mask) -> _Pieces:
        return _Pieces(*(values[mask] for values in self))


def cut(store: Store, sources: Sequence[tuple[str, Source]], max_rows: int) -> list[tuple[int, int]]:
    """Inclusive key ranges of at most `max_rows` rows over all `sources` = (key column, file) together.

    Footers first. Only where row groups are too coarse to tell (many files that each span everything, or one
    domain that holds most rows of a wide row group) their key column is read, so that the bound is exact.
    """
    if max_rows < 1:
        raise ValueError("max_rows must be at least 1")
    pieces = _pieces([spans(store, source, column) for column, source in sources])
    if pieces.rows.sum() <= max_rows:
        return [(MIN, MAX)]
    coarse, most = _coarse(pieces, max_rows)
    if coarse.any():
        fine = _split(store, sources, pieces.only(coarse), max(1, max_rows // (4 * most)))
        rest = pieces.only(~coarse)
        pieces = _Pieces(*(np.concatenate(both) for both in zip(rest, fine, strict=True)))
    return _greedy(pieces, max_rows)


def _pieces(found: Sequence[Spans]) -> _Pieces:
    none = np.empty(0, np.int64)
    counts = [len(s.rows) for s in found]
    whole = _Pieces(
        lo=np.concatenate([none, *(s.lo for s in found)]),
        hi=np.concatenate([none, *(s.hi for s in found)]),
        rows=np.concatenate([none, *(s.rows for s in found)]),
        source=np.repeat(np.arange(len(found)), counts),
        group=np.concatenate([none, *(np.arange(n) for n in counts)]),
    )
    return whole.only(whole.rows > 0)


def _ends(pieces: _Pieces) -> Keys:
    """Keys after which a cut may fall: where a piece ends, and just before one begins; MAX is the last."""
    begins = pieces.lo[pieces.lo > MIN] - 1
    return np.unique(np.concatenate([begins, pieces.hi, np.array([MAX])]))


class _Weights(NamedTuple):
    """Rows that begin at or before, and rows that end at or before, each possible end."""

    begun: Keys
    ended: Keys


def _weigh(pieces: _Pieces, ends: Keys) -> _Weights:
    return _Weights(*(_rows_up_to(bound, pieces.rows, ends) for bound in (pieces.lo, pieces.hi)))


def _rows_up_to(bound: Keys, rows: Keys, ends: Keys) -> Keys:
    order = np.argsort(bound, kind="stable")
    total = np.concatenate([[0], np.cumsum(rows[order])])
    return total[np.searchsorted(bound[order], ends, side="right")]


def _coarse(pieces: _Pieces, max_rows: int) -> tuple[Mask, int]:
    """Pieces that meet a segment which cannot be cut and may hold too much, and how many meet at most."""
    ends = _ends(pieces)
    weights = _weigh(pieces, ends)
    ended_before = np.concatenate([[0], weights.ended[:-1]])
    heavy = (weights.begun - ended_before) > max_rows
    heavy[1:] &= ends[1:] - ends[:-1] != 1  # one key alone is never split
    count = _weigh(pieces._replace(rows=np.ones_like(pieces.rows)), ends)
    most = int((count.begun - np.concatenate([[0], count.ended[:-1]]))[heavy].max(initial=1))
    # segment i holds the keys in (ends[i - 1], ends[i]]; a piece covers those from its lo's to its hi's
    heavy_before = np.concatenate([[0], np.cumsum(heavy)])
    first, last = np.searchsorted(ends, pieces.lo), np.searchsorted(ends, pieces.hi)
    return heavy_before[last + 1] > heavy_before[first], most


def _split(store: Store, sources: Sequence[tuple[str, Source]], pieces: _Pieces, grain: int) -> _Pieces:
    """The same rows in pieces of at most `grain`, by reading their keys."""
    out: list[_Pieces] = []
    for number in np.unique(pieces.source).tolist():
        column, source = sources[number]
        with opened(store, source) as parquet:
            for group in pieces.group[pieces.source == number].tolist():
                keys, ascending = read_keys(parquet, group, column)
                keys = keys if ascending else np.sort(keys)
                starts = np.arange(0, len(keys), grain)
                stops = np.minimum(starts + grain, len(keys))
                none = np.full(len(starts), -1)
                out.append(_Pieces(keys[starts], keys[stops - 1], stops - starts, none, none))
    return _Pieces(*(np.concatenate(values) for values in zip(*out, strict=True)))


def _greedy(pieces: _Pieces, max_rows: int) -> list[tuple[int, int]]:
    """As few ranges as possible: each goes on to the last end at which it holds no more than `max_rows`."""
    ends = _ends(pieces)
    weights = _weigh(pieces, ends)
    ranges: list[tuple[int, int]] = []
    at, low, ended = -1, MIN, 0
    while at < len(ends) - 1:
        at = max(at + 1, int(np.searchsorted(weights.begun, ended + max_rows, side="right")) - 1)
        ranges.append((low, int(ends[at])))
        low, ended = int(ends[at]) + 1, int(weights.ended[at])
    return ranges
