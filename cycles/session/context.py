"""What every task of a round knows: one small frozen value, made when the round is opened.

What always holds: it carries no secret (workers read the lake's identity themselves) and everything in it
that decides results is pinned in the round's `open.json`; only fence and token belong to the driver at
hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from crawl.policy import Settings
from cycles.session.workspace import Workspace

__all__ = ["Context"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One round, as its tasks see it."""

    root: str  # the lake
    round: int
    fence: int  # number of the driver at hand
    token: str  # names its heartbeat
    opened_at: datetime  # real time
    now: datetime  # planning time
    window_s: float  # seconds allowed for fetching
    settings: Settings
    policy_version: str
    versions: Mapping[str, int]  # Delta version of every table that the round reads
    groups: int  # host groups at most

    @property
    def day(self) -> date:
        """The partition that the round's rows go to."""
        return self.now.date()

    @property
    def work(self) -> Workspace:
        """The round's work area."""
        return Workspace(self.root, self.round)
