"""A `crawl` command as a running process: what it says, who its children are, and ways to end it.

What always holds: when the block ends, so has every process that the command started. Only those are ever
signalled: they are found as descendants of the command while it lives, and remembered.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import psutil

__all__ = ["Command", "Ended", "crawl", "done", "finished", "python", "until"]

ROOT = Path(__file__).resolve().parent.parent.parent


def until(reached: Callable[[], bool], timeout: float, what: str, pause: float = 0.02) -> None:
    """Return when something is so. Raises AssertionError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not reached():
        assert time.monotonic() < deadline, f"waited {timeout:.0f} s for {what}"
        time.sleep(pause)


def is_worker(process: psutil.Process) -> bool:
    """Whether it is a worker of a local cluster (a spawned Python)."""
    return "multiprocessing.spawn" in _line(process)


def is_parser(process: psutil.Process) -> bool:
    """Whether it is a worker's parse process."""
    return "cycles.tasks.child_main" in _line(process)


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _read(stream: IO[str], lines: list[str]) -> None:
    for line in stream:
        lines.append(line.rstrip("\n"))


class Command:
    """One running command. `code` is None while it runs."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self.command = list(command)
        self.said: list[str] = []  # lines of standard error, in order of arrival
        self.out: list[str] = []  # lines of standard output
        self._known: dict[int, psutil.Process] = {}
        self._process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", env=dict(environ), start_new_session=True,
        )  # fmt: skip
        self.pid = self._process.pid
        self.began = time.time()
        pairs = ((self._process.stderr, self.said), (self._process.stdout, self.out))
        self._readers = [threading.Thread(target=_read, args=pair, daemon=True) for pair in pairs]
        for reader in self._readers:
            reader.start()

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def text(self) -> str:
        """All it said so far, what it told first."""
        return "\n".join([*self.out, *self.said])

    def wait_for(self, pattern: str, timeout: float = 60) -> str:
        """The first line that matches. Raises AssertionError, with all it said, when it ends without one."""
        found: list[str] = []

        def said() -> bool:
            found.extend(line for line in self.said if re.search(pattern, line))
            assert found or self.code is None, f"ended with {self.code} before {pattern!r}:\n{self.text()}"
            return bool(found)

        until(said, timeout, f"{pattern!r} of {self.command}; it said:\n{self.text()}", pause=0.001)
        return found[0]

    def tree(self) -> list[psutil.Process]:
        """Descendants that live now; those found are remembered."""
        try:
            living = psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            living = []
        self._known.update({process.pid: process for process in living})
        return living

    def workers(self) -> list[psutil.Process]:
        return [process for process in self.tree() if is_worker(process)]

    def parsers(self) -> list[psutil.Process]:
        return [process for process in self.tree() if is_parser(process)]

    def kill(self) -> None:
        """SIGKILL to the command alone; its descendants are left to find out."""
        self.tree()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def orphans(self) -> list[psutil.Process]:
        """Remembered descendants that still live."""
        return [
            process
            for process in self._known.values()
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        ]

    def ended(self, timeout: float = 120) -> int:
        """Its exit code, once it ended. Raises AssertionError, with all it said."""
        deadline = time.monotonic() + timeout
        while self.code is None:
            assert time.monotonic() < deadline, f"{self.command} runs on after {timeout} s:\n{self.text()}"
            time.sleep(0.02)
            self.tree()
        for reader in self._readers:
            reader.join(10)
        assert self.code is not None
        return self.code

    def close(self) -> None:
        """End whatever is left of it."""
        self.tree()
        if self.code is None:
            self._process.kill()
        self._process.wait()
        for process in self.orphans():
            process.kill()
        for reader in self._readers:
            reader.join(10)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def crawl(
    *arguments: str, environ: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
) -> Iterator[Command]:
    """A running `crawl` command; `prefix` is put before it (a shell wrapper, say)."""
    command = Command(
        [*prefix, sys.executable, "-m", "cycles", *arguments],
        {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **(environ or {})},
    )
    try:
        yield command
    finally:
        command.close()


@contextmanager
def python(*arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[Command]:
    """Another running Python program."""
    command = Command(
        [sys.executable, *arguments], {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
    )
    try:
        yield command
    finally:
        command.close()


class Ended(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    said: str

    def __str__(self) -> str:
        return f"ended with {self.code}:\n{self.out}\n{self.said}"


def finished(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    timeout: float = 180,
) -> Ended:
    """Run a command to its end."""
    with crawl(*arguments, environ=environ, prefix=prefix) as command:
        code = command.ended(timeout)
        return Ended(code, "\n".join(command.out), "\n".join(command.said))


def done(*arguments: str, environ: Mapping[str, str] | None = None, timeout: float = 180) -> str:
    """Run a command that must succeed; its standard output. Raises AssertionError, with all it said."""
    ended = finished(*arguments, environ=environ, timeout=timeout)
    assert ended.code == 0, f"`crawl {' '.join(arguments)}` {ended}"
    return ended.out
