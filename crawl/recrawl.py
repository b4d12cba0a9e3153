"""When a URL is asked again.

After an answer: the interval is halved on change and doubled on none, between a floor and a ceiling, starting
from `policy.Recrawl.first`. After a failure: the delay of its outcome's rule (`crawl.outcomes`).

What always holds: never in the past; 304 and 200-with-the-same-content move a URL identically (both are "not
changed"); the jitter comes from the key, so a round worked out twice gives the same dates, and pages met
together part ways.
What it does not do: it decides nobody's turn (crawl.stages.plan). `schedule` is the one function a better
rule replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from crawl.outcomes import TABLE, Outcome, limit
from crawl.policy import Recrawl, Retry

__all__ = ["micros", "resting", "retries", "schedule", "unit"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US: Final = timedelta(microseconds=1)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def micros(at: datetime) -> int:
    """Microseconds since 1970 of an aware time."""
    return (at - _EPOCH) // _US


def schedule(
    *,
    url_key: Ints,
    now: datetime,
    previous_interval_s: Floats,
    changed: npt.NDArray[np.bool_],
    first: npt.NDArray[np.bool_],
    policy: Recrawl,
) -> tuple[Floats, Ints]:
    """Next interval in seconds, and next_fetch_at in microseconds since 1970, of URLs that answered.

    `previous_interval_s`: the interval that led to this check, NaN or 0 where there is none; `changed`: the
    content differs from what was known; `first`: content arrived for the first time. The date is the interval
    with jitter.
    """
    floor, ceiling = policy.floor.total_seconds(), policy.ceiling.total_seconds()
    moved = np.where(changed, previous_interval_s / 2, previous_interval_s * 2)
    known = ~first & (previous_interval_s > 0)
    interval = np.clip(np.where(known, moved, policy.first.total_seconds()), floor, ceiling)
    return interval, _at(now, interval, url_key, policy.jitter, 0)


def retries(
    *,
    url_key: Ints,
    now: datetime,
    outcomes: Sequence[str],
    attempts: npt.NDArray[Any],
    retry_after_ms: Floats,
    retry: Retry,
    recrawl: Recrawl,
) -> Ints:
    """next_fetch_at in microseconds since 1970 of URLs that did not answer: `crawl.outcomes.delay`, as
    columns.

    `attempts`: failures in a row, this one included; `retry_after_ms`: NaN where none was sent. What no retry
    is due for (denied, quarantined) rests, see `resting`.
    """
    codes = np.array([_CODE[o] for o in outcomes], dtype=np.int64)
    n = np.clip(np.asarray(attempts, dtype=np.int64) - 1, 0, 20)
    base, over = _BASE[codes], _OVER[codes]
    limits = np.array([limit(TABLE[o], retry) for o in Outcome])[codes]
    wait = np.minimum(np.maximum(retry.cap.total_seconds(), base), base * 2.0**n)
    wait = np.where((n + 1 >= limits) & (over > base), over, wait)
    wait = wait * (1 + retry.jitter * (2 * unit(url_key, n + 1) - 1))
    asked = np.nan_to_num(retry_after_ms, nan=0.0, posinf=0.0) / 1_000
    at = micros(now) + np.ceil(np.maximum(wait, asked) * 1e6).astype(np.int64)
    rest = resting(url_key=url_key, now=now, policy=recrawl)
    return np.where(_RETRY[codes], np.maximum(at, micros(now) + 1), rest)


def resting(*, url_key: Ints, now: datetime, policy: Recrawl) -> Ints:
    """next_fetch_at of what has nothing to wait for (gone, given up, denied): the longest interval."""
    ceiling = np.full(len(url_key), policy.ceiling.total_seconds())
    return _at(now, ceiling, url_key, policy.jitter, 0)


def _at(now: datetime, wait_s: Floats, url_key: Ints, jitter: float, salt: int) -> Ints:
    scattered = wait_s * (1 + jitter * (2 * unit(url_key, salt) - 1))
    return micros(now) + np.maximum(np.ceil(scattered * 1e6), 1).astype(np.int64)


def unit(url_key: Ints, salt: int | Ints) -> Floats:
    """Evenly spread numbers in [0, 1) that depend on key and salt alone (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        x = np.asarray(url_key).astype(np.uint64) + np.asarray(salt).astype(np.uint64) * _GOLDEN + _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return np.asarray(x >> np.uint64(11)).astype(np.float64) / float(1 << 53)


_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_CODE: Final = {str(o): i for i, o in enumerate(Outcome)}
_BASE: Final = np.array([TABLE[o].base.total_seconds() for o in Outcome])
_OVER: Final = np.array([TABLE[o].over.total_seconds() for o in Outcome])
_RETRY: Final = np.array([TABLE[o].retry for o in Outcome])
