"""Hosts that mean harm behind TLS, by HTTP/1 and HTTP/2: what each does, and how a fetch may end."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.evil import html
from tests.crawl import certificates
from tests.crawl.http2server import Http2Server, Say, Stream, page
from tests.crawl.rawserver import RawServer

__all__ = ["BY_NAME", "HTTP2", "Secure", "secure"]

#: hosts told apart by their certificate → the reason of whatever is asked of them; None: all is well
BY_NAME: Mapping[str, str | None] = {
    "tlsfine": None,
    "tlsexpired": "tls_expired",
    "tlsearly": "tls_not_yet_valid",
    "tlsother": "tls_wrong_host",
    "tlsforeign": "tls_unknown_ca",
    "tlsself": "tls_self_signed",
}


async def pinging(stream: Stream) -> None:
    """Alive, and says nothing."""
    while not stream.writer.is_closing():
        stream.talk.ping(b"12345678")
        await stream.flush()
        await asyncio.sleep(0.1)


async def settling(stream: Stream) -> None:
    """Settings without end."""
    while not stream.writer.is_closing():
        stream.talk.update_settings({4: 65_535})
        await stream.flush()
        await asyncio.sleep(0.05)


async def trickling(stream: Stream) -> None:
    await stream.head(200, ("content-type", "text/html"))
    while not stream.writer.is_closing():
        await stream.body(b"x", end=False)
        await asyncio.sleep(0.3)


async def endless(stream: Stream) -> None:
    await stream.head(200, ("content-type", "text/html"))
    while not stream.writer.is_closing():
        await stream.body(b"<p>" * 50_000, end=False)


async def hinting(stream: Stream) -> None:
    while not stream.writer.is_closing():
        await stream.head(103, ("link", "</x>"))
        await asyncio.sleep(0.001)


async def resetting(stream: Stream) -> None:
    await stream.reset(2)


async def cutting(stream: Stream) -> None:
    await stream.head(200, ("content-type", "text/html"), ("content-length", "5000"))
    await stream.body(b"<title>cut</title>the beginning", end=False)
    await stream.reset(8)


async def leaving(stream: Stream) -> None:
    await stream.go_away(0, stream.number)
    stream.writer.close()


_HTML = ("content-type", "text/html")
#: hosts of HTTP/2 → behaviour, and how the fetch of its home page may end
HTTP2: Mapping[str, tuple[Say, frozenset[str]]] = {
    "h2fine": (page(b"<title>h2</title>fine", 200, _HTML), frozenset({"OK"})),
    "h2pings": (pinging, frozenset({"TIMEOUT"})),
    "h2settings": (settling, frozenset({"TIMEOUT"})),
    "h2trickle": (trickling, frozenset({"TIMEOUT"})),
    "h2endless": (endless, frozenset({"TOO_LARGE"})),
    "h2hints": (hinting, frozenset({"MALFORMED", "RESET"})),
    "h2reset": (resetting, frozenset({"RESET"})),
    "h2cut": (cutting, frozenset({"RESET"})),
    "h2away": (leaving, frozenset({"RESET"})),
    "h2head": (page(b"x", 200, _HTML, ("x-big", "y" * 70_000)), frozenset({"MALFORMED", "RESET"})),
    "h2lines": (page(b"x", 200, _HTML, *[("x", "y")] * 1_000), frozenset({"MALFORMED", "RESET"})),
    "h2bomb": (
        page(gzip.compress(bytes(60_000_000)), 200, _HTML, ("content-encoding", "gzip")),
        frozenset({"TOO_LARGE"}),
    ),
}


@dataclass(slots=True, kw_only=True)
class Secure:
    """Both servers, while they run, and the file that has them trusted."""

    one: RawServer
    two: Http2Server
    ca_file: Path

    def url(self, name: str) -> str:
        """Home page of a host."""
        return (self.two if name in HTTP2 else self.one).url("/", f"{name}.test")


def secure(address: str, folder: Path) -> Secure:
    """Servers that are not started yet."""
    fine = certificates.context("tlsfine.test")
    contexts = {
        "tlsfine.test": fine,
        "tlsexpired.test": certificates.expired("tlsexpired.test"),
        "tlsearly.test": certificates.too_early("tlsearly.test"),
        "tlsforeign.test": certificates.context("tlsforeign.test", by="theirs"),
        "tlsself.test": certificates.self_signed("tlsself.test", folder),
    }
    shown = certificates.context("nobody.test")

    def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = contexts.get(name or "", fine)

    shown.sni_callback = choose  # type: ignore[assignment]
    two = Http2Server(
        tls=certificates.context(*(f"{name}.test" for name in HTTP2), alpn=("h2", "http/1.1")),
        by_host={f"{name}.test": say for name, (say, _) in HTTP2.items()},
        address=address,
    )
    says = {"tlsfine.test/": html(b"<title>tls</title>fine")}
    return Secure(
        one=RawServer(says, address=address, tls=shown), two=two, ca_file=certificates.ca_file(folder)
    )
