"""The work area of one round: `_work/round-<n>/`, small JSON objects and Arrow files that are no tables.

What always holds: an object made with `once` is written at most once, whoever writes it; everybody reads
back the one that won. So a task that runs twice (a resumed round, a woken zombie) has one result. It does
not decide anything, and nothing in it outlives the upkeep after the round's commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from crawl.errors import LakeError
from lake.store import Store, connect

__all__ = ["WORK", "Workspace", "store_at"]

WORK = "_work"


@lru_cache(maxsize=8)
def store_at(root: str) -> Store:
    """The store of a lake, one per process: connections are kept."""
    return connect(root)


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a round keeps what is not yet committed. Pickles as two plain values."""

    root: str
    round: int

    @property
    def store(self) -> Store:
        """The lake's store in this process."""
        return store_at(self.root)

    def path(self, *names: str) -> str:
        """A path of this round, relative to the lake's root."""
        return "/".join((WORK, f"round-{self.round:08d}", *names))

    def read(self, *names: str) -> Any | None:
        """The JSON object of that name; None where there is none. Raises LakeError for a damaged one."""
        path = self.path(*names)
        data = self.store.get(path)
        if data is None:
            return None
        try:
            return json.loads(data)
        except ValueError as exc:
            raise LakeError(f"{path} is damaged ({exc}); move it away to have it made again") from exc

    def give_up(self) -> bool:
        """Forget the round, if no task has claimed anything of it yet; whether it was forgotten.

        The opening goes last: one that is cut short leaves a round that is planned again.
        """
        paths = [stat.path for stat in self.store.list(self.path())]
        if any("/claim-" in path for path in paths):
            return False
        opening = self.path("open.json")
        self.store.delete([path for path in paths if path != opening])
        self.store.delete([opening])
        return True

    def once(self, value: Mapping[str, Any], *names: str) -> Any:
        """Write a JSON object if there is none; return the one that stands."""
        data = json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
        if self.store.create(self.path(*names), data):
            return json.loads(data)
        return self.read(*names)
