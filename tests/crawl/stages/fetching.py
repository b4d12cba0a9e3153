"""What tests of the fetch stage share: one group against a raw server, with real clock and sockets."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from crawl import policy, url
from crawl.fetching import journal
from crawl.keys import Keyer
from crawl.net.dns import Resolver
from crawl.net.egress import Guard
from crawl.net.transport import Transport
from crawl.politeness.addresscap import Cap
from crawl.politeness.clock import HostState
from crawl.records import Fetch, Planned, Skip
from crawl.robots.copies import RobotsCopy
from crawl.stages import fetch
from tests.crawl.rawserver import RawServer

KEYER = Keyer(b"0123456789abcdef")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
SETTINGS = policy.Settings(
    content=policy.Content(types=("text/html", "text/plain")),  # answers here carry no type
    agent=policy.Agent(name="tester", contact="https://example.com/bot"),
    egress=policy.Egress(allow=("127.0.0.0/8",)),
    dns=policy.Dns(hosts={"*.test": "127.0.0.1"}),
    politeness=policy.Politeness(min_delay=timedelta(0), factor=0.0, backoff_base=timedelta(milliseconds=50)),
    limits=policy.Limits(
        request_deadline=timedelta(seconds=2),
        idle=timedelta(seconds=0.5),
        connect_timeout=timedelta(seconds=0.5),
        wire_bytes=200_000,
        decoded_bytes=300_000,
    ),
    fetching=policy.Fetching(lease=timedelta(seconds=0.6)),
)


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass
class Memory:
    """A sink that keeps frames as they would stand in a file."""

    data: bytearray = field(default_factory=bytearray)

    def append(self, record: Fetch | Skip, body: bytes | None) -> None:
        self.data += b"".join(journal.frame(record, body))

    def flush(self) -> None: ...

    def entries(self) -> list[tuple[Fetch | Skip, journal.Body | None]]:
        return [(record, body) for record, body, _ in journal.decode(bytes(self.data), digest=True)]


@dataclass(frozen=True)
class Result:
    visited: fetch.Visited
    entries: list[tuple[Fetch | Skip, journal.Body | None]]
    server: RawServer

    def fetches(self, kind: str = "page") -> list[Fetch]:
        return [r for r, _ in self.entries if isinstance(r, Fetch) and r.kind == kind]

    @property
    def skips(self) -> list[Skip]:
        return [r for r, _ in self.entries if isinstance(r, Skip)]

    def outcomes(self) -> dict[str, str]:
        """Outcome by path, of pages and skips (the last one counts)."""
        found = {}
        for record, _ in self.entries:
            if isinstance(record, Skip) or record.kind == "page":
                found["/" + record.url.split("/", 3)[3]] = record.outcome
        return found

    def body(self, path: str) -> bytes | None:
        for record, body in self.entries:
            if record.url.endswith(path) and body is not None:
                return body.raw()
        return None

    def state(self, host: str = "a.test") -> HostState:
        return next(s for s in self.visited.hosts if s.host == host)


def plan_of(urls: Iterable[str], **changes: Any) -> list[Planned]:
    planned = []
    for position, text in enumerate(urls):
        where = url.canonical(text)
        (origin,), (host,), (domain,) = url.split_many([where])
        values: dict[str, Any] = {
            "url_key": KEYER.url_key(where),
            "url": where,
            "origin": origin,
            "host": host,
            "domain": domain,
            "position": position,
            "depth": 1,
        }
        planned.append(Planned(**{**values, **changes}))
    return planned


async def fetch_group(
    server: RawServer,
    plan: Sequence[Planned],
    *,
    settings: policy.Settings = SETTINGS,
    window: float = 20.0,
    sink: Memory | None = None,
    hosts: Mapping[str, HostState] | None = None,
    robots: Mapping[str, RobotsCopy] | None = None,
    done: Iterable[tuple[Fetch | Skip, bytes | None]] = (),
    permit: Callable[[], bool] = lambda: True,
    known: Callable[[int], fetch.Known | None] = lambda key: None,
    held: Callable[[str, str], bool] = lambda host, domain: False,
    progress: Callable[[fetch.Progress], None] = lambda seen: None,
    resumed: bool = False,
    guard: Guard | None = None,
    caps: Mapping[str, Cap] | None = None,
    groups: int = 1,
) -> Result:
    sink = sink or Memory()
    guard = guard or Guard(settings.egress)
    async with (
        Transport(guard, settings.limits, settings.agent) as transport,
        Resolver(settings.dns) as resolver,
    ):
        visited = await fetch.visit(
            plan,
            hosts=hosts or {},
            robots=robots or {},
            done=done,
            transport=transport,
            resolver=resolver,
            guard=guard,
            journal=sink,
            permit=permit,
            known=known,
            held=held,
            settings=settings,
            policy_version="p1",
            keyer=KEYER,
            round_=7,
            now=NOW,
            clock=RealClock(),
            deadline=time.monotonic() + window,
            progress=progress,
            resumed=resumed,
            caps=caps or {},
            groups=groups,
        )
    return Result(visited, sink.entries(), server)


def crawl(says: dict[str, Any], paths: Iterable[str], **options: Any) -> Result:
    """Fetches `paths` (of a.test, or host/path) from a server that says `says`; `plan`: changes of it."""
    changes = options.pop("plan", {})

    async def main() -> Result:
        async with RawServer({"/robots.txt": NO_RULES, **says}) as server:
            urls = [server.url(p) if p.startswith("/") else _on(server, p) for p in paths]
            return await fetch_group(server, plan_of(urls, **changes), **options)

    return asyncio.run(main())


def _on(server: RawServer, place: str) -> str:
    host, _, path = place.partition("/")
    return server.url("/" + path, host)


def polite(**changes: Any) -> policy.Settings:
    return replace(SETTINGS, politeness=replace(SETTINGS.politeness, **changes))


NO_RULES = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
