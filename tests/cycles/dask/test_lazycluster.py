"""A cluster is started when it is needed, once, and ended with the run (real clusters: test_cluster)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crawl.errors import ClusterError
from cycles.dask import cluster as clusters
from cycles.dask.lazycluster import LazyCluster
from cycles.settings.options import default_workers


@pytest.fixture
def happened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is done to clusters, in order; those at `nowhere` do not answer."""
    told: list[Any] = []

    @contextmanager
    def cluster(scheduler: str | None, workers: int | None) -> Iterator[str]:
        if scheduler == "nowhere":
            raise ClusterError("no Dask scheduler answers")
        told.append((scheduler, workers))
        try:
            yield "client"
        finally:
            told.append("ended")

    monkeypatch.setattr(clusters, "cluster", cluster)
    monkeypatch.setattr(clusters, "slots", lambda client: 7 if client == "client" else 0)
    return told


def test_without_need_nothing_is_started(happened: list[Any]) -> None:
    with LazyCluster(None, 3) as lazy:
        assert 3 == lazy.slots
    with LazyCluster(None, None) as lazy:
        assert default_workers() == lazy.slots
    assert [] == happened


def test_it_is_started_once_with_the_workers_asked_for_and_ended_once(happened: list[Any]) -> None:
    with LazyCluster(None, 3) as lazy:
        assert "client" == lazy.client
        assert "client" == lazy.client
        assert [(None, 3)] == happened
    assert [(None, 3), "ended"] == happened


def test_an_address_is_connected_to_at_once_and_its_workers_are_counted(happened: list[Any]) -> None:
    with LazyCluster("tcp://there", 3) as lazy:
        assert [("tcp://there", 3)] == happened
        assert 7 == lazy.slots
        assert "client" == lazy.client
    assert [("tcp://there", 3), "ended"] == happened


def test_an_address_that_does_not_answer_is_told_before_anything_happens(happened: list[Any]) -> None:
    began = False
    with pytest.raises(ClusterError, match="no Dask scheduler"), LazyCluster("nowhere", None):
        began = True
    assert not began
    assert [] == happened


def test_an_error_of_the_run_ends_the_cluster_too(happened: list[Any]) -> None:
    def run() -> None:
        with LazyCluster(None, 1) as lazy:
            _ = lazy.client
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert [(None, 1), "ended"] == happened
