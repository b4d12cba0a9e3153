"""What servers that mean harm can answer: heads, bodies and codings as no honest server sends them."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import brotli
import zstandard

from tests.crawl.rawserver import Say, Seen, closing, endless, response

__all__ = [
    "WAITS", "Answers", "Wile", "bomb", "bombing", "chunked", "endless", "head", "html", "in_parts",
    "lending_a_cookie", "links", "lying_about_sameness", "many", "raw", "to", "wile",
]  # fmt: skip

Answers = bytes | Say


@dataclass(frozen=True, slots=True, kw_only=True)
class Wile:
    """What `http://<name>.test/` does, given the port all servers share, and how its fetch may end."""

    says: Callable[[int], Answers]
    outcomes: frozenset[str]
    robots: Callable[[int], Answers] | None = None
    more: Callable[[int], dict[str, Answers]] | None = None  # further paths of this host


def wile(
    says: Answers | Callable[[int], Answers],
    *outcomes: str,
    robots: Answers | Callable[[int], Answers] | None = None,
    more: Callable[[int], dict[str, Answers]] | None = None,
) -> Wile:
    return Wile(
        says=_at_port(says),
        outcomes=frozenset(outcomes or ("OK",)),
        robots=None if robots is None else _at_port(robots),
        more=more,
    )


def _at_port(says: Answers | Callable[[int], Answers]) -> Callable[[int], Answers]:
    if isinstance(says, bytes) or asyncio.iscoroutinefunction(says):
        return lambda port: says
    return says  # type: ignore[return-value]


def html(body: bytes, *lines: str) -> bytes:
    """A page."""
    return response(200, body, *(lines or ("Content-Type: text/html",)))


def to(location: str | bytes, status: int = 302) -> bytes:
    """A redirect, its Location as given."""
    raw = location if isinstance(location, bytes) else location.encode()
    return b"HTTP/1.1 %d Go\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n" % (status, raw)


def raw(head: bytes, body: bytes = b"") -> Say:
    """An answer as it stands, then the end of the connection."""
    return closing(head + body)


async def lying_about_sameness(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """304 though nothing was known."""
    writer.write(b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n')


async def lending_a_cookie(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Sets one, and fails whoever brings it back."""
    bad = seen.header("cookie") is not None
    writer.write(
        response(
            500 if bad else 200,
            b"<title>jar</title><a href=/again>again</a>",
            "Set-Cookie: id=1; Path=/; Domain=.test",
            "Content-Type: text/html",
        )
    )


#: instead of an outcome: nothing was decided yet, since its robots.txt lies in another domain
WAITS = "WAITS"
BOMB = 200_000_000


@cache
def bomb(coding: str) -> bytes:
    """A page of 200 MB in one coding, or in gzip twice."""
    piece, count = b" " * 1_000_000, BOMB // 1_000_000
    if coding == "br":
        press = brotli.Compressor(quality=5)
        return bytes(b"".join(press.process(piece) for _ in range(count)) + press.finish())
    if coding == "zstd":
        made = zstandard.ZstdCompressor().compressobj()
        return b"".join(made.compress(piece) for _ in range(count)) + made.flush()
    zipped = zlib.compressobj(9, zlib.DEFLATED, 31)
    once = b"".join(zipped.compress(piece) for _ in range(count)) + zipped.flush()
    return gzip.compress(once) if coding == "gzip, gzip" else once


def bombing(coding: str) -> Callable[[int], Answers]:
    return lambda port: html(bomb(coding), "Content-Type: text/html", f"Content-Encoding: {coding}")


def in_parts(*parts: bytes) -> Say:
    """Each part of a page coded and sent by itself, as proxies do."""

    async def say(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % sum(map(len, parts)))
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.1)

    return say


def chunked(*pieces: bytes) -> bytes:
    """An answer whose chunks are as they are given."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(pieces)


def head(*lines: bytes, status: bytes = b"200 OK", body: bytes = b"<title>t</title>ok") -> bytes:
    """An answer with header lines that may be anything."""
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"HTTP/1.1 " + status, length, b"Content-Type: text/html", *lines, b"", body])


def many(line: bytes, count: int) -> bytes:
    """Numbered lines."""
    return b"".join(line % number for number in range(count))


def links(*targets: str) -> bytes:
    return b"<title>links</title>" + b"".join(b'<a href="%s">x</a>' % t.encode() for t in targets)
