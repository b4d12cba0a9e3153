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
from collections.abc import Sequence
from typing import Final, TypeAlias

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from crawl import url
from crawl.errors import UrlError
from crawl.html import charset, directives, language, markup, pagelinks, scripted
from crawl.html.page import Page, unread
from crawl.html.pagelinks import ANCHOR_CHARS, Links

__all__ = ["ANCHOR_CHARS", "Links", "Page", "read"]

#: titles and descriptions longer than this are stuffing
_TITLE_CHARS: Final = 1_000
_DESCRIPTION_CHARS: Final = 2_000
#: children of the body, and noscripts, that are looked at for signs of scripts
_SIGNS: Final = 40

#: meta elements with their attributes
_Metas: TypeAlias = "list[tuple[LexborNode, dict[str, str | None]]]"

_FACTORY: Final = LexborHTMLParser("")


def _ids(names: str) -> frozenset[int]:
    return frozenset(_id(name) for name in names.split())


def _id(name: str) -> int:
    return _FACTORY.create_node(name).tag_id


_A, _AREA, _BASE, _LINK, _META = map(_id, ("a", "area", "base", "link", "meta"))
_TITLE, _HTML, _FRAME, _IFRAME = map(_id, ("title", "html", "frame", "iframe"))
_NOSCRIPT, _SVG, _SCRIPT = map(_id, ("noscript", "svg", "script"))
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
    _INLINE
    | _UNSEEN
    | _BODY
    | {_A, _AREA, _BASE, _LINK, _META, _TITLE, _HTML, _FRAME, _IFRAME, _COMMENT, _NOSCRIPT}
)


def read(
    body: bytes,
    content_type: str | None,
    page_url: str,
    *,
    agent: str = "",
    limit: int = 5_000,
    content_language: Sequence[str] = (),
) -> Page:
    """Read a page. Never raises; whether it was read is told by `error`.

    `page_url` is canonical; `agent` names whose meta tag is obeyed beside `robots`; of more than `limit`
    links the first are kept; `content_language` are the header's lines.
    """
    try:
        return _read(body, content_type, page_url, agent, limit, content_language)
    except (MemoryError, SelectolaxError):  # no markup is refused: the tree found no memory
        return unread(page_url)


def _read(
    body: bytes,
    content_type: str | None,
    page_url: str,
    agent: str,
    limit: int,
    content_language: Sequence[str],
) -> Page:
    encoding, source = charset.to_utf8(body, content_type)
    tree = LexborHTMLParser(source, options=LexborDocumentOptions.WO_EVENTS)
    parts = _sort(tree)
    scripts = _scripts(parts.scripts)
    signs = _signs(tree, parts)
    for node in parts.unseen:
        # Unlinked, not freed: nodes below it are still held by other lists.
        node.decompose(recursive=False)
    if _may_hide(source):
        for node in tree.css("[hidden]"):
            node.decompose(recursive=False)
    base = _base(parts.bases, page_url)
    spelt = "utf-8" if encoding in {"utf-16le", "utf-16be", "replacement"} else encoding
    metas = [(node, node.attributes) for node in parts.metas]
    target = _refresh(metas)
    links = pagelinks.Collector(base, spelt, limit)
    _dissolve(tree, parts.inline)
    if target is not None and target[1]:
        links.add(target[1], None, None, "refresh")
    links.elements([node.attributes for node in parts.links])
    links.areas([node.attributes for node in parts.areas])
    links.frames([node.attributes for node in parts.frames], "frame")
    links.frames([node.attributes for node in parts.iframes], "iframe")
    links.extend(_anchors(parts.anchors))
    _dissolve(tree, parts.anchors)
    text = _squeeze(tree.body.text(separator=" ")) if tree.body is not None else ""  # a frameset has no body
    described = _metas(metas, "name", {"description"})
    spoken, told_by = language.told(_declared(parts.html, metas), content_language, text)
    return Page(
        charset=encoding,
        title=_title(parts.titles),
        description=_squeeze(described[0][1])[:_DESCRIPTION_CHARS] or None if described else None,
        language=spoken,
        language_source=told_by,
        text=text,
        base=base,
        links=links.done(),
        canonical=_canonical(parts.head_links, base, encoding),
        robots=_robots(metas, agent),
        refresh=_resolved(target, base, encoding),
        scripts=len(parts.scripts),
        script_chars=scripts,
        signs=signs,
    )


class _Parts:
    """Elements of a page by what they are good for, in the order of the page."""

    __slots__ = (
        *("anchors", "areas", "bases", "frames", "head_links", "html", "iframes", "inline", "links"),
        *("metas", "noscripts", "scripts", "titles", "unseen"),
    )

    def __init__(self) -> None:
        self.anchors: list[LexborNode] = []
        self.areas: list[LexborNode] = []
        self.bases: list[LexborNode] = []
        self.frames: list[LexborNode] = []
        self.head_links: list[LexborNode] = []
        self.html: list[LexborNode] = []
        self.iframes: list[LexborNode] = []
        self.inline: list[LexborNode] = []
        self.links: list[LexborNode] = []
        self.metas: list[LexborNode] = []
        self.noscripts: list[LexborNode] = []
        self.scripts: list[LexborNode] = []
        self.titles: list[LexborNode] = []
        self.unseen: list[LexborNode] = []

    def by_tag(self) -> dict[int, list[LexborNode]]:
        """Where elements go of which a page has few, and which need no further look."""
        return {
            _AREA: self.areas,
            _FRAME: self.frames,
            _IFRAME: self.iframes,
            _LINK: self.links,
            _META: self.metas,
            _BASE: self.bases,
            _TITLE: self.titles,
            _HTML: self.html,
            _SCRIPT: self.scripts,
            _NOSCRIPT: self.noscripts,
        }


def _sort(tree: LexborHTMLParser) -> _Parts:
    """The one walk over the elements."""
    parts = _Parts()
    root = tree.root
    if root is None:
        return parts
    rare = parts.by_tag()
    inline, anchor = parts.inline.append, parts.anchors.append
    in_head = True
    for node in root.traverse():
        tag = node.tag_id
        if tag not in _WANTED:
            continue
        if tag in _INLINE:
            inline(node)
        elif tag == _A:
            anchor(node)
        elif tag in _BODY:
            in_head = False
        else:
            if tag == _COMMENT or tag in _UNSEEN:  # a comment would part the word it stands in
                parts.unseen.append(node)
            if (found := rare.get(tag)) is not None:
                found.append(node)
            if in_head and tag == _LINK:  # in the body anybody who may comment could set a canonical
                parts.head_links.append(node)
    return parts


def _scripts(nodes: list[LexborNode]) -> int:
    """Characters in scripts."""
    return sum([len(node.text(deep=False)) for node in nodes])


def _signs(tree: LexborHTMLParser, parts: _Parts) -> tuple[str, ...]:
    """Signs that scripts make the page: outermost elements, scripts, and what it says without them."""
    if not parts.scripts:
        return ()
    found: set[str] = set()
    outermost = parts.html[:1]
    if tree.body is not None:
        outermost.append(tree.body)
        for at, node in enumerate(tree.body.iter()):
            if at >= _SIGNS:
                break
            outermost.append(node)
    for node in outermost:
        found.update(scripted.of_element(node.tag or "", node.attributes))
    for node in parts.scripts:
        if attributes := node.attributes:
            found.add(scripted.of_script(attributes) or "")
    if any(scripted.asks_for_scripts(node.text()) for node in parts.noscripts[:_SIGNS]):
        found.add(scripted.NOSCRIPT)
    return tuple(sorted(found - {""}))


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


def _anchors(nodes: list[LexborNode]) -> list[pagelinks.Row]:
    """The links of `a` elements: nearly all links there are, hence this one tight loop."""
    rows: list[pagelinks.Row] = []
    for node in nodes:
        attributes = node.attributes
        href = attributes.get("href")
        if href is None and "href" not in attributes:
            continue
        text = " ".join(node.text(separator=" ").split())[:ANCHOR_CHARS].rstrip() or _picture(node)
        rel = attributes.get("rel")
        rows.append(
            (
                url.without_fragment(href) if href and "#" in href else href or "",
                text,
                markup.rel_tokens(rel) if rel else None,
                "a",
            )
        )
    return rows


def _picture(node: LexborNode) -> str | None:
    """What the first described picture of a link without text says."""
    picture = node.css_first("img[alt]") if node.first_child is not None else None
    return pagelinks.label(picture.attributes.get("alt")) if picture is not None else None


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


def _metas(metas: _Metas, key: str, values: set[str]) -> list[tuple[LexborNode, str]]:
    """The meta elements whose attribute `key` is one of `values`, with their content."""
    found = []
    for node, attributes in metas:
        if (attributes.get(key) or "").strip().lower() in values and attributes.get("content"):
            found.append((node, attributes["content"] or ""))
    return found


def _robots(metas: _Metas, agent: str) -> tuple[str, ...]:
    """Directives for everybody and for our agent, each once."""
    names = {"robots", agent.lower()} if agent else {"robots"}
    said = [word for _, content in _metas(metas, "name", names) for word in directives.of_meta(content)]
    return tuple(dict.fromkeys(said))


def _refresh(metas: _Metas) -> tuple[float, str] | None:
    """The first that is one counts, as in a browser, which runs scripts and so sees no noscript."""
    for node, content in _metas(metas, "http-equiv", {"refresh"}):
        found = markup.refresh(content)
        if found is not None and not _inside(node, _NOSCRIPT):
            return found
    return None


def _resolved(target: tuple[float, str] | None, base: str, encoding: str) -> tuple[float, str] | None:
    """A refresh with its target absolute; None where that is nothing we fetch, or only a reload."""
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
            found = url.canonical_many([url.without_fragment(href)], base, encoding)[0]
            if found is not None:
                return found
    return None


def _title(nodes: list[LexborNode]) -> str:
    """The first title that is the page's and not a picture's."""
    for node in nodes:
        if not _inside(node, _SVG):
            return _squeeze(node.text())[:_TITLE_CHARS]
    return ""


def _declared(roots: list[LexborNode], metas: _Metas) -> str | None:
    """The lang of html, else the pragma that servers set in its stead."""
    for node in roots:
        attributes = node.attributes
        if found := markup.language_tag(attributes.get("lang") or attributes.get("xml:lang") or ""):
            return found
    declared = _metas(metas, "http-equiv", {"content-language"})
    return markup.language_tag(declared[0][1]) if declared else None


def _inside(node: LexborNode, tag: int) -> bool:
    """Whether an element stands within one of a kind."""
    above = node.parent
    while above is not None:
        if above.tag_id == tag:
            return True
        above = above.parent
    return False
