"""How the lake stands: URLs by state, what is due and when, the open round, who drives it, what waits.

What always holds: the keys of `overview` are stable, outside programs read them (`crawl status --help`
names them). Everything is the newest round's state, but for seeds and pauses, which count as soon as they
are written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cycles.session import reading
from cycles.session.holder import Who, lock_is_free, read_beat
from cycles.session.setup import Lake
from cycles.words.output import grid, shown
from cycles.words.wording import counted
from lake import fence, snapshot

__all__ = ["KEYS", "overview", "told"]

#: what `overview` holds
KEYS: Mapping[str, str] = {
    "lake": "folder or s3://bucket/prefix",
    "now": "planning time that `due` is judged by: the clock's, or the last round's where that lies ahead",
    "round": "last committed round; 0 before the first",
    "states": "URLs by stored state",
    "urls": "known, due, due_hosts, paused, never_fetched, to_retry, oldest_eligible, next_due",
    "hosts": "hosts, circuit_open, circuit_half_open, failing, slowed, paused, with_due_urls",
    "open_round": "round, now, opened_at, stage of the round that is not committed; null when there is none",
    "holder": "fence, host, pid, since, state (running, released, gone, silent) of the last driver, or null",
    "waiting": "seeds not yet known, links not yet merged, link_rounds they are from",
    "paused": "kind, pattern, reason, requested_at of what is held back",
    "rounds": "the last rounds and upkeeps, newest first",
    "tables": "files, rows, bytes, runs by table",
}

#: states of a driver, in words
_STATES: Final = {
    "running": "running",
    "released": "none now; the last was",
    "gone": "none now; the last one was killed",
    "silent": "not heard of lately",
}


def overview(lake: Lake, now: datetime) -> dict[str, Any]:
    """The lake's state under KEYS. Raises LakeError."""
    store = lake.store
    newest = snapshot.newest(store)
    with reading.reader(store, now) as reader:
        states: dict[str, int] = {}
        for row in reading.query(reader, "status-states"):
            states[row["state"]] = states.get(row["state"], 0) + row["urls"]
        tables = {row.pop("table_name"): row for row in reading.query(reader, "status-tables")}
        return {
            "lake": lake.root,
            "now": now,
            "round": newest["round"] if newest else 0,
            "states": states,
            "urls": reading.query(reader, "status-queue")[0],
            "hosts": reading.query(reader, "status-hosts")[0],
            "open_round": reading.stage(store),
            "holder": _holder(lake),
            "waiting": reading.query(reader, "status-waiting", merged=reading.merged_through(store))[0],
            "paused": reading.query(reader, "suppressed"),
            "rounds": [_opened_up(row) for row in reading.query(reader, "status-rounds")],
            "tables": tables,
        }


def _opened_up(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `rounds` with its JSON columns as values."""
    return {**row, "counts": json.loads(row["counts"]), "actual": json.loads(row["actual"])}


def _holder(lake: Lake) -> dict[str, Any] | None:
    """The last driver, and whether it still lives as far as this machine can tell."""
    last = fence.holder(lake.store)
    if not last.number or not last.who:
        return None
    who = Who.from_plain(last.who)
    beat = read_beat(lake.store, who.token)
    if beat is None or beat["state"] == "released":
        state = "released"
    elif lock_is_free(who):
        state = "gone"  # killed: the next run goes on at once
    else:
        state = "running" if _fresh(lake, beat) else "silent"
    return {"fence": last.number, "host": who.host, "pid": who.pid, "since": who.since, "state": state}


def _fresh(lake: Lake, beat: Mapping[str, Any]) -> bool:
    """Whether a heartbeat is younger than the lease; one of another machine counts as that."""
    from cycles.session.clock import boot_id, boottime

    if beat["who"]["boot"] != boot_id():
        return True
    return bool(boottime() - float(beat["boottime"]) < lake.settings.fetching.lease.total_seconds())


def told(found: Mapping[str, Any], remark: str = "") -> str:
    """The overview for the eye; `remark` is a word on the time it speaks of."""
    urls, waiting, hosts = found["urls"], found["waiting"], found["hosts"]
    after = f"after round {found['round']}" if found["round"] else "no round yet"
    lines = [
        f"{found['lake']}: {after}, as of {shown(found['now'])} UTC",
        *([f"({remark})"] if remark else []),
        "",
        f"URLs      {urls['known']:,} known"
        + "".join(f" · {n:,} {s}" for s, n in sorted(found["states"].items())),
        f"due now   {urls['due']:,} on {counted(urls['due_hosts'], 'host')}{_since(urls['oldest_eligible'])}",
        f"next due  {_next(urls)}",
        f"hosts     {hosts['hosts']:,} known · {hosts['failing']:,} failing"
        f" · {hosts['circuit_open']:,} shut off · {hosts['slowed']:,} slowed down by 429 or 503",
        f"waiting   {counted(waiting['seeds'], 'seed')} not yet known"
        f" · {counted(waiting['links'], 'link')} to be merged",
        f"paused    {_paused(found['paused'])}",
        f"open      {_open(found['open_round'])}",
        f"driver    {_driver(found['holder'])}",
    ]
    rounds = [
        (r["round"], r["kind"], r["now"], f"{r['seconds']:,.1f} s", _happened(r)) for r in found["rounds"][:5]
    ]
    if rounds:
        names = ["round", "kind", "planned for", "took", "what happened"]
        lines += ["", grid(names, rounds, ["round", "took"]).rstrip()]
    return "\n".join(lines)


def _next(urls: Mapping[str, Any]) -> str:
    """When the next URL is due; what is paused never is."""
    if urls["due"]:
        return "now"
    if urls["next_due"] is not None:
        return shown(urls["next_due"])
    return (
        f"never: {counted(urls['paused'], 'URL')} paused, nothing else waits" if urls["paused"] else "never"
    )


def _since(oldest: datetime | None) -> str:
    return f", the oldest since {shown(oldest)}" if oldest else ""


def _paused(rows: list[dict[str, Any]]) -> str:
    return (
        ", ".join(row["pattern"] for row in rows[:10]) + (" …" if len(rows) > 10 else "")
        if rows
        else "nothing"
    )


def _open(found: Mapping[str, Any] | None) -> str:
    return (
        f"round {found['round']}, planned for {_time(found['now'])}: {found['stage']}"
        if found
        else "no round"
    )


def _driver(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "none yet"
    return (
        f"{_STATES.get(found['state'], found['state'])}: process {found['pid']} on {found['host']},"
        f" since {_time(found['since'])}"
    )


def _time(text: str | None) -> str:
    """An ISO time as all others are shown."""
    return shown(datetime.fromisoformat(text)) if text else "?"


def _happened(row: Mapping[str, Any]) -> str:
    """What a round or an upkeep came to."""
    counts = row["counts"]
    if row["kind"] == "upkeep":
        done = [f"{what} {_files(counts[what])}" for what in ("merged", "dropped") if counts.get(what)]
        return ", ".join(done) or "nothing"
    names = (("planned", "planned"), ("attempted", "asked"), ("fetched", "fetched"))
    steps = [f"{counts[key]:,} {word}" for key, word in names if key in counts]
    if "discovered" in counts:
        steps.append(counted(counts["discovered"], "new URL"))
    return " · ".join(steps)


def _files(by_table: Mapping[str, int]) -> str:
    return counted(sum(by_table.values()), "file")
