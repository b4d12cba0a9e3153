"""A cluster of our own or somebody's: workers have fetch slots, and its absence is told within seconds."""

from __future__ import annotations

import subprocess

import pytest
from distributed import Client, WorkerPlugin
from distributed.comm.core import CommClosedError

from crawl.errors import ClusterError
from cycles.dask import cluster as module
from cycles.dask.cluster import FETCH, cluster, slots
from cycles.settings.options import default_workers


def test_each_local_worker_is_a_process_with_one_fetch_slot_and_two_threads(client: Client) -> None:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    assert 2 == len(workers) == slots(client)
    assert [{FETCH: 1}] * 2 == [worker["resources"] for worker in workers]
    assert [2, 2] == [worker["nthreads"] for worker in workers]


def test_an_address_where_nothing_listens_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ANSWER", 1)
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        cluster("tcp://127.0.0.1:9", None),
    ):
        pass


@pytest.mark.parametrize(
    "address",
    ["nonsense", "nonsense://x", "nonsense://127.0.0.1:9", "tcp://x", "tcp://x:y", "tcp://x:99999", ""],
)
def test_what_is_no_address_is_told_at_once(address: str) -> None:
    with pytest.raises(ClusterError, match=f"'{address}'.*tcp://host:port"), cluster(address, None):
        pass


def test_a_scheduler_that_no_worker_joins_is_told(
    scheduler: tuple[str, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = scheduler
    monkeypatch.setattr(module, "_JOIN", 1)
    told = f"no worker joined the scheduler at {address} within 1 s"
    with pytest.raises(ClusterError, match=told), cluster(address, None):
        pass


def test_a_worker_that_dies_while_all_are_told_something_does_not_count(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [CommClosedError("it is gone"), TimeoutError()]
    register = client.register_plugin

    def once_more(plugin: WorkerPlugin) -> object:
        if failures:
            raise failures.pop()
        return register(plugin)

    monkeypatch.setattr(client, "register_plugin", once_more)
    module._register(client, module.FetchSlots())
    assert [] == failures
    failures += [CommClosedError("it is gone")] * module._TELLINGS
    with pytest.raises(ClusterError, match=r"cannot be reached \(it is gone"):
        module._register(client, module.FetchSlots())


def test_a_cluster_of_our_own_has_a_few_workers() -> None:
    assert 1 <= default_workers() <= 4
