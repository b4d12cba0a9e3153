"""`crawl upkeep`: be the one driver of the lake for a while, and let `lake.upkeep` do its work.

What always holds: it takes the same fence as a round, so that never both rewrite; a lake that somebody
holds is told as busy. What upkeep does and keeps is said in `lake.upkeep`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cycles.session.holding import hold
from cycles.session.setup import open_lake
from cycles.words.wording import counted
from lake import upkeep as tables

__all__ = ["NOTHING", "upkeep"]

#: what an upkeep says that found all in order
NOTHING = "nothing to do"


def upkeep(root: str, tell: Callable[[str], None]) -> str:
    """Run one; what it did, in a line. Raises LakeBusy, FenceLost, LakeError."""
    lake = open_lake(root)
    settings = lake.settings
    with hold(lake.store, settings.fetching.lease, tell) as (fence, _):
        done = tables.run(lake.store, fence, retention_policy=settings.retention, storage=settings.storage)
    return (
        f"merged {_told(done.merged)}; dropped {_told(done.dropped)}; deleted {counted(done.deleted, 'file')}"
        if done.recorded or done.deleted
        else NOTHING
    )


def _told(files: Mapping[str, int]) -> str:
    """Files by table."""
    return ", ".join(f"{counted(n, 'file')} of {table}" for table, n in sorted(files.items())) or "nothing"
