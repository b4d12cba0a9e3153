"""How a fetch can end, and what follows: one row per outcome, nothing decided elsewhere.

What always holds: `TABLE` has a row for every outcome. A fault of the host (`against == "host"`) never counts
against a URL: no number of them makes it GONE or TERMINAL. `from_status` answers for every integer.
What it does not do: it moves no state (crawl.lifecycle) and slows no host down (crawl.politeness).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, Literal

from crawl.policy import Retry
from crawl.state import State

__all__ = ["BY_VALUE", "FETCHED", "TABLE", "Outcome", "Rule", "brings_page", "delay", "from_status", "limit"]


class Outcome(StrEnum):
    """How one attempt, or the decision against it, ended."""

    OK = "OK"  # 2xx with its content
    NOT_MODIFIED = "NOT_MODIFIED"  # 304
    REDIRECT = "REDIRECT"  # 3xx with a target
    NOT_FOUND = "NOT_FOUND"  # 404
    GONE = "GONE"  # 410
    FORBIDDEN = "FORBIDDEN"  # 401, 402, 403, 407, 451
    CLIENT_ERROR = "CLIENT_ERROR"  # other 4xx
    RATE_LIMITED = "RATE_LIMITED"  # 429
    UNAVAILABLE = "UNAVAILABLE"  # 503; 408 and 425, which say the same of one connection
    SERVER_ERROR = "SERVER_ERROR"  # other 5xx
    DNS_TIMEOUT = "DNS_TIMEOUT"  # no answer, or the server could not give one
    DNS_FAILURE = "DNS_FAILURE"  # the name does not exist or has no address
    REFUSED = "REFUSED"  # connection refused, or no route
    RESET = "RESET"  # connection lost before the answer was complete
    TLS_FAILURE = "TLS_FAILURE"  # no secure connection, or a certificate that does not hold
    CONNECT_TIMEOUT = "CONNECT_TIMEOUT"  # nobody took the connection in time
    TIMEOUT = "TIMEOUT"  # connected, then too slow: deadline or idle limit
    TOO_LARGE = "TOO_LARGE"  # a size limit was hit
    MALFORMED = "MALFORMED"  # no HTTP, or a content coding that lies
    EGRESS_DENIED = "EGRESS_DENIED"  # its address is none we may connect to
    ROBOTS_DENIED = "ROBOTS_DENIED"  # a rule of robots.txt forbids it
    ROBOTS_UNREACHABLE = "ROBOTS_UNREACHABLE"  # robots.txt could not be read: everything waits
    SCOPE_DENIED = "SCOPE_DENIED"  # outside the crawl by today's settings
    SUPPRESSED = "SUPPRESSED"  # opted out, or paused
    REDIRECT_LOOP = "REDIRECT_LOOP"  # its redirects lead back to it
    TOO_MANY_REDIRECTS = "TOO_MANY_REDIRECTS"  # a chain longer than limits.redirects
    BAD_REDIRECT = "BAD_REDIRECT"  # 3xx without a target we could ask
    UNSUPPORTED_TYPE = "UNSUPPORTED_TYPE"  # it answered with what we do not parse
    TYPE_MISMATCH = "TYPE_MISMATCH"  # its first bytes are something else than it says it is
    PARSE_FAILED = "PARSE_FAILED"  # the parser was killed, ran out of time or memory


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows from one outcome.

    A rule against the URL makes it `final` after `attempts` failures in a row that span at least `over`. A
    rule against the host never does; after `attempts` failures the URL is tried once per `over` (its host has
    a back-off besides).
    """

    #: another attempt before the ordinary recrawl
    retry: bool
    #: delay after the first failure
    base: timedelta
    #: failures in a row after which patience ends (sightings, for NOT_FOUND and GONE)
    attempts: int
    #: the least time those failures must span
    over: timedelta
    #: what it speaks about
    against: Literal["url", "host", "none"]
    #: state of a URL that has used up its attempts, or that this outcome settles at once
    final: State
    #: a request was tried; otherwise it was decided not to
    asked: bool
    #: tried again in the same round where its delay allows: a connection failed, and no server said anything
    in_round: bool = False


_NONE: Final = timedelta(0)
_DAY: Final = timedelta(days=1)


def _s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _settled(final: State, *, asked: bool = True) -> Rule:
    """No failure to retry: the outcome is the news."""
    return Rule(False, _NONE, 0, _NONE, "none", final, asked)


def _url(base: timedelta, attempts: int, *, in_round: bool = False) -> Rule:
    """The URL's own fault: given up after so many attempts over at least a day."""
    return Rule(True, base, attempts, _DAY, "url", State.TERMINAL, True, in_round)


def _host(base: timedelta, attempts: int = 5, *, asked: bool = True, in_round: bool = False) -> Rule:
    """The host's fault, or the network's: nothing is learnt about the URL."""
    return Rule(True, base, attempts, _DAY, "host", State.FAILED_RETRYABLE, asked, in_round)


#: what follows from each outcome
TABLE: Final[Mapping[Outcome, Rule]] = {
    Outcome.OK: _settled(State.FETCHED),
    Outcome.NOT_MODIFIED: _settled(State.FETCHED),
    Outcome.REDIRECT: _settled(State.FETCHED),
    # It answered, and is asked again in its turn: a type may become one we read.
    Outcome.UNSUPPORTED_TYPE: _settled(State.FETCHED),
    # Evidence of absence: 3 sightings half a day apart, or 2 a day apart, make at least a day
    # (policy.Recrawl).
    Outcome.NOT_FOUND: Rule(True, _DAY / 2, 3, _DAY, "url", State.GONE, True),
    Outcome.GONE: Rule(True, _DAY, 2, _DAY, "url", State.GONE, True),
    Outcome.FORBIDDEN: _url(_s(600), 2),
    Outcome.CLIENT_ERROR: _url(_DAY, 2),
    Outcome.MALFORMED: _url(_DAY, 1),
    Outcome.REDIRECT_LOOP: _url(_DAY, 2),
    Outcome.TOO_MANY_REDIRECTS: _url(_DAY, 2),
    Outcome.BAD_REDIRECT: _url(_DAY, 2),
    Outcome.SERVER_ERROR: _url(_s(300), 5),
    Outcome.TIMEOUT: _url(_s(120), 5, in_round=True),
    Outcome.UNAVAILABLE: _host(_s(300)),
    Outcome.RATE_LIMITED: _host(_s(600)),
    Outcome.DNS_TIMEOUT: _host(_s(30), in_round=True),
    Outcome.DNS_FAILURE: _host(_s(300), 3),
    Outcome.REFUSED: _host(_s(300), 3),
    Outcome.RESET: _host(_s(60), in_round=True),
    Outcome.TLS_FAILURE: _host(_s(600), 3),
    Outcome.CONNECT_TIMEOUT: _host(_s(120), in_round=True),
    Outcome.ROBOTS_UNREACHABLE: _host(_s(600), asked=False),
    Outcome.EGRESS_DENIED: _settled(State.BLOCKED, asked=False),
    Outcome.ROBOTS_DENIED: _settled(State.BLOCKED, asked=False),
    Outcome.SCOPE_DENIED: _settled(State.BLOCKED, asked=False),
    Outcome.SUPPRESSED: _settled(State.BLOCKED, asked=False),
    Outcome.TOO_LARGE: _settled(State.QUARANTINED),
    Outcome.TYPE_MISMATCH: _settled(State.QUARANTINED),
    Outcome.PARSE_FAILED: _settled(State.QUARANTINED),
}

#: an answer confirmed what is known of the content, or brought it whole: what `fetched` means everywhere. A
#: redirect does neither; all of them were asked.
FETCHED: Final = frozenset({Outcome.OK, Outcome.NOT_MODIFIED, Outcome.UNSUPPORTED_TYPE, Outcome.PARSE_FAILED})

_STATUS: Final[Mapping[int, Outcome]] = {
    304: Outcome.NOT_MODIFIED,
    305: Outcome.BAD_REDIRECT,  # a proxy's address; deprecated (RFC 9110 15.4.6)
    306: Outcome.BAD_REDIRECT,  # unused (RFC 9110 15.4.7)
    401: Outcome.FORBIDDEN,
    402: Outcome.FORBIDDEN,
    403: Outcome.FORBIDDEN,
    404: Outcome.NOT_FOUND,
    407: Outcome.FORBIDDEN,
    408: Outcome.UNAVAILABLE,
    410: Outcome.GONE,
    425: Outcome.UNAVAILABLE,
    429: Outcome.RATE_LIMITED,
    451: Outcome.FORBIDDEN,
    503: Outcome.UNAVAILABLE,
}
_CLASS: Final[Mapping[int, Outcome]] = {
    2: Outcome.OK,
    3: Outcome.REDIRECT,
    4: Outcome.CLIENT_ERROR,
    5: Outcome.SERVER_ERROR,
}


#: outcomes by their value: `Outcome(value)` takes ten times as long
BY_VALUE: Final[Mapping[str, Outcome]] = {outcome.value: outcome for outcome in Outcome}


def from_status(status: int) -> Outcome:
    """Outcome of an HTTP status (RFC 9110 15); one outside 200 to 599 is MALFORMED."""
    return _STATUS.get(status) or _CLASS.get(status // 100, Outcome.MALFORMED)


#: successes whose content is no representation of what was asked for, or only a part of it (RFC 9110 15.3,
#: RFC 4918, RFC 5842, RFC 3229)
_NO_PAGE: Final = frozenset({201, 202, 204, 205, 206, 207, 208, 226})


def brings_page(status: int | None) -> bool:
    """Whether an answer's content is the page: 200, 203, and what nobody knows of 2xx (RFC 9110 15)."""
    return status == 200 or (status is not None and 200 < status < 300 and status not in _NO_PAGE)


def limit(rule: Rule, retry: Retry) -> int:
    """Attempts this rule allows: its own, or fewer by the operator's word."""
    return min(rule.attempts, retry.attempts)


def delay(rule: Rule, n: int, retry: Retry, unit: float, at_least: timedelta = timedelta(0)) -> timedelta:
    """Wait after failure number n + 1 in a row: min(cap, base x 2^n) +- jitter, never below `at_least`
    (Retry-After).

    `unit` in [0, 1) is chance. A base above the cap stands as it is. Once the attempts are used up but the
    span is not (or the fault is the host's), the URL is asked once per `over`.
    """
    if not rule.retry:
        return at_least
    if n + 1 >= limit(rule, retry) and rule.over > rule.base:
        wait = rule.over
    else:
        # 2**20 x base is beyond any cap, and timedelta would overflow soon after
        wait = min(max(retry.cap, rule.base), rule.base * 2 ** min(max(n, 0), 20))
    return max(wait * (1 + retry.jitter * (2 * unit - 1)), at_least)
