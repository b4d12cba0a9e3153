"""Hosts that an operator holds back while a round runs: `crawl pause` must not wait for the next plan.

What always holds: the table `suppressions` is the only truth; it is read again only when it has a new
version, and a look that fails leaves the last answer standing. `held` is cheap, asked before every request.
"""

from __future__ import annotations

from datetime import datetime

from lake import delta, snapshot, sql
from lake.store import Store

__all__ = ["Holds"]


class Holds:
    """The names that are held back now, as of the last `refresh`."""

    def __init__(self, store: Store, now: datetime) -> None:
        self._store, self._now = store, now
        self._version = -1
        self._names: frozenset[str] = frozenset()

    def refresh(self) -> None:
        """Look again. Raises LakeError."""
        version = delta.version(self._store, "suppressions")
        if version == self._version:
            return
        with sql.connect(self._store, snapshot.latest(self._store), self._now) as reader:
            patterns = reader.query("suppressed")["pattern"].to_pylist()
        self._names = frozenset(str(pattern) for pattern in patterns)
        self._version = version

    def held(self, host: str, domain: str) -> bool:
        """Whether this host, or its whole domain, is to be left alone."""
        return host in self._names or domain in self._names
