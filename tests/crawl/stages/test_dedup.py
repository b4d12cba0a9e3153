"""Dedup: who is elected, whatever the order."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.stages.dedup import elect

NOTHING = pa.array([], pa.int64())


def claims(*rows: tuple[object, int, int]) -> pa.Table:
    key, depth, url_key = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table(
        {
            "key": pa.array(key, pa.string() if key and isinstance(key[0], str) else pa.int64()),
            "depth": pa.array(depth, pa.int32()),
            "url_key": pa.array(url_key, pa.int64()),
            "row": pa.array(range(len(rows)), pa.int64()),
        }
    )


def test_the_smallest_depth_then_the_smallest_key_is_elected() -> None:
    won = elect(claims((7, 2, -5), (7, 1, 9), (7, 1, 3), (4, 5, 5)), NOTHING)
    assert [(row["key"], row["row"]) for row in won.to_pylist()] == [(4, 3), (7, 2)]


def test_what_is_stored_already_elects_nobody() -> None:
    assert elect(claims((7, 2, 1), (8, 1, 9)), pa.array([1, 7]))["key"].to_pylist() == [8]
    assert elect(claims((7, 2, 1)), pa.array([7])).num_rows == 0
    assert elect(claims(), NOTHING).num_rows == 0


def test_texts_are_keys_as_well() -> None:
    won = elect(claims(("bb", 1, 1), ("aa", 1, 2), ("bb", 0, 3)), pa.array(["aa"]))
    assert won["row"].to_pylist() == [2]


CLAIM = st.tuples(st.integers(-3, 3), st.integers(0, 2), st.integers(-9, 9))


@settings(max_examples=60)
@given(st.lists(CLAIM, max_size=12), st.sets(st.integers(-3, 3)), st.randoms(use_true_random=False))
def test_one_winner_a_key_that_is_not_known_in_any_order(rows, known, chance) -> None:
    stored = pa.array(sorted(known), pa.int64())
    wanted = {}
    for key, depth, url_key in sorted(rows):
        if key not in known:
            wanted.setdefault(key, (depth, url_key))
    chance.shuffle(rows)
    won = elect(claims(*rows), stored).to_pylist()
    assert {row["key"]: (row["depth"], row["url_key"]) for row in won} == wanted
    assert [row["key"] for row in won] == sorted(wanted)
