"""One request after another: what must hold before it is sent, and what follows from its answer.

What always holds: the URL is in scope, its address is resolved, permitted and pinned, and robots.txt allows
it, immediately before a request is sent; what it taught is journalled before its host can be asked again.
When a host's turn comes is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from crawl import scope
from crawl.documents.screen import Screen
from crawl.fetching.addressing import Addressing
from crawl.fetching.gates import FREE, Gates, Pass
from crawl.fetching.hostqueue import Ask, HostQueue
from crawl.fetching.journal import Pieces
from crawl.fetching.ledger import Ledger
from crawl.fetching.requestrows import Sent, kept, record, validators
from crawl.fetching.turns import SLICE, Turns
from crawl.net.dns import Resolved, ResolveError
from crawl.net.exchange import DROPPED, Answer, Request
from crawl.net.transport import Transport
from crawl.outcomes import Outcome
from crawl.policy import Settings
from crawl.quickrecord import quickrecord
from crawl.records import Fetch, Skip
from crawl.robots.copies import RobotsCopy
from crawl.robots.rules import Verdict

__all__ = ["Asker", "Sink"]

#: characters of robots.txt whose rules are at hand
_JUDGED: Final = 4_000_000
#: decisions in one turn before others get theirs
_BATCH: Final = 256


class Sink(Protocol):
    """Where records go: when `flush` returns, what was appended is safe from the end of this process."""

    def append(self, record: Fetch | Skip, body: Pieces | None) -> None:
        """`body`: decoded, None where there is none to keep."""

    def flush(self) -> None:
        """Make safe what was appended."""


@quickrecord
class _Way:
    """How a request gets to its host."""

    found: Resolved | ResolveError
    pin: str | None  # None without an address
    note: str | None
    passed: Pass


class Asker:
    """Makes the requests of a task, turn by turn."""

    def __init__(
        self,
        ledger: Ledger,
        turns: Turns,
        *,
        transport: Transport,
        addressing: Addressing,
        gates: Gates[HostQueue],
        journal: Sink,
        settings: Settings,
        policy_version: str,
        held: Callable[[str, str], bool],
    ) -> None:
        self._ledger = ledger
        self._turns = turns
        self._transport = transport
        self._addressing = addressing
        self._gates = gates
        self._journal = journal
        self._settings = settings
        self._scope, self._limits = settings.scope, settings.limits
        self._policy_version = policy_version
        self._screen = Screen(settings.content)
        self._held = held
        self._judges: dict[str, tuple[RobotsCopy, Callable[[str], Verdict]]] = {}
        self._judged = 0  # characters of the rules behind them
        #: records made
        self.requests = 0

    async def stop(self) -> None:
        """Drops what is under way."""
        await self._addressing.stop()
        if self._turns.in_flight:
            self._transport.drop_all()

    def turn(self, queue: HostQueue, now: float) -> None:
        """Makes the host's next request, deciding against those before it that must not be made."""
        try:
            self._take(queue, now)
        finally:
            self._gates.step_down(queue, now)  # if an address called it, and it did not go

    def _take(self, queue: HostQueue, now: float) -> None:
        if self._held(queue.state.host, queue.state.domain):
            self._turns.late[queue.state.host] = "paused"
            self._turns.release(queue, again=False)
            return
        if queue.lanes is not None and not queue.lanes.admits():  # the answer under way brings the host back
            self._turns.release(queue, again=False)
            return
        found = self._addressing.known(queue)
        for _ in range(_BATCH):
            ask = self._ledger.next(queue)
            if ask is None:  # nothing left, or all waits for a robots.txt: its answer brings the host back
                self._turns.release(queue, again=False)
                return
            if self._try(queue, ask, found, now):
                return
            if self._turns.monotonic() - now > SLICE:
                break
        if found is not None:
            self._addressing.keep(queue, found)
        self._turns.release(queue)

    def _try(self, queue: HostQueue, ask: Ask, found: Resolved | ResolveError | None, now: float) -> bool:
        """True if the turn is used: a request is under way, or its host must wait. False: decided against."""
        if ask.kind != "robots" and (reason := self._outside(ask)) is not None:
            self._skip(ask, Outcome.SCOPE_DENIED, reason, None)
            return False
        if found is None:
            queue.put_back(ask)
            self._addressing.look_up(queue)
            return True
        pin, note = None, None
        if isinstance(found, Resolved):
            pin, note = self._addressing.pin(queue, ask.origin, found)
            if pin is None:
                self._deny(ask, note or "")
                return False
        version = None
        if ask.kind != "robots":
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
        passed = FREE if pin is None else self._gates.enter(queue, pin, now)
        if passed is None:
            queue.put_back(ask)
            self._addressing.keep(queue, found)
            self._turns.park(queue, "address")
            self._gates.stand(queue, pin or "", now)
            return True
        self._send(queue, ask, _Way(found=found, pin=pin, note=note, passed=passed), version, now)
        return True

    def _obeyed_anew(self, queue: HostQueue, ask: Ask, copy: RobotsCopy, now: float) -> bool:
        """The host has not obeyed this copy before, and its Crawl-delay makes it wait."""
        if ask.origin in queue.delays:
            return False
        self._ledger.apply(queue, copy)
        if self._turns.due(queue) <= now and (queue.lanes is None or queue.lanes.admits()):
            return False
        queue.put_back(ask)
        self._turns.release(queue)
        return True

    def _send(self, queue: HostQueue, ask: Ask, way: _Way, version: str | None, now: float) -> None:
        """Sends the request; without an address its answer is there at once."""
        started_at = self._turns.wall(now)
        cap = way.passed.cap
        sent = Sent(
            started_at=started_at,
            state=queue.state,
            group_gap_ms=queue.joined.gap_ms if queue.joined else None,
            validators=validators(ask, started_at),
            dns_ms=way.found.ms,
            dns_cached=way.found.cached,
            dns_note=way.note,
            address_gap_ms=cap.delay_s * 1e3 if cap else None,
            address_in_flight=cap.in_flight if cap else None,
            address_wait_ms=way.passed.waited_s * 1e3 if cap else None,
            robots_version=version,
            lane=queue.lane,
        )
        if queue.lanes is not None:
            self._ledger.began(queue, ask)
        if isinstance(way.found, ResolveError):
            lost = Answer(outcome=way.found.outcome, reason=way.found.detail, began=now, ended=now)
            self._arrived(queue, ask, sent, now, lost)
            return
        assert way.pin is not None, "a host without a permitted address was denied before"
        request = Request(
            url=ask.url,
            pin=way.pin,
            headers=sent.validators,
            # one more than is read: a file that goes on is cut at its last whole line
            decoded_bytes=self._settings.robots.bytes + 1 if ask.kind == "robots" else None,
            spent_ms=way.found.ms or 0.0,  # an address needs no look-up
            screen=self._screen if ask.kind == "page" else None,
            body_bytes=None if ask.kind in ("page", "robots") else self._settings.sitemaps.bytes,
        )
        self._journal.flush()  # what came before is safe now: its host may be this one
        self._transport.start(request, partial(self._arrived, queue, ask, sent, now))

    # --- decisions ----------------------------------------------------------------------------------------

    def _outside(self, ask: Ask) -> str | None:
        """Why a URL that was in scope when it was met no longer is; None while it is."""
        return scope.allowed(ask.url, ask.host, ask.domain, ask.depth, self._scope, self._limits)

    def _robots_allow(self, ask: Ask, copy: RobotsCopy) -> bool:
        if copy.how == "elsewhere":
            self._ledger.postpone(ask)
            return False
        judge = self._judges.get(ask.origin)
        if judge is None or judge[0] is not copy:
            self._judged += len(copy.text)
            if self._judged > _JUDGED:  # rules take some 20 bytes for each: they are read anew
                self._judged = len(copy.text)
                self._judges.clear()
            judge = self._judges[ask.origin] = copy, copy.judge(self._settings.agent.name)
        verdict = judge[1](ask.url)
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
        if ask.kind != "robots":
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
            kind=ask.kind,
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

    def settled(self) -> None:
        """All answers that came together were handled: keep what they taught, and go on."""
        if self._turns.ended:
            return
        try:
            self._journal.flush()
            self._turns.give()
        except Exception as error:  # noqa: BLE001 - a callback of the loop has nobody above it
            self._turns.fail(error)

    def _arrived(self, queue: HostQueue, ask: Ask, sent: Sent, began: float, answer: Answer) -> None:
        """An answer is there: journal it, learn from it, and let its host wait for its next turn.

        The journal may hold it back until the next request is sent (`_send`), or all that came with it is
        handled (`settled`).
        """
        if self._turns.ended:
            return
        try:
            finished = self._turns.monotonic()
            self._gates.leave(queue, finished)
            if answer.reason == DROPPED:
                self._ledger.dropped(queue, ask, self._turns.wall(finished))
                woken = []
            else:
                woken = self._write(ask, sent, answer, began, finished)
            self._turns.release(queue)
            for host in woken:
                self._turns.enlist(host)
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
            final_url_key=self._ledger.chains.final_key(ask, target),
            finished_at=self._turns.wall(finished),
            total_ms=(finished - began) * 1e3,
            policy_version=self._policy_version,
        )
        self._journal.append(fetched, answer.pieces if kept(ask, answer, outcome) else None)
        self.requests += 1
        return self._ledger.fold(fetched, answer.body if ask.kind == "robots" else None)
