"""A cluster that starts when first needed: a round with nothing to fetch never starts workers.

An address that was given is connected to at once: a wrong one must be told before anything else happens.
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cycles.settings.options import default_workers

if TYPE_CHECKING:
    from cycles.dask.cluster import Client

__all__ = ["LazyCluster"]


class LazyCluster:
    """A context manager; `client` starts the cluster, leaving the context ends it."""

    def __init__(self, scheduler: str | None, workers: int | None) -> None:
        self._scheduler, self._workers = scheduler, workers
        self._stack = ExitStack()
        self._client: Client | None = None

    def __enter__(self) -> Self:
        if self._scheduler is not None:
            _ = self.client
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def client(self) -> Client:
        """The connected client. Raises ClusterError."""
        if self._client is None:
            from cycles.dask.cluster import cluster  # Dask takes 0.6 s to import

            self._client = self._stack.enter_context(cluster(self._scheduler, self._workers))
        return self._client

    @property
    def slots(self) -> int:
        """Host groups that can be fetched at once."""
        if self._scheduler is None:
            return self._workers or default_workers()
        from cycles.dask.cluster import slots

        return slots(self.client)
