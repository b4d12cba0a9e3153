"""What the person who starts a run may say about it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta

__all__ = ["RunOptions", "default_workers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Flags of `crawl run`; without any: finish the open round, else run one."""

    rounds: int | None = None  # this many
    until_idle: bool = False  # until nothing is due and nothing waits to be merged
    every: timedelta | None = None  # again and again, this far apart
    window: timedelta | None = None  # instead of round.window
    now: datetime | None = None  # planning time; None: real time at each round's start
    scheduler: str | None = None  # a Dask scheduler's address; None: our own workers
    workers: int | None = None  # of our own


def default_workers() -> int:
    """As many as there are cores, at most four: a crawl waits for hosts, not for processors."""
    return max(1, min(4, len(os.sched_getaffinity(0))))
