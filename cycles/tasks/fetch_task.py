"""One attempt at one host group, on a worker: claim, take over, fetch, hand on.

Reads the group's fetch list and its hosts from the round's work area, appends every request to the
attempt's journal, announces finished parts so that parsing can start, and ends with one `done` object that
lists exactly the bytes that count. An attempt that loses its lease drops its transfers, says so and raises
FenceLost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl import url
from crawl.errors import FenceLost
from crawl.fetching import journal as codec
from crawl.net.dns import Resolver
from crawl.net.egress import Guard
from crawl.net.transport import Transport
from crawl.planning.addressplan import to_caps
from crawl.politeness.addresscap import Cap
from crawl.politeness.clock import HostState
from crawl.records import Fetch, Planned, Skip
from crawl.robots.copies import RobotsCopy
from crawl.stages import fetch
from cycles.session import safety
from cycles.session.clock import utcnow
from cycles.session.context import Context
from cycles.session.holder import Lock
from cycles.tasks import claim as claims
from cycles.tasks import vouching
from cycles.tasks.holds import Holds
from lake import files, journal, runs
from lake.snapshot import Snapshot

__all__ = ["fetch_group"]

#: what a request and its parse need of a planned row, and where it stands
_COLUMNS = [
    *("url_key", "url", "origin", "host", "domain", "depth", "etag", "last_modified", "content_hash"),
    *("document_key", "sniffed_type", "parsed_at", "kind", "group", "position", "header_robots"),
    *("chain_id", "chain_hop"),
]

Announce = Callable[[str, Mapping[str, Any]], None]


class RealClock:
    """The clock of a real fetch (stages take time as an argument)."""

    def now(self) -> datetime:
        """Real time, UTC."""
        return utcnow()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class _Inputs:
    planned: Sequence[Planned]
    hosts: Mapping[str, HostState]
    robots: Mapping[str, RobotsCopy]
    caps: Mapping[str, Cap]
    groups: int  # that fetch side by side


def fetch_group(context: Context, group: int, deadline_in: float, announce: Announce) -> dict[str, Any]:
    """Fetch one group's list; the `done` object: parts, counts, carried. Raises FenceLost, LakeError.

    `deadline_in`: seconds from now until the window closes.
    """
    name = f"group-{group:05d}"
    done = context.work.read(name, "done.json")
    if done is not None:
        return dict(done)
    deadline = time.monotonic() + deadline_in
    lease_length = context.settings.fetching.lease
    lock, told = Lock.take(), False
    try:
        mine = claims.claim(context.work, group, context.fence, lock, lease_length, time.sleep)
        try:
            return _attempt(context, group, mine, deadline, announce)
        finally:
            told = claims.release(context.work, mine)
    finally:
        lock.drop(told=told)


def _attempt(
    context: Context, group: int, mine: claims.Claim, deadline: float, announce: Announce
) -> dict[str, Any]:
    work, store = context.work, context.work.store
    adopted = claims.adopt(work, mine, lambda path: codec.valid_length(store.read(path)))
    ended = work.read(f"group-{group:05d}", "done.json")
    if ended is not None:  # the attempt that this one waited for came to its end meanwhile
        return dict(ended)
    holds = Holds(store, context.now)
    holds.refresh()
    lease = claims.Lease(work, mine, context.token, context.settings.fetching.lease, beside=holds.refresh)
    lease.start(time.sleep)
    for part in adopted:
        announce("part", {"group": group, "path": part.path, "length": part.length})

    def on_part(path: str, length: int) -> None:
        announce("part", {"group": group, "path": path, "length": length})

    inputs = _inputs(context, group)
    writer = journal.PartWriter(
        store, claims.parts_folder(work, mine), context.settings.fetching, on_part=on_part
    )
    try:
        visited = asyncio.run(
            _visit(context, mine, inputs, adopted, writer, lease, holds, deadline, announce)
        )
        writer.close()
    except fetch.LeaseLost as exc:
        raise FenceLost(lease.lost or str(exc)) from exc
    finally:
        writer.abandon()  # flushes what is whole; a no-op after close
        lease.stop()
    lease.confirm()  # one that was stopped until here, and wakes beside its successor, leaves nothing
    own = [claims.Part(path, length) for path, length in writer.finished()]
    files.write_work(store, claims.folder(work, group, "hosts.parquet"), _host_rows(visited.hosts, context))
    files.write_work(
        store, claims.folder(work, group, "robots.parquet"), _robots_rows(visited.robots, context)
    )
    value = {
        "claim": mine.name,
        "parts": [[p.path, p.length] for p in (*adopted, *own)],
        "carried": [[host, reason, n] for (host, reason), n in sorted(visited.carried.items())],
    }
    return dict(work.once(value, f"group-{group:05d}", "done.json"))


async def _visit(
    context: Context,
    mine: claims.Claim,
    inputs: _Inputs,
    adopted: Sequence[claims.Part],
    writer: journal.PartWriter,
    lease: claims.Lease,
    holds: Holds,
    deadline: float,
    announce: Announce,
) -> fetch.Visited:
    settings = context.settings
    keyer = safety.keyer(context.work.store, settings.identity)
    guard = Guard(settings.egress)
    transport = Transport(
        guard,
        settings.limits,
        settings.agent,
        budget=settings.fetching.in_flight_bytes,
        tls=settings.tls,
        permit=lease.permit,
    )
    async with (
        transport,
        Resolver(settings.dns) as resolver,
    ):
        return await fetch.visit(
            inputs.planned,
            hosts=inputs.hosts,
            robots=inputs.robots,
            done=_replay(context, adopted),
            transport=transport,
            resolver=resolver,
            guard=guard,
            journal=writer,
            permit=lease.permit,
            known=_known(context),
            held=holds.held,
            settings=settings,
            policy_version=context.policy_version,
            keyer=keyer,
            round_=context.round,
            now=context.now,
            clock=RealClock(),
            deadline=deadline,
            progress=lambda seen: announce("progress", {"group": mine.group, **seen}),
            # an earlier attempt may have asked any host just before it died, with or without a record
            resumed=mine.attempt > 1,
            window=timedelta(seconds=context.window_s),
            caps=inputs.caps,
            groups=inputs.groups,
        )


def _replay(
    context: Context, adopted: Sequence[claims.Part]
) -> Iterator[tuple[Fetch | Skip, codec.Body | None]]:
    for part in adopted:
        for record, body, _ in codec.decode(context.work.store.read(part.path)[: part.length]):
            yield record, body


def _inputs(context: Context, group: int) -> _Inputs:
    """The group's fetch list in order, with its hosts and robots copies."""
    work = context.work
    rows = files.read_work(work.store, work.path("planned.parquet"), _COLUMNS)
    groups = len(pc.unique(rows["group"]))
    rows = rows.filter(pc.field("group") == group).sort_by("position")
    hosts = files.read_work(work.store, work.path("hosts.parquet")).to_pylist()
    robots = _within(files.read_work(work.store, work.path("robots.parquet")), rows["domain"])
    caps = files.read_work(work.store, work.path("caps.parquet")).filter(pc.field("group") == group)
    anew = vouching.anew(context)
    return _Inputs(
        planned=[_planned(row, context.settings.content.types, anew) for row in rows.to_pylist()],
        hosts={row["host"]: HostState.from_row(row) for row in hosts},
        robots={row["origin"]: RobotsCopy.from_row(row) for row in robots},
        caps=to_caps(caps),
        groups=groups,
    )


def _within(robots: pa.Table, domains: pa.ChunkedArray[Any]) -> list[dict[str, Any]]:
    """The robots copies of these domains: other groups' texts are not held in memory."""
    origins: Any = robots["origin"].to_pylist()
    of = url.split_many([f"{origin}/" for origin in origins])[2]
    return robots.filter(pc.is_in(pa.array(of, pa.string()), value_set=pc.unique(domains))).to_pylist()


def _content(row: Mapping[str, Any], types: Collection[str], anew: Collection[int] = ()) -> dict[str, Any]:
    """Validators and hash of the content, to ask whether it changed.

    None of them where nothing was read of it and its type is one that is read (by now): "not modified" would
    leave it unread. None either where its header asked something of those who index: only a whole answer
    shows whether it still does. None of sitemaps that are to be read `anew`.
    """
    names = ("etag", "last_modified", "content_hash")
    unread = row["document_key"] is None and row["sniffed_type"] in types
    whole = unread or row["header_robots"] is not None or row["url_key"] in anew
    return {name: None if whole else row[name] for name in names}


def _planned(row: Mapping[str, Any], types: Collection[str], anew: Collection[int]) -> Planned:
    return Planned(
        url_key=row["url_key"],
        url=row["url"],
        origin=row["origin"],
        host=row["host"],
        domain=row["domain"],
        position=row["position"],
        kind=row["kind"] or "page",
        depth=row["depth"],
        **_content(row, types, anew),
        document_key=row["document_key"],
        parsed=row["parsed_at"] is not None,
        chain_id=row["chain_id"],
        chain_hop=row["chain_hop"] or 0,
    )


def _known(context: Context) -> Callable[[int], fetch.Known | None]:
    """What the lake says of a URL met on the way (redirect targets): rare, so looked up one by one."""
    snapshot = Snapshot(context.work.store, context.versions, context.round)

    def look(url_key: int) -> fetch.Known | None:
        seen = snapshot.files("seen")  # none in a lake's first round, which knows nothing yet
        rows = runs.rows(context.work.store, seen, np.array([url_key])).to_pylist() if seen else []
        if not rows:
            return None
        row = rows[0]
        return fetch.Known(
            state=row["state"],
            due=row["next_fetch_at"] <= context.now,
            **_content(row, context.settings.content.types),
            document_key=row["document_key"],
            parsed=row["parsed_at"] is not None,
            depth=row["depth"],
        )

    return look


def _host_rows(states: Sequence[HostState], context: Context) -> pa.Table:
    from crawl.schema import HOSTS

    return pa.Table.from_pylist([s.to_row(context.round) for s in states], schema=HOSTS)


def _robots_rows(copies: Sequence[RobotsCopy], context: Context) -> pa.Table:
    from crawl.schema import ROBOTS

    return pa.Table.from_pylist([c.to_row(context.round) for c in copies], schema=ROBOTS)
