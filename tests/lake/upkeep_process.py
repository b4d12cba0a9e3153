"""One upkeep in a process of its own: python -m tests.lake.upkeep_process ROOT [FENCE].

Says "ready", waits for a line, then takes the lake (or uses the fence given); its last word is what came
of it.
"""

from __future__ import annotations

import os
import random
import sys
import time

from crawl.errors import CrawlError
from crawl.policy import Retention, Storage
from lake import fence, upkeep
from lake.store import connect


def main(root: str, number: str | None = None) -> None:
    store = connect(root)
    print("ready", flush=True)
    sys.stdin.readline()
    time.sleep(random.random() * 0.1)
    who = {"host": "test", "pid": str(os.getpid())}
    try:
        held = (
            fence.take_fence(store, who)
            if number is None
            else fence.Fence(number=int(number), version=0, who=who)
        )
        done = upkeep.run(
            store, held, retention_policy=Retention(keep_versions=2), storage=Storage(tier_ratio=2)
        )
    except CrawlError as error:
        print(type(error).__name__, error, flush=True, file=sys.stderr)
        print(type(error).__name__, flush=True)
    else:
        print("done" if done.recorded else "nothing", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
