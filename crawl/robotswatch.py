"""Which robots.txt holds for each origin of a task, and how it is obtained.

What always holds: an origin's robots.txt is asked for at most once a round (its redirects apart), and only
when no copy is valid at planning time; redirects are followed inside the domain, at most five, and one that
leads elsewhere counts as no file (RFC 9309 2.3.1.2). Folding the records of an earlier attempt gives the
same copies as having asked. It sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from crawl import policy, url
from crawl.exchange import header
from crawl.hostqueue import Ask
from crawl.keys import Keyer
from crawl.outcomes import Outcome
from crawl.records import Fetch
from crawl.robots import RobotsCopy, obtained, robots_url

__all__ = ["RobotsWatch"]


@dataclass(slots=True)
class _Chain:
    """The requests that began at one origin's robots.txt."""

    origin: str
    urls: list[str] = field(default_factory=list)


class RobotsWatch:
    """Copies by origin. `now` is planning time."""

    def __init__(
        self,
        copies: Mapping[str, RobotsCopy],
        keyer: Keyer,
        *,
        round_: int,
        now: datetime,
        robots: policy.Robots,
    ) -> None:
        self._before = copies
        self._keyer = keyer
        self._round = round_
        self._now = now
        self._policy = robots
        self._chains: dict[int, _Chain] = {}
        self._pending: set[str] = set()
        #: obtained in this round
        self.fresh: dict[str, RobotsCopy] = {}

    def copy(self, origin: str) -> RobotsCopy | None:
        """The copy that holds for `origin` in this round, None while it must be asked for."""
        found = self.fresh.get(origin)
        if found is None:
            found = self._before.get(origin)
            if found is not None and not found.valid(self._now):
                return None
        return found

    def pending(self, origin: str) -> bool:
        """Whether its robots.txt has been asked for and is not there yet."""
        return origin in self._pending

    def wanted(self, ask: Ask) -> bool:
        """Whether this robots request still has to be made."""
        chain = self._chains.get(ask.chain_id)
        return chain is not None and chain.origin in self._pending and ask.url not in chain.urls

    def begin(self, origin: str) -> Ask:
        """The first request for the robots.txt of `origin`."""
        ask = self._ask(robots_url(origin), None)
        self._pending.add(origin)
        self._chains.setdefault(ask.chain_id, _Chain(origin))
        return ask

    def again(self, record: Fetch) -> None:
        """A request of a chain is made once more: nothing was learnt."""
        chain = self._chains.setdefault(record.chain_id, _Chain(record.origin))
        self._pending.add(chain.origin)

    def fail(self, ask: Ask, outcome: Outcome) -> RobotsCopy:
        """A request of the chain cannot be made at all."""
        chain = self._chains[ask.chain_id]
        return self._obtain(chain.origin, outcome, None, None, None, None)

    def answered(self, record: Fetch, body: bytes | None) -> RobotsCopy | Ask:
        """The copy that a finished robots request leads to, or the next request of its chain."""
        chain = self._chains.setdefault(record.chain_id, _Chain(record.origin))
        self._pending.add(chain.origin)
        chain.urls.append(record.url)
        outcome = Outcome(record.outcome)
        if outcome is Outcome.REDIRECT:
            target = record.next_url
            inside = target is not None and url.domain(url.host(target)) == record.domain
            if target is not None and inside and len(chain.urls) <= self._policy.redirects:
                return self._ask(target, record)
            outcome = Outcome.TOO_MANY_REDIRECTS
        lines = record.response_headers or ""
        seconds = None if record.retry_after_ms is None else record.retry_after_ms / 1e3
        control = header(lines, "cache-control")
        return self._obtain(chain.origin, outcome, record.status, body, control, seconds)

    def _obtain(
        self,
        origin: str,
        outcome: Outcome,
        status: int | None,
        body: bytes | None,
        cache_control: str | None,
        retry_after_s: float | None,
    ) -> RobotsCopy:
        self._pending.discard(origin)
        copy = self.fresh[origin] = obtained(
            origin,
            outcome=outcome,
            status=status,
            body=body,
            cache_control=cache_control,
            retry_after_s=retry_after_s,
            previous=self._before.get(origin),
            now=self._now,
            policy=self._policy,
        )
        return copy

    def _ask(self, where: str, before: Fetch | None) -> Ask:
        (origin,), (host,), (domain,) = url.split_many([where])
        key = self._keyer.url_key(where)
        return Ask(
            kind="robots",
            url=where,
            url_key=key,
            origin=origin,
            host=host,
            domain=domain,
            chain_id=before.chain_id if before else self._keyer.chain_id(key, self._round),
            hop=before.hop + 1 if before else 0,
            referrer_key=before.url_key if before else None,
        )
