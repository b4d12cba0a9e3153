"""A driver that does nothing but hold a lake: `python -m tests.cycles.driver ROOT LEASE_SECONDS`.

Says `told …` for each remark, then `holds N` and holds until its standard input ends, or `busy …` and ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from crawl.errors import LakeBusy
from cycles.session.holder import drive
from lake import rounds
from lake.store import connect


def main(root: str, lease: float) -> int:
    store = connect(root)
    seen = rounds.Holder()

    def last_holder() -> Mapping[str, Any] | None:
        nonlocal seen
        seen = rounds.holder(store)
        return seen.who or None

    try:
        with drive(
            store,
            timedelta(seconds=lease),
            last_holder=last_holder,
            take=lambda who: rounds.take_fence(store, who, after=seen.number),
            sleep=time.sleep,
            tell=lambda text: print("told", text, flush=True),
        ) as (fence, _):
            print("holds", fence.number, flush=True)
            sys.stdin.read()
    except LakeBusy as exc:
        print("busy", exc, flush=True)
        return exc.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
