"""Messages over a pair of pipes: a length and a msgpack value, with time limits on the waiting side.

What always holds: a message is read whole or not at all; the waiting side never blocks longer than it said,
whatever the other process does (dead, stopped, stuck); an end of file is `Gone`, never an empty message.
It starts no process and gives no message a meaning.
"""

from __future__ import annotations

import os
import select
import struct
import time
from typing import Any, Final

import msgpack

__all__ = ["Gone", "Pipe", "Silent", "receive", "send"]

_LENGTH: Final = struct.Struct("<I")
_CHUNK: Final = 1 << 20
#: msgpack's word for times as aware datetimes
_AS_DATETIME: Final = 3


class Gone(Exception):
    """The other side closed its end, or died."""


class Silent(Exception):
    """The other side did nothing for as long as one was willing to wait."""


def send(out: int, value: Any) -> None:
    """Write one message to a file descriptor, however long it takes."""
    data = memoryview(_packed(value))
    while data:
        data = data[os.write(out, data) :]


def receive(source: int) -> Any:
    """Read one message from a file descriptor, however long it takes. Raises Gone at the end of the file."""
    (length,) = _LENGTH.unpack(_exactly(source, _LENGTH.size))
    return msgpack.unpackb(_exactly(source, length), use_list=False, timestamp=_AS_DATETIME)


def _packed(value: Any) -> bytes:
    payload: bytes = msgpack.packb(value, datetime=True)  # times must be aware
    return _LENGTH.pack(len(payload)) + payload


def _exactly(source: int, length: int) -> bytes:
    parts = []
    while length:
        part = os.read(source, min(length, _CHUNK))
        if not part:
            raise Gone
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


class Pipe:
    """The waiting side: `out` and `source` are descriptors it may make non-blocking. Not for two threads."""

    __slots__ = ("_buffer", "_out", "_source")

    def __init__(self, out: int, source: int) -> None:
        os.set_blocking(out, False)
        os.set_blocking(source, False)
        self._out = out
        self._source = source
        self._buffer = bytearray()

    def send(self, value: Any, within: float) -> None:
        """Write one message. Raises Gone, or Silent when it is not taken within that many seconds."""
        data = memoryview(_packed(value))
        end = time.monotonic() + within
        while data:
            _wait(self._out, select.POLLOUT, end)
            try:
                data = data[os.write(self._out, data[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise Gone from error

    def receive(self, within: float) -> Any:
        """Read one message. Raises Gone, or Silent when it is not there within that many seconds.

        What has come of a message is kept: after Silent one may go on waiting.
        """
        end = time.monotonic() + within
        while (value := self._taken()) is None:
            _wait(self._source, select.POLLIN, end)
            try:
                part = os.read(self._source, _CHUNK)
            except BlockingIOError:
                continue
            if not part:
                raise Gone
            self._buffer += part
        return value

    def _taken(self) -> Any | None:
        """The next whole message of the buffer. (None is no message: all of ours are arrays.)"""
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        value = msgpack.unpackb(
            memoryview(self._buffer)[_LENGTH.size : end], use_list=False, timestamp=_AS_DATETIME
        )
        self._buffer = self._buffer[end:]
        return value


def _wait(descriptor: int, event: int, end: float) -> None:
    """Until the descriptor is ready. Not select(): a worker may have more than 1,024 descriptors."""
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
        raise Silent
