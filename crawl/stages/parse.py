"""Parse: pages in, documents and links out.

What always holds: rows depend on each page alone, never on the batch it came in; one row per distinct text in
a batch, that of the smallest (depth, url_key); a body that is no page gives nothing. Pages are taken one at a
time from an iterator, so that who feeds it knows when each is done and can set it a deadline.
It opens nothing and writes nothing; a page that kills the process is the caller's to find.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from crawl import html, markup, url
from crawl.keys import Keyer
from crawl.linkrows import LinkRows
from crawl.policy import Settings
from crawl.rejects import Rejects
from crawl.schema import DOCUMENTS

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
}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """What some pages said."""

    documents: pa.Table  # DOCUMENT_COLUMNS, in no order
    links: pa.Table  # crawl.linkrows.COLUMNS, in the order of the pages
    parsed: pa.Table  # PARSED_COLUMNS, one row a page; answers that are none have no row
    rejects: Rejects


def extract(pages: Iterable[RawPage], *, keyer: Keyer, settings: Settings) -> Extract:
    """Read pages one after the other. Never raises on what a server sent."""
    links = LinkRows(keyer, settings)
    tally = Rejects()
    documents: dict[int, dict[str, Any]] = {}
    parsed: list[tuple[int, int, str | None]] = []
    for raw in pages:
        if not markup.is_html(raw.content_type, raw.body):
            continue
        body = raw.body[: settings.parsing.parsed_bytes]
        if len(body) < len(raw.body):
            tally.add("page_too_long", raw.host, raw.url)
        headers = markup.headers(raw.headers)
        page = html.read(
            body, raw.content_type, raw.url, agent=settings.agent.name, limit=settings.parsing.links
        )
        if page.links.cut:
            tally.add("too_many_links", raw.host, raw.url, page.links.cut)
        robots = [*page.robots, *markup.x_robots_tag(headers.get("x-robots-tag", ()), settings.agent.name)]
        found = page.links
        links.add(
            found.url,
            found.anchor,
            found.rel,
            found.via,
            source_key=raw.url_key,
            source_domain=raw.domain,
            depth=raw.depth + 1,
            first_parse=raw.first_parse,
            nofollow=not {"nofollow", "none"}.isdisjoint(robots),
        )
        row = _document(raw, page, headers, robots, keyer)
        parsed.append((raw.url_key, row["document_key"], row["canonical_hint"]))
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
    )


def _document(
    raw: RawPage, page: html.Page, headers: dict[str, list[str]], robots: list[str], keyer: Keyer
) -> dict[str, Any]:
    """The page's row of `documents`; what a later stage computes is left out."""
    return {
        "document_key": keyer.document_key(page.text),
        "text": page.text,
        "first_url_key": raw.url_key,
        "url": raw.url,
        "title": page.title or None,
        "description": page.description,
        "language": page.language,
        "charset": page.charset,
        "content_type": raw.content_type,
        "last_modified": headers["last-modified"][-1] if "last-modified" in headers else None,
        "canonical_hint": page.canonical or _canonical_header(headers.get("link"), raw.url),
        "robots_directives": ", ".join(dict.fromkeys(robots)) or None,
        "text_chars": len(page.text),
        "html_bytes": len(raw.body),
        "truncated": raw.truncated,
        "link_count": len(page.links) + page.links.cut,
        "depth": raw.depth,
    }


def _canonical_header(lines: list[str] | None, page_url: str) -> str | None:
    """The canonical URL that a Link header names (RFC 6596); the markup's own goes before it."""
    for target, rel in markup.link_header(lines or ()):
        if "canonical" in rel and target:
            return url.canonical_many([target], page_url)[0]
    return None
