"""A server for measuring clients: 1 kB and 40 kB pages over kept connections, in a process of its own."""

from __future__ import annotations

import asyncio
import gzip
import multiprocessing
import random
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final

__all__ = ["page", "places", "serving"]

_RULES: Final = b"User-agent: *\nDisallow: /private/\nDisallow: /*.cgi\nAllow: /private/open\n"
#: first letter of a path to the bytes of its page
_SIZES: Final = {"s": 1_000, "l": 40_000}


def page(size: int) -> bytes:
    """So many bytes that compress about as HTML does."""
    dice = random.Random(1)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(900)]
    parts = ["<!doctype html><title>page</title>"]
    made = 0
    while made < size:
        link, text = dice.choice(words), " ".join(dice.choices(words, k=9))
        parts.append(f'<p class="text"><a href="/docs/{link}.html">{link}</a> {text}</p>\n')
        made += len(parts[-1])
    return "".join(parts).encode()[:size]


def places(port: int, count: int, hosts: int, size: int) -> list[str]:
    """URLs of `count` pages of `size` bytes, spread over so many hosts."""
    letter = next(letter for letter, bytes_ in _SIZES.items() if bytes_ == size)
    return [f"http://h{i % hosts}.test:{port}/{letter}/docs/page-{i}.html" for i in range(count)]


class _Server(asyncio.Protocol):
    """Answers every request with the page its path begins with; robots.txt with a few rules."""

    answers: dict[bytes, bytes]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        self.pending = b""

    def data_received(self, data: bytes) -> None:
        self.pending += data
        while (end := self.pending.find(b"\r\n\r\n")) >= 0:
            head, self.pending = self.pending[:end], self.pending[end + 4 :]
            self.transport.write(self.answers[head[5:6]])


def _serve(pipe: Connection, zipped: bool) -> None:
    coding = "Content-Encoding: gzip\r\n" if zipped else ""
    rules = f"HTTP/1.1 200 OK\r\nContent-Length: {len(_RULES)}\r\n\r\n".encode() + _RULES
    _Server.answers = {b"r": rules}
    for letter, size in _SIZES.items():
        body = gzip.compress(page(size), 6) if zipped else page(size)
        head = (
            "HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            f'Content-Type: text/html; charset=utf-8\r\nETag: "abc"\r\n{coding}'
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        _Server.answers[letter.encode()] = head.encode() + body

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0, backlog=2_048)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextmanager
def serving(*, zipped: bool = False) -> Iterator[int]:
    """The port of a running server. `zipped`: it sends its pages with gzip."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, zipped), daemon=True)
    server.start()
    try:
        yield ours.recv()
    finally:
        server.kill()
        server.join()
