"""Hold a lake over its real fence: `cycles.session.holder` for who lives, `lake.rounds` for who counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from cycles.session.holder import Who, drive
from lake import rounds
from lake.store import Store

__all__ = ["hold"]


@contextmanager
def hold(store: Store, lease: timedelta, tell: Callable[[str], None]) -> Iterator[tuple[rounds.Fence, Who]]:
    """Be the one driver of the lake. Raises LakeBusy naming the driver that is."""
    seen = rounds.Holder()

    def last() -> Mapping[str, Any] | None:
        nonlocal seen
        seen = rounds.holder(store)
        return seen.who or None

    def take(who: Mapping[str, str]) -> rounds.Fence:
        return rounds.take_fence(store, who, after=seen.number)

    with drive(store, lease, last_holder=last, take=take, sleep=time.sleep, tell=tell) as held:
        yield held
