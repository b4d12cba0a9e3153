"""What the fetch stage costs beside libcurl: CPU per request of `visit` against a bare AsyncCurlMulti loop.

Both ask the same server on loopback (a process of its own) for the same pages over the same 100 kept
connections, alternating, and only the client's CPU counts. The bare loop sets a URL, awaits the transfer and
collects the body; `visit` besides keeps a heap of hosts, checks robots.txt and addresses, decodes, hashes,
compresses and journals every answer. Run: python -m benchmarks.fetch_loop [requests] [gzip]
"""

from __future__ import annotations

import asyncio
import gzip
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from multiprocessing.connection import Connection

import pycurl

from crawl import policy, url
from crawl.dns import Resolver
from crawl.egress import Guard
from crawl.journal import compress
from crawl.keys import Keyer
from crawl.records import Planned
from crawl.stages import fetch
from crawl.transport import Transport
from lake.journal import PartWriter
from lake.store import connect

HOSTS = 100
BODY_BYTES = 40_000
SETTINGS = policy.Settings(
    egress=policy.Egress(allow=("127.0.0.0/8",)),
    dns=policy.Dns(hosts={"*.test": "127.0.0.1"}),
    politeness=policy.Politeness(min_delay=timedelta(0), factor=0.0),
)
KEYER = Keyer(b"0123456789abcdef")


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


def page() -> bytes:
    """Some 40 kB that compress about as HTML does (five to one)."""
    dice = random.Random(1)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(900)]
    parts = ["<!doctype html><title>page</title>"]
    size = 0
    while size < BODY_BYTES:
        link, text = dice.choice(words), " ".join(dice.choices(words, k=9))
        parts.append(f'<p class="text"><a href="/docs/{link}.html">{link}</a> {text}</p>\n')
        size += len(parts[-1])
    return "".join(parts).encode()[:BODY_BYTES]


class Server(asyncio.Protocol):
    """Answers every request with the page; robots.txt with a few rules."""

    answers: tuple[bytes, bytes]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.pending = b""

    def data_received(self, data: bytes) -> None:
        self.pending += data
        while (end := self.pending.find(b"\r\n\r\n")) >= 0:
            head, self.pending = self.pending[:end], self.pending[end + 4 :]
            self.transport.write(self.answers[head.startswith(b"GET /robots.txt")])  # type: ignore[attr-defined]


def serve(pipe: Connection, zipped: bool) -> None:
    body = gzip.compress(page(), 6) if zipped else page()
    coding = "Content-Encoding: gzip\r\n" if zipped else ""
    rules = b"User-agent: *\nDisallow: /private/\nDisallow: /*.cgi\nAllow: /private/open\n"
    Server.answers = (
        f"HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        f'Content-Type: text/html; charset=utf-8\r\nETag: "abc"\r\n{coding}'
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body,
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(rules)}\r\n\r\n".encode() + rules,
    )

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=512)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def places(port: int, count: int) -> list[str]:
    return [f"http://h{i % HOSTS}.test:{port}/docs/page-{i}.html" for i in range(count)]


def bare(port: int, count: int) -> float:
    """CPU seconds of the bare loop."""

    async def one(multi: pycurl.AsyncCurlMulti, urls: list[str]) -> None:
        curl = pycurl.Curl()
        chunks: list[bytes] = []
        curl.setopt(pycurl.WRITEFUNCTION, chunks.append)
        curl.setopt(pycurl.CONNECT_TO, ["::127.0.0.1:"])
        curl.setopt(pycurl.NOSIGNAL, 1)
        for where in urls:
            curl.setopt(pycurl.URL, where)
            await multi.perform(curl)
            assert len(b"".join(chunks)) > 1_000
            chunks.clear()
        curl.close()

    async def main() -> float:
        urls = places(port, count)
        async with pycurl.AsyncCurlMulti() as multi:
            begun = time.process_time()
            await asyncio.gather(*(one(multi, urls[i::HOSTS]) for i in range(HOSTS)))
            return time.process_time() - begun

    return asyncio.run(main())


def staged(port: int, count: int, run: Callable[..., object] = asyncio.run) -> float:
    """CPU seconds of the stage."""

    async def main(folder: str) -> float:
        urls = places(port, count)
        origins, hosts, domains = url.split_many(urls)
        keys = KEYER.url_keys(urls, domains).tolist()
        planned = [
            Planned(url_key=k, url=u, origin=o, host=h, domain=d, position=i, depth=1)
            for i, (k, u, o, h, d) in enumerate(zip(keys, urls, origins, hosts, domains, strict=True))
        ]
        guard = Guard(SETTINGS.egress)
        settings = replace(SETTINGS, fetching=replace(SETTINGS.fetching, in_flight=HOSTS))
        journal = PartWriter(connect(folder), "parts", settings.fetching)
        async with (
            Transport(guard, settings.limits, settings.agent) as transport,
            Resolver(settings.dns) as resolver,
        ):
            begun = time.process_time()
            await fetch.visit(
                planned,
                hosts={},
                robots={},
                done=(),
                transport=transport,
                resolver=resolver,
                guard=guard,
                journal=journal,
                permit=lambda: True,
                known=lambda key: None,
                settings=settings,
                policy_version="bench",
                keyer=KEYER,
                round_=1,
                now=datetime.now(UTC),
                clock=RealClock(),
                deadline=time.monotonic() + 600,
                progress=lambda seen: None,
            )
            journal.close()
            return time.process_time() - begun

    with tempfile.TemporaryDirectory() as folder:
        return float(run(main(folder)))  # type: ignore[arg-type]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    zipped = "gzip" in sys.argv
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs, zipped), daemon=True)
    server.start()
    port = ours.recv()
    bare(port, HOSTS)
    staged(port, HOSTS)
    figures = [(bare(port, count), staged(port, count)) for _ in range(3)]
    server.kill()
    plain, stage = (statistics.median(column) / count * 1e6 for column in zip(*figures, strict=True))
    coding = "gzip" if zipped else "identity"
    print(
        f"{BODY_BYTES} B pages, {coding}, {HOSTS} connections, {count} requests, median of 3, CPU a request:"
    )
    print(f"  bare AsyncCurlMulti  {plain:7.1f} µs")
    print(f"  fetch stage          {stage:7.1f} µs   {stage / plain:.2f} x")
    kept = keeping()
    print(f"  its SHA-256 and zstd {kept:7.1f} µs   {(stage - kept) / plain:.2f} x without them")


def keeping() -> float:
    """Microseconds of CPU to hash and compress one page, which any crawler that keeps bodies pays."""
    body = page()
    begun = time.process_time()
    for _ in range(500):
        sha256(body).hexdigest()
        compress(body)
    return (time.process_time() - begun) / 500 * 1e6


if __name__ == "__main__":
    main()
