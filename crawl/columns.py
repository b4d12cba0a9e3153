"""Between Arrow columns and NumPy arrays: the few steps every stage takes, and what a null becomes in each.

What always holds: nothing here loops over rows in Python; a column goes in, an array of its length comes out.
Arrow holds text and nulls, NumPy does the arithmetic. It knows no table of the lake and makes no decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "Bools", "Column", "Floats", "Ints",
    "among", "choose", "differ", "encode", "equals", "flags", "floats", "given", "ints", "make", "ranks",
    "same", "take", "texts",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Column: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any]"


def _flat(column: Any) -> Any:
    """One array of a column, however many pieces it has."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def ints(column: Column, null: int = 0) -> Ints:
    """Whole numbers, times (µs since 1970) or days (since 1970)."""
    flat: Any = _flat(column)
    if pa.types.is_date32(flat.type):
        flat = flat.cast(pa.int32())
    return np.asarray(pc.fill_null(flat.cast(pa.int64()), null), dtype=np.int64)


def floats(column: Column, null: float = np.nan) -> Floats:
    """Numbers as floats."""
    return np.asarray(pc.fill_null(_flat(column).cast(pa.float64()), null), dtype=np.float64)


def flags(column: Column) -> Bools:
    """Truth values; null is false."""
    return np.asarray(pc.fill_null(_flat(column), False), dtype=np.bool_)


def texts(values: Iterable[str | None]) -> pa.Array[Any]:
    """A column of text."""
    return pa.array(values, pa.string())


def equals(column: Column, value: str) -> Bools:
    """Where a text column has this value; null never has."""
    compare: Any = pc.equal
    return flags(compare(_flat(column), pa.scalar(value)))


def among(column: Column, values: Sequence[str] | Column) -> Ints:
    """The place of each value of a text column in `values`; -1 where it is none of them, or null."""
    known = _flat(values) if isinstance(values, pa.Array | pa.ChunkedArray) else texts(values)
    at: Any = pc.index_in(_flat(column), value_set=known)
    return ints(at, -1)


def encode(column: Column) -> tuple[list[str], Ints]:
    """Distinct values of a text column without nulls, sorted, and the place of each row's among them."""
    coded: Any = _flat(column).dictionary_encode()
    by_value = np.asarray(pc.array_sort_indices(coded.dictionary), dtype=np.int64)
    place = np.empty(len(by_value), dtype=np.int64)
    place[by_value] = np.arange(len(by_value))
    codes = ints(coded.indices)
    return coded.dictionary.take(pa.array(by_value)).to_pylist(), place[codes]


def ranks(sorted_groups: Ints) -> Ints:
    """0, 1, 2 … within each run of equal values."""
    starts = np.flatnonzero(np.diff(sorted_groups, prepend=sorted_groups[:1] - 1))
    lengths = np.diff(starts, append=len(sorted_groups))
    return np.arange(len(sorted_groups), dtype=np.int64) - np.repeat(starts, lengths)


def take(rows: Any, at: Ints) -> Any:
    """Rows of a table or values of a column by place; a place of -1 gives nulls."""
    return rows.take(pa.array(at, mask=at < 0))


def same(one: Column, other: Column) -> Bools:
    """Where two columns agree; never where one of them is null."""
    compare: Any = pc.equal
    return flags(compare(one, other))


def differ(before: Column, after: Column) -> Bools:
    """Where two columns of keys differ; null equals null."""
    compare: Any = pc.not_equal
    nulls = np.asarray(pc.xor(pc.is_null(before), pc.is_null(after)), dtype=np.bool_)
    return flags(compare(before, after)) | nulls


def given(column: Column) -> Bools:
    """Where a column has a value."""
    return np.asarray(pc.is_valid(column), dtype=np.bool_)


def choose(first: Bools, one: Any, two: Any, second: Bools, other: Any) -> Any:
    """`one` where `first`, else `two` where `second`, else `other`."""
    rest: Any = pc.if_else(pa.array(second), two, other)
    return pc.if_else(pa.array(first), one, rest)


def make(schema: pa.Schema, length: int, **columns: Any) -> pa.Table:
    """A table of this schema from arrays, columns and single values; what is not given is null."""
    unknown = columns.keys() - set(schema.names)
    if unknown:
        raise ValueError(f"no such columns: {', '.join(sorted(unknown))}")
    made: list[Any] = []
    for field in schema:
        value = columns.get(field.name)
        if value is None:
            made.append(pa.nulls(length, field.type))
        elif isinstance(value, pa.Array | pa.ChunkedArray):
            made.append(value.cast(field.type))
        elif isinstance(value, np.ndarray):
            made.append(pa.array(value).cast(field.type))
        else:
            made.append(pa.repeat(pa.scalar(value, field.type), length))
    return pa.table(made, schema=schema)
