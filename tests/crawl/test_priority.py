"""Who comes first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.policy import Planning
from crawl.priority import SEED_IMPORTANCE, TIERS, score, tier

POLICY = Planning()
BASE = {
    "importance": 0.5,
    "waited_s": 100.0,
    "interval_s": 100.0,
    "changes": 1.0,
    "checks": 4.0,
    "depth": 2.0,
    "age_s": 86_400.0,
}


def value(**changed: float) -> float:
    row = {name: np.array([number]) for name, number in (BASE | changed).items()}
    return float(score(**row, policy=POLICY)[0])


@pytest.mark.parametrize(
    ("name", "more"),
    [("importance", 0.9), ("waited_s", 500.0), ("changes", 3.0), ("depth", 0.0), ("age_s", 0.0)],
)
def test_each_part_lifts_the_score(name: str, more: float) -> None:
    assert value(**{name: more}) > value()


def test_what_was_never_fetched_is_wholly_stale() -> None:
    assert value(interval_s=0.0, waited_s=0.0) > value(waited_s=10_000.0)


def test_the_best_of_everything_scores_one() -> None:
    best = value(importance=1.0, interval_s=0.0, changes=1e9, checks=1e9, depth=0.0, age_s=0.0)
    assert best == pytest.approx(1.0)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False, width=32), min_size=7, max_size=7))
@settings(max_examples=100)
def test_a_score_lies_between_zero_and_one(numbers: list[float]) -> None:
    with np.errstate(over="ignore"):
        got = value(**dict(zip(BASE, numbers, strict=True)))
    assert 0 <= got <= 1


def test_tiers_follow_the_cuts_and_the_never_fetched_are_discovery() -> None:
    scores = np.array([0.71, 0.7, 0.69, 0.5, 0.3, 0.29, 0.99])
    fetched = np.array([True] * 6 + [False])
    assert tier(scores, fetched, POLICY).tolist() == [
        "critical",
        "critical",
        "high",
        "high",
        "medium",
        "low",
        "discovery",
    ]


def test_seed_priorities_are_tiers() -> None:
    assert set(SEED_IMPORTANCE) == set(TIERS) - {"discovery"}
