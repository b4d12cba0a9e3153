"""The links of a page: gathered as they are written, resolved once, when all are known.

What always holds: links come absolute, canonical, without fragment, each distinct one once, in the order they
were given; no more than the limit are kept, and what was left out is counted. It knows no tree
(crawl.html) and judges no link (crawl.scope).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from crawl import url
from crawl.html import markup

__all__ = ["ANCHOR_CHARS", "NONE", "Collector", "Links", "Row", "label"]

#: an anchor text is a label, not a document
ANCHOR_CHARS: Final = 200

#: feeds of one page; a blog names two, its posts' and its comments'
_FEEDS: Final = 10

#: a scheme that is not asked; blanks before it do not count (URL standard, basic URL parser)
_SCHEME: Final = re.compile(r"[\0-\x20]*(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)

#: reference as written without its fragment, anchor, rel, via
Row: TypeAlias = "tuple[str, str | None, str | None, str]"
Attributes: TypeAlias = "Mapping[str, str | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Links of a page as parallel lists; iterating yields (url, anchor, rel, via)."""

    url: Sequence[str]  # canonical
    anchor: Sequence[str | None]  # text, at most ANCHOR_CHARS; of an area its alt; None when empty
    rel: Sequence[str | None]  # tokens, lower case; None when there are none
    via: Sequence[str]  # a, area, link, frame, iframe or refresh
    feeds: Sequence[str] = ()  # feeds that `link` elements name; they are none of the above
    cut: int = 0  # further distinct links that were left out because the page has too many
    schemes: int = 0  # distinct references that ask for another scheme: mailto:, javascript:
    invalid: int = 0  # distinct references that are no URL

    def __iter__(self) -> Iterator[tuple[str, str | None, str | None, str]]:
        return zip(self.url, self.anchor, self.rel, self.via, strict=True)

    def __len__(self) -> int:
        return len(self.url)


NONE: Final = Links(url=(), anchor=(), rel=(), via=())


def label(text: str | None) -> str | None:
    """A text as an anchor: one space between two words, cut, None when empty."""
    return " ".join((text or "").split())[:ANCHOR_CHARS].rstrip() or None


class Collector:
    """Gathers links; resolves each distinct reference once."""

    def __init__(self, base: str, encoding: str, limit: int) -> None:
        self._base = base
        self._encoding = encoding
        self._limit = limit
        self._rows: dict[Row, None] = {}
        self._cut: set[Row] = set()
        self._feeds: dict[str, None] = {}

    def add(self, href: str, anchor: str | None, rel: str | None, via: str) -> None:
        """One reference as written. Its fragment goes first: what differs only there is one reference."""
        self.extend([(url.without_fragment(href), anchor, rel, via)])

    def extend(self, rows: Sequence[Row]) -> None:
        """Many of them, without fragments."""
        kept = self._rows
        if len(kept) + len(rows) <= self._limit:
            kept.update(dict.fromkeys(rows))
            return
        for row in rows:
            if len(kept) < self._limit:
                kept[row] = None
            elif row not in kept:
                self._cut.add(row)

    def areas(self, found: Iterable[Attributes]) -> None:
        """Areas of image maps."""
        for attributes in found:
            if "href" in attributes:
                rel = markup.rel_tokens(attributes.get("rel") or "")
                self.add(attributes["href"] or "", label(attributes.get("alt")), rel, "area")

    def frames(self, found: Iterable[Attributes], via: str) -> None:
        """Frames and iframes: what they show is another page."""
        for attributes in found:
            if source := (attributes.get("src") or "").strip():
                self.add(source, None, None, via)

    def elements(self, found: Iterable[Attributes]) -> None:
        """Elements `link` that lead to a page, or to a feed."""
        for attributes in found:
            rel = markup.rel_tokens(attributes.get("rel") or "")
            href = (attributes.get("href") or "").strip()
            if rel is None or not href:
                continue
            media = attributes.get("type")
            if markup.leads_to_a_page(rel, media):
                self.add(href, None, rel, "link")
            elif len(self._feeds) < _FEEDS and markup.leads_to_a_feed(rel, media):
                self._feeds[href.partition("#")[0]] = None

    def done(self) -> Links:
        """All links, resolved; those that lead to nothing we fetch are left out."""
        feeds: tuple[str, ...] = ()
        if self._feeds:
            named = url.canonical_many(list(self._feeds), self._base, self._encoding)
            feeds = tuple(dict.fromkeys(feed for feed in named if feed is not None))
        if not self._rows and not self._cut:
            return Links(url=(), anchor=(), rel=(), via=(), feeds=feeds) if feeds else NONE
        references = list(dict.fromkeys(row[0] for row in self._rows))
        found = url.canonical_many(references, self._base, self._encoding)
        resolved = dict(zip(references, found, strict=True))
        schemes = invalid = 0
        if None in found:  # rarely much: what is left out is looked at once more, for its reason
            unusable = [href for href, target in resolved.items() if target is None]
            schemes = sum(1 for href in unusable if _SCHEME.match(href))
            invalid = len(unusable) - schemes
        rows = dict.fromkeys(
            (target, anchor, rel, via)
            for href, anchor, rel, via in self._rows
            if (target := resolved[href]) is not None
        )
        urls, anchors, rels, vias = (
            (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
        )
        return Links(
            url=urls,
            anchor=anchors,
            rel=rels,
            via=vias,
            feeds=feeds,
            cut=len(self._cut),
            schemes=schemes,
            invalid=invalid,
        )
