"""Plan: which due URLs a round fetches, in which group and order, and why the rest waits.

What always holds: every due URL is either planned or counted in a cut row with its reason; a host gets no
more than its clock allows in the window; all hosts of a domain, and those that an operator joined, are in one
group; the same rows in any order give the same plan. What is chosen is `crawl.planning.choice`'s; shares per
tier, and one for discovery, are not cut yet: that is their place.

Columns only: a million due rows take a second or two. It reads no lake and no clock, and waits for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crawl import recrawl
from crawl.columns import (
    Bools,
    Floats,
    Ints,
    among,
    encode,
    equals,
    flags,
    floats,
    ints,
    make,
    ranks,
    take,
    texts,
)  # fmt: skip
from crawl.outcomes import TABLE, Outcome
from crawl.planning.addressplan import Spots, parts, spots, waits
from crawl.planning.capacity import clocks, rows_of
from crawl.planning.choice import Work, choose
from crawl.planning.forecast import PAGE_COST_S, Prediction, chains, predict, troubled, work
from crawl.planning.packing import bundle, pack, units
from crawl.planning.sharing import join
from crawl.policy import Settings
from crawl.politeness.joined import Groups
from crawl.schema import FRONTIER

__all__ = ["DUE", "Plan", "select"]

#: columns of `seen` that choosing needs
DUE: Final = (
    "url_key", "url", "origin", "host", "domain", "state", "last_outcome", "robots_version", "policy_version",
    "tier", "score", "eligible_since", "next_fetch_at", "kind",
    "changefreq", "sitemap_priority",
)  # fmt: skip

#: why a URL is asked now, by its state
_WHY: Final = {
    "DISCOVERED": "new",
    "FAILED_RETRYABLE": "retry",
    "BLOCKED": "recheck",
    "QUARANTINED": "recheck",
    "GONE": "revisit",
    "TERMINAL": "revisit",
}

Texts = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a round."""

    frontier: pa.Table  # FRONTIER: cuts (group -1), then planned rows by group and position
    chosen: pa.Table  # url_key, group, position of what is planned; sorted by url_key
    caps: pa.Table  # crawl.planning.addressplan.CAPS: what each group may do at public addresses
    predicted: Prediction


def select(
    due: pa.Table,
    hosts: pa.Table,
    *,
    robots: pa.Table,
    settings: Settings,
    policy_version: str,
    now: datetime,
    started_at: datetime,
    window_s: float,
    groups: int,
    round: int,
    day: date,
    paused: pa.Table | None = None,
    given: Ints | None = None,
) -> Plan:
    """Choose from the due rows (columns DUE, one row per url_key) what to fetch within the window.

    `hosts` and `robots` hold the newest row (HOSTS, ROBOTS without text) of each host and origin concerned;
    one that has none is new. Rows that are not due yet may be among `due` where a rule that blocked them may
    have changed. `paused`: what an operator holds back, counted per host (host, count, score). `given`: keys
    of known URLs that were given as seeds again, which are asked before their time. `now` is planning time,
    `started_at` real time; `groups` ≥ 1 fetch side by side.
    """
    again = np.zeros(0, dtype=np.int64) if given is None else given
    rows = _again(due.select(list(DUE)).combine_chunks(), robots, now, policy_version, again)
    names, host = encode(rows["host"])
    facts = rows_of(names, hosts)
    asks = _asks(rows, host, len(names), robots, now, window_s)
    clock = clocks(
        names,
        facts,
        robots_requests=asks,
        settings=settings,
        now=now,
        started_at=started_at,
        window_s=window_s,
    )
    joined = Groups(settings.politeness.groups)
    clock = join(
        names,
        clock,
        joined,
        hosts,
        robots_requests=asks,
        settings=settings,
        started_at=started_at,
        window_s=window_s,
    )
    found = spots(names, hosts, settings)
    clock = found.clocks(clock)
    work_of = Work(rows=rows, names=names, host=host, clock=clock, asks=asks, window_s=window_s)
    order, picked, why = choose(work_of, settings, groups)
    chosen = order[picked]
    led = _led(take(rows, chosen), robots)
    placed = _place(work_of, chosen, joined, led, found, groups, settings.fetching.in_flight)
    planned = _planned(work_of, placed, again, now, round=round, day=day)
    cuts = _cuts(work_of, order, picked, why, round=round, day=day)
    return Plan(
        frontier=pa.concat_tables([cuts, _paused(paused, round=round, day=day), planned]),
        chosen=planned.select(["url_key", "group", "position"]).sort_by("url_key"),
        caps=parts(found, placed.of_host),
        predicted=predict(
            names,
            troubled(
                clock, host[order[picked]], take(rows["last_outcome"], order[picked]), settings.politeness
            ),
            pages=placed.pages,
            asks=asks,
            group=placed.of_host,
            in_flight=settings.fetching.in_flight,
            left_out=int((~picked).sum()) + (0 if paused is None else int(ints(paused["count"]).sum())),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """Planned rows in frontier order, and the group and pages of every host."""

    row: Ints
    group: Ints
    position: Ints
    start_s: Floats
    of_host: Ints  # -1 where nothing of it is planned
    pages: Ints


def _again(rows: pa.Table, robots: pa.Table, now: datetime, policy_version: str, given: Ints) -> pa.Table:
    """The rows without those that are early and blocked by what still stands.

    Rows that are not due by their date are there because somebody asked for them (`given`), or because a
    rule that blocked them may have changed: robots.txt, which stands while the newest copy of the origin is
    the one that blocked, or the settings. When that copy has aged, one row of the origin goes along (unless
    another asks anyway), so that robots.txt is asked for again; the rest waits for what it says.
    """
    early = ints(rows["next_fetch_at"]) > recrawl.micros(now)
    if not early.any():
        return rows
    # as of now, not for the window: what is valid for less than a round would be asked for in each
    origin, valid, version = _copies(rows, robots, now, 0.0)
    by_robots = equals(rows["last_outcome"], Outcome.ROBOTS_DENIED.value)
    same_copy = flags(pc.equal(rows["robots_version"], version))
    asked_for = np.isin(ints(rows["url_key"]), given) | (among(rows["state"], ("GONE", "TERMINAL")) >= 0)
    stands = np.where(by_robots, same_copy, equals(rows["policy_version"], policy_version))
    held = early & ~asked_for & stands
    asks_anyway = np.zeros(len(valid), dtype=np.bool_)
    asks_anyway[origin[~held]] = True
    aged = np.flatnonzero(held & by_robots & ~valid[origin] & ~asks_anyway[origin])
    aged = aged[np.lexsort((ints(rows["url_key"])[aged], origin[aged]))]
    held[aged[np.unique(origin[aged], return_index=True)[1]]] = False
    return rows.filter(pa.array(~held))


def _copies(rows: pa.Table, robots: pa.Table, now: datetime, window_s: float) -> tuple[Ints, Bools, Any]:
    """Origin of each row as a number; validity of each origin's copy, as `RobotsCopy.valid` has it; version
    of each row's copy.
    """
    origins, origin = encode(rows["origin"])
    newest = take(robots.select(["version", "valid_until", "how"]), among(texts(origins), robots["origin"]))
    good = among(newest["how"], ("fetched", "unavailable")) >= 0
    until = recrawl.micros(now) + np.where(good, int(window_s * 1e6), 0)
    return origin, ints(newest["valid_until"]) > until, take(newest["version"], origin)


def _asks(rows: pa.Table, host: Ints, hosts: int, robots: pa.Table, now: datetime, window_s: float) -> Ints:
    """Requests each host spends on robots.txt: one for every origin without a valid copy."""
    origin, valid, _ = _copies(rows, robots, now, window_s)
    of_host = np.zeros(len(valid), dtype=np.int64)
    of_host[origin] = host
    return np.bincount(of_host[~valid], minlength=hosts).astype(np.int64)


def _led(planned: pa.Table, robots: pa.Table) -> list[tuple[str, str]]:
    """Domains planned, with others in which the robots.txt of one of their origins lies."""
    lengths: Any = pc.list_value_length(robots["elsewhere"])
    led = take(robots.select(["origin", "elsewhere"]), np.flatnonzero(ints(lengths) > 0))
    if not len(led):
        return []
    rows: Any = led.to_pylist()
    to: dict[str, list[str]] = {row["origin"]: row["elsewhere"] for row in rows}
    some = planned.filter(pa.array(among(planned["origin"], list(to)) >= 0)).select(["domain", "origin"])
    of: Any = some.group_by(["domain", "origin"]).aggregate([])
    return sorted({(row["domain"], other) for row in of.to_pylist() for other in to[row["origin"]]})


def _place(
    of: Work,
    planned: Ints,
    joined: Groups,
    led: list[tuple[str, str]],
    found: Spots,
    groups: int,
    in_flight: int,
) -> _Placed:
    """Pack the domains of the planned rows (given by host and preference); order each group by its starts."""
    host = of.host[planned]
    pages = np.bincount(host, minlength=len(of.names)).astype(np.int64)
    busy = np.flatnonzero(pages)
    requests = np.where(pages > 0, pages + of.asks, 0)
    first = planned[np.unique(host, return_index=True)[1]]
    unit = _units(
        take(of.rows["domain"], first).to_pylist(), [of.names[i] for i in busy.tolist()], joined, led
    )
    cost = work(of.clock, requests, in_flight)
    together = bundle(unit, found.of_host[busy], cost[busy], [cap.in_flight for cap in found.caps], groups)
    unit = np.unique(together, return_inverse=True)[1][unit]
    count = int(unit.max()) + 1 if len(unit) else 0
    longest = np.zeros(count)
    np.maximum.at(longest, unit, chains(of.clock, requests)[busy])
    load = np.zeros(count)
    np.add.at(load, unit, cost[busy])
    of_host = np.full(len(of.names), -1, dtype=np.int64)
    of_host[busy] = pack(load, longest, groups)[unit]

    start = _starts(of, host)
    by_start = np.lexsort((np.arange(len(planned)), start, of_host[host]))
    group = of_host[host][by_start]
    position = ranks(group)
    return _Placed(
        row=planned[by_start],
        group=group,
        position=position,
        start_s=np.maximum(start[by_start], position * PAGE_COST_S),
        of_host=of_host,
        pages=pages,
    )


def _units(domains: list[str], names: list[str], joined: Groups, led: list[tuple[str, str]]) -> Ints:
    """The unit of each host: what must have one owner. A redirect may lead to any host of a domain, so the
    domain goes where a group goes that has, or may have, one of its hosts; and with the domain in which its
    robots.txt lies (`led`).
    """
    if not joined and not led:
        return units(domains, [None] * len(domains))
    near = [(domain, group) for domain in sorted(set(domains)) for group in joined.near(domain)]
    near += [(domain, f"robots.txt in {other}") for domain, other in led]
    near += [(other, f"robots.txt in {other}") for _, other in led]
    all_domains = [*domains, *(domain for domain, _ in near)]
    return units(all_domains, [*map(joined.of, names), *(group for _, group in near)])[: len(domains)]


def _starts(of: Work, host: Ints) -> Floats:
    """Seconds from the start of fetching until each row (by host and preference) is asked."""
    clock = of.clock
    lanes = clock.lanes[host]
    start = clock.wait_s[host] + (ranks(host) + of.asks[host]) // lanes * clock.step_s[host]
    line = clock.line[host]
    by_line = np.lexsort((np.arange(len(host)), start, line))
    rank = np.empty(len(host), dtype=np.int64)
    rank[by_line] = ranks(line[by_line])
    asks = np.bincount(clock.line, of.asks, len(clock.line))[line]
    shared: Floats = np.maximum(
        start, clock.line_wait_s[host] + (rank + asks) // lanes * clock.line_step_s[host]
    )
    return waits(clock, host, of.asks, shared)


def _planned(of: Work, placed: _Placed, given: Ints, now: datetime, *, round: int, day: date) -> pa.Table:
    """Frontier rows of what is fetched."""
    rows = take(of.rows, placed.row)
    told = np.array([*_WHY.values(), "due"], dtype=object)[among(rows["state"], list(_WHY))]
    failed = (
        among(rows["last_outcome"], [outcome.value for outcome, rule in TABLE.items() if rule.retry]) >= 0
    )
    told[failed & (told == "due")] = "retry"
    told[(told == "due") & (ints(rows["next_fetch_at"]) > recrawl.micros(now))] = "recheck"
    told[np.isin(ints(rows["url_key"]), given)] = "given"
    told[of.clock.canary[of.host[placed.row]]] = "canary"
    return make(
        FRONTIER,
        len(rows),
        day=day,
        round=round,
        group=placed.group,
        position=placed.position,
        url_key=rows["url_key"],
        url=rows["url"],
        kind=pc.coalesce(rows["kind"], pa.scalar("page", pa.string())),
        host=rows["host"],
        tier=rows["tier"],
        score=rows["score"],
        reason=texts(told),
        predicted_start_ms=placed.start_s * 1000,
        count=1,
    )


def _cuts(of: Work, order: Ints, picked: Bools, why: Texts, *, round: int, day: date) -> pa.Table:
    """One frontier row per host and reason: how many were left out, and below which score.

    The cut-off is the lowest score of the host that was planned; where none was, the best score left out.
    """
    host, score = of.host[order], floats(of.rows["score"])[order]
    lowest = np.full(len(of.names), np.inf)
    np.minimum.at(lowest, host[picked], score[picked])
    out: Any = pa.table(
        {
            "host": pa.array(host[~picked]),
            "reason": texts(why[~picked]),
            "score": pa.array(score[~picked]),
        }
    )
    cut = out.group_by(["host", "reason"]).aggregate([("score", "count"), ("score", "max")])
    cut = cut.sort_by([("host", "ascending"), ("reason", "ascending")])
    at = ints(cut["host"])
    return make(
        FRONTIER,
        len(cut),
        day=day,
        round=round,
        group=-1,
        position=-1,
        host=take(texts(of.names), at),
        score=np.where(np.isfinite(lowest[at]), lowest[at], floats(cut["score_max"])),
        reason=cut["reason"],
        count=cut["score_count"],
    )


def _paused(paused: pa.Table | None, *, round: int, day: date) -> pa.Table:
    """Frontier rows of what an operator holds back."""
    if paused is None:
        return FRONTIER.empty_table()
    rows = paused.sort_by("host")
    return make(
        FRONTIER,
        len(rows),
        day=day,
        round=round,
        group=-1,
        position=-1,
        host=rows["host"],
        score=rows["score"],
        reason="paused",
        count=rows["count"],
    )
