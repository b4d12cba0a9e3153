from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.merging import discovery
from crawl.schema import CANDIDATES, SEEN
from tests.crawl.urlrows import NOW, ROUND, SETTINGS, link, url_of


def paths(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), CANDIDATES)


def made(table: pa.Table, unknown: list[bool]) -> list[dict[str, Any]]:
    rows = discovery.new_rows(
        table,
        discovery.meet(table),
        np.array(unknown, dtype=np.bool_),
        planning=SETTINGS.planning,
        policy_version="p1",
        now=NOW,
        round=ROUND,
    )
    assert SEEN == rows.schema
    return [dict(row) for row in rows.to_pylist()]


def test_paths_are_reduced_by_target() -> None:
    met = discovery.meet(
        paths(link(7, 50, 3), link(-2, 50, 1), link(7, 51, 2, counts=False, score=0.9), link(7, None, 4))
    )
    assert [-2, 7] == met.keys.tolist()
    assert [1, 1] == met.in_links.tolist()
    assert [1, 2] == met.depth.tolist()
    assert [0.25, 0.9] == met.score.tolist()
    assert [50, 51] == met.source.tolist()
    assert [True, True] == met.linked.tolist()


def test_a_seed_alone_is_not_linked() -> None:
    assert [False] == discovery.meet(paths(link(1, None, 0))).linked.tolist()


def test_rows_are_made_of_unknown_urls_only() -> None:
    assert [url_of(2)] == [row["url"] for row in made(paths(link(2), link(1), link(2, 51)), [False, True])]
    assert [] == made(paths(), [])
    assert [] == made(paths(link(1)), [False])


def test_no_required_column_of_a_new_row_is_null() -> None:
    [row] = made(paths(link(1, None, 0)), [True])
    missing = {
        name
        for name, value in row.items()
        if value is None and SEEN.field(name).metadata[b"nullable"] == b"no"
    }
    assert set() == missing


def test_extreme_keys_are_kept_apart() -> None:
    low, high = -(2**63), 2**63 - 1
    assert [low, high] == discovery.meet(paths(link(high), link(low), link(high))).keys.tolist()


@hypothesis(max_examples=50, deadline=None)
@given(
    drawn=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from([None, 9, 8]), st.integers(0, 2), st.sampled_from("abc"))
    ),
    chance=st.randoms(use_true_random=False),
)
def test_the_order_of_paths_leaves_no_trace(drawn: list[tuple[Any, ...]], chance: Any) -> None:
    rows = [link(key, source, depth, target_url=url_of(key) + text) for key, source, depth, text in drawn]
    count = len({row["target_key"] for row in rows})
    first = made(paths(*rows), [True] * count)
    chance.shuffle(rows)
    assert first == made(paths(*rows), [True] * count)


def test_the_chain_of_the_path_that_counts_as_first_goes_on_with_the_url() -> None:
    later = link(1, 51, 2, chain_id=9, chain_hop=1)
    [row] = made(paths(later, link(1, 50, 2, chain_id=7, chain_hop=3)), [True])
    assert (7, 3) == (row["chain_id"], row["chain_hop"])
    tied = [link(1, 50, 2), link(1, 50, 2, chain_id=7, chain_hop=3)]  # a page links to where it leads, too
    for order in (tied, tied[::-1]):
        assert [7] == [row["chain_id"] for row in made(paths(*order), [True])]
    assert [None] == [row["chain_id"] for row in made(paths(later, link(1, 51, 1)), [True])]
