"""A small HTTP server on loopback that says exactly what a test wants, and remembers what it was asked."""

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.crawl.loopback import Loopback


@dataclass(slots=True)
class Seen:
    """One request as the server saw it; times are time.monotonic()."""

    path: str
    host: str
    lines: list[str]
    connection: int
    started: float
    ended: float = 0.0

    def header(self, name: str) -> str | None:
        for line in self.lines[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return None


Say = Callable[["Seen", asyncio.StreamWriter], Awaitable[None]]


def response(status: int = 200, body: bytes = b"", *lines: str, reason: str = "X") -> bytes:
    """A whole answer with Content-Length."""
    head = [f"HTTP/1.1 {status} {reason}", *lines]
    if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in lines):
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body


@dataclass
class RawServer(Loopback):
    """Answers by path (`host/path` first). Bytes are sent as they are; a callable does what it likes."""

    says: dict[str, bytes | Say] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def paths(self, host: str | None = None) -> list[str]:
        return [s.path for s in self.seen if host is None or s.host.split(":")[0] == host]

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while not writer.is_closing():
            head = await reader.readuntil(b"\r\n\r\n")
            now = time.monotonic()
            lines = head.decode("latin-1").split("\r\n")[:-2]
            seen = Seen(lines[0].split(" ")[1], "", lines, number, now)
            seen.host = seen.header("host") or ""
            self.seen.append(seen)
            said = self.says.get(seen.host.split(":")[0] + seen.path, self.says.get(seen.path))
            if said is None:
                said = response(404, b"nothing here")
            if isinstance(said, bytes):
                writer.write(said)
            else:
                await said(seen, writer)
            if not writer.is_closing():
                await writer.drain()
            seen.ended = time.monotonic()


def closing(data: bytes) -> Say:
    """Sends the bytes and closes the connection."""

    async def say(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return say


def resetting(data: bytes = b"") -> Say:
    """Sends the bytes and cuts the connection with RST."""

    async def say(_: Seen, writer: asyncio.StreamWriter) -> None:
        if data:
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(0.02)
        linger = struct.pack("ii", 1, 0)  # close sends RST
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    return say


def dripping(head: bytes, piece: bytes, times: int, pause: float) -> Say:
    """Sends the head, then one piece after each pause."""

    async def say(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        for _n in range(times):
            await writer.drain()
            await asyncio.sleep(pause)
            writer.write(piece)

    return say


def silent(seconds: float = 30.0) -> Say:
    """Says nothing for so long."""

    async def say(_: Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)

    return say


def endless(head: bytes, piece: bytes, pause: float = 0.0) -> Say:
    """Never stops."""

    async def say(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return say
