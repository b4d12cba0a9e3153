"""Who comes first among the due: a score in 0 to 1, higher first, and the tier it falls into.

The score is a weighted mean of five parts, each in 0 to 1: authority (importance), staleness (how overdue),
change (how often it changed), depth (few links from a seed) and recency (newly met or newly changed). Weights
and cuts are the operator's (`policy.Planning`).

What always holds: scores lie in 0 to 1 and rise with every part; what was never fetched is in the tier
`discovery`.
What it does not do: it shares out no capacity (crawl.stages.plan).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from crawl.policy import Planning

__all__ = ["LINK_IMPORTANCE", "SEED_IMPORTANCE", "TIERS", "score", "tier"]

Floats = npt.NDArray[np.float64]

#: tiers, the first the most urgent
TIERS: Final = ("critical", "high", "medium", "low", "discovery")

#: importance of a seed by the priority its operator gave
SEED_IMPORTANCE: Final[Mapping[str, float]] = {"critical": 1.0, "high": 0.8, "medium": 0.5, "low": 0.2}
#: importance of a page found by a link, before anything else is known of it
LINK_IMPORTANCE: Final = 0.5

_RECENT_S: Final = 7 * 86_400.0  # half-life of being new: a week, the first interval


def score(
    *,
    importance: Floats,
    waited_s: Floats,
    interval_s: Floats,
    changes: Floats,
    checks: Floats,
    depth: npt.NDArray[Any],
    age_s: Floats,
    policy: Planning,
) -> Floats:
    """Priority of many URLs, 0 to 1, higher first.

    `importance` 0 to 1; `waited_s` seconds since it fell due; `interval_s` seconds it was to wait (0: never
    fetched); `changes` of `checks`, older ones counting less; `depth` links from a seed; `age_s` seconds
    since it was met or last changed. NaN counts as 0.
    """
    waited = np.maximum(np.nan_to_num(waited_s), 0.0)
    planned = np.maximum(np.nan_to_num(interval_s), 0.0)
    parts = (
        np.clip(np.nan_to_num(importance), 0.0, 1.0),
        _share(waited, planned),
        # one change in two checks is believed before anything was seen
        np.clip((np.nan_to_num(changes) + 0.5) / (np.nan_to_num(checks) + 1.0), 0.0, 1.0),
        1.0 / (1.0 + np.maximum(np.nan_to_num(np.asarray(depth, dtype=np.float64)), 0.0)),
        np.exp2(-np.maximum(np.nan_to_num(age_s), 0.0) / _RECENT_S),
    )
    total = sum(policy.weights)
    return np.asarray(
        sum(w * p for w, p in zip(policy.weights, parts, strict=True)) / total, dtype=np.float64
    )


def _share(waited: Floats, planned: Floats) -> Floats:
    """0 when it has just fallen due, 1/2 when overdue by its interval, 1 if never fetched."""
    whole = waited + planned
    return np.divide(waited, whole, out=np.ones_like(whole), where=planned > 0)


def tier(scores: Floats, fetched: npt.NDArray[np.bool_], policy: Planning) -> npt.NDArray[np.object_]:
    """Tier of each URL: by the cuts, or `discovery` where it was never fetched."""
    # searchsorted wants rising cuts; a score equal to a cut belongs to the upper tier
    rank = len(policy.cuts) - np.searchsorted(np.sort(policy.cuts), scores, side="right")
    names = np.array(TIERS, dtype=np.object_)
    return np.where(fetched, names[rank], TIERS[-1])
