"""Reads one page: its text, its links, and what its head says about it.

What always holds: `read` fails at nothing a server sends; scripts are not run; what is hidden from a
reader (script, style, template, `hidden`) is no text; links come absolute, without fragment, each distinct
one once, in an order that the page alone decides; work is linear but for the tree builder itself, which is
quadratic in nesting (who calls sets a deadline for that).
This module does not judge links (crawl.scope), makes no keys (crawl.keys) and stores nothing.

The tree is walked once; a node costs one integer comparison. Inline elements are then dissolved and
neighbouring texts joined, so that one call yields the text with a separator where blocks part words and none
inside a word (`w<b>or</b>d`), without a visit of each text node in Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from crawl import charset, markup, url
from crawl.errors import UrlError

__all__ = ["ANCHOR_CHARS", "Links", "Page", "read"]

#: an anchor text is a label, not a document
ANCHOR_CHARS: Final = 200
#: titles and descriptions longer than this are stuffing
_TITLE_CHARS: Final = 1_000
_DESCRIPTION_CHARS: Final = 2_000

_FACTORY: Final = LexborHTMLParser("")


def _ids(names: str) -> frozenset[int]:
    return frozenset(_id(name) for name in names.split())


def _id(name: str) -> int:
    return _FACTORY.create_node(name).tag_id


_A, _AREA, _BASE, _LINK, _META = map(_id, ("a", "area", "base", "link", "meta"))
_TITLE, _HTML, _FRAME, _IFRAME = map(_id, ("title", "html", "frame", "iframe"))
_NOSCRIPT, _SVG = map(_id, ("noscript", "svg"))
_BODY: Final = _ids("body frameset")
#: only pages with such an attribute pay for a search of it; a word is found ten times faster than a pattern,
#: and then looked at
_HIDDEN: Final = (
    (b"idden", re.compile(rb"idden(?<=[^\w-][hH]idden)[\s=/>]")),
    (b"IDDEN", re.compile(rb"IDDEN(?<=[^\w-]HIDDEN)[\s=/>]")),
)
#: not for readers; the last ones hold markup that a parser keeps as plain text
_UNSEEN: Final = _ids("script style template noframes noembed iframe")
_COMMENT: Final = LexborHTMLParser("<body><!---->").body.first_child.tag_id  # type: ignore[union-attr]
#: phrasing elements that part no words (HTML 3.2.5.2.5); whatever is not named here does
_INLINE: Final = _ids(
    "abbr acronym b bdi bdo big cite code del dfn em font i ins kbd label mark nobr q s samp small"
    " span strike strong sub sup time tt u var wbr"
)
_WANTED: Final = (
    _INLINE | _UNSEEN | _BODY | {_A, _AREA, _BASE, _LINK, _META, _TITLE, _HTML, _FRAME, _IFRAME, _COMMENT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Links of a page as parallel lists; iterating yields (url, anchor, rel, via)."""

    url: Sequence[str]  # canonical
    anchor: Sequence[str | None]  # text, at most ANCHOR_CHARS; of an area its alt; None when empty
    rel: Sequence[str | None]  # tokens, lower case; None when there are none
    via: Sequence[str]  # a, area, link, frame, iframe or refresh
    cut: int = 0  # further distinct links that were left out because the page has too many

    def __iter__(self) -> Iterator[tuple[str, str | None, str | None, str]]:
        return zip(self.url, self.anchor, self.rel, self.via, strict=True)

    def __len__(self) -> int:
        return len(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page says."""

    charset: str  # WHATWG name of the encoding it was read in
    title: str
    description: str | None
    language: str | None  # BCP 47, as the markup says
    text: str  # visible text, one space between words
    base: str  # what its links are relative to
    links: Links
    canonical: str | None  # rel=canonical of the head, absolute; a hint only
    robots: tuple[str, ...]  # directives of its robots meta tags, those for our agent included
    refresh: tuple[float, str] | None  # seconds and absolute target of a meta refresh; a reload is none


def read(
    body: bytes, content_type: str | None, page_url: str, *, agent: str = "", limit: int = 5_000
) -> Page:
    """Read a page. `page_url` is canonical; `agent` names whose meta tag is obeyed beside `robots`.

    Raises MemoryError, and nothing else.
    """
    encoding, source = charset.to_utf8(body, content_type)
    try:
        tree = LexborHTMLParser(source, options=LexborDocumentOptions.WO_EVENTS)
    except SelectolaxError as error:  # no markup is refused: the tree found no memory
        raise MemoryError(str(error)) from error
    parts = _sort(tree)
    for node in parts.unseen:
        # Unlinked, not freed: nodes below it are still held by other lists.
        node.decompose(recursive=False)
    if _may_hide(source):
        for node in tree.css("[hidden]"):
            node.decompose(recursive=False)
    base = _base(parts.bases, page_url)
    refreshes = _metas(parts.metas, "http-equiv", {"refresh"})
    target = _refresh([(node, content) for node, content in refreshes if not _inside(node, _NOSCRIPT)])
    links = _Collector(base, encoding, limit)
    _dissolve(tree, parts.inline)
    if target is not None and target[1]:
        links.add(target[1], None, None, "refresh")
    links.elements(parts.linking)
    links.anchors(parts.anchors)
    _dissolve(tree, parts.anchors)
    text = tree.body.text(separator=" ") if tree.body is not None else ""  # a frameset has no body
    names = {"robots", agent.lower()} if agent else {"robots"}
    robots = [
        word for _, content in _metas(parts.metas, "name", names) for word in markup.directives(content)
    ]
    described = _metas(parts.metas, "name", {"description"})
    return Page(
        charset=encoding,
        title=_title(parts.titles),
        description=_squeeze(described[0][1])[:_DESCRIPTION_CHARS] or None if described else None,
        language=_language(parts),
        text=_squeeze(text),
        base=base,
        links=links.done(),
        canonical=_canonical(parts.head_links, base, encoding),
        robots=tuple(dict.fromkeys(robots)),
        refresh=_resolved(target, base, encoding),
    )


class _Parts:
    """Elements of a page by what they are good for, in the order of the page."""

    __slots__ = ("anchors", "bases", "head_links", "html", "inline", "linking", "metas", "titles", "unseen")

    def __init__(self) -> None:
        self.anchors: list[LexborNode] = []
        self.bases: list[LexborNode] = []
        self.head_links: list[LexborNode] = []
        self.html: list[LexborNode] = []
        self.inline: list[LexborNode] = []
        self.linking: list[tuple[int, LexborNode]] = []
        self.metas: list[LexborNode] = []
        self.titles: list[LexborNode] = []
        self.unseen: list[LexborNode] = []


def _sort(tree: LexborHTMLParser) -> _Parts:
    """The one walk over the elements."""
    parts = _Parts()
    root = tree.root
    if root is None:
        return parts
    in_head = True
    for node in root.traverse():
        tag = node.tag_id
        if tag not in _WANTED:
            continue
        if tag in _INLINE:
            parts.inline.append(node)
        elif tag == _A:
            parts.anchors.append(node)
        elif tag in _BODY:
            in_head = False
        else:
            _sort_rare(parts, tag, node, in_head=in_head)
    return parts


def _sort_rare(parts: _Parts, tag: int, node: LexborNode, *, in_head: bool) -> None:
    """Elements of which a page has few."""
    if tag == _COMMENT or tag in _UNSEEN:  # a comment would part the word it stands in
        parts.unseen.append(node)
    if tag in {_AREA, _FRAME, _IFRAME}:
        parts.linking.append((tag, node))
    elif tag == _LINK:
        parts.linking.append((tag, node))
        if in_head:  # in the body anybody who may comment could set a canonical
            parts.head_links.append(node)
    elif tag == _META:
        parts.metas.append(node)
    elif tag == _BASE:
        parts.bases.append(node)
    elif tag == _TITLE:
        parts.titles.append(node)
    elif tag == _HTML:
        parts.html.append(node)


def _may_hide(source: bytes) -> bool:
    """Whether there may be an attribute `hidden`."""
    for word, pattern in _HIDDEN:
        at = source.find(word)
        while at >= 0:
            if pattern.match(source, at):
                return True
            at = source.find(word, at + len(word))
    return False


def _dissolve(tree: LexborHTMLParser, nodes: list[LexborNode]) -> None:
    """Put the children of each node in its place, then join texts that have become neighbours."""
    for node in nodes:
        node.unwrap(delete_empty=True)
    if tree.root is not None:
        tree.root.merge_text_nodes()


class _Collector:
    """Gathers links; resolves each distinct reference once, when all are known."""

    def __init__(self, base: str, encoding: str, limit: int) -> None:
        self._base = base
        self._encoding = "utf-8" if encoding in {"utf-16le", "utf-16be", "replacement"} else encoding
        self._limit = limit
        self._rows: dict[tuple[str, str | None, str | None, str], None] = {}
        self._cut: set[tuple[str, str | None, str | None, str]] = set()

    def anchors(self, nodes: list[LexborNode]) -> None:
        """Add the links of `a` elements: nearly all links there are, hence this one tight loop."""
        rows, limit = self._rows, self._limit
        for node in nodes:
            attributes = node.attributes
            href = attributes.get("href")
            if href is None and "href" not in attributes:
                continue
            text = " ".join(node.text(separator=" ").split())[:ANCHOR_CHARS] or _picture(node)
            rel = attributes.get("rel")
            row = (href.partition("#")[0] if href else "", text, markup.rel_tokens(rel) if rel else None, "a")
            if len(rows) < limit:
                rows[row] = None
            elif row not in rows:
                self._cut.add(row)

    def elements(self, nodes: list[tuple[int, LexborNode]]) -> None:
        """Add what the other elements link to."""
        for tag, node in nodes:
            attributes = node.attributes
            if tag == _AREA:
                if "href" in attributes:
                    label = _squeeze(attributes.get("alt") or "")[:ANCHOR_CHARS] or None
                    rel = markup.rel_tokens(attributes.get("rel") or "")
                    self.add(attributes["href"] or "", label, rel, "area")
            elif tag == _LINK:
                self._link(attributes)
            elif source := (attributes.get("src") or "").strip():
                self.add(source, None, None, "frame" if tag == _FRAME else "iframe")

    def _link(self, attributes: dict[str, str | None]) -> None:
        """A link element counts when it leads to a page: next, prev, and alternates that are HTML."""
        rel = markup.rel_tokens(attributes.get("rel") or "")
        href = (attributes.get("href") or "").strip()
        if rel is None or not href:
            return
        tokens = frozenset(rel.split())
        essence = markup.media_type(attributes.get("type"))
        page_like = tokens & {"next", "prev", "previous"} or (
            "alternate" in tokens
            and "stylesheet" not in tokens
            and essence in {"", "text/html", "application/xhtml+xml"}
        )
        if page_like:
            self.add(href, None, rel, "link")

    def add(self, href: str, anchor: str | None, rel: str | None, via: str) -> None:
        """One reference as written. Its fragment goes first: what differs only there is one reference."""
        row = (href.partition("#")[0], anchor, rel, via)
        if row in self._rows:
            return
        if len(self._rows) < self._limit:
            self._rows[row] = None
        else:
            self._cut.add(row)

    def done(self) -> Links:
        """All links, resolved; those that lead to nothing we fetch are left out."""
        references = list(dict.fromkeys(row[0] for row in self._rows))
        resolved = dict(
            zip(references, url.canonical_many(references, self._base, self._encoding), strict=True)
        )
        rows = dict.fromkeys(
            (target, anchor, rel, via)
            for href, anchor, rel, via in self._rows
            if (target := resolved[href]) is not None
        )
        urls, anchors, rels, vias = (
            (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
        )
        return Links(url=urls, anchor=anchors, rel=rels, via=vias, cut=len(self._cut))


def _picture(node: LexborNode) -> str | None:
    """What the first described picture of a link without text says."""
    picture = node.css_first("img[alt]") if node.first_child is not None else None
    return (
        _squeeze(picture.attributes.get("alt") or "")[:ANCHOR_CHARS] or None if picture is not None else None
    )


def _squeeze(text: str) -> str:
    """One space between two words, none around: no-break spaces count as spaces."""
    return " ".join(text.split())


def _base(nodes: list[LexborNode], page_url: str) -> str:
    """The first base with a href, against the page's URL; that URL when it is nothing we fetch (4.2.3)."""
    for node in nodes:
        href = node.attributes.get("href")
        if href is None:
            continue
        try:
            return url.canonical(href, page_url)
        except UrlError:
            return page_url
    return page_url


def _metas(nodes: list[LexborNode], key: str, values: set[str]) -> list[tuple[LexborNode, str]]:
    """The meta elements whose attribute `key` is one of `values`, with their content."""
    found = []
    for node in nodes:
        attributes = node.attributes
        if (attributes.get(key) or "").strip().lower() in values and attributes.get("content"):
            found.append((node, attributes["content"] or ""))
    return found


def _refresh(candidates: list[tuple[LexborNode, str]]) -> tuple[float, str] | None:
    """The first that is one counts, as in a browser."""
    return next((found for _, content in candidates if (found := markup.refresh(content))), None)


def _resolved(target: tuple[float, str] | None, base: str, encoding: str) -> tuple[float, str] | None:
    """A refresh with its target absolute; None where that is nothing we fetch or the page itself."""
    if target is None or not target[1]:
        return None
    found = url.canonical_many([target[1]], base, encoding)[0]
    return (target[0], found) if found is not None else None


def _canonical(nodes: list[LexborNode], base: str, encoding: str) -> str | None:
    """The first rel=canonical that is a URL."""
    for node in nodes:
        attributes = node.attributes
        href = (attributes.get("href") or "").strip()
        if href and "canonical" in (attributes.get("rel") or "").lower().split():
            found = url.canonical_many([href.partition("#")[0]], base, encoding)[0]
            if found is not None:
                return found
    return None


def _title(nodes: list[LexborNode]) -> str:
    """The first title that is the page's and not a picture's."""
    for node in nodes:
        if not _inside(node, _SVG):
            return _squeeze(node.text())[:_TITLE_CHARS]
    return ""


def _language(parts: _Parts) -> str | None:
    """The lang of html, else the pragma that servers set in its stead."""
    for node in parts.html:
        attributes = node.attributes
        if found := markup.language_tag(attributes.get("lang") or attributes.get("xml:lang") or ""):
            return found
    declared = _metas(parts.metas, "http-equiv", {"content-language"})
    return markup.language_tag(declared[0][1]) if declared else None


def _inside(node: LexborNode, tag: int) -> bool:
    """Whether an element stands within one of a kind."""
    above = node.parent
    while above is not None:
        if above.tag_id == tag:
            return True
        above = above.parent
    return False
