"""Seeds: addresses from the command line or a file (text, CSV, Parquet) → rows of the table `seeds`.

What always holds: a file of any size is read in batches; every line that is no seed is told with its number
and reason and stays in the table as refused; the rest is accepted, in one commit.
"""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
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
from cycles.session import ledger, opening
from cycles.session.setup import Lake
from cycles.words.output import safe, shown
from cycles.words.wording import SCOPE, SEED

__all__ = ["KINDS", "PRIORITIES", "Added", "Refusal", "Seed", "add", "judge", "moment", "read_file"]

KINDS: Final = ("page", "sitemap", "feed")
PRIORITIES: Final = ("critical", "high", "medium", "low")
BATCH: Final = 20_000
#: a line of a seed file longer than this is garbage, not an address
MAX_LINE: Final = 65_536
#: lines that one value in quotes may go on over
QUOTED_LINES: Final = 50
#: refusals told one by one
TOLD: Final = 20


@dataclass(frozen=True, slots=True)
class Seed:
    """One address as given; `line` counts from 1 (of a table: the row, header not counted)."""

    line: int
    text: str
    kind: str | None = None  # None: what the command says
    priority: str | None = None
    broken: str | None = None  # reason code when the line could not even be read


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that is no seed, and why."""

    line: int
    text: str
    reason: str


def read_file(path: Path) -> Iterator[Seed]:
    """Seeds of a .parquet or .csv file (with a column `url`), else lines of text; `#` begins a remark there
    and in CSV. Raises UsageError.
    """
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
        lines = _Lines(io.TextIOWrapper(raw, "utf-8-sig", errors="replace", newline=""))
        header = _header(lines)
        if "url" not in header:
            raise UsageError(f"{path} has no column `url`; its first line must name the columns")
        while line := lines.take():
            number = lines.number
            if line.startswith("#"):  # a remark, as in a text file
                continue
            try:
                row = _record(line, lines, header)
            except csv.Error as exc:
                yield Seed(number, f"{exc}: {line[:200].strip()}", broken="csv_broken")
                continue
            if row is None:
                yield Seed(number, line[:200].strip(), broken="quote_open")
            elif row:
                yield _row(number, dict(zip(header, row, strict=False)))


class _Lines:
    """Lines of a file, one by one, and a look at those that follow."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._ahead: deque[str] = deque()
        self.number = 0  # of the line taken last

    def take(self) -> str:
        """The next line; empty at the end."""
        line = self._ahead.popleft() if self._ahead else next(self._lines, "")
        self.number += bool(line)
        return line

    def look(self, ahead: int) -> str:
        """The line so far ahead, from 0; empty beyond the end."""
        while len(self._ahead) <= ahead:
            line = next(self._lines, "")
            if not line:
                return ""
            self._ahead.append(line)
        return self._ahead[ahead]


def _header(lines: _Lines) -> list[str]:
    try:
        return next(csv.reader([lines.take()]), [])
    except csv.Error:
        return []


def _record(line: str, lines: _Lines, header: Sequence[str]) -> list[str] | None:
    """The values of a record that begins with `line`; None where a quote is opened and closed by none of the
    next lines, or by one that ends no record: then the lines after it are records of their own. Takes the
    lines that a record in quotes goes on over. Raises csv.Error.
    """
    text, ahead = line, 0
    while (row := _values(text)) is None:
        more = lines.look(ahead) if ahead < QUOTED_LINES else ""
        if not more:
            return None
        text, ahead = text + more, ahead + 1
    if ahead and (len(row) != len(header) or "\n" in row[header.index("url")]):
        return None
    for _ in range(ahead):
        lines.take()
    return row


def _values(text: str) -> list[str] | None:
    """Values of one record; None where it ends inside of quotes. Raises csv.Error."""
    try:
        return next(csv.reader(io.StringIO(text, newline=""), strict=True), [])
    except csv.Error as exc:
        if "unexpected end of data" in str(exc):
            return None
        return next(csv.reader(io.StringIO(text, newline="")), [])


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
    kind = str(row.get("kind") or "").strip().lower() or None
    priority = str(row.get("priority") or "").strip().lower() or None
    broken = None
    if kind is not None and kind not in KINDS:
        broken, kind = "kind_unknown", "page"
    elif priority is not None and priority not in PRIORITIES:
        broken = "priority_unknown"
    elif not text or "\ufffd" in text:
        broken = "not_utf8" if text else "url_empty"
    elif "\n" in text or "\r" in text:
        broken = "line_break"  # an unclosed quote swallowed lines; joined they might look like an address
    return Seed(number, text, kind, priority, broken)


def judge(
    seeds: Iterable[Seed],
    *,
    keyer: Keyer,
    settings: Settings,
    priority: Literal["critical", "high", "medium", "low"] | str,
    now: datetime,
    added_by: str,
    refused: Callable[[Refusal], None],
    kind: str = "page",
) -> Iterator[pa.Table]:
    """Batches of rows of `seeds`, in the order given; `refused` is told of every refusal as it is met."""
    batch: list[Seed] = []
    for seed in seeds:
        batch.append(seed)
        if len(batch) == BATCH:
            yield _rows(batch, keyer, settings, priority, kind, now, added_by, refused)
            batch = []
    if batch:
        yield _rows(batch, keyer, settings, priority, kind, now, added_by, refused)


def _rows(
    batch: Sequence[Seed],
    keyer: Keyer,
    settings: Settings,
    priority: str,
    kind: str,
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
        "kind": [s.kind or kind for s in batch],
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
        return None, "url_scheme" if _with_scheme(seed.text) else exc.reason
    _, hosts, domains = split_many([url])
    reason = allowed(url, hosts[0], domains[0], 0, settings.scope, settings.limits)
    return (url, None) if reason is None else (None, reason)


#: a host with a dot, or with a port, and whatever follows
_SCHEMELESS: Final = re.compile(r"(?:[\w-]+(?:\.[\w-]+)+(?::\d+)?|[\w-]+:\d+)(?:[/?#].*)?")


def _with_scheme(text: str) -> str | None:
    """What an address that lacks its scheme would be with one; None for what is no address either way."""
    if not _SCHEMELESS.fullmatch(text):
        return None
    try:
        canonical(f"http://{text}")
    except UrlError:
        return None
    return f"http://{text}"


def _remedy(refusal: Refusal) -> str:
    """A word on what to write instead, or what the reason means."""
    meant = _with_scheme(refusal.text) if refusal.reason == "url_scheme" else None
    words = f"write {meant}, or https://" if meant else {**SCOPE, **SEED}.get(refusal.reason)
    return f" ({safe(words)})" if words else ""


@dataclass(frozen=True, slots=True)
class Added:
    """How many seeds went in, and how many were refused (both are rows of the table)."""

    accepted: int
    refused: int


def moment(lake: Lake, clock: datetime, tell: Callable[[str], None]) -> datetime:
    """When seeds are given that name no time: now, but never before the planning time of the last round, or
    it would seem to have known of them; tells where that lies ahead of the clock.
    """
    at, ahead = opening.moment(lake.store, clock)
    if not ahead:
        return at
    tell(f"given as of {shown(at)}, {ahead}: they count in rounds that are planned later than that")
    return at + timedelta(microseconds=1)


def add(
    lake: Lake,
    urls: Sequence[str],
    file: Path | None,
    *,
    priority: str,
    kind: str = "page",
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
            tell(f"{where}: {refusal.reason}: {safe(refusal.text)}{_remedy(refusal)}")

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
        kind=kind,
    )
    rows = ledger.append(lake.store, "seeds", batches)
    if refusals > TOLD:
        tell(f"… and {refusals - TOLD:,} more: SELECT url, reason FROM seeds WHERE verdict = 'refused'")
    detail = f"{rows - refusals} accepted, {refusals} refused" + (f", from {file}" if file else "")
    ledger.audit(lake.store, at=now, who=who, action="seed", subject=lake.root, detail=detail)
    return Added(rows - refusals, refusals)
