"""What is dear to make and cheap to share: a cluster, and an empty lake to be copied."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client

from cycles.dask.cluster import cluster
from cycles.session import setup
from cycles.session.setup import Lake, open_lake


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A client of two local workers, shared by all tests."""
    with cluster(None, 2) as connected:
        yield connected


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Address and process of a scheduler that nobody joined."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    place = ["--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen([*command, *place], cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        try:
            _until_it_listens(port)
            yield f"tcp://127.0.0.1:{port}", process
        finally:
            process.kill()


def _until_it_listens(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made") / "lake"
    setup.init(str(place))
    return place


@pytest.fixture
def place(_made: Path, tmp_path: Path) -> Path:
    """The folder of an empty lake."""
    return Path(shutil.copytree(_made, tmp_path / "lake"))


@pytest.fixture
def lake(place: Path) -> Lake:
    """An empty lake."""
    return open_lake(str(place), {})
