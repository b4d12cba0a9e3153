"""How long a host is left alone, and what one request teaches us about it.

The gap after a request is max(floor, Crawl-delay, factor x its duration), counted from its end; back-off and
Retry-After come on top. The figures are `policy.Politeness`; to public addresses the floor is never below
`policy.PUBLIC_FLOOR`.

Answers 429 and 503 say that the rate itself was too high, so they do more than a fault: they halve it, and
each success afterwards makes the gap a tenth shorter, until it is the ordinary one again. Of the rules that
were tried, this one was refused least and got most (docs/decisions/024-pushed-back.md): it is slow near
the limit it came from, wherever that is, where steps of a fixed size are too large for a slow host.

What always holds: `after(...).next_allowed_at >= finished_at + gap(...)`; Crawl-delay is kept in full,
however long; no fault of a host ever shortens the gap to it.
What it does not do: it waits for nothing and reads no clock; whoever asks a host takes turns (the agenda of a
fetch).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from crawl.outcomes import TABLE, Outcome
from crawl.policy import PUBLIC_FLOOR, Politeness
from crawl.quickrecord import State, quickstate

__all__ = [
    "HOST_FAULTS",
    "PUSHED_BACK",
    "RECOVERY",
    "HostState",
    "after",
    "circuit_at",
    "excess",
    "gap",
    "retry_after",
]

#: outcomes that say the host is down or overloaded: they count towards its back-off and its circuit
HOST_FAULTS: Final = frozenset(o for o, rule in TABLE.items() if rule.against == "host" and rule.asked) | {
    Outcome.TIMEOUT,
    Outcome.SERVER_ERROR,
}
#: outcomes that say we ask too often: they halve the rate
PUSHED_BACK: Final = frozenset({Outcome.RATE_LIMITED, Outcome.UNAVAILABLE})

#: by this share each success shortens the gap to a host that pushed us back
RECOVERY: Final = 0.1

#: share of the newest duration in the moving average: about the last ten requests count
_EMA_SHARE: Final = 0.2
#: the same when it is shorter: a first answer, connection and cold caches included, says little of the next
_EMA_SHARE_DOWN: Final = 0.5


@quickstate
class HostState(State):
    """One row of the table `hosts` (units: crawl.schema.HOSTS), and the rule behind `delay_ms`."""

    host_key: int
    host: str
    domain: str
    next_allowed_at: datetime | None = None
    delay_ms: float = 0.0
    robots_delay_ms: float | None = None
    max_in_flight: int = 1
    latency_ema_ms: float | None = None
    backoff_until: datetime | None = None
    consecutive_errors: int = 0
    circuit: str = "closed"
    addresses: tuple[str, ...] = ()
    addresses_expire_at: datetime | None = None
    robots_version: str | None = None
    robots_fetched_at: datetime | None = None
    budget_day: date | None = None
    urls_on_budget_day: int = 0
    pending_count: int = 0
    in_domains: int = 0
    budget: int = 0
    level: int = 0
    near_duplicate_ratio: float | None = None
    lastmod_precision: float | None = None
    lastmod_recall: float | None = None
    lastmod_looked: float | None = None
    lastmod_changed: float | None = None
    validator_304_rate: float | None = None
    render_tier: str | None = None
    render_confidence: float | None = None
    render_samples: int = 0
    politeness_group: str | None = None
    first_ms: float | None = None
    excess_ms: float | None = None
    slowed_ms: float | None = None
    #: no column: which rule made `delay_ms`; of a row read back, as far as the row tells
    gap_rule: str = "none"

    @classmethod
    def new(cls, host: str, domain: str, host_key: int) -> HostState:
        """A host never asked."""
        return cls(host_key=host_key, host=host, domain=domain)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> HostState:
        """From a row of `hosts`, or of hosts not all of which were asked before (nulls: as a new one's).

        Columns that are not ours (`round`) are ignored.
        """
        values: dict[str, Any] = {"host_key": 0, "domain": ""}
        values |= {name: value for name in _COLUMNS if (value := row.get(name)) is not None}
        values["addresses"] = tuple(values.get("addresses") or ())
        state = cls(**values)
        return replace(state, gap_rule=_rule_of(state))

    def to_row(self, round: int) -> dict[str, Any]:
        """As a row of `hosts`, written by that round."""
        row = {name: getattr(self, name) for name in _COLUMNS}
        row["addresses"] = list(self.addresses)
        row["round"] = round
        return row


_COLUMNS: Final = tuple(f.name for f in fields(HostState) if f.name != "gap_rule")


def _rule_of(state: HostState) -> str:
    """The rule behind a stored delay, from the other columns."""
    if state.next_allowed_at is None:
        return "none"
    if state.backoff_until is not None and state.backoff_until >= state.next_allowed_at:
        return "backoff"
    if state.slowed_ms == state.delay_ms:
        return "slowed"
    return "crawl_delay" if state.robots_delay_ms == state.delay_ms else "factor"


def gap(
    state: HostState, last_duration: timedelta | None, policy: Politeness, *, public: bool
) -> tuple[timedelta, str]:
    """Gap required after a request that took `last_duration`, and the rule that made it.

    Without a duration (a host taken over from an earlier task, or never asked) the last gap in force stands
    in for the factor. A host never asked needs none. `public`: its address is on the public internet, where
    the floor holds.
    """
    return _gap(state, state.latency_ema_ms, state.slowed_ms, last_duration, policy, public)


def _gap(
    state: HostState,
    ema: float | None,
    slowed_ms: float | None,
    last_duration: timedelta | None,
    policy: Politeness,
    public: bool,
) -> tuple[timedelta, str]:
    """`gap` with the moving average, and what being pushed back left, as they are by now."""
    if last_duration is None and state.next_allowed_at is None:
        return timedelta(0), "none"
    floor = max(policy.min_delay, PUBLIC_FLOOR) if public else policy.min_delay
    wait, rule = floor, "floor"
    if last_duration is not None:
        factor = min(policy.factor * last_duration, policy.factor_cap)
        if ema is not None and ema > policy.slow_latency / _MS:
            factor = max(factor, policy.slow_delay)
    else:
        factor = min(state.delay_ms * _MS, policy.factor_cap)
    if factor > wait:
        wait, rule = factor, "factor"
    if slowed_ms is not None and (slowed := slowed_ms * _MS) > wait:
        wait, rule = slowed, "slowed"
    if state.robots_delay_ms is not None and (crawl_delay := state.robots_delay_ms * _MS) >= wait:
        wait, rule = crawl_delay, "crawl_delay"
    return wait, rule


def excess(state: HostState, duration: timedelta, policy: Politeness, *, public: bool) -> timedelta:
    """By how much the gap after a request of this duration is longer than floor and Crawl-delay make it.

    What planning needs besides the average duration: one long answer among many short ones makes a long gap.
    """
    floor = max(policy.min_delay, PUBLIC_FLOOR) if public else policy.min_delay
    least = floor if state.robots_delay_ms is None else max(floor, state.robots_delay_ms * _MS)
    return max(min(policy.factor * duration, policy.factor_cap) - least, _ZERO)


_MS: Final = timedelta(milliseconds=1)
_ZERO: Final = timedelta(0)


def after(
    state: HostState,
    *,
    finished_at: datetime,
    duration: timedelta,
    outcome: Outcome,
    retry_after_ms: float | None,
    status: int | None,
    policy: Politeness,
    public: bool,
    unit: float,
    first: bool = False,
) -> HostState:
    """The host after one request that ended at `finished_at` (real time).

    `unit` in [0, 1) is chance: it lengthens a back-off by up to a quarter, so that hosts behind one fault
    part ways. A fault of the host doubles its back-off (base x 2^n, n errors in a row, to `backoff_max`) and
    opens the circuit at `circuit_after`; any answer closes it. Retry-After on 429 and 5xx is kept up to
    `retry_after_max`. The gap after a fault is never shorter than the one before it. `first`: it was the
    first request of a round, which connects and finds caches cold, so it says little of those that follow.
    """
    ema, opening = state.latency_ema_ms, state.first_ms
    if status is not None or outcome is Outcome.TIMEOUT:
        if first:
            opening = _average(opening, duration / _MS)
        if not first or ema is None:
            # what is known from a first request alone gives way to the first better figure
            ema = _average(None if ema == state.first_ms else ema, duration / _MS)
    fault = outcome in HOST_FAULTS
    slowed = _slowed(state, ema, duration, outcome, policy, public)
    wait, rule = _gap(state, ema, slowed, duration, policy, public)
    errors, until, circuit = 0, None, "closed"
    if fault:
        errors = state.consecutive_errors + 1
        circuit = "open" if errors >= policy.circuit_after else "closed"
        backoff = _backoff(errors, policy, unit)
        asked = _asked_to_wait(status, retry_after_ms, policy)
        until = finished_at + max(backoff, asked)
        if max(backoff, asked) >= wait:
            wait, rule = (asked, "retry_after") if asked >= backoff else (backoff, "backoff")
        if state.next_allowed_at is not None and (before := state.delay_ms * _MS) > wait:
            wait, rule = before, state.gap_rule
    return state.but(
        next_allowed_at=finished_at + wait,
        delay_ms=wait / _MS,
        slowed_ms=slowed,
        gap_rule=rule,
        latency_ema_ms=ema,
        first_ms=opening,
        backoff_until=until,
        consecutive_errors=errors,
        circuit=circuit,
    )


def _slowed(
    state: HostState,
    ema: float | None,
    duration: timedelta,
    outcome: Outcome,
    policy: Politeness,
    public: bool,
) -> float | None:
    """The least gap (ms) that being pushed back leaves behind after this request; None for none.

    Pushed back: twice the gap so far. A success shortens it. Another fault leaves it as it is.
    """
    slowed = state.slowed_ms
    pushed = outcome in PUSHED_BACK
    if not pushed and (slowed is None or outcome in HOST_FAULTS):
        return slowed
    ordinary, _ = _gap(state, ema, None, duration, policy, public)
    if pushed:
        # by the average, not by the last gap: one long answer among short ones, or a back-off, is no pace
        average = (state.latency_ema_ms or 0.0) * _MS
        pace = max(ordinary, _gap(state, state.latency_ema_ms, None, average, policy, public)[0]) / _MS
        doubled = 2 * max(pace, slowed or 0.0, policy.backoff_base * RECOVERY / _MS)
        # more would take hours to come back from; a host that wants more has its back-off besides
        return min(doubled, max(policy.factor_cap / _MS, 2 * pace))
    # a host that may be asked without any gap needs some figure to come back to
    usual = max(ordinary, policy.backoff_base * RECOVERY) / _MS
    assert slowed is not None
    left = slowed * (1 - RECOVERY)
    return round(left, 3) if left > usual else None  # microseconds, as gaps are kept


def _average(before: float | None, newest: float) -> float:
    if before is None:
        return newest
    return before + (_EMA_SHARE if newest > before else _EMA_SHARE_DOWN) * (newest - before)


def _backoff(errors: int, policy: Politeness, unit: float) -> timedelta:
    doubled = policy.backoff_base * 2 ** min(errors, 20)
    longer: timedelta = doubled * (1 + unit / 4)
    return min(longer, policy.backoff_max)


def _asked_to_wait(status: int | None, retry_after_ms: float | None, policy: Politeness) -> timedelta:
    if retry_after_ms is None or status is None or (status != 429 and status < 500):
        return timedelta(0)
    return min(retry_after_ms, policy.retry_after_max / _MS) * _MS


def circuit_at(state: HostState, now: datetime) -> str:
    """One of closed (ask freely), open (left alone until `backoff_until`), half_open (one canary decides)."""
    if state.circuit == "closed":
        return "closed"
    return "half_open" if state.backoff_until is None or now >= state.backoff_until else "open"


#: the three forms of RFC 9110 5.6.7, day of the week optional; other zones than GMT are no HTTP-date
_HTTP_DATE: Final = re.compile(
    r"(?:[A-Za-z]{3,9},? +)?(?:\d{1,2}[ -][A-Za-z]{3}[ -]\d{2,4} +\d\d:\d\d:\d\d +(?:GMT|UTC)"
    r"|[A-Za-z]{3} +\d{1,2} +\d\d:\d\d:\d\d +\d{4})",
    re.ASCII,
).fullmatch


def retry_after(value: str, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for, at least 0; None where it says nothing (RFC 9110 10.2.3).

    Either delay-seconds or an HTTP-date in one of the three forms of RFC 9110 5.6.7. `now` is aware.
    """
    text = value.strip(" \t")
    if text.isascii() and text.isdigit():
        # ten digits are 300 years; more would overflow the caller's timedelta
        return float(text) if len(text) <= 10 else 1e10
    if not _HTTP_DATE(text):
        return None
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)  # asctime names no zone: HTTP knows no other
    return max((at - now).total_seconds(), 0.0)
