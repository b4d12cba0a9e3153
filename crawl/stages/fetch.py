"""Fetch: ask a host group's planned URLs, politely, and write down every answer at once.

One event loop, a heap of hosts: each host has one request at a time (or one on each of its lanes, where its
operator said so), the next one no sooner than the end of the last plus the gap in force, robots.txt and
redirects included. What a request taught is journalled
before its host is asked again.

What always holds: robots, lease and address are checked immediately before each request; nothing is
dispatched after the deadline or while `permit` says no; every planned URL ends as a record, a skip with its
reason, or a count in `Visited.carried`; a URL in `done` is not asked again. Time, lookups and storage are
arguments. It plans nothing, parses nothing, and leaves a redirect to another domain to the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from types import MappingProxyType
from typing import TypedDict

from crawl.fetching.addressing import Addressing
from crawl.fetching.asking import Asker, Sink
from crawl.fetching.gates import Gates
from crawl.fetching.hostqueue import HostQueue
from crawl.fetching.journal import Body
from crawl.fetching.ledger import Known, Ledger
from crawl.fetching.turns import Clock, LeaseLost, Turns
from crawl.keys import Keyer
from crawl.net.dns import Resolver
from crawl.net.egress import Guard
from crawl.net.transport import Transport
from crawl.policy import Settings
from crawl.politeness.addresscap import Cap, unplanned
from crawl.politeness.clock import HostState
from crawl.records import Fetch, Planned, Skip
from crawl.robots.copies import RobotsCopy

__all__ = ["Clock", "Known", "LeaseLost", "Progress", "Sink", "Visited", "visit"]


class Progress(TypedDict):
    """How far a task is: counts, but for `seconds_left` until the window closes."""

    planned: int
    asked: int  # URLs asked or decided against, hops included
    requests: int  # records made, robots.txt included
    in_flight: int
    waiting: dict[
        str, int
    ]  # hosts (of some, lanes): by the rule of their gap, or `name`, or `address` (room at it)
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """What a task leaves besides its journal. `carried`: planned URLs not reached, by (host, reason)."""

    hosts: list[HostState]
    robots: list[RobotsCopy]
    carried: Mapping[tuple[str, str], int]


async def visit(
    planned: Sequence[Planned],
    *,
    hosts: Mapping[str, HostState],
    robots: Mapping[str, RobotsCopy],
    done: Iterable[tuple[Fetch | Skip, Body | None]],
    transport: Transport,
    resolver: Resolver,
    guard: Guard,
    journal: Sink,
    permit: Callable[[], bool],
    known: Callable[[int], Known | None],
    held: Callable[[str, str], bool] = lambda host, domain: False,
    settings: Settings,
    policy_version: str,
    keyer: Keyer,
    round_: int,
    now: datetime,
    clock: Clock,
    deadline: float,
    progress: Callable[[Progress], None],
    resumed: bool = False,
    window: timedelta = timedelta(0),
    caps: Mapping[str, Cap] = MappingProxyType({}),
    groups: int = 1,
) -> Visited:
    """Asks `planned` (each host's in their order) until done or `deadline` (on `clock.monotonic`).

    `done`: records of earlier attempts with their bodies, folded in first; with them, or with
    `resumed`, each host is first left alone for one full gap. `held` (host, domain) says who is not to be
    asked any more: what is left of it is carried as `paused`. `now`: planning time, for the age of robots
    copies, which must last for the round's whole `window`. `caps`: this group's part at the public addresses
    that the plan knows, of `groups` that fetch side by side. Raises LeaseLost, and whatever `journal` raises.
    """
    ledger = Ledger(
        planned,
        hosts=hosts,
        robots=robots,
        known=known,
        settings=settings,
        keyer=keyer,
        guard=guard,
        round_=round_,
        now=now,
        window=window,
    )
    resumed = _replay(ledger, done) or resumed
    lease_s = settings.fetching.lease.total_seconds()
    turns = Turns(settings.fetching.in_flight, clock, deadline, permit, lease_s)
    patience = settings.limits.request_deadline.total_seconds()
    addressing = Addressing(resolver, guard, turns, patience)
    gates: Gates[HostQueue] = Gates(
        guard.public,
        caps,
        unplanned(settings.politeness, groups),
        turns.call,
        opens=turns.monotonic() if resumed else -inf,
    )
    asker = Asker(
        ledger,
        turns,
        transport=transport,
        addressing=addressing,
        gates=gates,
        journal=journal,
        settings=settings,
        policy_version=policy_version,
        held=held,
    )

    def tell() -> None:
        progress(
            Progress(
                planned=len(planned),
                asked=ledger.asked,
                requests=asker.requests,
                in_flight=turns.in_flight,
                waiting=turns.waiting(),
                seconds_left=turns.seconds_left,
            )
        )

    def try_again() -> None:
        for queue in ledger.tries.due(turns.wall(turns.monotonic())):
            turns.enlist(queue)

    def tick() -> None:
        try_again()
        tell()

    turns.turn, turns.lapse, turns.tick = asker.turn, transport.drop_all, tick
    transport.settled = asker.settled
    turns.missed = gates.step_down
    turns.waits = lambda now: ledger.tries.worth_waiting(turns.wall(now))
    started = turns.wall(turns.monotonic())
    for host, queue in ledger.queues.items():
        if queue.state.addresses_expire_at is not None:
            left = (queue.state.addresses_expire_at - started).total_seconds()
            resolver.remember(host, queue.state.addresses, left)
    if resumed:
        ledger.resume(started)
    for queue in list(ledger.queues.values()):
        turns.enlist(queue)
    addressing.prefetch(ledger.queues.values())
    try:
        await turns.run()
    finally:
        await asker.stop()
    tell()
    return Visited(
        hosts=list(ledger.changed_hosts()),
        robots=list(ledger.watch.fresh.values()),
        carried=ledger.left(turns.late),
    )


def _replay(ledger: Ledger, done: Iterable[tuple[Fetch | Skip, Body | None]]) -> bool:
    """Folds in what earlier attempts wrote; whether there was anything."""
    any_record = False
    for record, body in done:
        any_record = True
        rules = isinstance(record, Fetch) and record.kind == "robots" and body is not None
        ledger.fold(record, body.raw() if rules and body is not None else None)
    return any_record
