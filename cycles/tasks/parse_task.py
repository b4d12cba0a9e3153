"""Parse some finished journal parts: what was asked, what it said, and what each URL's visit came to.

Written in their final place: `fetches`, `links` (sorted by target_key). Written as work files for later
stages: visits (sorted by url_key), documents with their depth (sorted by document_key), an index of new
bodies, rejects.
What always holds: the rows do not depend on how parts are spread over tasks; parts are streamed, links and
documents leave memory when they are many; no file name is used twice, so a task that ran twice spoils nothing
(whose files count is the caller's to say). Nothing is committed here.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from crawl import robots, url
from crawl.documents.linkrows import Hints, LinkRows, chained
from crawl.fetching.journal import RATIO, Body
from crawl.html import markup
from crawl.merging import visits
from crawl.outcomes import Outcome
from crawl.records import Fetch, Skip
from crawl.rejects import Rejects
from crawl.sitemap import rows as sitemaprows
from cycles.session import safety
from cycles.session.context import Context
from cycles.tasks import child
from cycles.tasks.claim import Part
from cycles.tasks.vouching import Vouching
from lake import files, journal
from lake.entries import FileEntry

__all__ = ["BODY_INDEX", "ParsedFiles", "parse_parts"]

#: a batch for the parse process: pages, and their decoded bytes (as far as they are parsed)
_BATCH_PAGES: Final = 200
_BATCH_BYTES: Final = 32_000_000
#: link rows, and bytes of documents, that are held before they are written
_LINK_ROWS: Final = 500_000
_DOCUMENT_BYTES: Final = 32_000_000
#: where the bodies of a task's pages lie in the journal
_INDEX: Final[dict[str, pa.DataType]] = {
    "hash_key": pa.int64(),  # first 64 bits of the hash: the order of the file
    "body_hash": pa.string(),
    "url_key": pa.int64(),
    "depth": pa.int32(),
    "part": pa.string(),  # path of the journal part
    "offset": pa.int64(),  # of the frame
    "size": pa.int64(),  # bytes once compressed, about
    "length": pa.int64(),  # bytes decoded
    "media_type": pa.string(),
    "truncated": pa.bool_(),
    "sniffed_type": pa.string(),
}
BODY_INDEX: Final = pa.schema(_INDEX)
_GROUP: Final = re.compile(r"group-(\d+)/(\d+)\.(\d+)/[^/]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFiles:
    """What one task wrote. Work files are paths relative to the lake's root; None where there are no rows."""

    parts: tuple[Part, ...]
    fetches: tuple[FileEntry, ...]
    links: tuple[FileEntry, ...]
    visits: str | None
    documents: tuple[str, ...]  # columns crawl.stages.parse.DOCUMENT_COLUMNS
    bodies: str | None  # columns BODY_INDEX
    rejects: str | None
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ParsedFiles:
        """The reverse of `to_dict`."""
        return cls(
            parts=tuple(Part(**part) for part in values["parts"]),
            fetches=tuple(FileEntry.from_dict(entry) for entry in values["fetches"]),
            links=tuple(FileEntry.from_dict(entry) for entry in values["links"]),
            visits=values["visits"],
            documents=tuple(values["documents"]),
            bodies=values["bodies"],
            rejects=values["rejects"],
            counts=dict(values["counts"]),
        )


def parse_parts(
    context: Context, parts: Sequence[Part], parser: child.ParseChild | None = None
) -> ParsedFiles:
    """Parse journal parts (each its first `length` bytes). Raises LakeError, ClusterError.

    `parser`: a parse process of the caller's; without one, this worker's.
    """
    own = parser or child.lent(context.root, context.settings)
    with ExitStack() as stack:
        task = _Task(context, own, stack)
        for part in parts:
            task.take(part)
        task.finish()
    return task.files(parts)


class _Task:
    """Rows of one task on their way to its files."""

    def __init__(self, context: Context, parser: child.ParseChild, stack: ExitStack) -> None:
        self._context = context
        self._store = context.work.store
        self._keyer = safety.keyer(self._store, context.settings.identity)
        self._parser = parser
        self._stack = stack  # holds the open fetches file, which an error abandons
        self._name = secrets.token_hex(6)
        self._records: list[Fetch | Skip] = []
        self._batch: list[tuple[Any, ...]] = []
        self._batch_bytes = 0
        self._parsed: dict[int, visits.Parsed] = {}
        self._failed: dict[int, str] = {}
        self._vouching = Vouching(context, self._keyer)
        self._index: list[tuple[Any, ...]] = []
        self._unkept: dict[int, tuple[str, str, str]] = {}  # why a header lets us keep no body, host, URL
        self._chains: dict[int, tuple[int, int]] = {}  # chain and hop of what was asked
        self._links: list[pa.Table] = []
        self._link_rows = 0
        self._documents: list[pa.Table] = []
        self._document_bytes = 0
        self._listed = LinkRows(self._keyer, context.settings)  # of robots.txt, and of redirects
        self._rejects = Rejects()
        self._fetches: files.Writer | None = None
        self._link_files: list[FileEntry] = []
        self._document_files: list[str] = []
        self._work: dict[str, str | None] = {}
        self._counts = dict.fromkeys(("requests", "skips", "bodies", "parsed", "failed", "links"), 0)

    def take(self, part: Part) -> None:
        """Read one part and parse its pages."""
        found = _GROUP.search(part.path)
        group, fence = (int(found[1]), int(found[2])) if found else (0, 0)
        asked: list[Fetch] = []
        for record, body, offset in journal.read_part(self._store, part.path, part.length):
            self._records.append(record)
            if isinstance(record, Fetch):
                asked.append(record)
                self._chains[record.url_key] = (record.chain_id, record.hop)
                if record.kind == "robots":
                    self._sitemap_lines(record, body)
                elif body is not None and visits.arrived(record):
                    self._arrived(record, body, part.path, offset)
        self._counts["requests"] += len(asked)
        self._write_fetches(asked, group, fence)

    def _arrived(self, record: Fetch, body: Body, part: str, offset: int) -> None:
        """A new body: note where it lies, and hand it to the parser."""
        digest = record.body_hash or ""
        key = int.from_bytes(bytes.fromhex(digest[:16]), "big", signed=True)
        essence = markup.media_type(record.content_type)
        size = len(body.data) if body.zstd else -(-len(body.data) // RATIO)
        where = (part, offset, size, record.bytes, essence, record.truncated, record.sniffed_type)
        self._index.append((key, digest, record.url_key, record.depth, *where))
        settings = self._context.settings
        if (why := visits.unkept(record, settings.agent.name, settings.parsing)) is not None:
            self._unkept[record.url_key] = why, record.host, record.url
        self._batch.append(child.page(record, body, self._vouching.of(record), self._context.now))
        most = self._context.settings.parsing.parsed_bytes
        decoded = min(record.bytes, most) if record.kind == "page" else record.bytes
        self._batch_bytes += max(len(body.data), decoded)
        if len(self._batch) >= _BATCH_PAGES or self._batch_bytes >= _BATCH_BYTES:
            self._parse()

    def _parse(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if not batch:
            return
        result = self._parser.parse(batch)
        self._failed.update(result.failed)
        for url_key, *fields in batch:
            if url_key in result.failed:
                self._rejects.add(result.failed[url_key].partition(" ")[0], fields[1], fields[0])
        for extract in result.extracts:
            columns = [extract.parsed[name].to_pylist() for name in extract.parsed.column_names]
            for url_key, *said in zip(*columns, strict=True):
                self._parsed[url_key] = visits.Parsed(*said)
            self._rejects.update(extract.rejects)
            self._add_links(extract.links)
            self._documents.append(extract.documents)
            self._document_bytes += extract.documents.nbytes
        if self._document_bytes >= _DOCUMENT_BYTES:
            self._write_documents()

    def _add_links(self, rows: pa.Table) -> None:
        self._links.append(chained(rows, self._chains, self._context.settings.limits.redirects))
        self._link_rows += rows.num_rows
        if self._link_rows >= _LINK_ROWS:
            self._write_links()

    def finish(self) -> None:
        """Parse what waits, then write everything."""
        self._parse()
        self._redirects()
        self._write_links()
        self._write_documents()
        settings = self._context.settings
        rows = visits.visit_rows(
            self._records,
            self._parsed,
            self._failed,
            self._keyer,
            agent=settings.agent.name,
            keep_noindex=settings.parsing.keep_noindex,
        )
        self._write_work("visits", rows)
        self._index = self._kept()
        columns = list(zip(*self._index, strict=True)) or [()] * len(BODY_INDEX)
        arrays = [pa.array(values, column.type) for values, column in zip(columns, BODY_INDEX, strict=True)]
        index = pa.Table.from_arrays(arrays, schema=BODY_INDEX)
        self._write_work("bodies", _sorted(index, "hash_key"))
        context = self._context
        tally = self._rejects.rows(
            "parse", day=context.day, round_=context.round, policy_version=context.policy_version
        )
        self._write_work("rejects", tally)
        self._counts.update(
            skips=len(self._records) - self._counts["requests"],
            bodies=len(self._index),
            parsed=len(self._parsed),
            failed=len(self._failed),
        )

    def _kept(self) -> list[tuple[Any, ...]]:
        """The bodies that may be kept: those whose page or header does not ask for the contrary."""
        unkept = {key for key, said in self._parsed.items() if not said.keep}
        for key, told in self._unkept.items():
            if key not in self._parsed:  # of what was parsed the parser has told
                unkept.add(key)
                self._rejects.add(*told)
        return [entry for entry in self._index if entry[2] not in unkept] if unkept else self._index

    def _sitemap_lines(self, record: Fetch, body: Body | None) -> None:
        """What a robots.txt names; without a Sitemap line the usual place, where settings say so."""
        settings = self._context.settings
        if not settings.sitemaps.follow or record.status is None:
            return
        named: tuple[str, ...] = ()
        if body is not None:
            named = robots.parse(body.raw(), record.url, settings.robots.bytes).sitemaps
        via = "robots"
        if not named and settings.sitemaps.well_known and (body is not None or 400 <= record.status < 500):
            named, via = (url.canonical("/sitemap.xml", record.url),), "well_known"
        if named:
            key, domain = record.url_key, record.domain
            sitemaprows.name(
                self._listed, named, kind="sitemap", via=via, url_key=key, domain=domain, depth=0
            )

    def _redirects(self) -> None:
        """Link rows of redirects: the target is as deep as what led there, and to be read likewise."""
        rows = self._listed
        for record in self._records:
            if not isinstance(record, Fetch) or record.kind == "robots":
                continue
            if record.outcome == Outcome.REDIRECT and record.next_url:
                rows.add(
                    [record.next_url],
                    [None],
                    [None],
                    ["redirect"],
                    source_key=record.url_key,
                    source_domain=record.domain,
                    depth=record.depth,
                    first_parse=record.kind == "page" and not record.parsed_before,
                    hints=None if record.kind == "page" else Hints.nothing(record.kind, 1),
                )
        if len(rows):
            table, refused = rows.finish()
            self._rejects.update(refused)
            self._add_links(table)

    def _write_fetches(self, asked: Sequence[Fetch], group: int, fence: int) -> None:
        if not asked:
            return
        context = self._context
        if self._fetches is None:
            name = files.new_name(context.round)
            writer = files.Writer(self._store, "fetches", name=name, day=context.day)
            self._fetches = self._stack.enter_context(writer)
        rows = visits.fetch_rows(asked, day=context.day, round_=context.round, group=group, fence=fence)
        self._fetches.add(rows)

    def _write_links(self) -> None:
        waiting, self._links, self._link_rows = self._links, [], 0
        rows = pa.concat_tables(waiting) if waiting else None
        if rows is None or not rows.num_rows:
            return
        self._counts["links"] += rows.num_rows
        rows = _sorted(rows, "target_key")
        rows = rows.append_column("round", pa.repeat(pa.scalar(self._context.round, pa.int64()), len(rows)))
        self._link_files.append(files.write(self._store, "links", rows, day=self._context.day))

    def _write_documents(self) -> None:
        waiting, self._documents, self._document_bytes = self._documents, [], 0
        rows = pa.concat_tables(waiting) if waiting else None
        if rows is None or not rows.num_rows:
            return
        order = np.lexsort([rows[name].to_numpy() for name in ("first_url_key", "depth", "document_key")])
        keys = rows["document_key"].to_numpy()[order]
        first = np.append(True, keys[1:] != keys[:-1])
        path = self._path(f"documents-{len(self._document_files)}")
        files.write_work(self._store, path, rows.take(order[first]))
        self._document_files.append(path)

    def _write_work(self, kind: str, rows: pa.Table) -> None:
        self._work[kind] = None
        if rows.num_rows:
            self._work[kind] = self._path(kind)
            files.write_work(self._store, self._path(kind), rows)

    def _path(self, kind: str) -> str:
        return self._context.work.path("parse", f"{self._name}-{kind}.parquet")

    def files(self, parts: Sequence[Part]) -> ParsedFiles:
        """What was written; to be asked after the end."""
        return ParsedFiles(
            parts=tuple(parts),
            fetches=(self._fetches.entry,) if self._fetches is not None else (),
            links=tuple(self._link_files),
            visits=self._work["visits"],
            documents=tuple(self._document_files),
            bodies=self._work["bodies"],
            rejects=self._work["rejects"],
            counts=dict(self._counts),
        )


def _sorted(rows: pa.Table, key: str) -> pa.Table:
    order = np.argsort(rows[key].to_numpy(), kind="stable")
    return rows.take(order)
