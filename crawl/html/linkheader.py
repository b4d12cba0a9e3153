"""The Link header: which pages it leads to, and which it calls canonical.

What always holds: nothing raises on any text, in linear time; targets come absolute, canonical, without
fragment, each (target, rel) once; a link whose context is another page (`anchor`) says nothing about this
one. Of the relations, those that lead to pages count as links (next, prev, alternates that are HTML);
canonical is a hint. A `base` in the markup does not concern headers.

Sources: RFC 8288 3 and B (parsing), RFC 6596 (canonical).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from crawl import url
from crawl.html import markup

__all__ = ["NOTHING", "Found", "read"]

_TARGET: Final = re.compile(r"[\s,]*<([^>]*)>")
_PARAMETER: Final = re.compile(
    r"\s*;\s*([^\s=;,\"]*)(?:\s*=\s*(?:\"((?:[^\"\\]|\\.)*)(?:\"|\Z)|([^\s;,\"]*)))?", re.DOTALL
)
_QUOTED: Final = re.compile(r"\\(.)", re.DOTALL)
#: of one name the first counts (RFC 8288 3.3, 3.4.1)
_NAMES: Final = frozenset({"rel", "anchor", "type"})
#: links taken from all lines of an answer
_MOST: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What Link lines say."""

    links: tuple[tuple[str, str], ...] = ()  # target, rel tokens
    canonical: str | None = None  # the first that is a URL


NOTHING: Final = Found()


def read(lines: Iterable[str], page_url: str) -> Found:
    """Links of an answer's Link lines, in their order; `page_url` is canonical."""
    said = [one for line in lines for one in _values(line)][:_MOST]
    if not said:
        return NOTHING
    targets = url.canonical_many([url.without_fragment(target) for target, _ in said], page_url)
    links: dict[tuple[str, str], None] = {}
    canonical = None
    for target, (_, parameters) in zip(targets, said, strict=True):
        rel = markup.rel_tokens(parameters.get("rel", ""))
        if target is None or rel is None or not _of_this_page(parameters.get("anchor"), page_url):
            continue
        if canonical is None and "canonical" in rel.split():
            canonical = target
        if markup.leads_to_a_page(rel, parameters.get("type")):
            links[target, rel] = None
    return Found(links=tuple(links), canonical=canonical)


def _values(line: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Target, not resolved, and parameters of each link of a line; reading ends at what is no link."""
    at = 0
    while found := _TARGET.match(line, at):
        at, parameters = found.end(), dict[str, str]()
        while (parameter := _PARAMETER.match(line, at)) and parameter.end() > at:
            at = parameter.end()
            name, quoted, bare = parameter.groups()
            if (name := name.lower()) in _NAMES:
                value = _QUOTED.sub(r"\1", quoted) if quoted is not None else bare or ""
                parameters.setdefault(name, value)
        if target := found[1].strip():
            yield target, parameters


def _of_this_page(anchor: str | None, page_url: str) -> bool:
    """Whether the link's context is the page itself (RFC 8288 3.2)."""
    return anchor is None or url.canonical_many([url.without_fragment(anchor)], page_url)[0] == page_url
