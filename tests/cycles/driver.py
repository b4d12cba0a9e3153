"""A driver that does nothing but hold a lake: `python -m tests.cycles.driver ROOT LEASE_SECONDS`.

Says `told …` for each remark, then `holds N` and holds until its standard input ends, or `busy …` and ends.
Its fence is the smallest that does the job: numbered objects, created only if absent.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from crawl.errors import LakeBusy
from cycles.holder import Who, drive
from lake.store import Store, connect


def fences(store: Store) -> list[str]:
    return [stat.path for stat in store.list("fences")]


def last_holder(store: Store) -> Mapping[str, Any] | None:
    taken = fences(store)
    return json.loads(store.read(taken[-1])) if taken else None


def take(store: Store, who: Mapping[str, str]) -> int:
    number = len(fences(store)) + 1
    path = f"fences/{number:06d}.json"
    if not store.create(path, json.dumps(who).encode()):
        raise LakeBusy(f"the lake is in use by {Who.from_plain(json.loads(store.read(path)))}")
    return number


def main(root: str, lease: float) -> int:
    store = connect(root)
    try:
        with drive(
            store,
            timedelta(seconds=lease),
            last_holder=lambda: last_holder(store),
            take=lambda who: take(store, who),
            sleep=time.sleep,
            tell=lambda text: print("told", text, flush=True),
        ) as (number, _):
            print("holds", number, flush=True)
            sys.stdin.read()
    except LakeBusy as exc:
        print("busy", exc, flush=True)
        return exc.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
