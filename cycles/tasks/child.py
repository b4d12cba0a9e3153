"""The parse process as its parent sees it: pages in, extracts out, whatever a page does to the process.

Theory. HTML is read in a child, because a page can take the reader's time, memory or life. The child says
when each page is done, so the parent knows which one it was at when it fell silent or died. That page is
tried once more alone (a child may die for a reason of its own), unless its time was really used up; then it
is given up with a reason, and the rest of its batch is parsed without it.

What always holds: every page comes back in an extract or with a reason; an innocent page is not given up
because the machine was slow (a deadline counts the child's CPU time; only four times as much real time ends
patience) or because the child was killed once. The child is started when first needed, ends with its parent's
end of the pipe, and is never told the lake's secret.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final

import pyarrow as pa

from crawl.errors import ClusterError, LakeError, SettingsError
from crawl.fetching.journal import Body
from crawl.policy import Settings
from crawl.records import Fetch
from crawl.rejects import Rejects
from crawl.stages.parse import Extract
from cycles.tasks.child_main import OUT_OF_MEMORY
from cycles.tasks.frames import Gone, Pipe, Silent

__all__ = ["ParseChild", "Parsed", "lent", "page"]

#: seconds for the child's start: imports, and one object read from the lake
_START: Final = 60.0
#: how often a process that is killed while it starts is started
_STARTS: Final = 3
#: seconds in which a living child takes a batch from its pipe, and sums it up at the end
_PATIENCE: Final = 60.0
#: what the child's exit code says of the page it was at
_EXITS: Final = {1: "parse_error", OUT_OF_MEMORY: "parse_memory"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A batch's result."""

    extracts: list[Extract]
    failed: dict[
        int, str
    ]  # url_key -> parse_deadline, parse_memory, parse_killed, parse_error, reader_failed


class _Lost(Exception):
    """The child is gone. `args` = (number of the page it was at or None, reason, whether to try again)."""

    @property
    def at(self) -> int | None:
        at: int | None = self.args[0]
        return at

    @property
    def reason(self) -> str:
        return str(self.args[1])

    @property
    def again(self) -> bool:
        return bool(self.args[2])


def page(
    record: Fetch, body: Body, vouching: Sequence[str] = (), now: datetime | None = None
) -> tuple[Any, ...]:
    """One page of a batch: a fetch and its body; of a sitemap, the hosts for which it may speak.

    `now`: planning time.
    """
    return (
        record.url_key,
        record.url,
        record.host,
        record.domain,
        record.depth,
        not record.parsed_before,
        record.content_type,
        record.response_headers,
        record.truncated,
        record.sniffed_type,
        body.data,
        body.zstd,
        record.kind,
        tuple(vouching),
        now,
    )


#: where a page's kind stands in its batch
_KIND: Final = 12


class ParseChild:
    """One parse process, started when needed and again after a loss. Batches of threads take turns."""

    def __init__(self, root: str, settings: Settings) -> None:
        self._setup = (root, pickle.dumps(settings))
        self._deadline = settings.parsing.deadline.total_seconds()
        self._long_deadline = settings.sitemaps.deadline.total_seconds()
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Pipe | None = None

    @property
    def pid(self) -> int | None:
        """Of the running process; None while there is none."""
        return self._process.pid if self._process is not None else None

    def parse(self, pages: Sequence[tuple[Any, ...]]) -> Parsed:
        """Parse a batch (see `page`). Raises ClusterError when no parse process can be started, LakeError
        when it cannot read the lake, SettingsError when it has not the reader of a type.
        """
        with self._turn:
            try:
                return self._parse(pages)
            except BaseException:
                self.close()  # an answer that nobody took must not be the next batch's
                raise

    def _parse(self, pages: Sequence[tuple[Any, ...]]) -> Parsed:
        extracts: list[Extract] = []
        failed: dict[int, str] = {}
        tried: set[int] = set()
        waiting = deque([list(pages)] if pages else [])
        while waiting:
            batch = waiting.popleft()
            try:
                extracts.append(self._run(batch))
                failed.update(extracts[-1].failed)
            except _Lost as lost:
                at = 0 if len(batch) == 1 else lost.at
                if len(batch) > 1:
                    waiting.extend(_parted(batch, at))
                if at is None:
                    continue  # which page it was will show in the halves
                key = batch[at][0]
                if lost.again and key not in tried:
                    tried.add(key)
                    waiting.append([batch[at]])
                else:
                    failed[key] = lost.reason
        return Parsed(extracts, failed)

    def _run(self, batch: list[tuple[Any, ...]]) -> Extract:
        pipe = self._started()
        try:
            pipe.send(batch, _PATIENCE)
        except (Gone, Silent) as error:
            self.close()
            raise _Lost(None, "parse_killed", True) from error
        done, used = 0, self._cpu_seconds()
        while True:
            whole = done == len(batch)
            message = self._next(
                pipe, done, used, _PATIENCE if whole else self._time(batch[done]), whole=whole
            )
            if message[0] == "done":
                _, done, used = message
            else:
                _, documents, links, parsed, rejects, failed = message
                return Extract(
                    documents=_table(documents),
                    links=_table(links),
                    parsed=_table(parsed),
                    rejects=Rejects(rejects),
                    failed=dict(failed),
                )

    def _time(self, page: tuple[Any, ...]) -> float:
        """Seconds that reading it may take."""
        return self._deadline if page[_KIND] == "page" else self._long_deadline

    def _next(self, pipe: Pipe, done: int, used: float, patience: float, *, whole: bool) -> tuple[Any, ...]:
        """The child's next message; raises _Lost. `whole`: all pages are done, the sum is awaited."""
        at = None if whole else done
        began = time.monotonic()
        while True:
            try:
                message: tuple[Any, ...] = pipe.receive(patience if whole else patience / 4)
                return message
            except Gone as error:
                reason = _EXITS.get(self.close() or 0, "parse_killed")
                raise _Lost(at, reason, True) from error
            except Silent as error:
                waited = time.monotonic() - began
                spent = self._cpu_seconds() - used
                if waited >= 4 * patience or (waited >= patience and (whole or spent >= patience * 0.8)):
                    self.close()
                    raise _Lost(at, "parse_deadline", spent < patience * 0.8) from error

    def _cpu_seconds(self) -> float:
        """CPU time the child has used."""
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
                values = file.read().rpartition(")")[2].split()
        except OSError:  # it is gone, which the pipe will tell
            return 0.0
        return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")

    def _started(self) -> Pipe:
        """The pipe to a process that is ready for pages. One killed while it starts is started again."""
        for attempt in range(_STARTS):
            if self._pipe is not None:
                break
            self._start(last=attempt == _STARTS - 1)
        assert self._pipe is not None
        return self._pipe

    def _start(self, *, last: bool) -> None:
        environment = {
            **os.environ,
            # One thread and no reserved arenas: its address space is limited.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "1",
            "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "cycles.tasks.child_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # a Ctrl-C in a terminal is the driver's to answer
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        pipe = Pipe(process.stdin.fileno(), process.stdout.fileno())
        try:
            pipe.send(self._setup, _START)
            said, *words = pipe.receive(_START)
        except (Gone, Silent) as error:
            code = self.close()
            if isinstance(error, Gone) and code is not None and code < 0 and not last:
                return  # by a signal, so for no reason of its own
            raise ClusterError(
                f"the parse process does not start (exit code {code}): the worker's log has its own words"
            ) from error
        if said == "failed":
            self.close()
            raise (SettingsError if words[0] else LakeError)(words[1])
        self._pipe = pipe

    def close(self) -> int | None:
        """End the process, whatever it is at. Returns its exit code; None when there was none."""
        process, self._process, self._pipe = self._process, None, None
        if process is None:
            return None
        process.kill()  # of one that ended by itself the exit code stays what it is
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        return process.wait()

    def close_if_idle(self) -> bool:
        """End the process unless a batch is under way; whether it has ended."""
        if not self._turn.acquire(blocking=False):
            return False
        try:
            self.close()
        finally:
            self._turn.release()
        return True

    def __enter__(self) -> ParseChild:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _parted(batch: list[tuple[Any, ...]], at: int | None) -> list[list[tuple[Any, ...]]]:
    """A batch without its page number `at`; in halves where nobody knows which page it was."""
    middle = len(batch) // 2 if at is None else at
    return [part for part in (batch[:middle], batch[middle if at is None else at + 1 :]) if part]


def _table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


_own: dict[tuple[str, bytes], ParseChild] = {}
_lock: Final = threading.Lock()


def lent(root: str, settings: Settings) -> ParseChild:
    """This worker's parse process. Tasks side by side share it: their batches take turns.

    (One is enough: a worker is meant for one core, and what its tasks do besides goes on meanwhile.)
    """
    key = (root, pickle.dumps(settings))
    with _lock:
        for other in [k for k, kept in _own.items() if k != key and kept.close_if_idle()]:
            del _own[other]  # of settings no longer in force
        return _own.setdefault(key, ParseChild(root, settings))


@atexit.register
def _close_all() -> None:
    with _lock:
        for child in _own.values():
            child.close()
        _own.clear()
