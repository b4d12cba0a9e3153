"""Parse: bodies in, documents and links out, by the reader of each one's media type.

What always holds: rows depend on each page alone, never on the batch it came in; one row per distinct text in
a batch, that of the smallest (depth, url_key); a body that nobody reads gives nothing, and one whose reader
fails gives its reason. Pages are taken one at a time from an iterator, so that who feeds it knows when each
is done and can set it a deadline.
It opens nothing and writes nothing; a page that kills the process is the caller's to find.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa

from crawl import url
from crawl.documents import sniff
from crawl.documents.linkrows import LinkRows
from crawl.documents.readers import Reader, page_of
from crawl.html import directives, language, linkheader, markup
from crawl.html import reader as html
from crawl.html.page import Page
from crawl.html.pagelinks import Links
from crawl.keys import Keyer
from crawl.policy import Parsing, Settings
from crawl.rejects import Rejects
from crawl.schema import DOCUMENTS
from crawl.sitemap import reader as sitemap
from crawl.sitemap import rows as sitemaprows

__all__ = ["DOCUMENT_COLUMNS", "PARSED_COLUMNS", "Extract", "RawPage", "extract"]

_OF_ROUND: Final = frozenset({"day", "round"})
#: the columns of `documents` without those, and the depth by which one of several is elected
DOCUMENT_COLUMNS: Final = pa.schema([field for field in DOCUMENTS if field.name not in _OF_ROUND]).append(
    pa.field("depth", pa.int32())
)
_PARSED: Final[dict[str, pa.DataType]] = {
    "url_key": pa.int64(),
    "document_key": pa.int64(),
    "canonical_hint": pa.string(),
    "withheld": pa.string(),
    "unavailable_after": pa.timestamp("us", tz="UTC"),
    "keep": pa.bool_(),  # its body may be kept
}
#: what is read where nobody says otherwise
_READERS: Final[Mapping[str, Reader]] = {"text/html": html.read, "application/xhtml+xml": html.read}
#: what a page's own row needs to know of its parse
PARSED_COLUMNS: Final = pa.schema(_PARSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPage:
    """One answer that may be a page."""

    url_key: int
    url: str
    host: str
    domain: str
    depth: int
    first_parse: bool  # never parsed before: its links count
    content_type: str | None  # header
    headers: str | None  # lines as received
    body: bytes  # decoded
    truncated: bool = False  # it ended early or hit a cap
    kind: str = "page"  # page, sitemap or feed
    vouching: tuple[str, ...] = ()  # of a sitemap: hosts for which it may speak besides its own place
    media_type: str | None = None  # what it is read as; None: as header and first bytes tell
    now: datetime | None = None  # planning time; without one no date has passed


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """What some pages said."""

    documents: pa.Table  # DOCUMENT_COLUMNS, in no order
    links: pa.Table  # crawl.documents.linkrows.COLUMNS, in the order of the pages
    parsed: pa.Table  # PARSED_COLUMNS, one row a page; answers that are none have no row
    rejects: Rejects
    failed: Mapping[int, str] = field(default_factory=dict)  # url_key -> why its reader gave up


def extract(
    pages: Iterable[RawPage], *, keyer: Keyer, settings: Settings, readers: Mapping[str, Reader] = _READERS
) -> Extract:
    """Read pages one after the other. Raises MemoryError, and nothing else on what a server sent."""
    links = LinkRows(keyer, settings)
    library = _Library(readers, settings)
    failed: dict[int, str] = {}
    tally = Rejects()
    documents: dict[int, dict[str, Any]] = {}
    parsed: list[tuple[Any, ...]] = []
    for raw in pages:
        if raw.kind != "page":
            if (error := _listing(raw, links, tally, settings)) is None:
                parsed.append((raw.url_key, None, None, None, None, True))
            else:
                failed[raw.url_key] = error
            continue
        kind = raw.media_type or sniff.computed(raw.content_type, raw.body)
        headers = markup.headers(raw.headers)
        try:
            read = library.read(raw, kind, headers.get("content-language", ()), tally)
        except _Failed as error:
            failed[raw.url_key] = str(error)
            continue
        if read is None:
            continue
        page, metadata = read
        _dropped(tally, raw, page.links)
        asked = headers.get("x-robots-tag", ())
        robots = [*page.robots, *directives.of_headers(asked, settings.agent.name)]
        said = directives.meant(robots)
        header = linkheader.read(headers.get("link", ()), raw.url)
        onward = _refreshed(headers.get("refresh"), raw.url, page.links)
        _link(links, raw, page.links, header, onward, nofollow=said.nofollow)
        if page.links.feeds and settings.sitemaps.feeds:
            sitemaprows.name(
                links,
                page.links.feeds,
                kind="feed",
                via="alternate",
                url_key=raw.url_key,
                domain=raw.domain,
                depth=raw.depth + 1,
            )
        row = _document(raw, page, headers, header.canonical, keyer)
        row["sniffed_type"], row["metadata"] = kind, metadata
        row["link_count"] += len(header.links)
        if not page.charset and not page.text:  # a picture: none is like the other for having no text
            row["document_key"] = keyer.document_key("\0" + sha256(raw.body).hexdigest())
        row |= _directed(said, robots)
        keep = _obeyed(row, raw, said, keyer, settings.parsing, tally)
        hint, until = row["canonical_hint"], said.unavailable_after
        parsed.append((raw.url_key, row["document_key"], hint, row["withheld"], until, keep))
        other = documents.get(row["document_key"])
        if other is None or (row["depth"], raw.url_key) < (other["depth"], other["first_url_key"]):
            documents[row["document_key"]] = row
    rows, refused = links.finish()
    tally.update(refused)
    return Extract(
        documents=pa.Table.from_pylist(list(documents.values()), schema=DOCUMENT_COLUMNS),
        links=rows,
        parsed=pa.Table.from_arrays(
            [pa.array([row[at] for row in parsed], field.type) for at, field in enumerate(PARSED_COLUMNS)],
            schema=PARSED_COLUMNS,
        ),
        rejects=tally,
        failed=failed,
    )


def _dropped(tally: Rejects, raw: RawPage, found: Links) -> None:
    """Links that never became any, counted by page, since spam has as many as it likes."""
    if found.cut:
        tally.add("too_many_links", raw.host, raw.url, found.cut)
    if found.schemes:
        tally.add("link_scheme", raw.host, raw.url, found.schemes)
    if found.invalid:
        tally.add("link_invalid", raw.host, raw.url, found.invalid)


def _refreshed(lines: list[str] | None, page_url: str, found: Links) -> str | None:
    """Where a Refresh header leads, unless a meta refresh leads there, too."""
    said = markup.refresh(lines[0]) if lines else None
    if said is None or not said[1]:
        return None
    target = url.canonical_many([url.without_fragment(said[1])], page_url)[0]
    told = target is not None and (target, "refresh") in zip(found.url, found.via, strict=True)
    return None if told or target == page_url else target


def _link(
    links: LinkRows,
    raw: RawPage,
    found: Links,
    header: linkheader.Found,
    onward: str | None,
    *,
    nofollow: bool,
) -> None:
    """The links of a page, then those of its header lines; `onward`: of Refresh."""
    more: list[tuple[str, str | None, str]] = [(target, rel, "header") for target, rel in header.links]
    if onward is not None:
        more.append((onward, None, "refresh"))
    links.add(
        [*found.url, *(target for target, _, _ in more)] if more else found.url,
        [*found.anchor, *(None for _ in more)] if more else found.anchor,
        [*found.rel, *(rel for _, rel, _ in more)] if more else found.rel,
        [*found.via, *(via for _, _, via in more)] if more else found.via,
        source_key=raw.url_key,
        source_domain=raw.domain,
        depth=raw.depth + 1,
        first_parse=raw.first_parse,
        nofollow=nofollow,
    )


def _directed(said: directives.Meant, robots: list[str]) -> dict[str, Any]:
    """Columns of what a page asks of those who index."""
    return {
        "robots_directives": directives.written(robots),
        "noindex": said.noindex,
        "nofollow": said.nofollow,
        "noarchive": said.noarchive,
        "unavailable_after": said.unavailable_after,
    }


def _obeyed(
    row: dict[str, Any],
    raw: RawPage,
    said: directives.Meant,
    keyer: Keyer,
    policy: Parsing,
    tally: Rejects,
) -> bool:
    """Take the text from a document that is to be withheld; whether its body may be kept.

    Such a document is never one with an indexable page's, whose text it shares: no text begins with a space.
    """
    withheld = None if policy.keep_noindex else directives.withheld(said, raw.now)
    row["withheld"] = withheld
    if withheld is not None:
        tally.add(withheld, raw.host, raw.url)
        row["document_key"] = keyer.document_key(f" {withheld} {row['document_key']}")
        row |= {"text": "", "description": None, "metadata": None}
    unarchived = said.noarchive and not policy.keep_noarchive
    if unarchived:
        tally.add("noarchive", raw.host, raw.url)
    return withheld is None and not unarchived


def _listing(raw: RawPage, links: LinkRows, tally: Rejects, settings: Settings) -> str | None:
    """Links of a sitemap or feed; why it is none, else None."""
    most = settings.sitemaps
    found = sitemap.read(raw.body, raw.url, raw.content_type, most_bytes=most.bytes, most_urls=most.urls)
    if found.kind == "none" and found.error != "empty":
        return f"not_a_sitemap ({found.error})"
    sitemaprows.add(
        links,
        tally,
        found,
        url_key=raw.url_key,
        source=raw.url,
        host=raw.host,
        domain=raw.domain,
        level=raw.depth,
        vouching=raw.vouching,
        settings=most,
    )
    return None


class _Failed(Exception):
    """A reader gave up. `args` = (reason,)."""


class _Library:
    """Readers by media type."""

    def __init__(self, readers: Mapping[str, Reader], settings: Settings) -> None:
        limit = settings.parsing.links
        self._most, self._limit = settings.parsing.parsed_bytes, limit
        self._markup = partial(html.read, agent=settings.agent.name, limit=limit)
        self._markup_types = {kind for kind, reader in readers.items() if reader is html.read}
        self._readers = readers

    def read(
        self, raw: RawPage, kind: str, spoken: Sequence[str], tally: Rejects
    ) -> tuple[Page, str | None] | None:
        """What a body of a type says, and its metadata; None where nobody reads that. Raises _Failed.

        `spoken`: lines of Content-Language.
        """
        if kind in self._markup_types:  # of markup a part can be read, of little else
            body = raw.body[: self._most]
            if len(body) < len(raw.body):
                tally.add("page_too_long", raw.host, raw.url)
            page = self._markup(body, raw.content_type, raw.url, content_language=spoken)
            if page.error is not None:
                raise MemoryError(page.error)  # the process is spent
            return page, None
        reader = self._readers.get(kind)
        if reader is None:
            return None
        try:
            page, metadata = page_of(reader(raw.body, raw.content_type, raw.url), raw.url, self._limit)
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:  # a stranger's reader of a stranger's body
            raise _Failed(f"reader_failed ({type(error).__name__})") from error
        named, told_by = language.told(page.language, spoken, page.text)
        return replace(page, language=named, language_source=told_by), metadata


def _document(
    raw: RawPage, page: Page, headers: dict[str, list[str]], canonical: str | None, keyer: Keyer
) -> dict[str, Any]:
    """The page's row of `documents`; what a later stage computes is left out. `canonical`: its header's."""
    is_markup = bool(page.charset)
    return {
        "document_key": keyer.document_key(page.text),
        "text": page.text,
        "first_url_key": raw.url_key,
        "url": raw.url,
        "title": page.title or None,
        "description": page.description,
        "language": page.language,
        "language_source": page.language_source,
        "charset": page.charset or None,
        "content_type": raw.content_type,
        "last_modified": headers["last-modified"][-1] if "last-modified" in headers else None,
        "canonical_hint": page.canonical or canonical,
        "text_chars": len(page.text),
        "html_bytes": len(raw.body),
        "truncated": raw.truncated,
        "link_count": len(page.links) + page.links.cut,
        "text_ratio": len(page.text) / len(raw.body) if is_markup and raw.body else None,
        "script_count": page.scripts if is_markup else None,
        "script_chars": page.script_chars if is_markup else None,
        "script_signs": ", ".join(page.signs) or None,
        "depth": raw.depth,
    }
