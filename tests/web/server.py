"""The grown web over HTTP/1.1: one port on the address of every live host, and a control port beside it.

What always holds: what is answered is `render.answer` of the URL at the web's own time, which stands still
until it is set; every request leaves one log line; an idle server uses no CPU. Deliberately not `http.server`
(a thread a connection) nor aiohttp (a dependency): it must leave the processor to the crawler that is being
tested.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import time
from collections import deque
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import cast
from urllib.parse import quote

from tests.web import render
from tests.web.grow import Web
from tests.web.model import EPOCH, Host, Resource

__all__ = ["Connection", "Log", "NoNames", "Site", "identity_path", "listen"]

_CACHE_BYTES = 512 << 20  # of bodies kept; the oldest go first
_LONGEST_HEAD = 64 << 10
_CHUNK = 4096
_UNRESERVED = re.compile(r"%(2D|2E|5F|7E|3\d|[46][1-9A-F]|[57][0-9A])", re.IGNORECASE)
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_REASONS = {status.value: status.phrase for status in HTTPStatus}


def identity_path(target: str) -> str:
    """Path and query as an identity has them: unreserved escapes decoded, others upper case, no `utm_*`."""
    path, mark, query = target.partition("?")
    if not path.isascii():
        path = quote(path, safe="/%:@!$&'()*+,;=~")
    if "%" in path:
        path = _UNRESERVED.sub(lambda found: chr(int(found[1], 16)), path)
        path = _ESCAPE.sub(lambda found: found[0].upper(), path)
    kept = "&".join(part for part in query.split("&") if not part.startswith("utm_")) if mark else ""
    return f"{path}?{kept}" if kept else path


class Log:
    """The requests answered, as JSON lines, kept in memory and appended to a file now and then."""

    def __init__(self, path: Path | None) -> None:
        self.lines: list[str] = []
        self._file = path.open("a", encoding="utf-8") if path else None
        self._written = 0

    def add(self, record: dict[str, object]) -> None:
        self.lines.append(json.dumps(record, ensure_ascii=False))
        if self._file and len(self.lines) - self._written >= 500:
            self.flush()

    def flush(self) -> None:
        """Append what is not yet in the file."""
        if self._file:
            self._file.writelines(line + "\n" for line in self.lines[self._written :])
            self._file.flush()
            self._written = len(self.lines)


@dataclass(slots=True)
class _Kept:
    """An answer made ready for the wire, and when it was last known to hold."""

    now: int
    state: object
    answer: render.Answer
    head: bytes  #: status line and headers, without Date, length and coding
    unchanged: bytes  #: the same for a 304; empty: there are no validators
    zipped: bytes | None = None


class Site:
    """What is served, at which time, and who is down."""

    def __init__(self, web: Web, log: Log) -> None:
        self.web, self.log = web, log
        self.down: frozenset[str] = frozenset()
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0
        self._found: dict[tuple[str, str], Resource | None] = {}
        self.set_time(EPOCH)

    def set_time(self, now: int) -> None:
        """Set the web's clock."""
        self.now = now
        self.date = f"Date: {render.http_date(now)}\r\nServer: grown\r\n".encode()

    def find(self, host: str, target: str) -> Resource | None:
        """What is at a request's target."""
        key = (host, target)
        if key not in self._found:
            if len(self._found) > 200_000:
                self._found.clear()
            self._found[key] = self.web.find(self.web.url(host, identity_path(target)))
        return self._found[key]

    def ready(self, resource: Resource) -> _Kept:
        """The answer of a resource now, from what is kept if that still holds."""
        kept = self._kept.get(resource.url)
        if kept is not None and kept.now == self.now:
            return kept
        state = render.state(self.web, resource, self.now)
        if kept is not None and kept.state == state:
            kept.now = self.now
            return kept
        if kept is not None:
            self._bytes -= len(kept.answer.body)
        kept = self._kept[resource.url] = _prepared(
            self.now, state, render.answer(self.web, resource, self.now)
        )
        self._bytes += len(kept.answer.body)
        while self._bytes > _CACHE_BYTES:
            oldest = next(iter(self._kept))
            self._bytes -= len(self._kept.pop(oldest).answer.body)
        return kept

    def warm(self) -> int:
        """Make every answer ready, so that none is made while something is measured; how many there are."""
        for resource in self.web.resources.values():
            self.ready(resource)
        return len(self._kept)

    def respond(
        self, host: Host | None, method: str, target: str, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """Status and bytes of the response to a request. An unknown host is a 421."""
        if host is None:
            return 421, self._plain(421)
        if method not in ("GET", "HEAD"):
            return 405, self._plain(405)
        resource = self.find(host.name, target)
        kept = (
            self.ready(resource)
            if resource is not None
            else _prepared(0, 0, render.answer(self.web, None, self.now))
        )
        if kept.unchanged and _still_valid(kept.answer, headers):
            return 304, b"%sDate: %s\r\n\r\n" % (kept.unchanged, render.http_date(self.now).encode())
        body, coding = kept.answer.body, b""
        if host.gzip and body and "gzip" in headers.get("accept-encoding", ""):
            if kept.zipped is None:
                kept.zipped = gzip.compress(body, 5, mtime=0)
            body, coding = kept.zipped, b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
        if host.chunked and body:
            length, body = b"Transfer-Encoding: chunked\r\n", _chunked(body)
        else:
            length = b"Content-Length: %d\r\n" % len(body)
        return kept.answer.status, b"".join(
            (kept.head, self.date, coding, length, b"\r\n", b"" if method == "HEAD" else body)
        )

    def _plain(self, status: int) -> bytes:
        return _status_line(status) + self.date + b"Content-Length: 0\r\n\r\n"


def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\n".encode()


def _prepared(now: int, state: object, answer: render.Answer) -> _Kept:
    validators = b""
    if answer.etag:
        validators += f"ETag: {answer.etag}\r\n".encode()
    if answer.modified is not None:
        validators += f"Last-Modified: {render.http_date(answer.modified)}\r\n".encode()
    head = _status_line(answer.status) + answer.headers + validators
    return _Kept(now, state, answer, head, _status_line(304) + validators if validators else b"")


def _still_valid(answer: render.Answer, headers: dict[str, str]) -> bool:
    """Whether the client's copy holds (RFC 9110, 13.2.2: If-None-Match alone counts where it is given)."""
    tags = headers.get("if-none-match")
    if tags is not None:
        given = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return bool(answer.etag) and ("*" in given or answer.etag in given)
    since = headers.get("if-modified-since")
    if since is None or answer.modified is None:
        return False
    if since == render.http_date(answer.modified):
        return True
    try:
        known = time.strptime(since, "%a, %d %b %Y %H:%M:%S GMT")
    except ValueError:
        return False
    return known >= time.gmtime(answer.modified)


def _chunked(body: bytes) -> bytes:
    pieces = [body[at : at + _CHUNK] for at in range(0, len(body), _CHUNK)]
    return b"".join([b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]) + b"0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One client connection: requests are answered in order, a slow host's after its latency."""

    _count = 0

    def __init__(self, site: Site) -> None:
        self.site = site
        self.transport: asyncio.Transport
        self.buffer = b""
        self.waiting: deque[tuple[float, bytes]] = deque()  # requests behind one that is being held back
        self.held = False
        Connection._count += 1
        self.number = Connection._count

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        start = time.time()
        self.buffer = self.buffer + data if self.buffer else data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head, self.buffer = self.buffer[:end], self.buffer[end + 4 :]
            self.waiting.append((start, head))
        if len(self.buffer) > _LONGEST_HEAD:
            self.transport.abort()
        self._next()

    def _next(self) -> None:
        while self.waiting and not self.held and not self.transport.is_closing():
            start, head = self.waiting.popleft()
            line, *fields = head.decode("utf-8", "replace").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)
            }
            parts = line.split(" ")
            if len(parts) != 3:
                self.transport.abort()
                return
            name = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
            host = self.site.web.by_name.get(name.lower())
            if host is not None and host.latency_ms:
                self.held = True
                loop = asyncio.get_running_loop()
                loop.call_later(host.latency_ms / 1000, self._release, start, host, name, parts, headers)
                return
            self._answer(start, host, name, parts, headers)

    def _release(
        self, start: float, host: Host, name: str, parts: list[str], headers: dict[str, str]
    ) -> None:
        self.held = False
        self._answer(start, host, name, parts, headers)
        self._next()

    def _answer(
        self, start: float, host: Host | None, name: str, parts: list[str], headers: dict[str, str]
    ) -> None:
        method, target, version = parts
        status = 0
        if name in self.site.down:
            self.transport.abort()
        elif not self.transport.is_closing():
            status, response = self.site.respond(host, method, target, headers)
            self.transport.write(response)
            if version == "HTTP/1.0" or headers.get("connection", "").lower() == "close":
                self.transport.close()
        self.site.log.add({
            "start": round(start, 6), "end": round(time.time(), 6), "host": name, "path": target,
            "status": status, "method": method, "agent": headers.get("user-agent", ""),
            "connection": self.number, "if_none_match": headers.get("if-none-match"),
            "if_modified_since": headers.get("if-modified-since"),
        })  # fmt: skip


class NoNames(asyncio.DatagramProtocol):
    """A name server that knows no name: every question is answered NXDOMAIN, so none leaves this machine."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        end = data.find(b"\0", 12) + 5  # of the first question: its name, then type and class
        if end > 16:
            counts = b"\0\1\0\0\0\0\0\0"
            self.transport.sendto(data[:2] + b"\x81\x83" + counts + data[12:end], addr)


def listen(addresses: list[str], port: int) -> list[socket.socket]:
    """A listening socket on each address, all on the same port (0: any that is free on all).

    Raises OSError if the port is taken on one of them, or, for 0, if no common one was found in 20 attempts.
    """
    for attempt in range(20):
        sockets: list[socket.socket] = []
        chosen = port
        try:
            for address in addresses:
                each = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                sockets.append(each)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                each.bind((address, chosen))
                chosen = each.getsockname()[1]
                each.listen(128)
                each.setblocking(False)
        except OSError:
            for each in sockets:
                each.close()
            if port or attempt == 19:
                raise
        else:
            return sockets
    raise AssertionError("the loop returns or raises")
