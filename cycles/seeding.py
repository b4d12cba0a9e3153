"""Seeds: addresses from the command line or a file (text, CSV, Parquet) → rows of the table `seeds`.

What always holds: a file of any size is read in batches; every line that is no seed is told with its number
and reason and stays in the table as refused; the rest is accepted, in one commit.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from crawl.errors import UrlError, UsageError
from crawl.keys import Keyer
from crawl.policy import Settings
from crawl.schema import SEEDS
from crawl.scope import allowed
from crawl.url import canonical, split_many
from cycles import ledger
from cycles.output import safe
from cycles.setup import Lake

__all__ = ["KINDS", "PRIORITIES", "Added", "Refusal", "Seed", "add", "judge", "read_file"]

KINDS: Final = ("page", "sitemap", "feed")
PRIORITIES: Final = ("critical", "high", "medium", "low")
BATCH: Final = 20_000
#: a line of a seed file longer than this is garbage, not an address
MAX_LINE: Final = 65_536
#: refusals told one by one
TOLD: Final = 20


@dataclass(frozen=True, slots=True)
class Seed:
    """One address as given; `line` counts from 1 (of a table: the row, header not counted)."""

    line: int
    text: str
    kind: str = "page"
    priority: str | None = None
    broken: str | None = None  # reason code when the line could not even be read


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that is no seed, and why."""

    line: int
    text: str
    reason: str


def read_file(path: Path) -> Iterator[Seed]:
    """Seeds of a .parquet or .csv file (with a column `url`), else lines of text. Raises UsageError."""
    readers = {".parquet": _parquet, ".pq": _parquet, ".csv": _csv}
    try:
        yield from readers.get(path.suffix.lower(), _text)(path)
    except (OSError, pa.ArrowInvalid) as exc:
        raise UsageError(f"cannot read the seed file {path}: {exc}") from exc


def _text(path: Path) -> Iterator[Seed]:
    with path.open("rb") as lines:
        number = 0
        while line := lines.readline(MAX_LINE):
            number += 1
            if line.endswith(b"\n") or len(line) < MAX_LINE:
                yield from _line(number, line, first=number == 1)
                continue
            rest = line
            while len(rest) == MAX_LINE and not rest.endswith(b"\n"):  # skip it, one bounded piece at a time
                rest = lines.readline(MAX_LINE)
            yield Seed(number, line[:200].decode(errors="replace"), broken="url_too_long")


def _line(number: int, line: bytes, *, first: bool) -> Iterator[Seed]:
    data = line.removeprefix(b"\xef\xbb\xbf") if first else line
    try:
        text = data.decode().strip()
    except UnicodeDecodeError:
        yield Seed(number, data[:200].decode(errors="replace").strip(), broken="not_utf8")
        return
    if text and not text.startswith("#"):
        yield Seed(number, text)


def _csv(path: Path) -> Iterator[Seed]:
    with path.open("rb") as raw:
        rows = csv.DictReader(io.TextIOWrapper(raw, "utf-8-sig", errors="replace", newline=""))
        if "url" not in _header(rows):
            raise UsageError(f"{path} has no column `url`; its first line must name the columns")
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as exc:  # the reader goes on with the line after
                yield Seed(rows.reader.line_num, str(exc), broken="csv_broken")
            else:
                yield _row(rows.line_num, row)


def _header(rows: csv.DictReader[str]) -> Sequence[str]:
    try:
        return rows.fieldnames or ()
    except csv.Error:
        return ()


def _parquet(path: Path) -> Iterator[Seed]:
    with pq.ParquetFile(path) as file:
        names = [n for n in ("url", "kind", "priority") if n in file.schema_arrow.names]
        if "url" not in names:
            raise UsageError(f"{path} has no column `url`")
        number = 0
        for batch in file.iter_batches(BATCH, columns=names):
            for row in batch.to_pylist():
                number += 1
                yield _row(number, row)


def _row(number: int, row: Mapping[str, Any]) -> Seed:
    text = str(row.get("url") or "").strip()
    kind = str(row.get("kind") or "page").strip().lower()
    priority = str(row.get("priority") or "").strip().lower() or None
    broken = None
    if kind not in KINDS:
        broken = "kind_unknown"
    elif priority is not None and priority not in PRIORITIES:
        broken = "priority_unknown"
    elif not text or "\ufffd" in text:
        broken = "not_utf8" if text else "url_empty"
    elif "\n" in text or "\r" in text:
        broken = "line_break"  # an unclosed quote swallowed lines; joined they might look like an address
    return Seed(number, text, kind if kind in KINDS else "page", priority, broken)


def judge(
    seeds: Iterable[Seed],
    *,
    keyer: Keyer,
    settings: Settings,
    priority: Literal["critical", "high", "medium", "low"] | str,
    now: datetime,
    added_by: str,
    refused: Callable[[Refusal], None],
) -> Iterator[pa.Table]:
    """Batches of rows of `seeds`, in the order given; `refused` is told of every refusal as it is met."""
    batch: list[Seed] = []
    for seed in seeds:
        batch.append(seed)
        if len(batch) == BATCH:
            yield _rows(batch, keyer, settings, priority, now, added_by, refused)
            batch = []
    if batch:
        yield _rows(batch, keyer, settings, priority, now, added_by, refused)


def _rows(
    batch: Sequence[Seed],
    keyer: Keyer,
    settings: Settings,
    priority: str,
    now: datetime,
    added_by: str,
    refused: Callable[[Refusal], None],
) -> pa.Table:
    urls: list[str | None] = []
    reasons: list[str | None] = []
    for seed in batch:
        url, reason = _verdict(seed, settings)
        urls.append(url)
        reasons.append(reason)
        if reason is not None:
            refused(Refusal(seed.line, seed.text[:200], reason))
    good = [u for u in urls if u is not None]
    keys = iter(keyer.url_keys(good, split_many(good)[2]).tolist())
    columns: dict[str, Sequence[Any]] = {
        "url": [s.text for s in batch],
        "url_key": [next(keys) if u is not None else None for u in urls],
        "kind": [s.kind for s in batch],
        "priority": [s.priority or priority for s in batch],
        "added_at": [now] * len(batch),
        "added_by": [added_by] * len(batch),
        "verdict": ["accepted" if r is None else "refused" for r in reasons],
        "reason": reasons,
    }
    return pa.table(columns, schema=SEEDS)


def _verdict(seed: Seed, settings: Settings) -> tuple[str | None, str | None]:
    """(canonical URL, None) or (None, reason code)."""
    if seed.broken is not None:
        return None, seed.broken
    try:
        url = canonical(seed.text)
    except UrlError as exc:
        return None, exc.reason
    _, hosts, domains = split_many([url])
    reason = allowed(url, hosts[0], domains[0], 0, settings.scope, settings.limits)
    return (url, None) if reason is None else (None, reason)


@dataclass(frozen=True, slots=True)
class Added:
    """How many seeds went in, and how many were refused (both are rows of the table)."""

    accepted: int
    refused: int


def add(
    lake: Lake,
    urls: Sequence[str],
    file: Path | None,
    *,
    priority: str,
    who: str,
    now: datetime,
    tell: Callable[[str], None],
) -> Added:
    """Put URLs and the lines of a file into the table `seeds`, in one commit; tells what was refused.

    Raises UsageError for a file that cannot be read (then nothing is added), LakeError.
    """
    refusals = 0

    def refused(refusal: Refusal) -> None:
        nonlocal refusals
        refusals += 1
        if refusals <= TOLD:
            where = f"{file}, line {refusal.line}" if file is not None and refusal.line else "refused"
            tell(f"{where}: {refusal.reason}: {safe(refusal.text)}")

    given = (Seed(0, text.strip()) for text in urls)
    lines = read_file(file) if file is not None else ()
    batches = judge(
        chain(given, lines),
        keyer=lake.keyer(),
        settings=lake.settings,
        priority=priority,
        now=now,
        added_by=who,
        refused=refused,
    )
    rows = ledger.append(lake.store, "seeds", batches)
    if refusals > TOLD:
        tell(f"… and {refusals - TOLD:,} more: SELECT url, reason FROM seeds WHERE verdict = 'refused'")
    detail = f"{rows - refusals} accepted, {refusals} refused" + (f", from {file}" if file else "")
    ledger.audit(lake.store, at=now, who=who, action="seed", subject=lake.root, detail=detail)
    return Added(rows - refusals, refusals)
