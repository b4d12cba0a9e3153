"""`crawl check`: what must always hold of a lake, asked of the lake.

What always holds: each check is one question whose answer is the rows that violate it, so that a failure
shows its evidence; SQL asks for what rows can show (`lake/sql/check-*.sql`), the functions here for what only
files can show. Files are looked at first, so that what is missing is named; a check that cannot be asked
for want of them is a finding, not an end. It repairs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from crawl.errors import LakeError
from crawl.net.egress import Guard
from cycles.commands import demands
from cycles.session import reading
from cycles.session.setup import Lake
from cycles.words.output import shown
from lake import checks, ranges, snapshot, sql
from lake.snapshot import Snapshot
from lake.tables import SPECS

__all__ = ["Finding", "check", "told"]

#: parameters that are worked out from settings and robots.txt, for all checks at once
_DEMANDS: Final = frozenset({"manners", "delays", "lanes"})
#: violating rows that a finding keeps
KEPT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found."""

    name: str
    question: str
    count: int  # violations; 0: it holds, if it could be asked
    rows: list[dict[str, Any]]  # the first of them
    unasked: str | None = None  # why it could not be asked

    @property
    def holds(self) -> bool:
        """It was asked, and nothing violates it."""
        return not self.count and self.unasked is None


def check(lake: Lake, now: datetime, round_: int | None = None) -> Iterator[Finding]:
    """Run all checks on the newest round's state, or on that of `round_`.

    Raises UsageError for a round that was never committed, LakeError where the lake's logs cannot be read.
    """
    pinned = snapshot.latest(lake.store) if round_ is None else snapshot.at(lake.store, round_)
    for question, find in _OF_FILES.items():
        violations = list(find(lake, pinned))
        name = "file-" + find.__name__.strip("_").replace("_", "-")
        yield Finding(name=name, question=question, count=len(violations), rows=violations[:KEPT])
    merged, done = reading.merged_through(lake.store, round_), 0
    try:
        with sql.connect(lake.store, pinned, now) as reader:
            demanded = cache(lambda: demands.demands(reader))
            for name in sql.names("check-"):
                done += 1
                yield _asked(lake, reader, pinned, name, merged, demanded)
    except LakeError as exc:  # a view cannot even be opened
        for name in sql.names("check-")[done:]:
            yield _unasked(name, exc)


def _asked(
    lake: Lake,
    reader: sql.Reader,
    pinned: Snapshot,
    name: str,
    merged: int,
    demanded: Callable[[], dict[str, str]],
) -> Finding:
    try:
        values: dict[str, Any] = {"merged": merged}
        if "denied" in sql.parameters(name):
            values["denied"] = _denied(lake, reader)
        if not sql.parameters(name).isdisjoint(_DEMANDS):
            values |= demanded()
        return _by_sql(lake, reader, pinned, name, values)
    except LakeError as exc:
        return _unasked(name, exc)


def _unasked(name: str, why: LakeError) -> Finding:
    short = name.removeprefix("check-")
    return Finding(
        name=short, question=sql.question(name), count=0, rows=[], unasked=str(why).partition("; restore")[0]
    )


def _denied(lake: Lake, reader: sql.Reader) -> list[str]:
    """Addresses that were asked and may not be, by today's settings."""
    guard = Guard(lake.settings.egress)
    asked = (row["address"] for row in reading.query(reader, "addresses"))
    return [address for address in asked if not guard.permits(address)]


def _by_sql(lake: Lake, reader: sql.Reader, pinned: Snapshot, name: str, values: dict[str, Any]) -> Finding:
    """One question; those asked by key range are asked range by range, so that memory stays bounded."""
    text = sql.text(name)
    spans = _spans(lake, pinned) if "$lo" in text else [(ranges.MIN, ranges.MAX)]
    count = 0
    rows: list[dict[str, Any]] = []
    for lo, hi in spans:
        found = reading.query(reader, name, **values, lo=lo, hi=hi)
        count += len(found)
        rows += found[: KEPT - len(rows)]
    short = name.removeprefix("check-")
    return Finding(name=short, question=sql.question(name), count=count, rows=rows)


def _spans(lake: Lake, pinned: Snapshot) -> list[tuple[int, int]]:
    files = [("url_key", file) for file in pinned.files("seen")]
    return (
        ranges.cut(lake.store, files, lake.settings.storage.merge_rows)
        if files
        else [(ranges.MIN, ranges.MAX)]
    )


def told(finding: Finding) -> str:
    """A finding for the eye: whether the check holds, and what violates it."""
    question = re.sub(r"(, by key range)? \([^()]*\$[^()]*\)", "", finding.question)  # parameters aside
    if finding.holds:
        return f"ok    {finding.name:<20} {question} (none)"
    head = f"FAIL  {finding.name}: {question}"
    if finding.unasked is not None:
        return f"{head} It could not be asked: {finding.unasked}"
    lines = [f"{head} {finding.count:,} found, e.g."]
    lines += [
        "      " + ", ".join(f"{key}={shown(value)}" for key, value in row.items()) for row in finding.rows
    ]
    return "\n".join(lines)


def _present(lake: Lake, pinned: Snapshot) -> Iterator[dict[str, Any]]:
    for table in SPECS:
        there = {stat.path: stat.size for stat in lake.store.list(table)}
        for file in pinned.files(table):
            size = there.get(file.location)
            if size != file.size:
                yield {"file": file.location, "bytes": size, "bytes_in_log": file.size}


def _footers(lake: Lake, pinned: Snapshot) -> Iterator[dict[str, Any]]:
    for table, spec in SPECS.items():
        for file in pinned.files(table):
            try:
                with pq.ParquetFile(lake.store.open_read(file.location)) as parquet:
                    rows, names = parquet.metadata.num_rows, set(parquet.schema_arrow.names)
            except (LakeError, pa.ArrowException, OSError) as exc:
                yield {"file": file.location, "error": str(exc)[:200]}
                continue
            missing = sorted(set(spec.stored.names) - names - pinned.lacking(table))
            if rows != file.rows or missing:
                yield {"file": file.location, "rows": rows, "rows_in_log": file.rows, "missing": missing}


def _statistics(lake: Lake, pinned: Snapshot) -> Iterator[dict[str, Any]]:
    import json

    for table, spec in SPECS.items():
        for file in pinned.files(table):
            nulls = json.loads(file.stats).get("nullCount", {})
            missing = [
                name
                for name in spec.stats
                if name not in nulls or (file.bounds(name) is None and nulls[name] != file.rows)
            ]
            if missing and file.rows:
                yield {"file": file.location, "without_statistics": missing}


def _ordered(lake: Lake, pinned: Snapshot) -> Iterator[dict[str, Any]]:
    yield from checks.disordered(lake.store, pinned)


def _apart(_: Lake, pinned: Snapshot) -> Iterator[dict[str, Any]]:
    yield from checks.overlapping(pinned)


Find = Callable[[Lake, Snapshot], Iterator[dict[str, Any]]]

_OF_FILES: dict[str, Find] = {
    "Which files of the log are missing, or have another size?": _present,
    "Which files cannot be read, or hold other rows or columns than the log says?": _footers,
    "Which files lack statistics that others have, so that readers would skip their rows?": _statistics,
    "Which files are not in their table's order, or hold keys outside the log's bounds?": _ordered,
    "Which runs claim the same rounds, so that the newest row would be unclear?": _apart,
}
