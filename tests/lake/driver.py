"""A rival driver for the tests of fence and seal: fences, own files, seal, roll forward, round after round.

    python -m tests.lake.driver ROOT SEED ROUNDS

Its files say in `found_by` which driver wrote them, so that a round mixed from two drivers would show.
"""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, datetime
from typing import Any

from crawl.errors import Conflict, LakeBusy
from lake import delta, files, rounds, snapshot
from lake.store import Store, connect
from tests.lake import rows

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def row(store: Store) -> dict[str, Any]:
    """What a round tells of itself."""
    return {
        "opened_at": NOW,
        "driver": "a test",
        "now": NOW,
        "window_s": 600.0,
        "policy_version": "p",
        "versions": snapshot.heads(store),
    }


def drive(store: Store, seed: int, last: int) -> None:
    """Take the lake over and over again, without ever asking whether the holder lives."""
    chance = random.Random(seed)

    def nap() -> None:
        if chance.random() < 0.5:
            time.sleep(chance.random() * 0.05)

    while True:
        try:
            fence = rounds.take_fence(store, {"host": "here", "pid": str(seed)})
            nap()
            sealed = rounds.open_seal(store)
            if sealed is not None:
                rounds.roll_forward(store, sealed)
                continue
            number = delta.app_version(store, "rounds", "round") + 1
            if number > last:
                return
            listing = [
                files.write(store, "seen", rows.seen([1, 2, 3], number, found_by=[str(seed)] * 3)),
                files.write(
                    store,
                    "links",
                    rows.table("links", target_key=[1, 2], round=[number] * 2, via=[str(seed)] * 2),
                ),
                files.write(store, "rejects", rows.table("rejects", round=[number], reason=[str(seed)])),
            ]
            nap()
            sealed = rounds.seal(store, fence, number, listing, [], row(store))
            nap()
            rounds.roll_forward(store, sealed)
        except (LakeBusy, Conflict):
            # nobody asks whether the holder lives: on a slow store rivals would overtake each other for ever
            time.sleep(chance.random() * (0.05 if store.is_local else 4.0))


if __name__ == "__main__":
    drive(connect(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
