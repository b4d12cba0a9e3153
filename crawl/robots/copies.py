"""Copies of robots.txt: what a lake keeps of an origin's file, and how long it holds (table `robots`).

`obtained` turns the answer to a request for robots.txt into the copy that follows from it.

What always holds: a copy says how it was obtained, and its text has a version of its own. A file that cannot
be had disallows everything but itself; what a file allows is for crawl.robots.rules to say.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import Any, Final

from crawl.outcomes import Outcome
from crawl.policy import Robots
from crawl.robots.grammar import decode
from crawl.robots.rules import Rules, Verdict, read

__all__ = ["WAITING", "RobotsCopy", "obtained", "robots_url"]

#: how long an origin is believed to be unreachable before its robots.txt is asked for again, unless it says
#: longer
UNREACHABLE_VALID: Final = timedelta(minutes=10)
#: an origin may shorten the life of its robots.txt, but not to less: one request a round is asked of it in
#: any case
SHORTEST_VALID: Final = timedelta(minutes=10)

#: RFC 9309 2.3.1.2: redirects that lead nowhere are no file, so no rules, like every answer 4xx but 429
_UNAVAILABLE: Final = frozenset(
    {
        Outcome.TOO_MANY_REDIRECTS,
        Outcome.REDIRECT_LOOP,
        Outcome.BAD_REDIRECT,
    }
)
#: content came, even if not all of it, or of a type that cannot be rules
_FETCHED: Final = frozenset({Outcome.OK, Outcome.TOO_LARGE, Outcome.UNSUPPORTED_TYPE})


#: ways of a copy under which everything waits: the file could not be had, or is for others to ask for
WAITING: Final = frozenset({"unreachable", "elsewhere"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsCopy:
    """One row of the table `robots` (meanings: crawl.schema.ROBOTS) without its round."""

    origin: str
    version: str
    fetched_at: datetime
    valid_until: datetime
    status: int | None
    how: str
    body_hash: str | None
    text: str
    sitemaps: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> RobotsCopy:
        """From a row of `robots`; columns that are not ours (`round`) are ignored."""
        values = {f.name: row[f.name] for f in fields(cls) if f.name != "elsewhere"}
        values["sitemaps"] = tuple(values["sitemaps"] or ())
        values["elsewhere"] = tuple(row.get("elsewhere") or ())
        return cls(**values)

    def to_row(self, round: int) -> dict[str, Any]:
        """As a row of `robots`, obtained in that round."""
        row: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        row["sitemaps"] = list(self.sitemaps)
        row["elsewhere"] = list(self.elsewhere)
        row["round"] = round
        return row

    def valid(self, now: datetime, window: timedelta = timedelta(0)) -> bool:
        """It may be used for a round planned at `now` that lasts up to `window`, without asking again.

        The rules must hold to the round's end; a file that cannot be had is asked for as soon as it may be.
        """
        good = self.how in ("fetched", "unavailable")
        return now + (window if good else timedelta(0)) < self.valid_until

    @property
    def rules(self) -> Rules:
        """The rules, read once for equal texts."""
        return _rules(self.text, robots_url(self.origin))

    def verdict(self, agent: str, url: str) -> Verdict:
        """May `agent` ask for `url` of this origin? A file that cannot be had allows nothing but itself."""
        return self.judge(agent)(url)

    def judge(self, agent: str) -> Callable[[str], Verdict]:
        """`verdict` for one agent and many URLs."""
        if self.how in WAITING:
            own = robots_url(self.origin)
            return lambda url: Verdict(url == own, self.how)
        return partial(self.rules.verdict, agent)

    def crawl_delay(self, agent: str) -> float | None:
        """Seconds between requests that the agent's group asks for."""
        return self.rules.crawl_delay(agent)


class _Read:
    """Rules read lately: for as much text as `limit` characters, since rules take some 20 bytes for each."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._found: OrderedDict[tuple[str, str], Rules] = OrderedDict()
        self._lock = Lock()

    def rules(self, text: str, base: str) -> Rules:
        """Of this text, read now or before."""
        key = (text, base)
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                return found
        found = read(text, base)
        with self._lock:
            if key not in self._found:
                self._found[key] = found
                self._size += len(text) + _SMALLEST
            while self._size > self._limit and len(self._found) > 1:
                (gone, _), _ = self._found.popitem(last=False)
                self._size -= len(gone) + _SMALLEST
        return found


#: what even an empty file counts in the cache
_SMALLEST: Final = 500
_rules: Final = _Read(4_000_000).rules


def robots_url(origin: str) -> str:
    """Where the robots.txt of an origin lies."""
    return origin + "/robots.txt"


def obtained(
    origin: str,
    *,
    outcome: Outcome,
    status: int | None,
    body: bytes | None,
    fresh_s: float | None = None,
    retry_after_s: float | None = None,
    previous: RobotsCopy | None,
    now: datetime,
    policy: Robots,
    elsewhere: tuple[str, ...] = (),
) -> RobotsCopy:
    """The copy that follows from the last answer of the chain that began at `origin`/robots.txt.

    2xx: fetched. 4xx and redirects that lead nowhere: unavailable, everything allowed. 429, 5xx and network
    faults: the last good copy while it is at most `policy.last_good` old (last_good), else unreachable. 304:
    the previous copy, valid anew. `now` is planning time; `fresh_s` (see crawl.net.freshness) and
    `retry_after_s` are what that answer says. `elsewhere` are other domains that the chain led to; where it
    ended with a redirect (REDIRECT) to one that this round does not own, the last good copy holds, else
    everything waits for the next round, in which the domains share an owner; a chain that then gets no
    further cannot be had.
    """
    if outcome is Outcome.REDIRECT and previous is not None and previous.how == "elsewhere":
        waited = previous.elsewhere
        if elsewhere[: len(waited)] != waited or len(elsewhere) == len(waited):
            outcome = Outcome.UNAVAILABLE  # it leads somewhere else each time: nobody would ever own it all
    result = _obtained(origin, outcome, status, body, fresh_s, retry_after_s, previous, now, policy)
    return replace(result, elsewhere=elsewhere)


def _obtained(
    origin: str,
    outcome: Outcome,
    status: int | None,
    body: bytes | None,
    fresh_s: float | None,
    retry_after_s: float | None,
    previous: RobotsCopy | None,
    now: datetime,
    policy: Robots,
) -> RobotsCopy:
    if outcome is Outcome.NOT_MODIFIED and previous is not None and previous.how in ("fetched", "last_good"):
        fresh = now + _lifetime(fresh_s, policy)
        return replace(previous, fetched_at=now, valid_until=fresh, status=status, how="fetched")
    if outcome in _FETCHED and body is not None:
        cut = outcome is Outcome.TOO_LARGE  # wherever it was cut, the last line may be half of one
        text = decode(body, min(policy.bytes, len(body) - 1) if cut else policy.bytes)
        return RobotsCopy(
            origin=origin,
            version=sha256(f"{origin}\n{text}".encode()).hexdigest()[:16],
            fetched_at=now,
            valid_until=now + _lifetime(fresh_s, policy),
            status=status,
            how="fetched",
            body_hash=sha256(body).hexdigest(),
            text=text,
            sitemaps=_rules(text, robots_url(origin)).sitemaps,
        )
    refused = status is not None and 400 <= status < 500 and status != 429
    if refused or outcome in _UNAVAILABLE:
        return _without_text(origin, "unavailable", outcome, status, now, now + _lifetime(fresh_s, policy))
    asked_for = min(timedelta(seconds=min(retry_after_s or 0, 1e9)), policy.valid)
    how, again = "unreachable", now + max(UNREACHABLE_VALID, asked_for)
    if outcome is Outcome.REDIRECT:
        how, again = "elsewhere", now  # nothing failed: the next round asks at once
    good = previous is not None and previous.how in ("fetched", "last_good")
    if good and previous is not None and now - previous.fetched_at <= policy.last_good:
        return replace(previous, valid_until=again, status=status, how="last_good")
    return _without_text(origin, how, outcome, status, now, again)


def _without_text(
    origin: str, how: str, outcome: Outcome, status: int | None, now: datetime, until: datetime
) -> RobotsCopy:
    return RobotsCopy(
        origin=origin,
        version=f"{how}:{status or outcome}",
        fetched_at=now,
        valid_until=until,
        status=status,
        how=how,
        body_hash=None,
        text="",
        sitemaps=(),
    )


def _lifetime(fresh_s: float | None, policy: Robots) -> timedelta:
    """RFC 9309 2.4: standard cache control, at most `policy.valid`."""
    if fresh_s is None:
        return policy.valid
    return min(max(timedelta(seconds=min(fresh_s, 1e9)), SHORTEST_VALID), policy.valid)
