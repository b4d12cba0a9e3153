"""What a round did: the funnel, outcomes, states, what was cut, skipped or refused, plan against actual.

What always holds: every number comes from the lake as that round left it, by a question of `lake/sql/`
(`report-*.sql`), so a notebook gets the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from crawl.errors import UsageError
from cycles import reading
from cycles.output import grid, shown
from cycles.setup import Lake
from lake import snapshot

__all__ = ["PARTS", "report", "told"]

#: part of a report → (question, heading)
PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "funnel": ("report-funnel", "Funnel"),
    "outcomes": ("report-outcomes", "How requests ended"),
    "states": ("report-states", "States of all URLs"),
    "cuts": ("report-cuts", "Due, but not planned"),
    "rejects": ("report-rejects", "Refused, dropped or skipped"),
    "changes": ("report-changes", "Documents"),
    "hosts": ("report-hosts", "Hosts"),
    "plan": ("report-plan", "Plan against actual"),
}
#: hosts a report for the eye names
_HOSTS: Final = 20


def report(lake: Lake, round_: int | None, now: datetime) -> dict[str, Any]:
    """Rows by part, of a round or the newest one. Raises UsageError for a round that is not kept."""
    newest = snapshot.newest(lake.store)
    if newest is None:
        raise UsageError(f"{lake.root}: no round was committed yet; `crawl run {lake.root}` makes one")
    number = round_ if round_ is not None else int(newest["round"])
    with reading.reader(lake.store, now, number) as reader:
        found: dict[str, Any] = {"lake": lake.root, "round": number}
        for part, (question, _) in PARTS.items():
            found[part] = reading.query(reader, question, round=number)
        entry = next(r for r in reading.query(reader, "report-round", round=number) if r["kind"] == "round")
    for column in ("plan", "actual", "counts", "stage_ms", "bytes_read", "bytes_written"):
        entry[column] = json.loads(entry[column])
    entry.pop("settings")
    return {**found, "entry": entry}


def told(found: Mapping[str, Any]) -> str:
    """The report for the eye."""
    entry = found["entry"]
    took = (entry["committed_at"] - entry["opened_at"]).total_seconds()
    head = (
        f"{found['lake']}, round {found['round']}: planned for {shown(entry['now'])},"
        f" committed {shown(entry['committed_at'])} after {took:,.1f} s"
    )
    lines = [head, "", _funnel(found["funnel"]), ""]
    for part in ("outcomes", "states", "cuts", "rejects", "changes", "hosts"):
        lines += _section(PARTS[part][1], found[part], _HOSTS if part == "hosts" else None)
    lines += [PARTS["plan"][1], *_plan(found["plan"], entry), ""]
    lines += ["Stages", *(f"  {name:<10} {ms / 1000:>9,.2f} s" for name, ms in _stages(entry["stage_ms"]))]
    return "\n".join(lines).rstrip()


def _stages(stage_ms: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [(name, float(ms)) for name, ms in stage_ms.items() if isinstance(ms, int | float)]


def _funnel(rows: Sequence[Mapping[str, Any]]) -> str:
    steps = dict(rows[0]) if rows else {}
    found = steps.pop("discovered", 0)
    return (
        "Funnel  "
        + " → ".join(f"{n:,} {step.replace('_', '-')}" for step, n in steps.items())
        + (f"; {found:,} URLs discovered")
    )


def _section(heading: str, rows: Sequence[Mapping[str, Any]], most: int | None = None) -> list[str]:
    if not rows:
        return [heading, "  none", ""]
    names = list(rows[0])
    numbers = [n for n in names if isinstance(rows[0][n], int | float)]
    cells = [list(row.values()) for row in rows[:most]]
    table = grid(names, cells, numbers).rstrip().splitlines()
    more = [f"  … and {len(rows) - most:,} more"] if most is not None and len(rows) > most else []
    return [heading, *("  " + line for line in table), *more, ""]


def _plan(rows: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]) -> list[str]:
    if not rows:
        return ["  nothing was planned"]
    row, plan = rows[0], entry["plan"]
    predicted = plan.get("seconds")
    seconds = row["fetching_s"]
    lines = [
        f"  pages     {row['planned_urls'] or 0:,} planned, {row['pages'] or 0:,} asked"
        f" ({row['requests'] or 0:,} requests with robots.txt and hops)",
        f"  hosts     {row['planned_hosts'] or 0:,} planned, {row['asked_hosts'] or 0:,} asked",
        f"  left out  {row['cut_urls'] or 0:,} for want of capacity",
    ]
    if predicted is not None:
        lines.append(
            f"  fetching  {predicted:,.1f} s predicted, {seconds or 0:,.1f} s taken{_off(predicted, seconds)}"
        )
    if plan.get("cap"):
        lines.append(f"  capped by {plan['cap']}{_slowest(plan)}")
    return lines


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
