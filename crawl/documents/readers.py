"""Readers: one function per media type that says what a body holds. HTML and PDF are here, others plug in.

A reader is `read(body, content_type, url) -> Reading` (or, as HTML's, gives a whole `Page`): pure,
without network, run in the parse process under its deadline and memory limit (docs/plugins.md is written for
its author). Where it comes from: `[content] readers`, else ours, else an installed package that names it in
the entry point group `GROUP`.
What always holds: what a reader gives is checked and trimmed here, so that no plug-in makes a row that the
lake cannot hold; a type without a reader, or with several, is told at once with what to do.
It decides no type (crawl.documents.screen) and catches nothing a reader raises.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from crawl.errors import SettingsError
from crawl.html import markup
from crawl.html import reader as html
from crawl.html.page import Page
from crawl.html.pagelinks import Collector, Links, label
from crawl.policy import Content

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "Link", "Reader", "Reading", "load", "named", "page_of"]

#: entry points of this group: media type -> module:function
GROUP: Final = "crawl_cycles.readers"
#: readers that come with this package; imported when their type is wanted
BUILT_IN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "text/html": "crawl.html:read",
        "application/xhtml+xml": "crawl.html:read",
        "application/pdf": "crawl.documents.pdf:read",
    }
)
_TITLE_CHARS: Final = 1_000
#: characters of text and of metadata (as JSON) of one document
_TEXT_CHARS: Final = 5_000_000
_METADATA_CHARS: Final = 65_536


@dataclass(frozen=True, slots=True)
class Link:
    """Where a body leads: an address, absolute or relative to the body's own, and the words of the link."""

    url: str
    anchor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a body says. Whatever it does not say is left out."""

    text: str = ""  # for people to read; spaces and line ends are squeezed
    title: str = ""
    language: str | None = None  # BCP 47
    links: Sequence[Link] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)  # what JSON can hold: the column `metadata`


Reader: TypeAlias = Callable[[bytes, str | None, str], "Reading | Page"]

#: a page that says nothing: what a reading does not tell is as in an empty page
_BLANK: Final = html.read(b"", "text/html; charset=utf-8", "http://localhost/")


def named(content: Content) -> dict[str, str]:
    """The reader of each type that is read, as module:function. Raises SettingsError where one has none."""
    found: dict[str, str] = {}
    for kind in content.types:
        at = content.readers.get(kind) or BUILT_IN.get(kind)
        found[kind] = at or _installed(kind).value
    return found


def _installed(kind: str) -> EntryPoint:
    """What an installed package offers for a type. Raises SettingsError where none does, or several."""
    from importlib.metadata import entry_points  # 20 ms that only plug-ins are worth

    offers = sorted(set(entry_points(group=GROUP, name=kind)), key=lambda point: point.value)
    if len(offers) == 1:
        return offers[0]
    if offers:
        told = " and ".join(f"{point.value} ({_package(point)})" for point in offers)
        raise SettingsError(
            f"content.types: {kind} has several readers: {told}; say which in content.readers,"
            f' e.g. {{ "{kind}" = "{offers[0].value}" }}'
        )
    raise SettingsError(
        f"content.types: nothing here reads {kind}: install a package that does, wherever rounds are run,"
        " or name a function in content.readers (docs/plugins.md), or take the type out"
    )


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "of an unknown package"


def load(content: Content) -> dict[str, Reader]:
    """The reader of each type that is read. Raises SettingsError that names the one that cannot be loaded."""
    return {kind: _function(kind, at) for kind, at in named(content).items()}


def _function(kind: str, at: str) -> Reader:
    module, colon, name = at.partition(":")
    try:
        if not colon:
            raise ValueError("write module:function")
        found: Any = importlib.import_module(module.strip())
        for part in name.strip().split("."):
            found = getattr(found, part)
    except Exception as error:  # a stranger's module may raise anything
        raise SettingsError(
            f"content.types: the reader of {kind}, {at}, cannot be loaded ({type(error).__name__}: {error}):"
            " install it wherever rounds are run, the workers' machines included, or take the type out"
        ) from error
    if not callable(found):
        raise SettingsError(f"content.types: the reader of {kind}, {at}, is no function")
    reader: Reader = found
    return reader


def page_of(reading: object, page_url: str, limit: int) -> tuple[Page, str | None]:
    """What a reader gave as a page, and its metadata as JSON. `limit`: links that are taken.

    Its language is the one the reader tells, if that is one.
    Raises TypeError or ValueError for what is no reading.
    """
    if isinstance(reading, Page):
        return reading, None
    if not isinstance(reading, Reading):
        raise TypeError(f"a reader gives a Reading, not {type(reading).__name__}")
    text = _squeezed(reading.text)[:_TEXT_CHARS]
    spoken = None if reading.language is None else markup.language_tag(_text(reading.language))
    page = replace(
        _BLANK,
        charset="",
        title=_squeezed(reading.title)[:_TITLE_CHARS],
        language=spoken,
        text=text,
        base=page_url,
        links=_links(reading.links, page_url, limit),
    )
    return page, _json(reading.metadata)


def _links(links: Sequence[Link], page_url: str, limit: int) -> Links:
    found = Collector(page_url, "utf-8", limit)
    for link in links:
        href = _text(link.url).strip()
        if href:
            found.add(href, label(None if link.anchor is None else _text(link.anchor)), None, "a")
    return found.done()


def _json(metadata: Mapping[str, Any]) -> str | None:
    if not metadata:
        return None
    # what is no JSON (a NaN, a date) is the reader's fault, and told as such
    told = _text(json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False, sort_keys=True))
    if len(told) > _METADATA_CHARS:
        raise ValueError(f"metadata of more than {_METADATA_CHARS} characters")
    return told


def _squeezed(text: str) -> str:
    return " ".join(_text(text).split())


def _text(text: str) -> str:
    """Text that can be stored: without NUL, halves of surrogate pairs replaced. Raises TypeError for none."""
    if not isinstance(text, str):
        raise TypeError(f"text is a str, not {type(text).__name__}")
    if text.isascii():
        return text.replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
