from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from crawl import columns
from crawl.schema import SIGNALS


def test_what_a_null_becomes_is_said() -> None:
    numbers = pa.array([None, 3])
    assert [-1, 3] == columns.ints(numbers, -1).tolist()
    assert np.isnan(columns.floats(numbers)[0])
    assert [False, True] == columns.flags(pa.array([None, True])).tolist()
    assert [False, False, True] == columns.equals(pa.array([None, "b", "a"]), "a").tolist()


def test_times_are_microseconds_and_days_are_days() -> None:
    assert [86_400_000_000] == columns.ints(
        pa.array([datetime(1970, 1, 2, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    ).tolist()
    assert [1] == columns.ints(pa.array([date(1970, 1, 2)])).tolist()


def test_encode_gives_sorted_values_for_a_column_in_pieces_and_for_none() -> None:
    assert (["a", "b"], [1, 0, 1]) == tuple(
        list(part) for part in columns.encode(pa.chunked_array([["b", "a"], ["b"]]))
    )
    names, codes = columns.encode(pa.chunked_array([], pa.string()))
    assert ([], []) == (names, codes.tolist())


def test_ranks_count_within_runs() -> None:
    assert [0, 1, 0, 0, 1] == columns.ranks(np.array([-3, -3, 5, 9, 9])).tolist()
    assert [] == columns.ranks(np.array([], dtype=np.int64)).tolist()


def test_a_place_of_minus_one_is_a_null() -> None:
    assert [None, "b"] == columns.take(pa.array(["a", "b"]), np.array([-1, 1])).to_pylist()
    assert [-1, 1] == columns.among(pa.array([None, "b"]), ["a", "b"]).tolist()


def test_make_fills_what_is_not_given_and_refuses_what_is_no_column() -> None:
    made = columns.make(SIGNALS, 2, url_key=np.array([1, 2]), round=7)
    assert {
        "url_key": 2,
        "round": 7,
        "in_links": None,
        "best_depth": None,
        "best_score": None,
    } == made.to_pylist()[1]
    with pytest.raises(ValueError, match="no such columns: colour"):
        columns.make(SIGNALS, 2, colour=1)


def test_columns_are_compared_looked_at_for_values_and_chosen_from() -> None:
    one, other = pa.chunked_array([["a", None], ["b"]]), pa.array(["a", None, "c"])
    assert columns.same(one, other).tolist() == [True, False, False]
    assert columns.differ(one, other).tolist() == [False, False, True]
    assert columns.differ(one, pa.array([None, None, "b"])).tolist() == [True, False, False]
    assert columns.given(one).tolist() == [True, False, True]
    first, second = np.array([True, False, False]), np.array([True, True, False])
    assert columns.choose(first, "x", one, second, other).to_pylist() == ["x", None, "c"]
