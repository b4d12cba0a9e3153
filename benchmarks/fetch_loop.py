"""What the fetch stage costs beside libcurl: CPU a request of `visit` against a bare loop (see bareloop).

Both ask the same server (a process of its own, on loopback) for the same pages over as many kept connections,
in turns, and only the client's CPU counts: user and system time of all its threads. `visit` besides keeps a
heap of hosts, checks scope, robots.txt and addresses, guards every connection, decodes and bounds what comes,
and journals every answer; its robots.txt requests count as requests. Medians of the repetitions.
"""

from __future__ import annotations

import asyncio
import ctypes
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks import bareloop, pageserver
from benchmarks.table import show
from crawl import policy, url
from crawl.keys import Keyer
from crawl.net.dns import Resolver
from crawl.net.egress import Guard
from crawl.net.transport import Transport
from crawl.records import Planned
from crawl.stages import fetch
from lake.journal import PartWriter
from lake.store import connect

__all__ = ["main"]

#: the product's bar, for large bodies
_BAR: Final = 2.0
_CELLS: Final = ((100, 1_000), (100, 40_000), (1_000, 1_000), (1_000, 40_000))
_SETTINGS: Final = policy.Settings(
    egress=policy.Egress(allow=("127.0.0.0/8",)),
    dns=policy.Dns(hosts={"*.test": "127.0.0.1"}),
    politeness=policy.Politeness(min_delay=timedelta(0), factor=0.0),
)
_KEYER: Final = Keyer(b"0123456789abcdef")


class _Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    monotonic = staticmethod(time.monotonic)


def _permit() -> bool:
    """As expensive as a lease: whether the last proof is young enough."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) > 0.0


def bare(urls: list[str], connections: int, size: int) -> float:
    """CPU seconds a request of the bare loop."""
    began = time.process_time()
    came = bareloop.ask(urls, connections)
    spent = time.process_time() - began
    assert came >= len(urls) * size // 10  # gzip makes less of it
    return spent / len(urls)


def staged(urls: list[str], connections: int, run: Callable[[Any], Any] = asyncio.run) -> float:
    """CPU seconds a request of the stage, with its journal in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        spent, requests = run(_visit(urls, connections, folder))
    return float(spent / requests)


async def _visit(urls: list[str], connections: int, folder: str) -> tuple[float, int]:
    """CPU seconds, and the requests they were spent on."""
    origins, hosts, domains = url.split_many(urls)
    keys = _KEYER.url_keys(urls, domains).tolist()
    planned = [
        Planned(url_key=k, url=u, origin=o, host=h, domain=d, position=i, depth=1)
        for i, (k, u, o, h, d) in enumerate(zip(keys, urls, origins, hosts, domains, strict=True))
    ]
    settings = replace(_SETTINGS, fetching=replace(_SETTINGS.fetching, in_flight=connections))
    guard = Guard(settings.egress)
    journal = PartWriter(connect(folder), "parts", settings.fetching)
    seen: list[fetch.Progress] = []
    async with (
        Transport(guard, settings.limits, settings.agent, permit=_permit) as transport,
        Resolver(settings.dns) as resolver,
    ):
        began = time.process_time()
        visited = await fetch.visit(
            planned,
            hosts={},
            robots={},
            done=(),
            transport=transport,
            resolver=resolver,
            guard=guard,
            journal=journal,
            permit=_permit,
            known=lambda key: None,
            settings=settings,
            policy_version="bench",
            keyer=_KEYER,
            round_=1,
            now=datetime.now(UTC),
            clock=_Clock(),
            deadline=time.monotonic() + 600,
            progress=seen.append,
        )
        journal.close()
        spent = time.process_time() - began
    if visited.carried or seen[-1]["asked"] != len(urls):
        raise RuntimeError(f"the stage left URLs unasked: {dict(visited.carried)}, {seen[-1]}")
    return spent, seen[-1]["requests"]


def _steady() -> None:
    """Has glibc keep what is freed, for both.

    Else what happens to lie at the top of the heap decides whether a body's memory goes back to the system
    after every answer (ten page faults a request, half as much again for the bare loop) or never.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, size in ((-1, 256 << 20), (-3, 32 << 20)):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            mallopt(parameter, size)


def main(*, requests: int = 20_000, repetitions: int = 5, zipped: bool = False) -> bool:
    """Measure and print; is the bar reached?"""
    _steady()
    rows = []
    reached = True
    with pageserver.serving(zipped=zipped) as port:
        for connections, size in _CELLS:
            urls = pageserver.places(port, requests, connections, size)
            figures = [(bare(urls, connections, size), staged(urls, connections)) for _ in range(repetitions)]
            plain, stage = (statistics.median(column) * 1e6 for column in zip(*figures, strict=True))
            ratio = stage / plain
            spread = ", ".join(f"{s / b:.2f}" for b, s in sorted(figures, key=lambda f: f[1] / f[0]))
            rows.append(
                (str(connections), f"{size:,}", f"{plain:.1f}", f"{stage:.1f}", f"{ratio:.2f}", spread)
            )
            reached = reached and (size < 40_000 or ratio <= _BAR)
    show(
        f"CPU a request: the fetch stage, and socket_action below epoll with a write callback alone"
        f" ({requests:,} requests, {'gzip' if zipped else 'identity'}, median of {repetitions})",
        ("connections", "bytes", "bare µs", "fetch stage µs", "ratio", "ratios of the runs"),
        rows,
    )
    print(f"Bar: at 40 kB at most {_BAR:.0f} times the bare loop: {'reached' if reached else 'MISSED'}.")
    return reached
