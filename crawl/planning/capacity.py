"""What each host's clock allows in a window: columns over hosts, so that a million due URLs cost no Python
each.

What always holds: a host is given no more requests than can start before the window ends, its gap kept after
each; a host that backs off past the window gets none, one whose circuit is open gets a single canary, and
every host that gets less than it could carries the reason. A host we know nothing about is taken to be as
fast as the median of those we know. Each host is a line of its own, and alone at its address:
`crawl.planning.sharing` makes joined hosts one line, `crawl.planning.addressplan` those at one address one
spot.

`gaps` is the column form of `crawl.politeness.gap` (a test holds them equal). This module chooses no URL and
reads no clock: real time and planning time are arguments.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from crawl.columns import Bools, Floats, Ints, among, floats, ints, take, texts
from crawl.policy import PUBLIC_FLOOR, Dns, Egress, Politeness, Settings
from crawl.politeness.clock import RECOVERY

__all__ = ["Clocks", "clocks", "gaps", "public", "recovery", "rows_of"]

#: taken for a host when no host has ever answered: a typical first byte plus a small page
UNKNOWN_LATENCY_S: Final = 0.25
#: no step is shorter, so that a gap of nothing is still a finite capacity
SHORTEST_STEP_S: Final = 0.0005
#: from the time a host may be asked to the request: rounding up, and other hosts' turns
TURN_S: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """One entry per host, in the order of the names given."""

    wait_s: Floats  # from the start of fetching until it may be asked first
    step_s: Floats  # from one request's start to the next one's
    latency_s: Floats  # one request
    first_s: Floats  # the round's first request, with connecting
    capacity: Ints  # page requests that fit
    reason: npt.NDArray[np.object_]  # why more would be cut
    canary: Bools  # circuit open: the one request is a probe
    extra_s: Floats  # beside the steps: what the first request and its gap take longer
    slowed_s: Floats  # least gap of a host that pushed us back, shorter after each success, until it is …
    usual_s: Floats  # … this one
    lanes: Ints  # requests that may be open at once, each with this clock
    slow: Bools  # its Crawl-delay is so long that no round waits for it
    line: Ints  # hosts that share one clock have one number
    line_wait_s: Floats  # the same of the line as above of the host
    line_step_s: Floats
    line_capacity: Ints
    spot: Ints  # hosts at one public address have one number (crawl.planning.addressplan)
    spot_step_s: Floats  # from one start there to the next; 0 for a host that is alone


def clocks(
    names: Sequence[str],
    hosts: pa.Table,
    *,
    robots_requests: Ints,
    settings: Settings,
    now: datetime,
    started_at: datetime,
    window_s: float,
) -> Clocks:
    """Read each host's row against the window; `hosts` as `rows_of` gives it, null where a host is new.

    `now` is planning time, for day budgets; `started_at` is real time, as are `next_allowed_at` and
    `backoff_until`. `robots_requests` are the requests each host must spend on robots.txt first.
    """
    latency = _usual(floats(hosts["latency_ema_ms"]) / 1000, UNKNOWN_LATENCY_S)
    first = _usual(floats(hosts["first_ms"]) / 1000, latency)
    manners = settings.politeness
    delay = floats(hosts["robots_delay_ms"]) / 1000
    outside = public(names, hosts["addresses"].to_pylist(), settings.egress, settings.dns, manners)
    least = gaps(np.zeros(len(names)), robots_delay_s=delay, public=outside, policy=manners)
    gap = np.maximum(
        gaps(latency, robots_delay_s=delay, public=outside, policy=manners),
        least + np.nan_to_num(floats(hosts["excess_ms"])) / 1000,
    )
    first_gap = gaps(first, robots_delay_s=delay, public=outside, policy=manners)
    step = np.maximum(gap + latency, SHORTEST_STEP_S)
    start_us = int(started_at.timestamp() * 1_000_000)
    backing = np.maximum(ints(hosts["backoff_until"], start_us) - start_us, 0) / 1e6
    wait = np.maximum(np.maximum(ints(hosts["next_allowed_at"], start_us) - start_us, 0) / 1e6, backing)
    extra = np.maximum(first + first_gap - gap - latency, 0.0)
    usual = np.maximum(gap, manners.backoff_base.total_seconds() * RECOVERY)
    slowed = np.fmax(usual, floats(hosts["slowed_ms"]) / 1000)
    # The first start needs no gap before it, and what begins inside the window may end outside: a host whose
    # Crawl-delay is longer than the window is still asked once a round.
    fits = _fits(np.maximum(window_s - wait - extra, 0.0), step, slowed, usual)
    lanes = _lanes(names, delay, manners)
    fits = np.where(wait < window_s, np.maximum(fits * lanes - robots_requests, 1), 0)
    left = _budget(hosts, settings.planning.host_budget, (now.date().toordinal() - _EPOCH))
    circuit = among(hosts["circuit"], ("open", "half_open")) >= 0

    capacity = np.minimum(fits, left)
    capacity = np.where(circuit, np.minimum(capacity, 1), capacity)
    reason = np.full(len(names), "host_capacity", dtype=object)
    for applies, why in (  # the last that applies is the one told
        (left < fits, "host_budget"),
        (circuit, "circuit_open"),
        (fits == 0, "host_delay"),
        (backing >= window_s, "host_backoff"),
    ):
        reason[applies] = why
    return Clocks(
        wait_s=wait,
        step_s=step,
        latency_s=latency,
        first_s=first,
        capacity=capacity,
        reason=reason,
        canary=circuit & (capacity > 0),
        extra_s=extra,
        slowed_s=slowed,
        usual_s=usual,
        lanes=lanes,
        slow=floats(hosts["robots_delay_ms"]) / 1000 > settings.politeness.long_crawl_delay.total_seconds(),
        line=np.arange(len(names), dtype=np.int64),
        line_wait_s=wait,
        line_step_s=step,
        line_capacity=capacity,
        spot=np.arange(len(names), dtype=np.int64),
        spot_step_s=np.zeros(len(names)),
    )


def _lanes(names: Sequence[str], delay: Floats, policy: Politeness) -> Ints:
    """Requests each host may have open (crawl.fetching.lanes): with a Crawl-delay (`delay`, seconds) one."""
    lanes = np.ones(len(names), dtype=np.int64)
    if policy.in_flight:
        lanes[:] = [policy.in_flight.get(name, 1) for name in names]
        lanes[np.nan_to_num(delay) > 0] = 1
    return lanes


def _usual(seconds: Floats, else_: Floats | float) -> Floats:
    """What is not known of a host is taken to be the median of those of which it is, if there are any."""
    known = seconds[~np.isnan(seconds)]
    return np.where(np.isnan(seconds), np.median(known) if len(known) else else_, seconds)


_EPOCH: Final = 719_163  # proleptic ordinal of 1970-01-01


def rows_of(names: Sequence[str], hosts: pa.Table) -> pa.Table:
    """The row of each name in a table of hosts; nulls for a host that has none."""
    found: pa.Table = take(hosts, among(texts(names), hosts["host"]))
    return found


def _budget(hosts: pa.Table, default: int, today: int) -> Ints:
    """Page requests each host has left today: its own budget, or the default where it has none."""
    own = ints(hosts["budget"])
    spent = np.where(ints(hosts["budget_day"], -1) == today, ints(hosts["urls_on_budget_day"]), 0)
    left: Ints = np.maximum(np.where(own > 0, own, default) - spent, 0)
    return left


def gaps(latency_s: Floats, *, robots_delay_s: Floats, public: Bools, policy: Politeness) -> Floats:
    """Seconds a host is left alone after a request: max(floor, Crawl-delay, factor x `latency_s`).

    NaN in `robots_delay_s`: none stated. The rules are those of `crawl.politeness.gap`, which has it for one
    host.
    """
    floor = policy.min_delay.total_seconds()
    gap = np.where(public, max(floor, PUBLIC_FLOOR.total_seconds()), floor)
    gap = np.fmax(gap, robots_delay_s)
    gap = np.maximum(gap, np.minimum(latency_s * policy.factor, policy.factor_cap.total_seconds()))
    slow = latency_s > policy.slow_latency.total_seconds()
    return np.where(slow, np.maximum(gap, policy.slow_delay.total_seconds()), gap)


def recovery(slowed_s: Floats, usual_s: Floats, steps: Ints) -> Floats:
    """Seconds beyond the ordinary gaps that the first `steps` gaps of a host take that pushed us back.

    A gap after a success is a tenth shorter than the one before it; the rule is `crawl.politeness.after`'s.
    """
    some = np.minimum(np.maximum(steps, 0), _steps_back(slowed_s, usual_s))
    seconds: Floats = slowed_s * _KEPT * (1 - _KEPT**some) / RECOVERY - some * usual_s
    return seconds


#: what a success leaves of a gap
_KEPT: Final = 1 - RECOVERY


def _steps_back(slowed_s: Floats, usual_s: Floats) -> Ints:
    """Gaps, each after a success, that are longer than the ordinary one."""
    steps: Floats = np.ceil(np.log(slowed_s / usual_s) / -np.log(_KEPT) - 1e-9) - 1
    return np.maximum(steps, 0).astype(np.int64)


def _fits(seconds: Floats, step_s: Floats, slowed_s: Floats, usual_s: Floats) -> Ints:
    """Requests that can start within so many seconds."""
    back = _steps_back(slowed_s, usual_s)
    lost = recovery(slowed_s, usual_s, back)
    # the sum of a geometric row of gaps, solved for their number
    spent = np.minimum(seconds * RECOVERY / (slowed_s * _KEPT), 1 - 1e-12)
    early = np.floor(np.log(1 - spent) / np.log(_KEPT)) + 1
    fits: Floats = np.where(seconds < back * step_s + lost, early, np.ceil((seconds - lost) / step_s))
    return fits.astype(np.int64)


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def public(
    names: Sequence[str],
    addresses: Sequence[Sequence[str] | None],
    egress: Egress,
    dns: Dns,
    policy: Politeness,
) -> Bools:
    """Whether the floor for public addresses holds: unless all a host's addresses lie in allowed ranges."""
    if policy.min_delay >= PUBLIC_FLOOR or not egress.allow:
        return np.ones(len(names), dtype=np.bool_)  # the answer would change nothing
    allowed = [net for text in egress.allow if (net := _network(text))]
    listed = [(pattern, net) for pattern, text in dns.hosts.items() if (net := _network(text))]

    def named(name: str) -> list[Network | None]:
        if literal := _network(name.strip("[]")):
            return [literal]
        return [net for pattern, net in listed if name == pattern or _covers(pattern, name)]

    def inside(name: str, known: Sequence[str] | None) -> bool:
        nets = [_network(text) for text in known or ()] or named(name)
        return bool(nets) and all(net is not None and _within(net, allowed) for net in nets)

    return np.fromiter(
        (not inside(name, known) for name, known in zip(names, addresses, strict=True)), np.bool_, len(names)
    )


def _covers(pattern: str, name: str) -> bool:
    return pattern.startswith("*.") and name.endswith(pattern[1:])


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None  # a name, no address


def _within(net: Network, allowed: Sequence[Network]) -> bool:
    """Whether one of the allowed ranges holds the whole network."""
    first, last = int(net.network_address), int(net.broadcast_address)
    return any(
        net.version == wide.version
        and int(wide.network_address) <= first
        and last <= int(wide.broadcast_address)
        for wide in allowed
    )
