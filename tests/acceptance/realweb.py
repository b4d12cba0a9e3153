"""Five documentation sites served by nginx, what can be reached in them, and what the server saw.

Serving and the search for what is reachable are other people's programs, kept beside the checkout:
nothing of the crawler is used to find what it should have found.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Answered", "RealWeb", "serving"]

_SITE = re.compile(r"^(\S+\.test)\s+(\S+)\s+(/\S+)$", re.MULTILINE)
_LINE = re.compile(r"(\S+) (\S+) (\d+) (\S+) (\d+) (\S+) (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One request, as the server logged it. Times in seconds of the real clock."""

    start: float
    end: float
    host: str
    path: str
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RealWeb:
    """The sites, served on one port of 127.0.0.1."""

    tools: Path  # holds `up` and `reachable.py`
    state: Path
    port: int
    hosts: tuple[str, ...]

    def home(self, host: str) -> str:
        """The site's home page."""
        return f"http://{host}:{self.port}/"

    def reachable(self, host: str) -> dict[str, int]:
        """URL → status of everything that following links from the home page reaches."""
        command = [sys.executable, str(self.tools / "reachable.py"), self.home(host)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return {url: int(status) for status, url in (line.split(" ", 1) for line in done.stdout.splitlines())}

    def mark(self) -> int:
        """Where the log ends now."""
        log = self.state / "requests.log"
        return log.stat().st_size if log.exists() else 0

    def since(self, mark: int) -> dict[str, list[Answered]]:
        """Requests logged after `mark`, by host, in the order in which they began."""
        with (self.state / "requests.log").open(encoding="utf-8") as log:
            log.seek(mark)
            found: dict[str, list[Answered]] = defaultdict(list)
            for line in log:
                parts = _LINE.match(line)
                assert parts, f"the server logged a request that is none: {line!r}"
                end, host, status, took, _, _, path = parts.groups()
                found[host].append(
                    Answered(
                        start=float(end) - float(took),
                        end=float(end),
                        host=host,
                        path=path,
                        status=int(status),
                    )
                )
        for requests in found.values():
            requests.sort(key=lambda r: (r.start, r.end))
        return dict(found)


@contextmanager
def serving(tools: Path, state: Path) -> Iterator[RealWeb]:
    """Serve the sites until the end of the block. Skips the test where they are not installed."""
    up = tools / "up"
    if not up.is_file():
        pytest.skip(f"no {up}: set CRAWL_REALWEB to the folder that holds `up` and `reachable.py`")
    sites = _SITE.findall(up.read_text(encoding="utf-8"))
    missing = [package for _, package, root in sites if not Path(root).is_dir()]
    if shutil.which("nginx") is None:
        missing.append("nginx")
    if missing:
        pytest.skip(f"not installed: {' '.join(missing)}; run {up} once, as root, to install them")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    subprocess.run([str(up), str(state), str(port)], check=True, capture_output=True)
    try:
        yield RealWeb(tools=tools, state=state, port=port, hosts=tuple(host for host, _, _ in sites))
    finally:
        subprocess.run([str(up), str(state), "stop"], check=True, capture_output=True)
