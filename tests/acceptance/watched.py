"""Hosts with manners of their own, on one address of loopback, that watch when they are asked.

What always holds: `log` has every request in the order of its answers, with the time at which it was there
and that right before its answer was handed to the system, so that a crawler that kept its distance by its
own clock kept it by this one too: its request left before it was seen here, and the answer came after that
time. The server runs in a thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate

__all__ = ["Line", "Watched", "Watching", "looping", "watching"]


@dataclass(frozen=True, slots=True)
class Line:
    """One request as the server saw it; times are time.time()."""

    host: str
    path: str
    status: int
    retry_after: str | None
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A host: its robots.txt, its pages, and what it does with the n-th request for a page (from 1)."""

    name: str
    pages: int = 3
    crawl_delay: str | None = None
    latency_s: float = 0.0
    #: number → (status, Retry-After; `date:2` is the HTTP-date two seconds later)
    pushes: Mapping[int, tuple[int, str | None]] = field(default_factory=dict)
    #: /robots.txt redirects to /rules.txt, and /moved to the first page
    redirects: bool = False
    #: answers this to every request for a page, in place of the page
    always: int | None = None
    #: takes requests and says nothing, or drops the connection
    silent: bool = False
    aborts: bool = False
    #: where home pages lead to besides the host's own pages
    links: tuple[str, ...] = ()

    def answer(self, path: str, number: int) -> tuple[int, str | None, list[str], bytes]:
        """(status, Retry-After, header lines, body) of a request."""
        if path == "/robots.txt" and self.redirects:
            return 301, None, ["Location: /rules.txt"], b""
        if path in ("/robots.txt", "/rules.txt"):
            if self.crawl_delay is None:
                return 404, None, [], b""
            return 200, None, [], f"User-agent: *\nCrawl-delay: {self.crawl_delay}\n".encode()
        if self.always is not None:
            return self.always, None, [], b""
        if number in self.pushes:
            status, wait = self.pushes[number]
            if wait is not None and wait.startswith("date:"):
                # dates have whole seconds: rounded up, so that no less is asked for
                wait = formatdate(int(time.time()) + 1 + int(wait[5:]), usegmt=True)
            return status, wait, [f"Retry-After: {wait}"] if wait else [], b""
        if path == "/moved":
            return 302, None, ["Location: /p1"], b""
        paths = [f"/p{n}" for n in range(1, self.pages + 1)] + ["/moved"] * self.redirects
        links = "".join(f"<a href='{to}'>x</a>" for to in (*paths, *self.links)) if path == "/" else ""
        body = f"<title>{self.name}{path}</title><p>words of {self.name} at {path}</p>{links}".encode()
        return 200, None, ["Content-Type: text/html"], body


class Watching:
    """The running server."""

    def __init__(self, hosts: Mapping[str, Watched]) -> None:
        self.hosts = dict(hosts)
        self.log: list[Line] = []
        self.port = 0
        self.asked: Counter[str] = Counter()
        self.connections: set[asyncio.Transport] = set()
        #: drops every connection at once
        self.down = False

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"


class _Connection(asyncio.Protocol):
    def __init__(self, site: Watching) -> None:
        self._site = site
        self._buffer = b""
        self._waiting: deque[tuple[float, str, str]] = deque()
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._site.down:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        start = time.time()
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, self._buffer = self._buffer[:end].decode("latin-1"), self._buffer[end + 4 :]
            host = next((line[5:] for line in head.split("\r\n") if line.lower().startswith("host:")), "")
            name = host.strip().partition(":")[0]
            self._waiting.append((start, name, head.split(" ")[1]))
        self._next()

    def _next(self) -> None:
        if self._busy or not self._waiting or self._transport.is_closing():
            return
        start, name, path = self._waiting.popleft()
        host = self._site.hosts.get(name)
        if host is None or host.aborts:
            self._log(start, name, path, 0, None)
            self._transport.abort()
        elif host.silent:
            self._log(start, name, path, 0, None)
        else:
            self._busy = True
            answer: Callable[[], None] = lambda: self._answer(start, host, path)  # noqa: E731
            asyncio.get_running_loop().call_later(host.latency_s, answer)

    def _answer(self, start: float, host: Watched, path: str) -> None:
        page = path not in ("/robots.txt", "/rules.txt")
        self._site.asked[host.name] += page
        status, wait, lines, body = host.answer(path, self._site.asked[host.name])
        head = [f"HTTP/1.1 {status} X", *lines, f"Content-Length: {len(body)}", "", ""]
        self._log(start, host.name, path, status, wait)
        if not self._transport.is_closing():
            self._transport.write("\r\n".join(head).encode() + body)
        self._busy = False
        self._next()

    def _log(self, start: float, host: str, path: str, status: int, wait: str | None) -> None:
        self._site.log.append(Line(host, path, status, wait, start, time.time()))


@contextmanager
def looping() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread while the block runs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def watching(hosts: Mapping[str, Watched], address: str = "127.0.0.1", port: int = 0) -> Iterator[Watching]:
    """Serve these hosts while the block runs; outside it, connections are refused."""
    site = Watching(hosts)

    async def end(server: asyncio.Server) -> None:
        server.close()
        for connection in list(site.connections):
            connection.abort()
        await asyncio.sleep(0)

    with looping() as loop:
        starting = loop.create_server(lambda: _Connection(site), address, port, backlog=1_000)
        server = asyncio.run_coroutine_threadsafe(starting, loop).result(10)
        site.port = server.sockets[0].getsockname()[1]
        try:
            yield site
        finally:
            asyncio.run_coroutine_threadsafe(end(server), loop).result(30)
