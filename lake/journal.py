"""A fetch task's journal: every record kept before its host is asked again, in parts that parsing takes up.

What always holds: in a folder, what was appended is given to the system when `flush` returns (written at the
end of the file, no fsync): it survives the death of the process, not of the machine. On S3 a frame waits for
at most one upload (every `flush_interval` or `flush_bytes`); each upload is one object, made beside the
caller. A part is announced when it is closed and never changes afterwards. What a frame holds is
crawl.fetching.journal's: as it came in a folder, where bytes are cheap; hashed and compressed on S3, where
they are not, by the thread that uploads.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from crawl.errors import LakeError, UsageError
from crawl.fetching import journal as frames
from crawl.policy import Fetching
from crawl.records import Fetch, Skip
from lake.store import Store, advice

__all__ = ["Clock", "PartWriter", "read_part"]

#: is told (path relative to the root, bytes) of each closed part; on S3 from the uploading thread
OnPart = Callable[[str, int], None]


class Clock(Protocol):
    """Seconds that only grow."""

    def monotonic(self) -> float:
        """Now."""


class PartWriter:
    """Writes `part-<n:05d>.jrnl` files into a folder that no other attempt uses. Use from one thread.

    Records that are appended together are written together, by `flush`: its caller may not act on any of them
    before. `close` ends the last part; `abandon` does the same as far as storage allows and never raises, for
    the way out of an error. Raises LakeError (also for an upload that failed since the last call), UsageError
    after the end.
    """

    def __init__(
        self,
        store: Store,
        folder: str,
        fetching: Fetching,
        clock: Clock = time,
        on_part: OnPart | None = None,
    ) -> None:
        parts = _Parts(folder, on_part)
        self._parts: Final = parts
        self._sink: _Folder | _Bucket = (
            _Folder(store, parts, fetching) if store.is_local else _Bucket(store, parts, fetching, clock)
        )
        self._ended = False

    def append(self, record: Fetch | Skip, body: frames.Pieces | None) -> None:
        """Take one record with its decoded body (None: there is none to keep)."""
        if self._ended:
            raise UsageError("this journal is closed")
        self._sink.take(record, body)

    def flush(self) -> None:
        """Keep what was appended: see above for what that means where."""
        self._sink.flush()

    def finished(self) -> list[tuple[str, int]]:
        """Closed parts so far, in order: (path relative to the root, bytes)."""
        return list(self._parts.closed)

    def close(self) -> None:
        """End the last part. Everything appended is kept when this returns. Harmless when repeated."""
        if not self._ended:
            self._ended = True
            self._sink.close()

    def abandon(self) -> None:
        """`close` that swallows what storage says; a no-op after `close`."""
        try:
            self.close()
        except LakeError:
            pass  # whoever calls this is on the way out of an error that tells more


def read_part(
    store: Store, path: str, length: int | None = None
) -> Iterator[tuple[Fetch | Skip, frames.Body | None, int]]:
    """Records of a part, or of its first `length` bytes, bodies hashed: (record, body, offset).

    Ends at the first frame that is not whole. Raises LakeError where the part is missing.
    """
    data = store.read(path)
    return frames.decode(data if length is None else memoryview(data)[:length], digest=True)


class _Parts:
    """Names of parts, and those that are closed."""

    def __init__(self, folder: str, on_part: OnPart | None) -> None:
        self._folder = folder.rstrip("/")
        self._on_part = on_part
        self._next = 0
        self.closed: list[tuple[str, int]] = []

    def name(self) -> str:
        """A path not used before in this folder by this writer."""
        self._next += 1
        return f"{self._folder}/part-{self._next - 1:05d}.jrnl"

    def close(self, path: str, size: int) -> None:
        self.closed.append((path, size))
        if self._on_part is not None:
            self._on_part(path, size)


#: what is held before it is written without being told to: pieces (one write takes 1,024 at most), and bytes
_HELD_PIECES: Final = 512
_HELD_BYTES: Final = 1_000_000


class _Folder:
    """Parts as files that grow by one write for the records taken together."""

    def __init__(self, store: Store, parts: _Parts, fetching: Fetching) -> None:
        self._store = store
        self._parts = parts
        self._limit = fetching.part_bytes
        self._most = min(_HELD_BYTES, self._limit)
        self._path = ""
        self._file = -1
        self._size = 0
        self._pieces: list[bytes] = []
        self._held = 0

    def take(self, record: Fetch | Skip, body: frames.Pieces | None) -> None:
        pieces = frames.frame(record, body)
        self._pieces += pieces
        for piece in pieces:
            self._held += len(piece)
        if self._held >= self._most or len(self._pieces) >= _HELD_PIECES:
            self.flush()

    def flush(self) -> None:
        if not self._pieces:
            return
        if self._file < 0:
            self._open()
        pieces, length = self._pieces, self._held
        self._pieces, self._held = [], 0
        try:
            done = os.writev(self._file, pieces)
            if done < length:
                rest = memoryview(b"".join(pieces))
                while done < length:
                    done += os.write(self._file, rest[done:])
        except OSError as error:
            self._cut()
            raise advice(self._store.root, f"append to {self._path}", error) from error
        self._size += length
        if self._size >= self._limit:
            self._end_part()

    def close(self) -> None:
        self.flush()
        self._end_part()

    def _end_part(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            if self._size:
                self._parts.close(self._path, self._size)

    def _open(self) -> None:
        self._path = self._parts.name()
        self._size = 0
        target = self._store.url(self._path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            self._file = os.open(target, flags, 0o666)
        except OSError as error:
            raise advice(self._store.root, f"start {self._path}", error) from error

    def _cut(self) -> None:
        """Take back what was written of them, so that what follows can be read."""
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            pass  # a reader stops at the damaged frame; all before it is whole


#: what a record takes besides its body, roughly
_RECORD_BYTES: Final = 1_000


def _whole(body: frames.Pieces | None) -> bytes | None:
    """A body in one: many small pieces take far more memory than they say."""
    return body if body is None or isinstance(body, bytes) else b"".join(body)


class _Bucket:
    """Parts as objects: records gather in memory, a thread makes frames of them and uploads those."""

    def __init__(self, store: Store, parts: _Parts, fetching: Fetching, clock: Clock) -> None:
        self._store = store
        self._parts = parts
        self._bytes = min(fetching.flush_bytes, fetching.part_bytes)
        self._interval = fetching.flush_interval.total_seconds()
        self._clock = clock
        self._wake = threading.Condition()
        self._waiting: list[tuple[Fetch | Skip, bytes | None]] = []
        self._held = 0  # bytes of their bodies, and something for each record
        self._oldest = 0.0  # when the first of them came
        self._closing = False
        self._error: LakeError | None = None
        self._worker = threading.Thread(target=self._run, name="journal", daemon=True)
        self._worker.start()

    def take(self, record: Fetch | Skip, body: frames.Pieces | None) -> None:
        with self._wake:
            self._tell()
            # a slow store holds the task back instead of filling its memory
            while self._held >= 2 * self._bytes and self._error is None:
                self._wake.wait()
            self._tell()
            if not self._waiting:
                self._oldest = self._clock.monotonic()
            whole = _whole(body)
            self._waiting.append((record, whole))
            self._held += _RECORD_BYTES + len(whole or b"")
            if self._due():
                self._wake.notify_all()

    def flush(self) -> None:
        """Uploads have their own time."""

    def close(self) -> None:
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        self._worker.join()
        self._tell()

    def _tell(self) -> None:
        if self._error is not None:
            raise LakeError(*self._error.args) from self._error

    def _due(self) -> bool:
        if not self._waiting:
            return False
        old = self._clock.monotonic() - self._oldest >= self._interval
        return self._closing or old or self._held >= self._bytes

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._due():
                    if self._closing:
                        return
                    self._wake.wait(self._interval / 4)
                taken, self._waiting, self._held = self._waiting, [], 0
                self._wake.notify_all()
            try:
                data = b"".join([frames.compact(record, body) for record, body in taken])
                del taken
                path = self._parts.name()
                self._store.write(path, data)
                self._parts.close(path, len(data))
            except LakeError as error:
                with self._wake:
                    self._error = error
                    self._wake.notify_all()
                return
