"""The end of a round: every file it adds, its rejects added up, and its row in `rounds`.

What always holds: the listing is made from the steps' objects alone, so any driver concludes alike; counts
are rows, bytes are what was written to tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from crawl.rejects import Rejects, total
from cycles.rounds.steps import Desk
from cycles.session.clock import utcnow
from cycles.session.context import Context
from cycles.settings.config import to_json
from cycles.tasks import merge_task
from cycles.words.wording import CARRIED, SKIPPED, counted
from lake import files
from lake.entries import FileEntry

__all__ = ["conclude", "nothing_fetched", "summary"]


def conclude(
    desk: Desk,
    planned: Mapping[str, Any],
    fetched: Mapping[str, Any],
    stored: Mapping[str, Any],
    merged: Mapping[str, Any],
    driver: str,
) -> tuple[list[FileEntry], dict[str, Any]]:
    """(files the round adds, its row in `rounds` but for versions and commit time). Writes the last files."""
    context = desk.context
    parsed = fetched["parsed"]
    listing = [FileEntry.from_dict(e) for e in (*planned["files"], *stored["files"], *merged["files"])]
    listing += [FileEntry.from_dict(e) for one in parsed for e in (*one["fetches"], *one["links"])]
    listing += merge_task.host_files(context, fetched["groups"], merged.get("evidence", ()))
    listing += _rejects(context, planned, fetched, merged)
    counts = _counts(desk, planned, fetched, merged, listing)
    row = {
        "opened_at": context.opened_at,
        "driver": driver,
        "now": context.now,
        "window_s": context.window_s,
        "settings": to_json(context.settings),
        "policy_version": context.policy_version,
        "versions": dict(context.versions),
        "counts": counts,
        "bytes_written": _bytes(listing),
        "stage_ms": desk.stage_ms,
        "plan": planned["predicted"],
        "actual": {
            "seconds": round((utcnow() - context.opened_at) / timedelta(seconds=1), 3),
            "fetch_seconds": round(desk.stage_ms.get("fetch", 0.0) / 1000, 3),
            "asked": counts["attempted"],
            "fetched": counts["fetched"],
        },
    }
    return listing, row


def _rejects(
    context: Context, planned: Mapping[str, Any], fetched: Mapping[str, Any], merged: Mapping[str, Any]
) -> list[FileEntry]:
    """One file of `rejects`, every reason counted once; none when nothing was left out."""
    carried = Rejects((reason, host, "", count, host) for host, reason, count in fetched["carried"])
    tables: list[pa.Table] = [
        carried.rows("fetch", day=context.day, round_=context.round, policy_version=context.policy_version)
    ]
    paths = [one["rejects"] for one in fetched["parsed"]] + list(merged["rejects"]) + list(planned["rejects"])
    tables += [files.read_work(context.work.store, path) for path in paths if path]
    rows = total(tables)
    if not rows.num_rows:
        return []
    return [files.write(context.work.store, "rejects", rows, day=context.day)]


def _counts(
    desk: Desk,
    planned: Mapping[str, Any],
    fetched: Mapping[str, Any],
    merged: Mapping[str, Any],
    listing: Sequence[FileEntry],
) -> dict[str, int]:
    tasks = _summed(one["counts"] for one in fetched["parsed"])
    rows = Counter[str]()
    for entry in listing:
        rows[entry.table] += entry.rows
    through = desk.context.round if desk.pinned["merge_links"] else int(desk.pinned["links_merged_through"])
    return {
        "planned": int(planned["planned"]),
        "carried": sum(int(count) for _, _, count in fetched["carried"]),
        "requests": tasks["requests"],
        "parsed": tasks["parsed"],
        "failed": tasks["failed"],
        "links": rows["links"],
        "documents": rows["documents"],
        "bodies": rows["bodies"],
        "events": rows["outbox"],
        **{name: int(value) for name, value in merged["counts"].items()},
        "links_merged_through": through,
    }


def _summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    found = Counter[str]()
    for one in counts:
        found.update(one)
    return found


def _bytes(listing: Sequence[FileEntry]) -> dict[str, int]:
    found = Counter[str]()
    for entry in listing:
        found[entry.table] += entry.size
    return dict(found)


def summary(number: int, counts: Mapping[str, Any], stage_ms: Mapping[str, float]) -> str:
    """A round in one line; `asked` and `fetched` as in its report."""
    seconds = sum(stage_ms.values()) / 1000
    return (
        f"round {number}: {counts['planned']:,} planned, {counts['attempted']:,} asked, "
        f"{counts['fetched']:,} fetched, {counts['parsed']:,} parsed, "
        f"{counted(counts['documents'], 'new document')}, {counted(counts['discovered'], 'new URL')}, "
        f"{seconds:,.1f} s"
    )


def nothing_fetched(number: int, fates: Sequence[Mapping[str, Any]], root: str) -> str:
    """Of a round that had a plan and fetched nothing: why, by `report-fates`, and where more is told."""
    why = Counter[str]()
    for row in fates:
        words = CARRIED if row["fate"] == "carried" else SKIPPED
        why[words.get(row["reason"], row["reason"])] += row["urls"]
    told = ", ".join(f"{reason}: {urls:,}" for reason, urls in why.most_common())
    return (
        f"round {number}: nothing was fetched ({told});"
        f" `crawl report {root} {number}` and `crawl explain {root} URL` tell more"
    )
