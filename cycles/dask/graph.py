"""Tasks on the cluster: the only place that submits and waits.

Stages are plain functions from rows to rows; the functions here hand them to workers, take progress from
their announcements and results from their futures. Announcements may be lost: the objects in the work area
are the truth. What always holds: an error of ours raised on a worker is raised here as it is; a worker that
keeps dying, or a scheduler that is gone, is a ClusterError.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from distributed import Client, Future, KilledWorker, as_completed, get_worker
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError

from crawl.errors import ClusterError
from cycles.dask.cluster import FETCH

__all__ = ["Work", "run_all", "stream"]

Announce = Callable[[str, Mapping[str, Any]], None]
Work = tuple[Callable[..., Any], tuple[Any, ...]]

#: seconds between two looks at the futures while announcements come in
_TICK: Final = 0.25
#: seconds between two looks at futures when nothing is announced
_BLINK: Final = 0.02
#: seconds between two looks for workers, and how long there may be none
_LOOK, _NOBODY = 2.0, 45.0


def _lost(exc: Exception) -> ClusterError:
    if isinstance(exc, KilledWorker):
        return ClusterError(
            f"workers died again and again on one task ({exc}); run again to go on where it stopped"
        )
    return ClusterError(
        f"the cluster went away ({str(exc) or type(exc).__name__}); run again to go on where it stopped"
    )


class _Presence:
    """Whether anybody is there to work: without a worker, tasks would wait for ever and say nothing."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen = self._looked = time.monotonic()

    def look(self) -> None:
        """Cheap when called often. Raises OSError when no worker was there for a while."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        if self._client.status == "running" and self._client.scheduler_info(n_workers=-1)["workers"]:
            self._seen = now
        elif now - self._seen > _NOBODY:
            raise OSError(f"no worker was left for {_NOBODY:.0f} s")


def run_all(client: Client, work: Sequence[Work], progress: Callable[[int, int], None]) -> list[Any]:
    """Results in the order of `work`. Raises what a task raised, ClusterError when the cluster fails."""
    if not work:
        return []
    results: dict[Any, Any] = {}
    try:
        futures = [client.submit(function, *args, pure=False) for function, args in work]
        ready, presence = as_completed(futures, loop=client.loop, with_results=True), _Presence(client)
        while not ready.is_empty():
            if not ready.has_ready():
                time.sleep(_BLINK)
                presence.look()
                continue
            future, result = next(ready)
            if future.cancelled():  # what happens when the connection is lost; the "result" is the error then
                raise FutureCancelledError(future.key, "the connection to the scheduler was lost")
            results[future.key] = result
            progress(len(results), len(work))
        return [results[f.key] for f in futures]
    except (KilledWorker, FutureCancelledError, CommClosedError, TimeoutError, OSError) as exc:
        raise _lost(exc) from exc


def _announcing(function: Callable[..., Any], topic: str, args: tuple[Any, ...]) -> Any:
    """Run on a worker: `function` with a last argument that announces under the driver's topic."""
    worker = get_worker()

    def announce(kind: str, value: Mapping[str, Any]) -> None:
        worker.log_event(topic, {"kind": kind, **value})

    return function(*args, announce)


def stream(
    client: Client,
    topic: str,
    work: Sequence[Work],
    *,
    on_event: Callable[[Mapping[str, Any]], Sequence[Work]],
    on_result: Callable[[Any], Sequence[Work]],
    on_further: Callable[[Any], None],
    tick: Callable[[], None],
) -> None:
    """Run fetch-slot tasks, and whatever further tasks their announcements and results call for beside them.

    `work` takes a fetch slot each; the tasks that `on_event` and `on_result` return take none, and their
    results go to `on_further`. Raises as `run_all`.
    """
    events: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
    client.subscribe_topic(topic, lambda event: events.put(event[1]))
    try:
        _drain(client, topic, work, events, on_event, on_result, on_further, tick)
    except (KilledWorker, FutureCancelledError, CommClosedError, TimeoutError, OSError) as exc:
        raise _lost(exc) from exc
    finally:
        if client.status == "running":
            client.unsubscribe_topic(topic)


def _drain(
    client: Client,
    topic: str,
    work: Sequence[Work],
    events: queue.SimpleQueue[Mapping[str, Any]],
    on_event: Callable[[Mapping[str, Any]], Sequence[Work]],
    on_result: Callable[[Any], Sequence[Work]],
    on_further: Callable[[Any], None],
    tick: Callable[[], None],
) -> None:
    fetching: set[Future[Any]] = {
        client.submit(_announcing, function, topic, args, pure=False, resources={FETCH: 1})
        for function, args in work
    }
    further: set[Future[Any]] = set()
    presence = _Presence(client)
    while fetching or further:
        more: list[Work] = []
        try:  # wait for one, then take what has come; progress never ceases, so there is always a next one
            more += on_event(events.get(timeout=_TICK))
            for _ in range(events.qsize()):
                more += on_event(events.get_nowait())
        except queue.Empty:
            pass
        for future in [f for f in fetching if f.done()]:
            fetching.discard(future)
            more += on_result(future.result())
        for future in [f for f in further if f.done()]:
            further.discard(future)
            on_further(future.result())
        # parsing goes before further fetching: what was fetched should not pile up
        further |= {client.submit(f, *args, pure=False, priority=10) for f, args in more}
        if client.status != "running":
            raise OSError("the connection to the scheduler was lost")
        presence.look()
        tick()
