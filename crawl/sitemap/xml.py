"""The door to lxml: what sitemaps and feeds in XML say, read as a stream of tags.

What always holds: no tree is built, so memory does not grow with the number of elements; no entity is
declared, expanded or fetched, because everything before the root element is cut off and what is left of
references is settled here; neither network nor file is opened; nothing raises on any input. Work is linear:
a tag of more than `_RUN` bytes, nesting below `_DEPTH` and elements beyond `_ELEMENTS` end the
reading. What was complete by then counts.

Reading is lenient as peers are: namespaces do not matter (extensions like `image:loc` stand deeper, or are
told by their namespace), nor does upper case, a bare `&`, an HTML entity, a byte that is no character, or
what stands before and after the root element.
It resolves no URL, reads no date, and does not judge: fields come out as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.entities import html5
from typing import Final

from lxml import etree

__all__ = ["KINDS", "Fields", "find_root", "is_html", "read"]

#: root element (lower case, without prefix) -> kind
KINDS: Final = {"urlset": "urlset", "sitemapindex": "index", "rss": "rss", "rdf": "rss", "feed": "atom"}
#: element of one entry, by kind
_ENTRY: Final = {"urlset": "url", "index": "sitemap", "rss": "item", "atom": "entry"}
#: elements of an entry that are read, by kind: name -> field
_FIELDS: Final = {
    "urlset": {"loc": "loc", "lastmod": "lastmod", "changefreq": "changefreq", "priority": "priority"},
    "index": {"loc": "loc", "lastmod": "lastmod"},
    "rss": {"link": "loc", "guid": "guid", "pubdate": "lastmod", "date": "lastmod", "updated": "lastmod"},
    "atom": {"updated": "lastmod", "modified": "lastmod", "published": "issued", "issued": "issued"},
}
#: how far from the start the root element is looked for: behind an internal subset, or a script's warning
_HEAD: Final = 1_000_000
_STEP: Final = 65_536
#: bytes that may come to nothing: a longer tag (or comment) is nobody's, and would be held in memory whole
_RUN: Final = 1_048_576
#: elements in one another; a feed's content can be nested, an entry's own fields are not
_DEPTH: Final = 200
#: 50,000 URLs with 38 alternates each; what has more elements is made to be read for long
_ELEMENTS: Final = 2_000_000
#: references that are settled, ten for each of 50,000 URLs; further ones stay what they are
_REFERENCES: Final = 500_000
#: characters of one field
_TEXT: Final = 16_384
#: alternates of one entry, and of a file
_ALTERNATES: Final = 500
_ALL_ALTERNATES: Final = 500_000

_ROOT: Final = re.compile(
    rb"<(?:[A-Za-z_][\w.-]*:)?(urlset|sitemapindex|rss|rdf|feed)(?=[\s/>])", re.IGNORECASE
)
_HTML: Final = re.compile(rb"<(?:html|head|body)(?=[\s/>])", re.IGNORECASE)
_PAGE: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body|title)(?=[\s/>])", re.IGNORECASE)
#: comments and a document type, with what it declares; none of it is looked into
_ASIDE: Final = re.compile(
    rb"<!--.*?(?:-->|\Z)|<!DOCTYPE[^\[>]*(?:\[.*?(?:\]\s*>|\Z)|>|\Z)", re.IGNORECASE | re.DOTALL
)
#: an `&` that begins no reference XML knows without a declaration; CDATA and comments are stepped over whole
_REFERENCE: Final = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
    rb"|&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});)(?:([A-Za-z_][\w.-]{0,63});)?",
    re.DOTALL,
)
_LOOSE: Final = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});)")
#: a document type that declares entities: some of the document's text is missing then
_DECLARES: Final = re.compile(rb"<!ENTITY\s", re.IGNORECASE)
#: control characters that XML forbids
_FORBIDDEN: Final = bytes(set(range(32)) - {9, 10, 13})
#: namespaces whose elements are never an entry's own, whatever they are called
_FOREIGN: Final = re.compile(r"sitemap-|xhtml|search\.yahoo\.com/mrss|itunes", re.IGNORECASE)
_ATOM: Final = "http://www.w3.org/2005/Atom"
_BASE: Final = "{http://www.w3.org/XML/1998/namespace}base"


@dataclass(slots=True)
class Fields:
    """Entries as parallel lists of text as written (trimmed); None where an entry does not say."""

    kind: str
    base: str | None = None  # xml:base of the root
    loc: list[str] = field(default_factory=list)
    lastmod: list[str | None] = field(default_factory=list)
    changefreq: list[str | None] = field(default_factory=list)
    priority: list[str | None] = field(default_factory=list)
    alternates: list[tuple[str, ...]] = field(default_factory=list)
    without: int = 0  # entries that name no URL
    more: bool = False  # there were more entries than asked for
    whole: bool = False  # the root element was closed
    entities: bool = False  # it declares entities of its own, which are never expanded


class _End(Exception):
    """Nothing more is read."""


def find_root(head: bytes) -> tuple[str, int] | None:
    """Kind of the document that begins so, and where its root element stands; None where there is none.

    A document that begins as HTML is none, whatever it holds further down.
    """
    blank = _ASIDE.sub(lambda found: b" " * len(found[0]), head[:_HEAD])
    root = _ROOT.search(blank)
    if root is None:
        return None
    html = _HTML.search(blank, 0, root.start())
    return None if html else (KINDS[root[1].decode().lower()], root.start())


def is_html(document: bytes) -> bool:
    """Whether a document without such a root element is a page."""
    return _PAGE.search(document, 0, _HEAD) is not None


def read(document: bytes, kind: str, root: int, most: int) -> Fields:
    """Up to `most` entries of a document in UTF-8 whose root element of this kind stands at `root`."""
    reader = _Reader(kind, most)
    parser = etree.XMLParser(
        target=reader,  # type: ignore[arg-type]  # the stubs know Python 2, where tags were bytes as well
        encoding="utf-8",
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_pis=True,
        remove_comments=True,
    )
    body = memoryview(document)[root:]
    if _LOOSE.search(body):
        body = memoryview(_REFERENCE.sub(_settled, body, _REFERENCES))
    told, told_at = 0, 0  # what the parser has told so far, and where it was fed then
    try:
        for at in range(0, len(body), _STEP):
            parser.feed(bytes(body[at : at + _STEP]).translate(None, _FORBIDDEN))
            if reader.out.whole:
                break
            if reader.told != told:
                told, told_at = reader.told, at
            elif at - told_at > _RUN:
                break
        else:
            reader.cut = True  # what the parser closes by itself from here on was never closed
            parser.close()
    except (_End, etree.LxmlError):
        pass
    reader.finish()
    reader.out.entities = _DECLARES.search(document, 0, root) is not None
    return reader.out


def _settled(found: re.Match[bytes]) -> bytes:
    """What stands for a reference that XML does not know: HTML's own character; a bare `&`; else nothing.

    A name that only a document type could declare is dropped, as is what it would have meant.
    """
    if found[0][:1] == b"<":
        return found[0]
    if found[1] is None:
        return b"&amp;"
    known = html5.get(found[1].decode("ascii", "replace") + ";")
    if known is None:
        return b""
    return "".join(f"&#{ord(char)};" for char in known).encode()


class _Reader:
    """What lxml tells tag by tag. `cut`: the document is over, and what is open stays open.

    `told` grows with everything it is told.
    """

    def __init__(self, kind: str, most: int) -> None:
        self.out = Fields(kind)
        self.cut = False
        self.told = 0
        self._most = most
        self._entry = _ENTRY[kind]
        self._names = _FIELDS[kind]
        self._depth = 0
        self._elements = 0
        self._entry_depth = 0  # of the open entry's element; 0 when none is open
        self._field: str | None = None
        self._text: list[str] = []
        self._chars = 0
        self._values: dict[str, str] = {}
        self._alternates: list[str] = []
        self._all_alternates = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        self._elements += 1
        self.told += 1
        if self._depth > _DEPTH or self._elements > _ELEMENTS:
            raise _End
        if self._depth == 1:
            self.out.base = attributes.get(_BASE)
            return
        if self._entry_depth == 0:
            if _local(tag) == self._entry and self._depth <= 3:
                self._entry_depth = self._depth
            return
        if self._depth == self._entry_depth + 1:
            self._begin(tag, attributes)

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        """A child of an entry."""
        name = _local(tag)
        self._field = None
        if name == "link":
            self._link(tag, attributes)
        wanted = self._names.get(name)
        if wanted is None or (tag[0] == "{" and _FOREIGN.search(tag[: tag.rindex("}")])):
            return
        if wanted == "loc" and (attributes.get("href") or tag.startswith("{" + _ATOM)):
            return  # an Atom link inside of RSS: its address is an attribute
        if wanted == "guid" and attributes.get("isPermaLink", "true").strip().lower() == "false":
            return
        if wanted == "loc" and self.out.kind in ("urlset", "index") and "loc" in self._values:
            self._emit()  # a second address in one entry: an entry that was not closed
        self._field, self._text, self._chars = wanted, [], 0

    def _link(self, tag: str, attributes: dict[str, str]) -> None:
        """`link` with its address as an attribute: an Atom entry's page, or a sitemap entry's alternate."""
        href = attributes.get("href")
        if not href or len(href) > _TEXT:
            return
        rel = attributes.get("rel", "alternate").strip().lower()
        if self.out.kind == "urlset":
            if rel == "alternate" and len(self._alternates) < _ALTERNATES:
                self._alternates.append(href)
        elif rel == "alternate" and (self.out.kind == "atom" or tag.startswith("{" + _ATOM)):
            base = attributes.get(_BASE)
            self._values.setdefault("href", href if base is None else f"{base} {href}")

    def data(self, text: str) -> None:
        """Text, in pieces."""
        self.told += 1
        if self._field is not None and self._depth == self._entry_depth + 1:
            self._chars += len(text)
            if self._chars <= _TEXT:
                self._text.append(text)

    def end(self, tag: str) -> None:
        """An element ends."""
        self.told += 1
        if self.cut:
            return
        if self._field is not None and self._depth == self._entry_depth + 1:
            self._store(self._field)
            self._field = None
        elif self._depth == self._entry_depth:
            self._emit()
            self._entry_depth = 0
        self._depth -= 1
        if self._depth == 0:
            self.out.whole = True

    def _store(self, name: str) -> None:
        text = "".join(self._text).strip()
        if text and self._chars <= _TEXT:
            self._values.setdefault(name, text)
        elif self._chars > _TEXT:
            self.out.without += name == "loc"

    def _emit(self) -> None:
        """The open entry is over."""
        values, alternates = self._values, tuple(self._alternates)
        self._values, self._alternates = {}, []
        loc = values.get("loc") or values.get("href") or values.get("guid")
        if not loc:
            self.out.without += 1
            return
        out = self.out
        if len(out.loc) >= self._most:
            out.more = True
            raise _End
        self._all_alternates += len(alternates)
        out.loc.append(loc)
        out.lastmod.append(values.get("lastmod") or values.get("issued"))
        out.changefreq.append(values.get("changefreq"))
        out.priority.append(values.get("priority"))
        out.alternates.append(alternates if self._all_alternates <= _ALL_ALTERNATES else ())

    def finish(self) -> None:
        """An entry whose end is missing counts if its address was complete."""
        if self._entry_depth and self._values and not self.out.more:
            try:
                self._emit()
            except _End:
                pass

    def close(self) -> None:
        """The document is over."""


def _local(tag: str) -> str:
    """Name without namespace or prefix, in lower case."""
    return tag.rpartition("}")[2].rpartition(":")[2].lower()
