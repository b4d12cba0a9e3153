"""One request after another: what must hold before it is sent, and what follows from its answer.

What always holds: the URL is in scope, its address is resolved, permitted and pinned, and robots.txt allows
it, immediately before a request is sent; what it taught is journalled before its host can be asked again.
When a host's turn comes is not decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, Protocol

from crawl import scope
from crawl.dns import Resolved, ResolveError, Resolver
from crawl.egress import Guard
from crawl.exchange import DROPPED, Answer, Request
from crawl.hostqueue import Ask, HostQueue
from crawl.ledger import Ledger
from crawl.outcomes import Outcome
from crawl.policy import Settings
from crawl.records import Fetch, Skip
from crawl.requestrows import Sent, kept, record, validators
from crawl.robots import RobotsCopy
from crawl.transport import Transport
from crawl.turns import SLICE, Turns

__all__ = ["Asker", "Sink"]

#: decisions in one turn before others get theirs
_BATCH: Final = 256


class Sink(Protocol):
    """Where records go: when `flush` returns, what was appended is safe from the end of this process."""

    def append(self, record: Fetch | Skip, body: bytes | None) -> None:
        """`body`: decoded, None where there is none to keep."""

    def flush(self) -> None:
        """Make safe what was appended."""


class Asker:
    """Makes the requests of a task, turn by turn."""

    def __init__(
        self,
        ledger: Ledger,
        turns: Turns,
        *,
        transport: Transport,
        resolver: Resolver,
        guard: Guard,
        journal: Sink,
        settings: Settings,
        policy_version: str,
        held: Callable[[str, str], bool],
    ) -> None:
        self._ledger = ledger
        self._turns = turns
        self._transport = transport
        self._resolver = resolver
        self._guard = guard
        self._journal = journal
        self._settings = settings
        self._policy_version = policy_version
        self._held = held
        self._fresh: dict[HostQueue, Resolved | ResolveError] = {}  # answers of name servers, not used yet
        self._questions: set[asyncio.Task[None]] = set()
        #: records made
        self.requests = 0

    async def stop(self) -> None:
        """Drops what is under way."""
        for question in self._questions:
            question.cancel()
        await asyncio.gather(*self._questions, return_exceptions=True)
        if self._turns.in_flight:
            self._transport.drop_all()

    def turn(self, queue: HostQueue, now: float) -> None:
        """Makes the host's next request, deciding against those before it that must not be made."""
        if self._held(queue.state.host, queue.state.domain):
            self._turns.late[queue.state.host] = "paused"
            self._turns.release(queue, again=False)
            return
        for _ in range(_BATCH):
            ask = self._ledger.next(queue)
            if ask is None:  # nothing left, or all waits for a robots.txt: its answer brings the host back
                self._turns.release(queue, again=False)
                return
            if self._try(queue, ask, now):
                return
            if self._turns.monotonic() - now > SLICE:
                break
        self._turns.release(queue)

    def _try(self, queue: HostQueue, ask: Ask, now: float) -> bool:
        """True if the turn is used: a request is under way, or its host must wait. False: decided against."""
        if ask.kind == "page" and (reason := self._outside(ask)) is not None:
            self._skip(ask, Outcome.SCOPE_DENIED, reason, None)
            return False
        found = self._fresh.pop(queue, None) or self._resolver.known(ask.host)
        if found is None:
            queue.put_back(ask)
            question = asyncio.get_running_loop().create_task(self._resolve(queue))
            self._questions.add(question)
            question.add_done_callback(self._questions.discard)
            return True
        pin = None if isinstance(found, ResolveError) else self._pin(queue, ask, found)
        if pin is None and isinstance(found, Resolved):
            self._deny(ask, ", ".join(found.addresses))
            return False
        version = None
        if ask.kind == "page":
            copy = self._ledger.watch.copy(ask.origin)
            if copy is None:
                queue.put_back(ask)
                ask = self._ledger.watch.begin(ask.origin)
            elif self._obeyed_anew(queue, ask, copy, now):
                return True
            elif self._robots_allow(ask, copy):
                version = copy.version
            else:
                return False
        self._send(queue, ask, found, pin, version, now)
        return True

    def _obeyed_anew(self, queue: HostQueue, ask: Ask, copy: RobotsCopy, now: float) -> bool:
        """The host has not obeyed this copy before, and its Crawl-delay makes it wait."""
        if ask.origin in queue.delays:
            return False
        self._ledger.apply(queue, copy)
        if self._turns.due(queue) <= now:
            return False
        queue.put_back(ask)
        self._turns.release(queue)
        return True

    def _send(
        self,
        queue: HostQueue,
        ask: Ask,
        found: Resolved | ResolveError,
        pin: str | None,
        version: str | None,
        now: float,
    ) -> None:
        """Sends the request; without an address (`found` says why) its answer is there at once."""
        started_at = self._turns.wall(now)
        resolved = found if isinstance(found, Resolved) else None
        sent = Sent(
            started_at=started_at,
            state=queue.state,
            group_gap_ms=queue.joined.gap_ms if queue.joined else None,
            validators=validators(ask, started_at),
            dns_ms=resolved.ms if resolved else None,
            dns_cached=resolved.cached if resolved else None,
            robots_version=version,
        )
        if isinstance(found, ResolveError) or pin is None:
            assert isinstance(found, ResolveError), "an address without a permitted one was denied before"
            lost = Answer(outcome=found.outcome, reason=found.detail, began=now, ended=now)
            self._arrived(queue, ask, sent, now, lost)
            return
        request = Request(
            url=ask.url,
            pin=pin,
            headers=sent.validators,
            decoded_bytes=self._settings.robots.bytes if ask.kind == "robots" else None,
        )
        self._transport.start(request, partial(self._arrived, queue, ask, sent, now))

    def _pin(self, queue: HostQueue, ask: Ask, found: Resolved) -> str | None:
        """The address to ask: the host's next permitted one after as many faults; None if none is."""
        port = _port(ask.origin)
        permitted = [ip for ip in found.addresses if self._guard.permits_port(ip, port)]
        return permitted[queue.faults % len(permitted)] if permitted else None

    async def _resolve(self, queue: HostQueue) -> None:
        """Asks for the host's address, then has it take its turn again."""
        found: Resolved | ResolveError
        try:
            found = await self._resolver.resolve(queue.state.host)
        except ResolveError as error:
            found = error
        except Exception as error:  # noqa: BLE001 - a task of its own has nobody above it
            self._turns.fail(error)
            return
        now = self._turns.monotonic()
        if isinstance(found, Resolved):
            until = self._turns.wall(now) + timedelta(seconds=found.ttl_s)
            queue.state = replace(queue.state, addresses=found.addresses, addresses_expire_at=until)
            queue.touched = True
        self._fresh[queue] = found
        self._turns.release(queue)
        self._turns.go_on()

    # --- decisions ----------------------------------------------------------------------------------------

    def _outside(self, ask: Ask) -> str | None:
        """Why a URL that was in scope when it was met no longer is; None while it is."""
        settings = self._settings
        return scope.allowed(ask.url, ask.host, ask.domain, ask.depth, settings.scope, settings.limits)

    def _robots_allow(self, ask: Ask, copy: RobotsCopy) -> bool:
        verdict = copy.verdict(self._settings.agent.name, ask.url)
        if verdict.allowed:
            return True
        if copy.how == "unreachable":
            self._skip(ask, Outcome.ROBOTS_UNREACHABLE, copy.version, copy.version)
        else:
            line = f" (line {verdict.line})" if verdict.line is not None else ""
            self._skip(ask, Outcome.ROBOTS_DENIED, f"{verdict.rule}{line}", copy.version)
        return False

    def _deny(self, ask: Ask, addresses: str) -> None:
        """None of the host's addresses may be asked."""
        if ask.kind == "page":
            self._skip(ask, Outcome.EGRESS_DENIED, addresses, None)
            return
        for queue in self._ledger.robots_failed(ask, Outcome.EGRESS_DENIED):
            self._turns.enlist(queue)

    def _skip(self, ask: Ask, outcome: Outcome, reason: str, version: str | None) -> None:
        skip = Skip(
            url_key=ask.url_key,
            url=ask.url,
            host=ask.host,
            depth=ask.depth,
            outcome=outcome.value,
            reason=reason,
            decided_at=self._turns.wall(self._turns.monotonic()),
            referrer_key=ask.referrer_key,
            planned=ask.planned,
            robots_version=version,
        )
        self._journal.append(skip, None)
        self._ledger.fold(skip, None)

    # --- answers ------------------------------------------------------------------------------------------

    def _arrived(self, queue: HostQueue, ask: Ask, sent: Sent, began: float, answer: Answer) -> None:
        """An answer is there: journal it, learn from it, and let its host wait for its next turn."""
        if self._turns.ended:
            return
        try:
            finished = self._turns.monotonic()
            if answer.reason == DROPPED:
                self._ledger.leave_alone(queue, self._turns.wall(finished))
                queue.put_back(ask)
                woken = []
            else:
                woken = self._write(ask, sent, answer, began, finished)
            self._turns.release(queue)
            for host in woken:
                self._turns.enlist(host)
            self._turns.go_on()
        except Exception as error:  # noqa: BLE001 - a callback of the loop has nobody above it
            self._turns.fail(error)

    def _write(self, ask: Ask, sent: Sent, answer: Answer, began: float, finished: float) -> list[HostQueue]:
        outcome, reason, target = self._ledger.judge(ask, answer)
        fetched = record(
            ask,
            sent,
            answer,
            outcome=outcome,
            reason=reason,
            next_url=target,
            final_url_key=self._ledger.final_key(ask, target),
            finished_at=self._turns.wall(finished),
            total_ms=(finished - began) * 1e3,
            policy_version=self._policy_version,
        )
        self._journal.append(fetched, answer.body if kept(ask, answer, outcome) else None)
        self._journal.flush()
        self.requests += 1
        return self._ledger.fold(fetched, answer.body)


def _port(origin: str) -> int:
    """Port of an origin."""
    scheme, _, rest = origin.partition("://")
    name, colon, port = rest.rpartition(":")
    if colon and port.isdigit() and name:
        return int(port)
    return 443 if scheme == "https" else 80
