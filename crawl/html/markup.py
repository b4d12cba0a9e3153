"""Grammars of small values that markup and headers carry: refresh, rel tokens, media types, header lines.

What always holds: strings in, small values out; nothing raises on any text, and every pattern runs in linear
time. This module knows no tree and resolves no URL.

Sources: WHATWG HTML 4.2.5.3 (shared declarative refresh steps), 4.6.7 (link types).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = [
    "headers",
    "language_tag",
    "leads_to_a_feed",
    "leads_to_a_page",
    "media_type",
    "refresh",
    "rel_tokens",
]

_REFRESH: Final = re.compile(r"[\t\n\f\r ]*(?:([0-9]+)(\.[0-9]+)?|(?=\.))[0-9.]*(.*)", re.DOTALL)
_URL_WORD: Final = re.compile(r"url[\t\n\f\r ]*=[\t\n\f\r ]*", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8})*")
#: characters of a rel that are read
_REL: Final = 200
_SPACE: Final = "\t\n\f\r "
_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_FEED_TYPES: Final = frozenset({"application/rss+xml", "application/atom+xml"})


def refresh(content: str) -> tuple[float, str] | None:
    """Seconds and target of a refresh; an empty target reloads the page itself; None is no refresh."""
    found = _REFRESH.match(content)
    if not found:
        return None
    whole, fraction, rest = found.groups()
    seconds = float((whole or "0") + (fraction or "")) if whole else 0.0
    if rest and rest[0] not in _SPACE + ";,":
        return None
    rest = rest.lstrip(_SPACE)
    if rest[:1] in (";", ","):
        rest = rest[1:].lstrip(_SPACE)
    if word := _URL_WORD.match(rest):
        rest = rest[word.end() :]
    if rest[:1] in ('"', "'"):
        rest = rest[1:].split(rest[0], 1)[0]
    return seconds, rest.strip(_SPACE)


def rel_tokens(rel: str) -> str | None:
    """Tokens of a rel attribute, as far as it is no essay: lower case, one space between two; None when there
    are none.
    """
    return _tokens(rel if len(rel) <= _REL else rel[:_REL])


@lru_cache(maxsize=4096)  # of short texts only: what is remembered must not fill the memory
def _tokens(rel: str) -> str | None:
    return " ".join(rel.lower().split()) or None


def language_tag(text: str) -> str | None:
    """A language tag (BCP 47) with `-` between its parts; None when the text is none."""
    text = text.strip()
    return text.replace("_", "-") if len(text) <= 35 and _LANGUAGE.fullmatch(text) else None


def leads_to_a_page(rel: str, media: str | None) -> bool:
    """Whether a link of these rel tokens and this type leads to a page: next, prev, alternates in HTML."""
    tokens = frozenset(rel.split())
    if tokens & {"next", "prev", "previous"}:
        return True
    return "alternate" in tokens and "stylesheet" not in tokens and media_type(media) in {"", *_HTML_TYPES}


def leads_to_a_feed(rel: str, media: str | None) -> bool:
    """Whether a link of these rel tokens and this type leads to a feed of the page's site."""
    return "alternate" in rel.split() and media_type(media) in _FEED_TYPES


def headers(lines: str | None) -> dict[str, list[str]]:
    """All headers in lines as received: lower-case name to values, in their order."""
    found: dict[str, list[str]] = {}
    for line in (lines or "").split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), []).append(value.strip())
    return found


def media_type(content_type: str | None) -> str:
    """Type without parameters, lower case; empty when there is none or it has no slash."""
    if not content_type:
        return ""
    essence = re.split("[;,]", content_type, maxsplit=1)[0].strip().lower()
    return essence if "/" in essence else ""
