"""A web of hostile servers (tests.acceptance.wiles) beside healthy ones, all on one address of loopback.

Everything else on loopback is out of bounds: `canaries` listens on other addresses at the same port and
remembers who comes.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from tests.acceptance.evil import Answers, html, links
from tests.acceptance.wiles import WILES, inwards
from tests.crawl.http2server import Http2Server
from tests.crawl.rawserver import RawServer

__all__ = [
    "ALLOWED",
    "HEALTHY",
    "PAGES",
    "Canary",
    "besieged",
    "canaries",
    "healthy",
    "hostile",
    "publish",
    "running",
]

ALLOWED = "127.0.0.2"
#: healthy hosts and their pages: each home page links to all its pages, to the next host and to evil ones
HEALTHY = tuple(f"well{number}.test" for number in range(50))
PAGES = 8


def healthy(host: str, port: int) -> dict[str, Answers]:
    """Pages of a healthy host."""
    number = HEALTHY.index(host)
    following = HEALTHY[(number + 1) % len(HEALTHY)]
    evil = [f"http://{name}.test:{port}/" for name in sorted(WILES)]
    own = [f"/p{n}" for n in range(1, PAGES)]
    pages: dict[str, Answers] = {
        "/": html(links(*own, f"http://{following}:{port}/", *evil[number :: len(HEALTHY)]))
    }
    for path in own:
        text = f"<title>{host}{path}</title>words of {host} at {path}".encode()
        pages[path] = html(text, "Content-Type: text/html", f'ETag: "{path[1:]}"')
    return pages


@dataclass(slots=True)
class Canary:
    """Who connected to what must never be connected to."""

    port: int
    came: list[str] = field(default_factory=list)


@contextmanager
def canaries(port: int) -> Iterator[Canary]:
    """Listeners at `port` on other loopback addresses and [::1]. Raises OSError if one is taken."""
    canary = Canary(port)
    with ExitStack() as stack:
        listening = []
        for family, address in [
            (socket.AF_INET, "127.0.0.1"),
            (socket.AF_INET, "127.0.0.3"),
            (socket.AF_INET6, "::1"),
        ]:
            listener = stack.enter_context(socket.socket(family))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
            listener.listen()
            listener.settimeout(0.2)
            listening.append(listener)
        over = threading.Event()

        def accept(listener: socket.socket) -> None:
            while not over.is_set():
                try:
                    connection, peer = listener.accept()
                except TimeoutError:
                    continue
                canary.came.append(f"{peer} to {listener.getsockname()}")
                connection.close()

        threads = [threading.Thread(target=accept, args=(one,), daemon=True) for one in listening]
        for thread in threads:
            thread.start()
        try:
            yield canary
        finally:
            over.set()
            for thread in threads:
                thread.join()


@contextmanager
def running(*servers: RawServer | Http2Server) -> Iterator[None]:
    """These servers run, while the block does, in a thread of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        for server in servers:
            asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        yield
    finally:
        for server in servers:
            asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def hostile() -> Iterator[RawServer]:
    """All the servers of plain HTTP."""
    server = RawServer(address=ALLOWED)
    with running(server):
        publish(server)
        yield server


@contextmanager
def besieged() -> Iterator[tuple[RawServer, Canary]]:
    """Hostile servers at a port that is free on the canaries' addresses too."""
    for attempt in range(20):
        with ExitStack() as stack:
            server = stack.enter_context(hostile())
            try:
                canary = stack.enter_context(canaries(server.port))
            except OSError:  # somebody has this port at another address: draw again
                if attempt == 19:
                    raise
                continue
            yield server, canary
            return


def publish(server: RawServer, *, healthy_too: bool = True) -> None:
    """Everything these servers say."""
    says, port = server.says, server.port
    for name, wile in WILES.items():
        says[f"{name}.test/"] = wile.says(port)
        if wile.robots is not None:
            says[f"{name}.test/robots.txt"] = wile.robots(port)
        for path, more in (wile.more(port) if wile.more else {}).items():
            says[f"{name}.test{path}"] = more
    for name, answer in inwards(port).items():
        says[f"{name}.test/"] = answer
    for host in HEALTHY if healthy_too else ():
        for path, page in healthy(host, port).items():
            says[host + path] = page
