"""Dedup: of several that bring the same thing, one is stored; what is stored already, not again.

What always holds: exact, no filter's "maybe" decides; the winner is the smallest (depth, url_key), not the
first to finish, so that the outcome does not depend on how work was spread. It looks at keys, never at what
they name.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["elect"]

_ORDER: Final[list[tuple[str, Literal["ascending", "descending"]]]] = [
    ("key", "ascending"),
    ("depth", "ascending"),
    ("url_key", "ascending"),
    ("_row", "ascending"),
]


def elect(claims: pa.Table, known: pa.Array[Any]) -> pa.Table:
    """One row per key that is not known, sorted by key.

    `claims`: columns key (int64 or text), depth, url_key, and whatever the caller needs to find its row
    again. `known`: keys stored already; those that nobody claims do not matter. Rows that are equal in (key,
    depth, url_key) are the same thing met twice: the first stays.
    """
    fresh = claims.filter(pc.invert(pc.is_in(claims["key"], value_set=known))) if len(known) else claims
    if not fresh.num_rows:
        return fresh
    ranked = fresh.append_column("_row", pa.array(range(fresh.num_rows), pa.int64()))

    ranked = ranked.sort_by(_ORDER).drop_columns(["_row"])
    keys = ranked["key"].combine_chunks()
    first = pa.concat_arrays([pa.array([True]), pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))])
    return ranked.filter(first)
