"""Undoes Content-Encoding while a body streams in, within bounds.

Our own, because libcurl's refuses several gzip members, passes truncated gzip and br off as whole, and knows
no zstd. What always holds: no input makes more than `limit` bytes of output, or much more memory than that;
nothing raises for what a server sends. A body that ends early, lies about its coding, is damaged, or uses a
coding nobody asked for are told apart by `fault`; what was decoded until then stays good.
It knows no HTTP beyond the one header's value.
"""

from __future__ import annotations

import zlib
from typing import Final, Protocol

import brotli
import zstandard

__all__ = ["ACCEPT_ENCODING", "CORRUPT", "MEMBERS", "PLAIN", "TOO_LARGE", "TRUNCATED", "UNKNOWN", "Decoder"]

#: what we ask for, and undo
ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"

TRUNCATED: Final = "encoding_truncated"  # the coded stream ends before its end
CORRUPT: Final = "encoding_corrupt"  # bad data or a wrong checksum
MEMBERS: Final = "encoding_members"  # a stream of more members (gzip) or frames (zstd) than anybody needs
UNKNOWN: Final = "encoding_unknown"  # a coding that cannot be undone, or more than four of them
PLAIN: Final = "encoding_absent"  # declared but not applied: the body is taken as it came
TOO_LARGE: Final = "decoded_bytes"  # more output than allowed

#: RFC 9659: the content coding zstd uses windows of at most 8 MB
_ZSTD_WINDOW: Final = 8 * 1024 * 1024
#: input per step: a zstd block makes 128 KiB of 4 bytes, so a step makes at most 32 MB
_ZSTD_STEP: Final = 1024
_MOST_CODINGS: Final = 4
#: input per step: what follows a member is copied when it ends, so never much of it
_DEFLATE_STEP: Final = 4096
#: beginning a member costs as much as decoding kilobytes, and it may be empty
_MOST_MEMBERS: Final = 10_000
#: values that servers put there though they are no codings of content
_NO_CODING: Final = frozenset(
    {"", "identity", "none", "binary", "7bit", "8bit", "utf-8", "utf8", "iso-8859-1"}
)


class _Refused(Exception):
    """Decoding goes no further. `args` = (fault,)."""


def _one_more(members: int) -> int:
    """Count a member (or frame) that begins. Raises _Refused beyond the bound."""
    if members >= _MOST_MEMBERS:
        raise _Refused(MEMBERS)
    return members + 1


class _Coding(Protocol):
    """One coding: `step` decodes, making at most a little over `room` bytes."""

    ended: bool  # its stream is complete
    absent: bool  # its first bytes told that the body is not coded this way at all

    def step(self, data: bytes, room: int) -> bytes: ...


class _Deflate:
    """gzip (with many members, RFC 1952 2.2) and deflate (zlib by RFC 9110, raw by habit)."""

    def __init__(self, *, gzip: bool) -> None:
        self.ended = False
        self.absent = False
        self._gzip = gzip
        self._head = b""  # too little to tell what begins here
        self._members = 0
        self._padding = False  # what follows the last member, which everybody ignores
        self._inner: zlib._Decompress | None = None

    def step(self, data: bytes, room: int) -> bytes:
        data, self._head = self._head + data, b""
        out: list[bytes] = []
        at = 0
        while at < len(data) and room > 0:  # at its limit the caller stops, and the rest is never needed
            inner = self._inner or self._begin(data[at : at + 2])
            if inner is None:
                return data if self.absent else b"".join(out)
            chunk = data[at : at + _DEFLATE_STEP]
            try:
                piece = inner.decompress(chunk, room)
            except zlib.error as error:
                raise _Refused(CORRUPT) from error
            at += len(chunk) - len(inner.unconsumed_tail) - len(inner.unused_data)
            out.append(piece)
            room -= len(piece)
            self.ended = inner.eof
            self._inner = None if inner.eof else inner
        return b"".join(out) if len(out) != 1 else out[0]

    def _begin(self, head: bytes) -> zlib._Decompress | None:
        """What undoes the stream that begins so; None where there is none, or more must be seen."""
        if self._padding:
            return None
        if len(head) < 2:
            self._head = head
            return None
        first = not self._members
        if self._gzip:
            self._padding = head != b"\x1f\x8b"
            self.absent = first and self._padding
            wbits = 31
        else:
            self._padding = not first
            zlib_header = head[0] & 0x0F == 8 and (head[0] << 8 | head[1]) % 31 == 0
            wbits = 15 if zlib_header else -15
        if self._padding:
            self.ended = True
            return None
        self._members = _one_more(self._members)
        return zlib.decompressobj(wbits)


class _Brotli:
    def __init__(self) -> None:
        self.ended = False
        self.absent = False
        self._inner = brotli.Decompressor()

    def step(self, data: bytes, room: int) -> bytes:
        if self.ended:
            # the library takes what follows the end in the same piece for a fault, so it is one in any piece
            if data:
                raise _Refused(CORRUPT)
            return b""
        out = []
        try:
            while True:
                piece = self._inner.process(data, output_buffer_limit=max(1, room))
                out.append(piece)
                room -= len(piece)
                if self._inner.can_accept_more_data() or room <= 0:
                    break
                data = b""
            self.ended = self._inner.is_finished()
        except brotli.error as error:
            raise _Refused(CORRUPT) from error
        return b"".join(out) if len(out) != 1 else out[0]


class _Zstd:
    def __init__(self) -> None:
        self.ended = False
        self.absent = False
        self._head = b""
        self._begun = False
        self._frames = 1
        self._inner = self._frame()

    @staticmethod
    def _frame() -> zstandard.ZstdDecompressionObj:
        return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()

    def step(self, data: bytes, room: int) -> bytes:
        if not self._begun:
            data = self._head + data
            if len(data) < 4:
                self._head = data
                return b""
            self._head = b""
            self._begun = True
            skippable = 0x50 <= data[0] <= 0x5F and data[1:4] == b"\x2a\x4d\x18"
            if data[:4] != b"\x28\xb5\x2f\xfd" and not skippable:
                self.absent = self.ended = True
                return data
        out = []
        start = 0
        try:
            while start < len(data) and room > 0:
                if self.ended:  # a further frame (RFC 8878 3)
                    self._frames = _one_more(self._frames)
                    self.ended = False
                    self._inner = self._frame()
                chunk = data[start : start + _ZSTD_STEP]
                piece = self._inner.decompress(chunk)
                start += len(chunk)
                if self._inner.eof:
                    self.ended = True
                    start -= len(self._inner.unused_data)
                out.append(piece)
                room -= len(piece)
        except zstandard.ZstdError as error:
            raise _Refused(CORRUPT) from error
        return b"".join(out)


def _coding(name: str) -> _Coding | None:
    if name in ("gzip", "x-gzip"):
        return _Deflate(gzip=True)
    if name == "deflate":
        return _Deflate(gzip=False)
    if name == "br":
        return _Brotli()
    if name == "zstd":
        return _Zstd()
    return None


class Decoder:
    """Decodes one body. `feed` each piece in order, then `finish`; `fault` tells what was wrong, if anything.

    `content_encoding` is the header's value (several lines joined by commas), None without one. `limit`
    bounds the bytes given out over the decoder's life.
    """

    __slots__ = ("_chain", "_fed", "_room", "_rooms", "fault", "length")

    def __init__(self, content_encoding: str | None, limit: int) -> None:
        self.fault: str | None = None
        self.length = 0
        self._fed = False
        self._room = limit
        self._chain: list[_Coding] = []
        names = [name.strip() for name in (content_encoding or "").lower().split(",")]
        names = [name for name in names if name not in _NO_CODING]
        if len(names) > _MOST_CODINGS:
            self.fault = UNKNOWN
            return
        for name in reversed(names):  # applied in the order listed (RFC 9110 8.4), so undone in reverse
            coding = _coding(name)
            if coding is None:
                self.fault = UNKNOWN
                return
            self._chain.append(coding)
        # What lies between two codings has the bound of the whole as well: it may be endless and decode to
        # nothing.
        self._rooms = [limit] * len(self._chain)

    def stopped(self) -> bool:
        """Nothing more can come out, so the rest of the body need not be read."""
        return self.fault in (CORRUPT, MEMBERS, UNKNOWN, TOO_LARGE)

    def feed(self, data: bytes) -> bytes:
        """The decoded bytes this piece makes; empty once `stopped`."""
        if self.stopped() or not data:
            return b""
        self._fed = True
        last = len(self._chain) - 1
        for place, coding in enumerate(self._chain):
            data = self._step(coding, data, self._rooms[place])
            self._rooms[place] -= len(data)
            if self._rooms[place] < 0 and place != last:
                self.fault = TOO_LARGE
            if self.stopped():
                return b""
        if len(data) > self._room:
            data = data[: self._room]
            self.fault = TOO_LARGE
        self._room -= len(data)
        self.length += len(data)
        return data

    def _step(self, coding: _Coding, data: bytes, room: int) -> bytes:
        if coding.absent:
            return data
        try:
            data = coding.step(data, room + 1)
        except _Refused as refused:
            self.fault = str(refused)
            return b""
        self._note_absence(coding)
        return data

    def _note_absence(self, coding: _Coding) -> None:
        if coding.absent:
            self.fault = PLAIN

    def finish(self) -> None:
        """Tell that the body has ended. An empty body is whole under any coding."""
        if self._fed and not self.stopped() and not all(coding.ended for coding in self._chain):
            self.fault = TRUNCATED
