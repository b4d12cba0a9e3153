"""What a round did: the funnel, outcomes, states, what was cut, skipped or refused, plan against actual.

What always holds: every number comes from the lake as that round left it, by a question of `lake/sql/`
(`report-*.sql`), so a notebook gets the same. The funnel adds up: every planned URL was asked, skipped or
carried over; every URL asked was fetched, redirected or failed; every fetched one was parsed or is told why
not. Fetched means that an answer confirmed or brought content; a redirect does neither.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from crawl.errors import UsageError
from cycles.session import reading
from cycles.session.setup import Lake
from cycles.words.output import grid, shown
from cycles.words.wording import (
    CARRIED,
    LEFT_OUT,
    LISTED,
    SCOPE,
    SKIPPED,
    UNFOLLOWED,
    UNKEPT,
    UNPARSED,
    UNREAD,
    counted,
)
from lake import snapshot

__all__ = ["PARTS", "report", "told"]

#: part of a report → (question, heading)
PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "funnel": ("report-funnel", "Funnel"),
    "fates": ("report-fates", "What became of each URL"),
    "outcomes": ("report-outcomes", "How requests ended"),
    "states": ("report-states", "States of all URLs"),
    "cuts": ("report-cuts", "Due, but not planned"),
    "rejects": ("report-rejects", "Refused, dropped or skipped"),
    "changes": ("report-changes", "Documents that are new, changed or gone (events)"),
    "hosts": ("report-hosts", "Hosts"),
    "plan": ("report-plan", "Plan against actual"),
}
#: heading of the rejects that are none: pages that were read
_UNKEPT: Final = "Read, but kept or published in part, as the page asks"
#: hosts a report for the eye names
_HOSTS: Final = 20
#: stages in the order in which a round runs them
_STAGES: Final = ("plan", "fetch", "parse", "dedup", "merge", "publish", "seal", "commit")
#: words of the codes that each of a report's tables has
_WORDS: Final = {
    "cuts": LEFT_OUT,
    "rejects": {**SCOPE, **LEFT_OUT, **CARRIED, **LISTED, **UNFOLLOWED, **UNREAD, **UNKEPT},
}
#: reasons for which URLs were left out that have nothing to do with capacity, in words
_HELD: Final = {
    "circuit_open": "of hosts that are shut off",
    "host_backoff": "of hosts that are left alone after errors",
    "blocked": "that are blocked still",
    "paused": "of paused hosts",
}


def report(lake: Lake, round_: int | None, now: datetime) -> dict[str, Any]:
    """Rows by part, of a round or the last one that planned something (`chosen` says why that one).

    Raises UsageError for a round that is not kept.
    """
    number, chosen = (round_, None) if round_ is not None else _last(lake)
    with reading.reader(lake.store, now, number) as reader:
        found: dict[str, Any] = {"lake": lake.root, "round": number, "chosen": chosen}
        for part, (question, _) in PARTS.items():
            found[part] = reading.query(reader, question, round=number)
        entry = next(r for r in reading.query(reader, "report-round", round=number) if r["kind"] == "round")
    for column in ("plan", "actual", "counts", "stage_ms", "bytes_read", "bytes_written"):
        entry[column] = json.loads(entry[column])
    entry.pop("settings")
    return {**found, "entry": entry}


def _last(lake: Lake) -> tuple[int, str | None]:
    """The last round that planned something, else the last one; and a word on it where it is not the last."""
    rounds = [row for row in snapshot.entries(lake.store).to_pylist() if row["kind"] == "round"]
    if not rounds:
        raise UsageError(f"{lake.root}: no round was committed yet; `crawl run {lake.root}` makes one")
    last = int(rounds[-1]["round"])
    planned = [int(row["round"]) for row in rounds if json.loads(row["counts"]).get("planned")]
    if not planned:
        return last, None
    since = last - planned[-1]
    word = f"the last round that planned something; {counted(since, 'later round')} had nothing to fetch"
    return planned[-1], word if since else None


def told(found: Mapping[str, Any]) -> str:
    """The report for the eye."""
    entry = found["entry"]
    took = (entry["committed_at"] - entry["opened_at"]).total_seconds()
    head = (
        f"{found['lake']}, round {found['round']}: planned for {shown(entry['now'])},"
        f" committed {shown(entry['committed_at'])} after {took:,.1f} s"
    )
    lines = [head, *([f"({found['chosen']})"] if found["chosen"] else []), ""]
    lines += [*_funnel(found["funnel"], found["fates"]), ""]
    for part in ("outcomes", "states", "cuts", "rejects", "changes", "hosts"):
        rows = _worded(part, found[part])
        if part == "rejects":
            unkept = [row for row in rows if row["reason"] in UNKEPT]
            rows = [row for row in rows if row["reason"] not in UNKEPT]
            lines += _section(_UNKEPT, unkept) if unkept else []
        lines += _section(PARTS[part][1], rows, _HOSTS if part == "hosts" else None)
    lines += [PARTS["plan"][1], *_plan(found, entry), ""]
    lines += ["Stages", *(f"  {name:<10} {s:>9,.2f} s" for name, s in _stages(entry["stage_ms"], took))]
    return "\n".join(lines).rstrip()


def _worded(part: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows for the eye: shares in per cent, codes with their words."""
    told = []
    for row in rows:
        if part == "outcomes":
            row = {**row, "share": None if row["share"] is None else f"{row['share']:.1%}"}
        elif part in ("cuts", "rejects"):
            row = {**row, "meaning": _WORDS[part].get(row["reason"])}
        told.append(dict(row))
    return told


def _stages(stage_ms: Mapping[str, Any], took: float) -> list[tuple[str, float]]:
    """Seconds by stage, as they run; what no stage accounts for is opening, sealing and committing."""
    ranks = {name: rank for rank, name in enumerate(_STAGES)}
    timed = [(name, ms / 1000) for name, ms in stage_ms.items() if isinstance(ms, int | float)]
    timed.sort(key=lambda stage: (ranks.get(stage[0], len(ranks)), stage[0]))
    rest = took - sum(seconds for _, seconds in timed)
    return [*timed, ("seal, rest", rest)] if timed and rest > 0 else timed


def _funnel(funnel: Sequence[Mapping[str, Any]], fates: Sequence[Mapping[str, Any]]) -> list[str]:
    """The steps, and what became of the URLs that did not take the next one."""
    if not funnel:
        return ["Funnel", "  nothing"]
    steps = funnel[0]
    asked, hops = steps["attempted"], steps["hops"]
    lines = [
        f"Funnel  {steps['planned']:,} planned → {asked:,} asked → {steps['fetched']:,} fetched"
        f" → {steps['parsed']:,} parsed",
        f"  {steps['planned']:,} planned = {asked - hops:,} asked"
        + _lost(fates, "skipped", SKIPPED, hops=False)
        + _lost(fates, "carried", CARRIED, "carried over", hops=False),
    ]
    if hops:
        lines.append(f"  {asked:,} asked = {asked - hops:,} planned + {hops:,} that redirects led to")
    lines += [
        f"  {asked:,} asked = {steps['fetched']:,} fetched"
        + _lost(fates, "redirected", {"REDIRECT": ""})
        + _lost(fates, "failed", {}),
        f"  {steps['fetched']:,} fetched = {steps['parsed']:,} parsed"
        + _lost(fates, "unparsed", UNPARSED, "not parsed"),
        f"  besides: {counted(steps['stored'], 'URL')} with a document, new or unchanged;"
        f" {counted(steps['index_ready'], 'event')}; {counted(steps['discovered'], 'URL')} discovered",
    ]
    if steps["lists_planned"] or steps["lists_asked"]:
        lines.append(
            f"  of these, sitemaps and feeds: {steps['lists_planned']:,} planned,"
            f" {steps['lists_asked']:,} asked, {steps['lists_fetched']:,} fetched,"
            f" {steps['lists_parsed']:,} read; they named {counted(steps['listed'], 'new URL')}"
        )
    return lines


def _lost(
    fates: Sequence[Mapping[str, Any]],
    fate: str,
    words: Mapping[str, str],
    name: str = "",
    *,
    hops: bool = True,
) -> str:
    """` + n fate (reason: n, …)`; nothing where there are none."""
    some = [
        (row["urls"] - (0 if hops else row["hops"]), row["reason"]) for row in fates if row["fate"] == fate
    ]
    some = [(count, reason) for count, reason in some if count]
    if not some:
        return ""
    named = [(count, words.get(reason, reason)) for count, reason in some]
    why = ", ".join(f"{reason}: {count:,}" for count, reason in named if reason)
    return f" + {sum(count for count, _ in some):,} {name or fate}" + (f" ({why})" if why else "")


def _section(heading: str, rows: Sequence[Mapping[str, Any]], most: int | None = None) -> list[str]:
    if not rows:
        return [heading, "  none", ""]
    names = list(rows[0])
    numbers = [n for n in names if isinstance(rows[0][n], int | float)]
    cells = [list(row.values()) for row in rows[:most]]
    table = grid(names, cells, numbers).rstrip().splitlines()
    more = [f"  … and {len(rows) - most:,} more"] if most is not None and len(rows) > most else []
    return [heading, *("  " + line for line in table), *more, ""]


def _plan(found: Mapping[str, Any], entry: Mapping[str, Any]) -> list[str]:
    if not found["plan"]:
        return ["  nothing was planned"]
    row, plan = found["plan"][0], entry["plan"]
    predicted = plan.get("seconds")
    seconds = row["fetching_s"]
    lines = [
        f"  pages     {row['planned_urls'] or 0:,} planned, {row['pages'] or 0:,} asked"
        f" ({row['requests'] or 0:,} requests with robots.txt and hops)",
        f"  hosts     {row['planned_hosts'] or 0:,} planned, {row['asked_hosts'] or 0:,} asked",
        f"  left out  {_left_out(found['cuts'])}",
    ]
    if predicted is not None:
        lines.append(
            f"  fetching  {predicted:,.1f} s predicted, {seconds or 0:,.1f} s taken{_off(predicted, seconds)}"
        )
    if plan.get("cap"):
        lines.append(f"  expected to be capped by {plan['cap']}{_slowest(plan)}")
    timed = [host for host in found["hosts"] if host["seconds"] is not None]
    if timed:
        last = max(timed, key=lambda host: host["seconds"])
        lines.append(
            f"  busy longest was {last['host']} ({counted(last['requests'], 'request')}"
            f" in {last['seconds']:,.1f} s)"
        )
    return lines


def _left_out(cuts: Sequence[Mapping[str, Any]]) -> str:
    """How many due URLs were not planned: for want of capacity, and for what else."""
    held = dict.fromkeys(_HELD, 0)
    scarce = 0
    for row in cuts:
        if row["reason"] in held:
            held[row["reason"]] += row["urls"]
        else:
            scarce += row["urls"]
    others = [f"{urls:,} {_HELD[reason]}" for reason, urls in held.items() if urls]
    return ", ".join(([f"{scarce:,} for want of capacity"] if scarce else []) + others) or "none"


def _off(predicted: float, seconds: float | None) -> str:
    if not seconds or not predicted:
        return ""
    return f" ({(seconds - predicted) / predicted:+.0%})"


def _slowest(plan: Mapping[str, Any]) -> str:
    caps = plan.get("caps") or []
    return (
        f": {caps[0]['host']} ({caps[0]['requests']:,} requests in {caps[0]['seconds']:,.1f} s)"
        if caps
        else ""
    )
