"""Hand-made servers for the rows of `http/behaviours.jsonl`, and crawls of many rows at once.

A row's server is a host of its own; the rows of one kind are crawled together by the real fetch stage over
real sockets. Where a row names seconds, they are scaled down alike for limit and server.
"""

import asyncio
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from crawl import policy
from crawl.fetching.journal import Body
from crawl.politeness.clock import HostState
from crawl.records import Fetch, Planned, Skip
from tests.conformance.report import Row
from tests.crawl.rawserver import RawServer, Say, Seen, closing, dripping, endless, response, silent
from tests.crawl.stages.fetching import SETTINGS, Result, fetch_group, plan_of

__all__ = ["PATIENT", "QUICK", "Asked", "Site", "crawl_rows", "site_of", "slug"]

HTML = "Content-Type: text/html"
PATIENT = replace(
    SETTINGS,
    content=policy.Content(types=("text/html", "application/xhtml+xml", "text/plain")),
    limits=policy.Limits(
        request_deadline=timedelta(seconds=20),
        idle=timedelta(seconds=10),
        connect_timeout=timedelta(seconds=5),
        wire_bytes=2_000_000,
        decoded_bytes=5_000_000,
    ),
)
#: a total limit of 1.5 s, a read limit of 1 s
QUICK = replace(
    PATIENT,
    limits=replace(PATIENT.limits, request_deadline=timedelta(seconds=1.5), idle=timedelta(seconds=1)),
)


@dataclass(frozen=True, kw_only=True)
class Site:
    """What a row's host says, and which of its paths are asked, in this order."""

    says: Mapping[str, bytes | Say]
    paths: tuple[str, ...] = ("/",)
    planned: Mapping[str, Any] = field(default_factory=dict)  # what is known of the first


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What came of a row: its records in order, with bodies; what its host saw and is now."""

    host: str
    records: list[tuple[Fetch | Skip, Body | None]]
    seen: list[Seen]
    state: HostState | None
    connections: int

    def pages(self, path: str | None = None) -> list[Fetch]:
        return [
            record
            for record, _ in self.records
            if isinstance(record, Fetch) and record.kind == "page" and path in (None, _path(record.url))
        ]

    @property
    def first(self) -> Fetch:
        return self.pages()[0]

    def body(self, path: str = "/") -> bytes | None:
        for record, body in self.records:
            if isinstance(record, Fetch) and record.kind == "page" and _path(record.url) == path and body:
                return body.raw()
        return None

    def times_asked(self, path: str) -> int:
        return sum(seen.path == path for seen in self.seen)


def _path(text: str) -> str:
    return "/" + text.split("/", 3)[3]


def slug(row: Row, place: int) -> str:
    """A host name for a row (ids differ by case alone, and hold dots)."""
    return f"row{place}-" + "".join(c if c.isalnum() else "-" for c in str(row["id"]).lower()) + ".test"


def crawl_rows(
    sites: Mapping[str, Site], settings: policy.Settings, *, address: str = "127.0.0.1"
) -> dict[str, Asked]:
    """Crawls these hosts, all at once."""

    async def main() -> Result:
        says = {host + path: said for host, site in sites.items() for path, said in site.says.items()}
        async with RawServer(says, address=address) as server:
            planned: list[Planned] = []
            for host, site in sites.items():
                plan = plan_of(server.url(path, host) for path in site.paths)
                planned += [replace(plan[0], **site.planned), *plan[1:]]
            return await fetch_group(server, planned, settings=settings)

    result = asyncio.run(main())
    states = {state.host: state for state in result.visited.hosts}
    return {
        host: Asked(
            host=host,
            records=[
                (record, body) for record, body in result.entries if record.url.split("/")[2].startswith(host)
            ],
            seen=[seen for seen in result.server.seen if seen.host.startswith(host)],
            state=states.get(host),
            connections=len({s.connection for s in result.server.seen if s.host.startswith(host)}),
        )
        for host in sites
    }


def late(seconds: float, said: bytes) -> Say:
    async def say(_: Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        writer.write(said)

    return say


def closing_once(said: bytes) -> Say:
    """Closes the kept connection just as the second request arrives, and answers the third."""
    asked: list[int] = []

    async def say(seen: Seen, writer: asyncio.StreamWriter) -> None:
        asked.append(seen.connection)
        if len(asked) == 1:
            writer.close()
        else:
            writer.write(said)

    return say


_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
_OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
_LONG = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n"
#: rows described in words, by id
_WORDS: Mapping[str, Callable[[], bytes | Say]] = {
    "http-st-100x50": lambda: closing(b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000),
    "http-hdr-big": lambda: response(200, b"ok", HTML, "X-Big: " + "x" * 1_048_576),
    "http-hdr-16k": lambda: response(200, b"ok", HTML, "Content-Security-Policy: " + "x" * 16_384),
    "http-hdr-many": lambda: response(200, b"ok", HTML, *(f"X-{n}: y" for n in range(10_000))),
    "http-hdr-endless": lambda: endless(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 0.1),
    "http-chunk-big": lambda: endless(_CHUNKED, b"4000\r\n" + b"x" * 16_384 + b"\r\n"),
    "http-limit-64k": lambda: response(200, b"x" * 65_536, "Content-Type: text/plain"),
    "http-limit-65k": lambda: response(200, b"x" * 66_560, "Content-Type: text/plain"),
    "http-slow-body": lambda: dripping(_LONG, b"x", 100, 0.1),
    "http-slow-start": lambda: late(0.9, response(200, b"ok", HTML)),
    "http-accept-only": lambda: silent(),
    "http-endless": lambda: endless(_OPEN, b"<p>" * 10_000),
    "http-rd-body-huge": lambda: endless(
        b"HTTP/1.1 302 Found\r\nLocation: /to\r\nContent-Length: 1000000000\r\n\r\n", b"x" * 65_536
    ),
    "http-ct-13": lambda: endless(
        b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 1000000000\r\n\r\n", b"x" * 65_536
    ),
}


def site_of(row: Row, cases: Path) -> Site:
    """The server of a row that has one answer."""
    sends, expected = row["server_sends"], row["expected"]
    if row["id"] == "http-reuse-stale":
        said = response(200, b"ok", HTML)
        return Site(says={"/": said, "/again": closing_once(said)}, paths=("/", "/again"))
    if row["id"] in _WORDS:
        return Site(says={"/": _WORDS[row["id"]](), "/to": response(200, b"to", HTML)})
    known: dict[str, Any] = {}
    if row["area"] == "conditional" and "unasked" not in row["id"]:
        known = {"etag": '"v1"', "content_hash": "0" * 64, "parsed": True}
    raw = _octets(sends, cases)
    if expected.get("connection_reused") is False:  # only what it says tells that this connection is no good
        return Site(says={"/": raw, "/again": response(200, b"again", HTML)}, paths=("/", "/again"))
    return Site(says={"/": closing(raw)}, planned=known)


def _octets(sends: Mapping[str, Any], cases: Path) -> bytes:
    if "raw" in sends:
        return str(sends["raw"]).encode("latin-1")
    if "raw_b64" in sends:
        return b64decode(sends["raw_b64"])
    body = (cases / "http" / sends["body_file"]).read_bytes() if "body_file" in sends else b""
    body = b64decode(sends["body_b64"]) if "body_b64" in sends else body
    lines = [f"{name}: {value}" for name, value in sends.get("headers", {}).items()]
    return response(int(sends.get("status", 200)), body, *lines)


def many(rows: Iterable[Row], cases: Path) -> dict[str, Site]:
    """Sites of rows, by host."""
    return {slug(row, place): site_of(row, cases) for place, row in enumerate(rows)}
