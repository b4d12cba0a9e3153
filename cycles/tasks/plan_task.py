"""Plan a round: ask the lake what is due, choose (crawl.stages.plan), and leave what the other steps need.

Left in the work area: `planned.parquet` (the newest `seen` row of every planned URL with its group and
position, by url_key), `seeds.parquet` (seeds that `seen` does not have, as candidates), `hosts.parquet`
(clocks of all hosts in the planned domains), `robots.parquet` (newest copies of their origins) and
`caps.parquet` (what each group may do at public addresses). The frontier goes to its final
place; whom sitemaps may speak for is left by cycles.tasks.vouching.

What always holds: everything is read at the versions pinned when the round was opened and at its times, so
that a plan made again is the same plan; `propose` writes nothing. It decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl.columns import Ints, among, differ, encode, equals, flags, given, ints, take, texts
from crawl.errors import UrlError
from crawl.keys import Keyer
from crawl.merging.candidates import of_seeds
from crawl.merging.discovery import meet, new_rows
from crawl.politeness.clock import HostState
from crawl.politeness.joined import Groups
from crawl.schema import HOSTS, ROBOTS, SEEN
from crawl.stages.plan import DUE, Plan, select
from crawl.url import canonical, split_many
from cycles.session import safety
from cycles.session.context import Context
from cycles.tasks import vouching
from lake import files, ranges, runs, sql, tables
from lake.entries import FileEntry
from lake.snapshot import Snapshot
from lake.store import Store

__all__ = ["PLANNED", "Proposal", "make", "propose", "targets", "told"]

#: columns of `planned.parquet`
PLANNED: Final = pa.schema([*SEEN, pa.field("group", pa.int32()), pa.field("position", pa.int64())])

_DUE: Final = pa.schema([SEEN.field(name) for name in DUE])
#: rows of a table in memory at once, where a table is read in pieces
_PIECE: Final = 200_000
#: characters of robots.txt in memory at once, and what a copy counts at least
_TEXTS: Final = 32_000_000
_LEAST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A plan, and what it was made from as far as the next steps need it."""

    plan: Plan
    seeds: pa.Table  # CANDIDATES of seeds that `seen` does not have
    fresh: pa.Table  # SEEN rows of those seeds, by url_key
    said: pa.Table  # url_key and kind of known URLs that a seed given since says are of another kind
    hosts: pa.Table  # HOSTS of every host in the domains concerned, new ones included
    robots: pa.Table  # newest copies without their texts, and how long those are


def make(context: Context) -> dict[str, Any]:
    """Plan the round and write what follows from it; the content of `plan.json`. Raises LakeError."""
    store, work, snapshot = context.work.store, context.work, _snapshot(context)
    tables.grow(store, snapshot.missing())
    proposal = propose(context)
    frontier = proposal.plan.frontier
    entries = [files.write(store, "frontier", frontier, day=context.day)] if len(frontier) else []
    lists: list[pa.Table] = []
    rows = _planned_rows(store, snapshot.files("seen"), proposal, lists)
    files.write_work_parts(store, work.path("planned.parquet"), PLANNED, rows)
    vouching.write(context, pa.concat_tables([SEEN.empty_table(), *lists]), snapshot)
    left = {
        "seeds": proposal.seeds,
        "hosts": proposal.hosts,
        "caps": proposal.plan.caps,
    }
    for name, table in left.items():
        files.write_work(store, work.path(f"{name}.parquet"), table)
    with sql.connect(store, snapshot, context.now) as reader:
        texts_of = _copies(reader, proposal.robots)
        files.write_work_parts(store, work.path("robots.parquet"), ROBOTS, texts_of)
    return {
        "planned": proposal.plan.predicted.pages,
        "groups": [group.group for group in proposal.plan.predicted.groups],
        "hosts": targets(proposal)[0],
        "files": [entry.to_dict() for entry in entries],
        "rejects": [],
        "predicted": proposal.plan.predicted.to_dict(),
        "seeds": len(proposal.seeds),
    }


def targets(proposal: Proposal) -> tuple[list[str], Iterator[tuple[str, str]]]:
    """The hosts that are to be asked, and (host, URL) of what is planned."""
    frontier = proposal.plan.frontier
    chosen = frontier.filter(pa.array(ints(frontier["group"]) >= 0))
    of: Any = [chosen[name].to_pylist() for name in ("host", "url")]
    return encode(chosen["host"])[0], zip(*of, strict=True)


def told(proposal: Proposal) -> dict[str, Any]:
    """What `crawl plan` shows: the prediction, how many hosts, and what is left out by reason."""
    frontier = proposal.plan.frontier
    cut = frontier.filter(pa.array(ints(frontier["group"]) < 0))
    reasons, reason = encode(cut["reason"])
    cuts = np.bincount(reason, weights=ints(cut["count"]), minlength=len(reasons)).astype(np.int64)
    predicted = proposal.plan.predicted
    return {
        **predicted.to_dict(),
        "hosts": sum(group.hosts for group in predicted.groups),
        "cuts": dict(zip(reasons, cuts.tolist(), strict=True)),
    }


def propose(context: Context) -> Proposal:
    """Work out the round's plan; reads only. Raises LakeError."""
    store, snapshot = context.work.store, _snapshot(context)
    keyer = safety.keyer(store, context.settings.identity)
    with sql.connect(store, snapshot, context.now) as reader:
        again: dict[str, Any] = {"policy_version": context.policy_version}
        again["types"] = list(context.settings.content.types)
        anew = reader.query("due-reseeded", opened=context.opened_at)
        due = _once(reader.due(), reader.query("due-again", **again), anew)
        paused = reader.query("due-held").select(["host", "count", "score"])
        seeds = _seeds(reader.query("seeds-new"), context)
        fresh = _fresh(seeds, context)
        free, held = _suppressed(fresh, reader.query("suppressed"))
        said = _said(anew)
        rows = _turned(pa.concat_tables([part.select(list(DUE)).cast(_DUE) for part in (*due, free)]), said)
        joined = Groups(context.settings.politeness.groups)
        copies = reader.query("robots-known", origins=encode(rows["origin"])[0])
        others = {domain for led in copies["elsewhere"].to_pylist() for domain in led or ()}
        hosts = _hosts(store, snapshot.files("hosts"), rows, others, joined, keyer, context.round)
        robots = _tried(reader.query("robots-known", origins=_origins(rows, hosts)), anew)
    plan = select(
        rows,
        hosts,
        robots=robots,
        settings=context.settings,
        policy_version=context.policy_version,
        now=context.now,
        started_at=context.opened_at,
        window_s=context.window_s,
        groups=context.groups,
        round=context.round,
        day=context.day,
        paused=_added([paused, held]),
        given=ints(anew["url_key"]),
    )
    return Proposal(plan=plan, seeds=seeds, fresh=fresh, said=said, hosts=hosts, robots=robots)


def _once(due: pa.Table, again: pa.Table, anew: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """What is due, what may be let through, and what was given again; no URL twice."""
    early = anew.filter(pa.array(~flags(anew["due"])))
    mine = ~np.isin(ints(again["url_key"]), ints(early["url_key"]))
    return due, again.filter(pa.array(mine)), early


def _tried(robots: pa.Table, anew: pa.Table) -> pa.Table:
    """Copies without those that failed with no answer, where a URL of the origin was given again: somebody
    says that it can be had by now. What answered with a fault is left its time.
    """
    mute: Any = pc.match_substring_regex(robots["version"], "^unreachable:[^0-9]")
    again = among(robots["origin"], texts(encode(anew["origin"])[0])) >= 0
    return robots.filter(pa.array(~(flags(mute) & again)))


def _said(anew: pa.Table) -> pa.Table:
    """Those given again (rows of due-reseeded) whose seed says another kind: url_key and kind."""
    other = anew.filter(pa.array(differ(anew["kind"], anew["said"])))
    found: pa.Table = other.select(["url_key", "said"]).rename_columns(["url_key", "kind"])
    return found


def _turned(rows: pa.Table, said: pa.Table) -> pa.Table:
    """Rows with the kind that was said of them; without validators and hash: they are read anew."""
    told = take(said["kind"], among(rows["url_key"], said["url_key"]))
    new = given(told)
    if not new.any():
        return rows
    columns: dict[str, Any] = {name: rows[name] for name in rows.column_names}
    columns["kind"] = pc.coalesce(told, rows["kind"])
    for name in ("etag", "last_modified", "content_hash"):
        if name in columns:
            columns[name] = pc.if_else(pa.array(new), None, columns[name])
    return pa.table(columns).cast(rows.schema)


def _copies(reader: sql.Reader, known: pa.Table) -> Iterator[pa.Table]:
    """The newest robots copies (ROBOTS) of what is known, texts of bounded length at a time."""
    origins: Any = known["origin"].to_pylist()
    piece = np.cumsum(ints(known["characters"]) + _LEAST) // _TEXTS
    for part in np.split(np.arange(len(origins)), np.flatnonzero(np.diff(piece)) + 1):
        some = [origins[i] for i in part.tolist()]
        if some:
            yield reader.query("robots", origins=some).select(ROBOTS.names).cast(ROBOTS)


def _snapshot(context: Context) -> Snapshot:
    """The lake as the round before left it."""
    return Snapshot(context.work.store, context.versions, context.round - 1)


def _seeds(rows: pa.Table, context: Context) -> pa.Table:
    """Candidates of accepted seeds (rows of `seeds`)."""
    urls: list[str | None] = []
    for text in rows["url"].to_pylist():
        try:
            urls.append(canonical(str(text)))
        except UrlError:  # accepted under other rules than today's; it stays in `seeds`
            urls.append(None)
    good = rows.filter(pa.array([url is not None for url in urls], pa.bool_()))
    found = [url for url in urls if url is not None]
    return of_seeds(
        good["url_key"],
        found,
        good["url"],
        split_many(found)[2],
        good["priority"],
        good["kind"],
        context.settings.planning,
    )


def _fresh(seeds: pa.Table, context: Context) -> pa.Table:
    """Rows of `seen` as the merge will make them of these seeds, by url_key."""
    met = meet(seeds)
    return new_rows(
        seeds,
        met,
        np.ones(len(met.keys), dtype=np.bool_),
        planning=context.settings.planning,
        policy_version=context.policy_version,
        now=context.now,
        round=context.round,
    )


def _suppressed(fresh: pa.Table, suppressed: pa.Table) -> tuple[pa.Table, pa.Table]:
    """New seeds that may be planned, and those an operator holds back, counted per host."""
    patterns = suppressed["pattern"]
    stopped = np.zeros(len(fresh), dtype=np.bool_)
    for name in ("host", "domain", "origin", "url"):
        stopped |= among(fresh[name], patterns) >= 0
    held = fresh.filter(pa.array(stopped)).select(["host", "score"])
    counts: Any = held.append_column("count", pa.array(np.ones(len(held), dtype=np.int64)))
    return fresh.filter(pa.array(~stopped)), counts.select(["host", "count", "score"])


def _added(parts: list[pa.Table]) -> pa.Table:
    """Held-back URLs per host: host, count and best score."""
    whole: Any = pa.concat_tables([part.cast(_HELD) for part in parts])
    summed = whole.group_by("host").aggregate([("count", "sum"), ("score", "max")])
    added: pa.Table = (
        summed.select(["host", "count_sum", "score_max"]).rename_columns(_HELD.names).cast(_HELD)
    )
    return added


_HELD_TYPES: Final[dict[str, pa.DataType]] = {"host": pa.string(), "count": pa.int64(), "score": pa.float64()}
_HELD: Final = pa.schema(_HELD_TYPES)


def _hosts(
    store: Store,
    entries: list[FileEntry],
    rows: pa.Table,
    others: Collection[str],
    joined: Groups,
    keyer: Keyer,
    round_number: int,
) -> pa.Table:
    """The newest row of every known host in the domains of these rows, and a new row for each host unknown.

    All hosts of a domain, because a redirect may lead to any of them, and its clock holds then too; all of
    the `others` too, domains in which a robots.txt lies; and all joined hosts, because theirs is one with
    that of others.
    """
    domains = texts(sorted({*encode(rows["domain"])[0], *others}))
    parts = [HOSTS.empty_table()]
    if entries:
        for lo, hi in ranges.cut(store, [("host_key", entry) for entry in entries], _PIECE):
            part = runs.newest_in(store, entries, lo, hi)
            wanted = among(part["domain"], domains) >= 0
            if joined:
                known: Any = part["host"].to_pylist()
                wanted |= np.array([joined.of(host) is not None for host in known])
            parts.append(part.filter(pa.array(wanted)).cast(HOSTS))
    known = pa.concat_tables(parts)
    names, host = encode(rows["host"])
    first = np.zeros(len(names), dtype=np.int64)
    first[host] = np.arange(len(host))
    missing = np.flatnonzero(among(texts(names), known["host"]) < 0)
    of = take(rows["domain"], first[missing]).to_pylist()
    new = [
        HostState.new(names[i], domain, keyer.host_key(names[i])).to_row(round_number)
        for i, domain in zip(missing.tolist(), of, strict=True)
    ]
    return pa.concat_tables([known, pa.Table.from_pylist(new, schema=HOSTS)])


def _origins(rows: pa.Table, hosts: pa.Table) -> list[str]:
    """Origins whose robots.txt may be needed: those of the rows, and the usual ones of hosts beside them."""
    usual = (f"{scheme}://{host}" for host in hosts["host"].to_pylist() for scheme in ("http", "https"))
    return sorted({*encode(rows["origin"])[0], *usual})


def _planned_rows(
    store: Store, seen: list[FileEntry], proposal: Proposal, lists: list[pa.Table]
) -> Iterator[pa.Table]:
    """Whole rows of what is planned, by url_key, piece by piece; those of sitemaps go to `lists` as well."""
    chosen = proposal.plan.chosen
    fresh_keys = ints(proposal.fresh["url_key"])
    for start in range(0, len(chosen), _PIECE):
        part = chosen.slice(start, _PIECE)
        keys = ints(part["url_key"])
        known = runs.rows(store, seen, keys).cast(SEEN) if seen else SEEN.empty_table()
        new = proposal.fresh.filter(pa.array(np.isin(fresh_keys, keys)))
        rows = pa.concat_tables([_turned(known, proposal.said), new]).sort_by("url_key")
        lists.append(rows.filter(pa.array(equals(rows["kind"], "sitemap"))))
        yield _placed(rows, part, keys)


def _placed(rows: pa.Table, part: pa.Table, keys: Ints) -> pa.Table:
    """Rows with their group and position. Raises ValueError where rows and keys differ."""
    if not np.array_equal(ints(rows["url_key"]), keys):
        raise ValueError(f"{len(keys)} URLs are planned, and `seen` has {len(rows)} rows of them")
    columns = [*rows.columns, part["group"], part["position"]]
    return pa.table(columns, names=PLANNED.names).cast(PLANNED)
