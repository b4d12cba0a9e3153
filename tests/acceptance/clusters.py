"""A Dask cluster of separate processes, and what its scheduler and workers hold in memory.

`python -m tests.acceptance.clusters ADDRESS FILE` looks at a cluster again and again until it is killed, and
appends everything it sees: tasks as they are kept and as they travel, announcements, the state's own dump.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.processes import Command, python, until

__all__ = ["Cluster", "cluster", "looking"]


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, address: str, scheduler: Command, workers: list[Command]) -> None:
        self.address, self.scheduler, self.workers = address, scheduler, workers

    def said(self) -> str:
        """All that its processes wrote."""
        return "\n".join(each.text() for each in (self.scheduler, *self.workers))


@contextmanager
def cluster(
    folder: Path, workers: int = 2, environ: Mapping[str, str] | None = None, *, nanny: bool = True
) -> Iterator[Cluster]:
    """`dask scheduler` and `dask worker` on loopback, without dashboards, while the block runs."""
    folder.mkdir(parents=True, exist_ok=True)
    where = folder / "scheduler.json"
    with ExitStack() as stack:

        def dask(*arguments: str) -> Command:
            return stack.enter_context(python("-m", "dask", *arguments, environ=environ))

        scheduler = dask(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show",
            "--scheduler-file", str(where),
        )  # fmt: skip
        until(lambda: where.exists() and bool(where.read_text()), 30, "a scheduler")
        address = json.loads(where.read_text())["address"]
        started = [
            dask(
                "worker", address, "--host", "127.0.0.1", "--nthreads", "2", "--nworkers", "1",
                "--no-dashboard", "--nanny" if nanny else "--no-nanny",
                "--local-directory", str(folder / f"worker-{number}"),
            )
            for number in range(workers)
        ]  # fmt: skip
        for worker in started:
            worker.wait_for("Registered to", 60)
        yield Cluster(address, scheduler, started)


@contextmanager
def looking(address: str, file: Path) -> Iterator[Path]:
    """Look at the cluster while the block runs; the file holds what was seen."""
    with python("-m", "tests.acceptance.clusters", address, str(file)) as looker:
        until(lambda: file.exists() or looker.code is not None, 30, "a first look at the cluster")
        assert looker.code is None, looker.text()
        yield file
        assert looker.code is None, looker.text()


def on_scheduler(dask_scheduler: Any) -> bytes:
    """Everything the scheduler holds: its own dump, and each task as it was submitted."""
    import cloudpickle

    parts = [repr(dask_scheduler._to_dict()).encode()]
    parts += [cloudpickle.dumps(task.run_spec) for task in dask_scheduler.tasks.values()]
    parts += [repr(task.run_spec).encode() for task in dask_scheduler.tasks.values()]
    return b"\n".join(parts)


def on_worker(dask_worker: Any) -> bytes:
    """The same of a worker, with the results it keeps."""
    import cloudpickle

    parts = [repr(dask_worker.state._to_dict()).encode()]
    parts += [cloudpickle.dumps(task.run_spec) for task in dask_worker.state.tasks.values()]
    parts += [repr(value).encode() for value in dict(dask_worker.data).values()]
    return b"\n".join(parts)


def main(address: str, file: str) -> None:
    """Look until killed."""
    from distributed import Client

    with Client(address, set_as_default=False) as client, open(file, "ab") as out:
        while True:
            out.write(client.run_on_scheduler(on_scheduler))
            out.writelines(client.run(on_worker).values())
            out.flush()
            time.sleep(0.3)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
