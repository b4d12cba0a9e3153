from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.planning.packing import bundle, pack, units


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


# --- addresses ----------------------------------------------------------------------------------------------


def bundles(
    unit: list[int], address: list[int], work: list[float], groups: int, most: tuple[int, ...] = (4, 4)
) -> list[int]:
    return bundle(
        np.array(unit, np.int64), np.array(address, np.int64), np.array(work), most, groups
    ).tolist()


def test_units_at_one_address_are_packed_as_one_up_to_a_groups_share() -> None:
    unit, address = [0, 1, 2, 3], [0, -1, 0, -1]
    assert bundles(unit, address, [1.0, 1.0, 1.0, 1.0], 2) == [0, 1, 0, 3]
    assert bundles(unit, address, [5.0, 1.0, 5.0, 1.0], 2) == [0, 1, 2, 3], "10 of 12 is more than a half"


def test_an_address_is_cut_into_as_few_even_parts_as_will_do() -> None:
    unit = list(range(9))
    found = bundles(unit, [0] * 8 + [-1], [1.0] * 8 + [8.0], 4)
    assert [4, 4] == sorted(found[:8].count(part) for part in set(found[:8]))
    assert len(set(bundles(unit, [0] * 9, [1.0] * 9, 8, most=(3,)))) == 3, "each needs a request of its own"
    assert len(set(bundles(unit, [0] * 9, [0.0] * 9, 8))) == 1


def test_a_unit_at_several_addresses_goes_where_most_of_its_work_is() -> None:
    assert bundles([0, 0, 1, 2], [0, 1, 0, 1], [1.0, 3.0, 5.0, 5.0], 1) == [0, 1, 0]
    assert bundles([0, 0, 1, 2], [0, 1, 0, 1], [3.0, 3.0, 5.0, 5.0], 1) == [0, 0, 2]


@hypothesis(max_examples=60, deadline=None)
@given(
    hosts=st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 3), st.integers(0, 9)), max_size=20),
    groups=st.integers(1, 6),
)
def test_no_address_is_in_more_parts_than_it_can_serve_and_no_unit_is_cut(
    hosts: list[tuple[int, int, int]], groups: int
) -> None:
    number = {unit: i for i, unit in enumerate(sorted({unit for unit, _, _ in hosts}))}
    unit = [number[u] for u, _, _ in hosts]
    found = bundles(
        unit, [a for _, a, _ in hosts], [float(w) for _, _, w in hosts], groups, most=(1, 2, 3, 4)
    )
    assert len(found) == len(number)
    assert all(found[part] == part <= i for i, part in enumerate(found)), "named by its first unit"
