from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.packing import pack, units


@hypothesis(max_examples=60, deadline=None)
@given(work=st.lists(st.integers(1, 30), min_size=1, max_size=7), groups=st.integers(1, 3))
def test_the_fullest_group_is_within_a_third_of_the_best_packing(work: list[int], groups: int) -> None:
    load = np.array(work, dtype=np.float64)
    place = pack(load, np.zeros(len(work)), groups)
    fullest = np.bincount(place, weights=load, minlength=groups).max()
    best = min(
        max(sum(w for w, g in zip(work, choice, strict=True) if g == group) for group in range(groups))
        for choice in itertools.product(range(groups), repeat=len(work))
    )
    assert fullest <= best * (4 / 3)


def test_equal_work_spreads_the_longest_chains() -> None:
    place = pack(np.ones(4), np.array([9.0, 1.0, 8.0, 2.0]), 2)
    assert place[0] != place[2]


def test_no_group_is_no_packing() -> None:
    with pytest.raises(ValueError, match="at least one group"):
        pack(np.ones(1), np.ones(1), 0)


def test_domains_joined_through_a_third_are_one_unit() -> None:
    found = units(["a", "b", "b", "c", "d"], ["x", "x", "y", "y", None])
    assert [0, 0, 0, 0, 1] == found.tolist()
