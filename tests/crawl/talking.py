"""A transport and a server talking to each other, for as long as a test wants."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from crawl import policy
from crawl.net.egress import Guard
from crawl.net.exchange import Answer, Request
from crawl.net.transport import Transport
from tests.crawl.http2server import Http2Server
from tests.crawl.rawserver import RawServer

__all__ = ["LOOPBACK", "QUICK", "Server", "answer_of", "ask", "talk"]

LOOPBACK = policy.Egress(allow=("127.0.0.0/8", "::1/128"))
QUICK = policy.Limits(
    request_deadline=timedelta(seconds=1.2),
    idle=timedelta(seconds=0.4),
    connect_timeout=timedelta(seconds=0.5),
    wire_bytes=200_000,
    decoded_bytes=300_000,
)
Server = RawServer | Http2Server
Talk = Callable[[Transport, Any], Awaitable[None]]


def talk(
    server: Server,
    with_them: Talk,
    *,
    egress: policy.Egress = LOOPBACK,
    limits: policy.Limits = QUICK,
    **options: Any,
) -> None:
    async def main() -> None:
        agent = policy.Agent(name="tester", contact="https://example.com/bot")
        transport = Transport(Guard(egress), limits, agent, **options)
        async with server, transport:
            await with_them(transport, server)

    asyncio.run(main())


def ask(server: Server, path: str, **changes: Any) -> Request:
    return Request(**{"url": server.url(path), "pin": "127.0.0.1", **changes})


def answer_of(server: Server, path: str = "/", **changes: Any) -> Answer:
    """The answer to one request."""
    answers: list[Answer] = []

    async def once(transport: Transport, server: Server) -> None:
        answers.append(await transport.get(ask(server, path)))
        assert transport.in_flight == 0

    talk(server, once, **changes)
    return answers[0]
