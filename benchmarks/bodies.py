"""A web of large bodies that do not compress: pages of random words and PDFs of random bytes, on loopback.

Run as `python -m benchmarks.bodies`; prints its port, serves until its standard input ends. `/page/N` and
`/file/N` are `SIZE` bytes each, different for every N and the same each time.
"""

from __future__ import annotations

import asyncio
import base64
import random
import sys
from typing import Final

__all__ = ["SIZE", "main"]

#: bytes of a body; below what is parsed of a page (5 MB)
SIZE: Final = 4_000_000
_POOL: Final = 16 << 20
_STEP: Final = 104_729  # a prime: no two bodies begin at the same place


def _pools() -> tuple[bytes, bytes]:
    raw = random.Random(1).randbytes(_POOL)
    text = base64.b64encode(raw)
    words = b" ".join(text[i : i + 76] for i in range(0, len(text), 76))
    return words[:_POOL], raw


class _Server:
    def __init__(self) -> None:
        self._pools = dict(zip(("page", "file"), _pools(), strict=True))

    def _body(self, kind: str, number: int) -> list[bytes | memoryview]:
        tail = b""
        if kind == "file":
            head = b"%PDF-1.7\n"
        else:
            head = b"<!doctype html><title>%d</title><p>%d " % (number, number)
            tail = b"</p>"
        pool = memoryview(self._pools[kind])
        start = number * _STEP % _POOL
        wanted = SIZE - len(head) - len(tail)
        parts = [pool[start : start + wanted]]
        if (rest := wanted - len(parts[0])) > 0:
            parts.append(pool[:rest])
        return [head, *parts, tail]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await reader.readuntil(b"\r\n\r\n")) != b"":
                path = request.split(b" ", 2)[1].decode()
                kind, _, number = path.strip("/").partition("/")
                if kind not in self._pools or not number.isdigit():
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    await writer.drain()
                    continue
                kind_header = b"text/html; charset=us-ascii" if kind == "page" else b"application/pdf"
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind_header, SIZE)
                )
                for part in self._body(kind, int(number)):
                    for i in range(0, len(part), 1 << 18):
                        writer.write(part[i : i + (1 << 18)])
                        await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_Server().answer, "127.0.0.1", 0, limit=1 << 16)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    """The command."""
    asyncio.run(_serve())


if __name__ == "__main__":
    main()
