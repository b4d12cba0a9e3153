"""Frames of a fetch journal: what was asked or skipped, with the body; they survive being cut anywhere.

A frame is `length u32 | check u64 | layout u32 | what u8 | header length u32 | header | body`, little-endian.
`length` counts what follows `check`; its highest bit is set: frames of the first version had none. `check` is
XXH3-64 of the body, seeded with that of the header, seeded with the three numbers before it. `layout` names
the fields, `what` is the kind of the record and the coding of the body: as it came (`RAW`) or one zstd frame
(`ZSTD`). The header is a msgpack array of the record's fields in the order of crawl.records, times as
microseconds since 1970.

A fetch has better things to do than to hash and to compress: `frame` leaves both to who reads it, once, with
`decode(…, digest=True)` and `Body.packed`. `compact` does both at once, for storage where bytes are dear.
What always holds: reading stops at the first frame that is incomplete or damaged, and everything before it is
whole; the same record makes the same bytes; a frame with other fields than today's is refused, never misread.
It opens no file: appending and rolling parts is lake.journal's.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgpack
import zstandard
from xxhash import xxh3_64, xxh3_64_intdigest

from crawl.errors import LakeError
from crawl.records import Fetch, Skip

__all__ = [
    "RATIO",
    "Body",
    "Pieces",
    "compact",
    "compress",
    "decode",
    "decompress",
    "frame",
    "frame_at",
    "valid_length",
]

_START: Final = struct.Struct("<IQIBI")
_COUNTED: Final = 12  # where what `length` counts begins
_MARK: Final = 1 << 31
#: the head of the first version: length and CRC-32 of the payload
_FIRST_HEAD: Final = struct.Struct("<II")
#: on 40 kB pages level 3 makes 4 % less than level 1 and takes 20 % longer
_LEVEL: Final = 1
#: no body is longer than this once decompressed, whatever its frame says
_MOST: Final = 1 << 30

#: a body in more pieces is joined: one write takes 1,024 at most
_MOST_PIECES: Final = 64

#: a body in the pieces in which it came, or in one
Pieces = tuple[bytes, ...] | bytes

_RECORDS: Final[tuple[type[Fetch] | type[Skip], ...]] = (Fetch, Skip)
_NAMES: Final = tuple(tuple(f.name for f in fields(record)) for record in _RECORDS)
_TIMES: Final = tuple(
    tuple(i for i, f in enumerate(fields(record)) if "datetime" in str(f.type)) for record in _RECORDS
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


_HASH: Final = _NAMES[0].index("body_hash")
#: changes with the fields: a round that was begun with others is ended by the version that began it
_LAYOUT: Final = zlib.crc32(repr(_NAMES).encode())
NONE, RAW, ZSTD = range(3)
#: how much smaller zstd makes a page, about
RATIO: Final = 4


class _Coders(threading.local):
    """Coders serve one thread at a time."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
        self.pack = msgpack.Packer().pack
        self.decompressor = zstandard.ZstdDecompressor()


_coders: Final = _Coders()


@dataclass(frozen=True, slots=True)
class Body:
    """A body as a journal holds it."""

    data: bytes
    zstd: bool

    def raw(self) -> bytes:
        """As it came. Raises zstandard.ZstdError for what is no zstd frame."""
        return decompress(self.data) if self.zstd else self.data

    def packed(self) -> bytes:
        """As one zstd frame."""
        return self.data if self.zstd else compress(self.data)


def compress(body: bytes) -> bytes:
    """One zstd frame that tells its content's size."""
    return _coders.compressor.compress(body)


def decompress(body: bytes) -> bytes:
    """The bytes `compress` was given. Raises zstandard.ZstdError for anything else."""
    return bytes(_coders.decompressor.decompress(body, max_output_size=_MOST))


def frame(record: Fetch | Skip, body: Pieces | None) -> list[bytes]:
    """The frame of one record in pieces: its head, and the decoded body as it came (None: none to keep)."""
    coding = NONE if body is None else RAW
    pieces: tuple[bytes, ...] = (body,) if isinstance(body, bytes) else body or ()
    if len(pieces) > _MOST_PIECES:
        pieces = (b"".join(pieces),)
    kind = 0 if isinstance(record, Fetch) else 1
    header: bytes = _coders.pack(_plain(record, kind))
    what, size = kind << 4 | coding, len(header)
    check: int = xxh3_64_intdigest(header, _seed(_LAYOUT, what, size))
    total = 0
    if len(pieces) == 1:
        total = len(pieces[0])
        check = xxh3_64_intdigest(pieces[0], check)
    else:
        whole = xxh3_64(seed=check)
        for piece in pieces:
            total += len(piece)
            whole.update(piece)
        check = whole.intdigest()
    length = _START.size - _COUNTED + size + total
    return [_START.pack(_MARK | length, check, _LAYOUT, what, size) + header, *pieces]


def _plain(record: Fetch | Skip, kind: int) -> list[Any]:
    """The values of a record as msgpack knows them: times as microseconds."""
    values = list(record.values())
    for place in _TIMES[kind]:
        time = values[place]
        if time is not None:
            values[place] = (time - _EPOCH) // _MICROSECOND
    return values


def compact(record: Fetch | Skip, body: bytes | None) -> bytes:
    """The frame of one record, as small as can be: the body hashed, left out if its page had it before, and
    compressed.
    """
    if body is None:
        return b"".join(_framed(record, b"", NONE))
    if isinstance(record, Fetch) and record.body_hash is None:
        record = replace(record, body_hash=sha256(body).hexdigest())
    if isinstance(record, Fetch) and record.body_hash == record.known_hash:
        return b"".join(_framed(record, b"", NONE))
    return b"".join(_framed(record, compress(body), ZSTD))


def _framed(record: Fetch | Skip, body: bytes, coding: int) -> tuple[bytes, bytes]:
    kind = 0 if isinstance(record, Fetch) else 1
    header: bytes = _coders.pack(_plain(record, kind))
    what, size = kind << 4 | coding, len(header)
    length = _START.size - _COUNTED + size + len(body)
    check = xxh3_64_intdigest(body, xxh3_64_intdigest(header, _seed(_LAYOUT, what, size)))
    return _START.pack(_MARK | length, check, _LAYOUT, what, size) + header, body


def _seed(layout: int, what: int, size: int) -> int:
    """The numbers that a check covers; sizes have 31 bits."""
    return layout << 32 ^ what << 31 ^ size


@dataclass(frozen=True, slots=True)
class _Frame:
    """A whole frame of this version."""

    layout: int
    what: int
    header: memoryview
    body: memoryview
    end: int  # where the next one begins


def _frame_at(view: memoryview, offset: int) -> _Frame | None:
    """The frame at `offset`, None where none is whole. Raises LakeError for one of the first version."""
    if offset + _START.size > len(view):
        if offset + _FIRST_HEAD.size <= len(view):
            _refuse_first(view, offset)
        return None
    length, check, layout, what, size = _START.unpack_from(view, offset)
    if not length & _MARK:
        _refuse_first(view, offset)
        return None
    start, end = offset + _START.size, offset + _COUNTED + (length ^ _MARK)
    if end > len(view) or start + size > end:
        return None
    header, body = view[start : start + size], view[start + size : end]
    if xxh3_64_intdigest(body, xxh3_64_intdigest(header, _seed(layout, what, size))) != check:
        return None
    return _Frame(layout, what, header, body, end)


def _refuse_first(view: memoryview, offset: int) -> None:
    """Raises LakeError where a whole frame of the first version lies."""
    start = offset + _FIRST_HEAD.size
    length, crc = _FIRST_HEAD.unpack_from(view, offset)
    # a tail of zeros (a file grown before it was written) is no frame of any version
    if length >= _LEAST and start + length <= len(view) and zlib.crc32(view[start : start + length]) == crc:
        raise LakeError(_OTHER)


_LEAST: Final = 4
_OTHER: Final = (
    "a journal of this open round was written by another version of this software, and cannot be read by this"
    " one: end the round with the version that began it, then go on with this one"
)


def _open(found: _Frame, digest: bool) -> tuple[Fetch | Skip, Body | None]:
    if found.layout != _LAYOUT:
        raise LakeError(_OTHER)
    kind, coding = found.what >> 4, found.what & 15
    values = msgpack.unpackb(found.header)
    for place in _TIMES[kind]:
        if values[place] is not None:
            values[place] = _EPOCH + values[place] * _MICROSECOND
    body = None if coding == NONE else Body(bytes(found.body), coding == ZSTD)
    if digest and kind == 0 and body is not None and values[_HASH] is None:
        values[_HASH] = sha256(body.raw()).hexdigest()
    record: Any = _RECORDS[kind](**dict(zip(_NAMES[kind], values, strict=True)))
    return record, body


def decode(
    buffer: bytes | memoryview, *, digest: bool = False
) -> Iterator[tuple[Fetch | Skip, Body | None, int]]:
    """Whole frames in order: (record, body or None, offset of the frame).

    `digest`: compute `body_hash` where it was left to the reader. Ends silently at the first incomplete or
    damaged frame; `valid_length` tells where that is. Raises LakeError for a frame of another version.
    """
    view = memoryview(buffer)
    offset = 0
    while (found := _frame_at(view, offset)) is not None:
        record, body = _open(found, digest)
        yield record, body, offset
        offset = found.end


def frame_at(buffer: bytes | memoryview, offset: int) -> tuple[Fetch | Skip, Body | None]:
    """The frame that `decode` gave with this offset. Raises ValueError where there is none."""
    found = _frame_at(memoryview(buffer), offset)
    if found is None:
        raise ValueError(f"no whole frame at offset {offset}")
    return _open(found, False)


def valid_length(buffer: bytes | memoryview) -> int:
    """How many bytes from the start are whole frames. Raises LakeError for a frame of another version."""
    view = memoryview(buffer)
    offset = 0
    while (found := _frame_at(view, offset)) is not None:
        offset = found.end
    return offset
