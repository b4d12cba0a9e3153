"""Loops of redirects, by what a round and the lake know."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.columns import Ints
from crawl.merging.loops import MOST, looping, marked

TYPES = pa.schema({"url_key": pa.int64(), "outcome": pa.string(), "redirect_to_key": pa.int64()})


def visits(*rows: tuple[int, str, int | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(TYPES.names, row, strict=True)) for row in rows], schema=TYPES)


def found(rows: pa.Table, before: dict[int, int] | None = None) -> list[int]:
    known = before or {}

    def look(keys: Ints) -> tuple[Ints, Ints]:
        have = [key for key in keys.tolist() if key in known]
        return np.array(have, dtype=np.int64), np.array([known[key] for key in have], dtype=np.int64)

    return looping(rows, look).tolist()


def test_all_members_of_a_loop_are_told_and_what_leads_into_it_is_not() -> None:
    rows = visits(
        (1, "REDIRECT", 2), (2, "REDIRECT", 3), (3, "REDIRECT", 1), (9, "REDIRECT", 1), (5, "OK", None)
    )
    assert found(rows) == [1, 2, 3]


def test_a_loop_closed_at_once_is_whole_too() -> None:
    assert found(visits((1, "REDIRECT", 2), (2, "REDIRECT_LOOP", 1))) == [1, 2]


def test_what_was_known_before_closes_a_loop_unless_this_round_says_otherwise() -> None:
    assert found(visits((1, "REDIRECT", 2)), {2: 1}) == [1]
    assert found(visits((1, "REDIRECT", 2), (2, "OK", None)), {2: 1}) == []
    assert found(visits((1, "REDIRECT", 2)), {2: 3}) == []


def test_loops_longer_than_the_limit_are_not_looked_for() -> None:
    def circle(length: int) -> pa.Table:
        return visits(*((n, "REDIRECT", (n + 1) % length) for n in range(length)))

    assert len(found(circle(MOST))) == MOST
    assert found(circle(MOST + 1)) == []


@given(st.dictionaries(st.integers(0, 8), st.integers(0, 8), max_size=9), st.sets(st.integers(0, 8)))
@settings(max_examples=100)
def test_a_loop_is_what_following_the_redirects_comes_back_to(moves: dict[int, int], old: set[int]) -> None:
    now = {key: to for key, to in moves.items() if key not in old}
    expected = []
    for start in sorted(now):
        at = moves.get(start)
        for _ in range(len(moves)):
            if at is None or at == start:
                break
            at = moves.get(at)
        if at == start:
            expected.append(start)
    rows = visits(*((key, "REDIRECT", to) for key, to in now.items()))
    assert found(rows, {key: to for key, to in moves.items() if key in old}) == expected


def test_marking_changes_the_redirects_of_these_keys_alone() -> None:
    rows = visits((1, "REDIRECT", 2), (2, "OK", None), (3, "REDIRECT", 4))
    told = marked(rows, np.array([1, 2]))
    assert told["outcome"].to_pylist() == ["REDIRECT_LOOP", "OK", "REDIRECT"]
    assert marked(rows, np.array([], dtype=np.int64)) is rows
