"""One context manager to a Dask cluster: our own on this machine, or any scheduler's address.

Workers get two threads and one `fetch` resource each, so that a long fetch never keeps parsing from
starting; a plugin sets the resource before the first task (without it such tasks would wait silently for
ever). What always holds: an unreachable scheduler is a ClusterError within seconds, and a local cluster
ends with us.
"""

from __future__ import annotations

import gc
import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import dask
from distributed import Client, LocalCluster, Worker, WorkerPlugin
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.registry import get_backend

from crawl.errors import ClusterError
from cycles.session.interrupts import postponed
from cycles.settings.options import default_workers

__all__ = ["FETCH", "Client", "cluster", "slots"]

#: one unit a worker: a host group's fetch task takes it
FETCH = "fetch"

#: seconds until a scheduler that does not answer, or that no worker joins, is told
_ANSWER, _JOIN = 10, 30

#: how often workers are told of something while one of them dies
_TELLINGS = 3

_LOCAL = {
    # a worker that stopped (SIGSTOP, swapped out) is given up after this, and its task runs elsewhere
    "distributed.scheduler.worker-ttl": "30s",
    "distributed.scheduler.allowed-failures": 3,
    # its process is started anew at once; give it the time a busy machine needs before its place is given up
    "distributed.deploy.lost-worker-timeout": "5 minutes",
    "distributed.worker.daemon": False,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.admin.log-format": "%(message)s",
    # Dask watches itself every 10 to 20 ms; nobody reads it here, and a crawl waits more than it works.
    # Without that a cluster that waits takes 0.9 % of a core, not 3.6 % (two workers, docs/decisions/010)
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.scheduler.work-stealing-interval": "1s",
    "distributed.scheduler.active-memory-manager.start": False,
}


class _OwnCluster(LocalCluster):
    """A local cluster that bears with workers dying while they come up.

    Dask's own loses its watch over workers when one is told as gone before it was told as there: it then
    closes healthy ones, and raises when it ends.
    """

    def _update_worker_status(self, op: str, msg: Any) -> None:
        if op != "remove" or msg in self.scheduler_info["workers"]:
            super()._update_worker_status(op, msg)  # type: ignore[no-untyped-call]  # Dask's, untyped


class Deaf(WorkerPlugin):
    """For our own workers: Ctrl-C in a terminal reaches all its processes; only the driver shall answer."""

    name = "crawl-deaf"

    def setup(self, worker: Worker) -> None:
        """Called by Dask in the worker's main thread."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


class FetchSlots(WorkerPlugin):
    """Gives each worker its one fetch slot."""

    name = "crawl-fetch-slots"

    async def setup(self, worker: Worker) -> None:
        """Called by Dask on each worker, those that join later too."""
        await worker.set_resources(**{FETCH: 1})
        # most of what a worker holds are modules; what tasks make is freed by counting, rarely by collection
        gc.freeze()
        gc.set_threshold(10_000, 20, 50)


@contextmanager
def cluster(scheduler: str | None, workers: int | None) -> Iterator[Client]:
    """A connected client. Raises ClusterError when there is no scheduler, or no worker joined it."""
    _hush()
    if scheduler is None:
        with _local(workers or default_workers()) as client:
            yield client
        return
    _check_address(scheduler)
    try:
        client = Client(scheduler, timeout=_ANSWER, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as exc:
        raise ClusterError(f"no Dask scheduler answers at {scheduler}: {exc}") from exc
    try:
        _ready(client, f"the scheduler at {scheduler}")
        yield client
    finally:
        client.close()


def _check_address(text: str) -> None:
    """Raises ClusterError for what is no address: some of it Dask would wait for, or not get rid of again."""
    try:
        scheme, place = parse_address(text)
        get_backend(scheme)
        _, port = parse_host_port(place)
        if not 0 < port < 65536:
            raise ValueError(f"there is no port {port}")
    except ValueError as exc:
        raise ClusterError(
            f"no Dask scheduler can be at {text!r} ({exc}): an address is written tcp://host:port"
        ) from exc


def _hush() -> None:
    """Dask's loggers print tracebacks of what we catch and tell in one line; each has a level of its own."""
    below = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    for name in ("distributed", *below):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _local(workers: int) -> Iterator[Client]:
    with dask.config.set(_LOCAL), warnings.catch_warnings(), ExitStack() as stack:
        # Dask's own remarks on ports and diagnostics are not the user's concern
        warnings.simplefilter("ignore")
        with postponed():  # one that is interrupted while it starts would leave processes behind
            client = stack.enter_context(_started(workers, stack))
        _ready(client, "the local cluster")
        yield client


def _started(workers: int, stack: ExitStack) -> Client:
    """A client of our own cluster, which ends with the stack. Raises ClusterError."""
    try:
        own = _OwnCluster(  # type: ignore[no-untyped-call]  # Dask's, untyped
            n_workers=workers,
            threads_per_worker=2,
            processes=True,
            dashboard_address=None,
            # any free port of loopback: two crawls on one machine shall not fight over Dask's default one
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
        )
        client = Client(stack.enter_context(own), set_as_default=False)
    except (OSError, TimeoutError, RuntimeError) as exc:
        raise ClusterError(f"cannot start workers on this machine ({exc}); run again to go on") from exc
    _register(client, Deaf())
    return client


def _ready(client: Client, name: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_JOIN)
    except (OSError, TimeoutError) as exc:
        raise ClusterError(f"no worker joined {name} within {_JOIN} s; start one with `dask worker`") from exc
    _register(client, FetchSlots())


def _register(client: Client, plugin: WorkerPlugin) -> None:
    """Have every worker set up, those that join later too. One that dies meanwhile does not count."""
    for attempt in range(_TELLINGS):
        try:
            client.register_plugin(plugin)
        except (OSError, TimeoutError) as exc:
            if attempt == _TELLINGS - 1:
                raise ClusterError(f"the workers cannot be reached ({exc}); run again to go on") from exc
        else:
            return


def slots(client: Client) -> int:
    """Host groups that can be fetched at once: one a worker."""
    return max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
