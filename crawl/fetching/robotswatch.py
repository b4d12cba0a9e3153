"""Which robots.txt holds for each origin of a task, and how it is obtained.

What always holds: an origin's robots.txt is asked for at most once a round (its redirects apart), and only
when no copy is valid to the end of the window; redirects are followed at most five times, to any host whose
domain this task owns (RFC 9309 2.3.1.2), and the result is the asking origin's alone. A redirect to another
domain ends the chain for now: the copy names the domain, and the next plan puts both into one group. Folding
the records of an earlier attempt gives the same copies as having asked. It sends nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from crawl import policy, url
from crawl.fetching.hostqueue import Ask
from crawl.keys import Keyer
from crawl.net import freshness
from crawl.net.exchange import header
from crawl.outcomes import Outcome
from crawl.records import Fetch
from crawl.robots.copies import RobotsCopy, obtained, robots_url

__all__ = ["RobotsWatch"]


@dataclass(slots=True)
class _Chain:
    """The requests that began at one origin's robots.txt."""

    origin: str
    domain: str
    urls: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)  # other domains that it led to

    def led_to(self, domain: str) -> None:
        """The chain goes on in this domain."""
        if domain != self.domain and domain not in self.elsewhere:
            self.elsewhere.append(domain)


class RobotsWatch:
    """Copies by origin. `now` is planning time; `owned` are the domains that no other task asks."""

    def __init__(
        self,
        copies: Mapping[str, RobotsCopy],
        keyer: Keyer,
        *,
        round_: int,
        now: datetime,
        robots: policy.Robots,
        window: timedelta = timedelta(0),
        owned: Collection[str] = (),
    ) -> None:
        self._before = copies
        self._keyer = keyer
        self._round = round_
        self._now = now
        self._policy = robots
        self._window = window
        self._owned = frozenset(owned)
        self._chains: dict[int, _Chain] = {}
        self._pending: set[str] = set()
        #: obtained in this round
        self.fresh: dict[str, RobotsCopy] = {}

    def copy(self, origin: str) -> RobotsCopy | None:
        """The copy that holds for `origin` in this round, None while it must be asked for."""
        found = self.fresh.get(origin)
        if found is None:
            found = self._before.get(origin)
            if found is not None and not found.valid(self._now, self._window):
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
        self._chains.setdefault(ask.chain_id, _Chain(origin, ask.domain))
        return ask

    def again(self, record: Fetch) -> None:
        """A request of a chain is made once more: nothing was learnt."""
        self._pending.add(self._chain(record).origin)

    def _chain(self, record: Fetch) -> _Chain:
        """The chain of a record; its first one, where an earlier attempt made it, begins it."""
        return self._chains.setdefault(record.chain_id, _Chain(record.origin, record.domain))

    def fail(self, ask: Ask, outcome: Outcome) -> RobotsCopy:
        """A request of the chain cannot be made at all."""
        chain = self._chains[ask.chain_id]
        return self._obtain(chain, outcome, None, None, None, None)

    def answered(self, record: Fetch, body: bytes | None) -> RobotsCopy | Ask:
        """The copy that a finished robots request leads to, or the next request of its chain."""
        chain = self._chain(record)
        self._pending.add(chain.origin)
        chain.urls.append(record.url)
        outcome = Outcome(record.outcome)
        if outcome is Outcome.REDIRECT:
            target = record.next_url
            if target is None or len(chain.urls) > self._policy.redirects:
                outcome = Outcome.TOO_MANY_REDIRECTS
            else:
                domain = url.domain(url.host(target))
                chain.led_to(domain)
                if domain == chain.domain or domain in self._owned:
                    return self._ask(target, record)
        lines = record.response_headers or ""
        seconds = None if record.retry_after_ms is None else record.retry_after_ms / 1e3
        fresh = freshness.seconds(lambda name: header(lines, name), record.finished_at)
        return self._obtain(chain, outcome, record.status, body, fresh, seconds)

    def _obtain(
        self,
        chain: _Chain,
        outcome: Outcome,
        status: int | None,
        body: bytes | None,
        fresh_s: float | None,
        retry_after_s: float | None,
    ) -> RobotsCopy:
        self._pending.discard(chain.origin)
        copy = self.fresh[chain.origin] = obtained(
            chain.origin,
            outcome=outcome,
            status=status,
            body=body,
            fresh_s=fresh_s,
            retry_after_s=retry_after_s,
            previous=self._before.get(chain.origin),
            now=self._now,
            policy=self._policy,
            elsewhere=tuple(chain.elsewhere),
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
