"""What a fetch task knows: which URLs were asked, what each host and origin taught, what is still to ask.

What always holds: a URL is asked at most once (a second try after a dead kept connection apart); redirects
are followed inside the domain only, each target a fresh candidate, but for a planned page of another host,
which has its own turn; folding the records of an earlier attempt leads to the same state as having asked,
because it is the same function. It sends nothing, writes nothing, reads no clock; the one thing it asks for
is `known`, what the lake says of a URL met on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawl import scope, url
from crawl.fetching.chains import Chains
from crawl.fetching.hostqueue import Ask, HostQueue
from crawl.fetching.lanes import Lanes, folded, lanes_of
from crawl.fetching.robotswatch import RobotsWatch
from crawl.fetching.secondtries import SecondTries
from crawl.keys import Keyer
from crawl.net.egress import Guard
from crawl.net.exchange import STALE, Answer
from crawl.outcomes import Outcome
from crawl.policy import Settings
from crawl.politeness.clock import HostState, gap
from crawl.politeness.joined import Groups, Joined
from crawl.records import Fetch, Planned, Skip
from crawl.robots.copies import RobotsCopy

__all__ = ["Known", "Ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the lake says of a URL that is not planned. `due`: it may be asked now."""

    state: str
    due: bool
    etag: str | None = None
    last_modified: str | None = None
    content_hash: str | None = None
    document_key: int | None = None
    parsed: bool = False
    depth: int = 0


class Ledger:
    """The state of one host group in one round. `now` is planning time."""

    def __init__(
        self,
        planned: Sequence[Planned],
        *,
        hosts: Mapping[str, HostState],
        robots: Mapping[str, RobotsCopy],
        known: Callable[[int], Known | None],
        settings: Settings,
        keyer: Keyer,
        guard: Guard,
        round_: int,
        now: datetime,
        window: timedelta = timedelta(0),
    ) -> None:
        self._hosts = hosts
        self._known = known
        self._settings = settings
        self._keyer = keyer
        self._guard = guard
        self._round = round_
        self._now = now
        owned = {item.domain for item in planned}
        for origin in {item.origin for item in planned} & robots.keys():
            owned.update(robots[origin].elsewhere)
        self.watch = RobotsWatch(
            robots, keyer, round_=round_, now=now, robots=settings.robots, window=window, owned=owned
        )
        self.tries = SecondTries(settings.retry)
        self.queues: dict[str, HostQueue] = {}
        self._groups = Groups(settings.politeness.groups)
        self._joined: dict[str, Joined] = {}
        for state in hosts.values() if self._groups else ():
            if (joined := self._join(state.host)) is not None:
                joined.adopt(state, settings.politeness, public=self._public(state))
        self._asked: set[int] = set()
        self._tried: dict[tuple[str, int], int] = {}  # kind and key: the last try beyond the first
        self._waiting: dict[int, str] = {}  # planned, and their robots.txt waits for another owner: the host
        self.chains = Chains(keyer, settings)
        self._plan = {item.url_key: item for item in planned}
        for item in planned:
            self.queue(item.host, item.domain).planned.append(item)

    def queue(self, host: str, domain: str) -> HostQueue:
        """The host's queue; a host met on the way gets one."""
        found = self.queues.get(host)
        if found is None:
            state = self._hosts.get(host)
            if state is None:
                state = HostState.new(host, domain, self._keyer.host_key(host))
            joined = self._join(host)
            most = self._settings.politeness.in_flight.get(host, 1)
            state = state.but(politeness_group=joined.name if joined else None, max_in_flight=most)
            found = self.queues[host] = HostQueue(state, joined=joined)
            if most > 1:
                Lanes(found, most)
        return found

    def _join(self, host: str) -> Joined | None:
        """The clock that the host shares with others."""
        name = self._groups.of(host)
        return None if name is None else self._joined.setdefault(name, Joined(name))

    def _public(self, state: HostState) -> bool:
        return not state.addresses or any(map(self._guard.public, state.addresses))

    @property
    def asked(self) -> int:
        """How many URLs were asked or decided against."""
        return len(self._asked)

    # --- what is next -------------------------------------------------------------------------------------

    def next(self, queue: HostQueue) -> Ask | None:
        """Takes out the host's next request, None if there is none now."""
        item = queue.next(self._wanted, self.watch.pending)
        return self._of_plan(item) if isinstance(item, Planned) else item

    def _wanted(self, item: Ask | Planned) -> bool:
        if isinstance(item, Planned):
            return item.url_key not in self._asked
        if item.attempt > 1:
            return self._tried.get((item.kind, item.url_key), 0) < item.attempt
        if item.kind == "robots":
            return self.watch.wanted(item)
        if item.url_key == item.referrer_key:  # another spelling of the URL that led here
            return not self.chains.been(item.chain_id, item.url)
        return item.url_key not in self._asked

    def _of_plan(self, item: Planned, before: Fetch | None = None) -> Ask:
        return Ask(
            kind=item.kind,
            url=item.url,
            url_key=item.url_key,
            origin=item.origin,
            host=item.host,
            domain=item.domain,
            chain_id=before.chain_id if before else self._chain_of(item),
            hop=before.hop + 1 if before else item.chain_hop,
            depth=item.depth,
            referrer_key=before.url_key if before else None,
            planned=True,
            etag=item.etag,
            last_modified=item.last_modified,
            known_hash=item.content_hash,
            parsed_before=item.parsed,
        )

    def _chain_of(self, item: Planned) -> int:
        """A chain of its own, or the one that led here from another domain."""
        return self._keyer.chain_id(item.url_key, self._round) if item.chain_id is None else item.chain_id

    # --- redirects ----------------------------------------------------------------------------------------

    def judge(self, ask: Ask, answer: Answer) -> tuple[Outcome, str | None, str | None]:
        """(outcome, reason, next URL) of an answer once its redirect, if any, is judged."""
        if answer.outcome is Outcome.NOT_MODIFIED and ask.etag is None and ask.last_modified is None:
            return Outcome.MALFORMED, "unasked_304", None
        return self.chains.judge(ask, answer)

    def _hop(self, record: Fetch) -> Ask | None:
        """The request that follows a redirect at once, None if its target waits or needs none."""
        target = record.next_url
        if target is None:
            return None
        (origin,), (host,), (domain,) = url.split_many([target])
        if domain != record.domain:
            return None
        key = self._keyer.url_key(target)
        spelling = key == record.url_key
        if key in self._asked and not spelling:
            return None
        item = self._plan.get(key)
        if item is not None and not spelling:
            # a planned page of another host has its own turn this round: which of the two hosts (or lanes) is
            # quicker must not decide whether it counts as a hop, or a resumed round would tell another story
            return self._of_plan(item, record) if host == record.host and record.lane is None else None
        if scope.allowed(target, host, domain, record.depth, self._settings.scope, self._settings.limits):
            return None
        known = None if spelling else self._known(key)
        if known is not None and not known.due:
            return None
        hop = Ask(
            kind=record.kind,
            url=target,
            url_key=key,
            origin=origin,
            host=host,
            domain=domain,
            chain_id=record.chain_id,
            hop=record.hop + 1,
            depth=record.depth,
            referrer_key=record.url_key,
            planned=spelling and record.planned,
            known_hash=record.known_hash if spelling else None,
            parsed_before=spelling and record.parsed_before,
        )
        if known is None:
            return hop
        return replace(
            hop,
            depth=known.depth,
            etag=known.etag,
            last_modified=known.last_modified,
            known_hash=known.content_hash,
            parsed_before=known.parsed,
        )

    # --- what happened ------------------------------------------------------------------------------------

    def fold(self, record: Fetch | Skip, body: bytes | None) -> list[HostQueue]:
        """Learns from a record; `body` (decoded) counts for robots. Gives the hosts that have new work."""
        if isinstance(record, Skip):
            self._asked.add(record.url_key)
            return []
        queue = self.queue(record.host, record.domain)
        if queue.lanes is not None:
            queue = queue.lanes.of(record)
        stale = record.reason == STALE and record.attempt == 1
        woken: list[HostQueue] = []
        if stale:
            queue.hops.appendleft(self._second_try(record)) if record.kind != "robots" else (
                queue.robots.appendleft(self._second_try(record))
            )
        if record.attempt > 1:
            self._tried[record.kind, record.url_key] = record.attempt
        if record.kind != "robots":
            self._asked.add(record.url_key)
        elif not stale:
            woken += self._learn_robots(self.watch.answered(record, body))
        else:
            self.watch.again(record)
        public = record.address is None or self._guard.public(record.address)
        chance = (record.url_key & 0xFFFF_FFFF) / 2**32  # the low bits of a key are as good as random
        settle = queue.settle if queue.lanes is None else queue.lanes.settling(queue)
        settle(record, self._settings.politeness, public=public, unit=chance, fault=not stale)
        if record.kind != "robots" and not stale:
            self.tries.consider(record, self._second_try, queue, chance)
        if record.hop or record.outcome == Outcome.REDIRECT:
            self.chains.went(record)
        if record.outcome == Outcome.REDIRECT:
            hop = self._hop(record) if record.kind != "robots" else None
            if hop is not None:
                target = self.queue(hop.host, hop.domain)
                target.hops.append(hop)
                woken.append(target)
        return woken

    def _second_try(self, record: Fetch) -> Ask:
        item = self._plan.get(record.url_key) if record.kind != "robots" else None
        return Ask(
            kind=record.kind,
            url=record.url,
            url_key=record.url_key,
            origin=record.origin,
            host=record.host,
            domain=record.domain,
            chain_id=record.chain_id,
            hop=record.hop,
            attempt=record.attempt + 1,
            depth=record.depth,
            referrer_key=record.referrer_key,
            planned=record.planned,
            etag=item.etag if item else None,
            last_modified=item.last_modified if item else None,
            known_hash=record.known_hash,
            parsed_before=record.parsed_before,
        )

    def _learn_robots(self, result: RobotsCopy | Ask) -> list[HostQueue]:
        if isinstance(result, Ask):
            queue = self.queue(result.host, result.domain)
            queue.robots.append(result)
        else:
            host = url.host(result.origin + "/")
            queue = self.queue(host, url.domain(host))
            self.apply(queue, result)
        return [queue]

    def robots_failed(self, ask: Ask, outcome: Outcome) -> list[HostQueue]:
        """A robots request cannot be made: what its origin's hosts may do now."""
        return self._learn_robots(self.watch.fail(ask, outcome))

    def apply(self, queue: HostQueue, copy: RobotsCopy) -> None:
        """The host obeys this copy from now on."""
        if queue.state.robots_version != copy.version or queue.state.robots_fetched_at != copy.fetched_at:
            queue.touched = True
            queue.state = replace(queue.state, robots_version=copy.version, robots_fetched_at=copy.fetched_at)
        queue.delay(copy.origin, copy.crawl_delay(self._settings.agent.name))
        if queue.lanes is not None:
            queue.lanes.delayed(queue)

    def resume(self, at: datetime) -> None:
        """An earlier attempt may have asked any host until `at`: each waits one full gap from there."""
        for queue in self.queues.values():
            self._leave_alone(queue, at)

    def began(self, queue: HostQueue, ask: Ask) -> None:
        """A lane of its host asks this now: the others leave it to that one."""
        assert queue.lanes is not None
        new = ask.kind != "robots" and ask.url_key not in self._asked
        queue.lanes.began(queue, [ask.url_key] if new else [])
        if new:
            self._asked.add(ask.url_key)

    def dropped(self, queue: HostQueue, ask: Ask, at: datetime) -> None:
        """A request was given up, and may have ended at `at`: it comes again, after a full gap."""
        if queue.lanes is not None:
            self._asked.difference_update(queue.lanes.ended(queue))
        self._leave_alone(queue, at)
        queue.put_back(ask)

    def _leave_alone(self, queue: HostQueue, at: datetime) -> None:
        """A request to this host may have ended at `at` without a record: one full gap from there."""
        for lane in lanes_of(queue):
            state = lane.state
            if state.next_allowed_at is None:
                state = replace(state, next_allowed_at=at)
            wait, _ = gap(state, None, self._settings.politeness, public=self._public(state))
            lane.hold(at + wait)

    # --- the end ------------------------------------------------------------------------------------------

    def postpone(self, ask: Ask) -> None:
        """The robots.txt of its origin waits for a round in which this group owns the domain it lies in."""
        self._asked.add(ask.url_key)
        if ask.planned:
            self._waiting[ask.url_key] = ask.host

    def left(self, reasons: Mapping[str, str]) -> Mapping[tuple[str, str], int]:
        """Planned URLs that were not reached, by host and reason (`window` where `reasons` has none)."""
        counts: Counter[tuple[str, str]] = Counter()
        counts.update((host, "robots_elsewhere") for host in self._waiting.values())
        for host, queue in self.queues.items():
            keys = {item.url_key for item in queue.planned if item.url_key not in self._asked}
            hops = (ask for ask in queue.hops if ask.attempt == 1)  # a second try has its outcome already
            keys |= {ask.url_key for ask in hops if ask.planned and self._wanted(ask)}
            if keys:
                counts[host, reasons.get(host, "window")] += len(keys)
        return counts

    def changed_hosts(self) -> Iterable[HostState]:
        """Hosts about which something was learnt, with their day's page count."""
        day = self._now.date()
        for queue in map(folded, self.queues.values()):
            if not queue.touched:
                continue
            state = queue.state
            before = state.urls_on_budget_day if state.budget_day == day else 0
            rate = state.validator_304_rate
            if queue.conditional:
                share = queue.unchanged / queue.conditional
                rate = share if rate is None else (rate + share) / 2
            yield replace(
                state,
                budget_day=day,
                urls_on_budget_day=before + queue.pages,
                excess_ms=queue.pace(),
                validator_304_rate=rate,
            )
