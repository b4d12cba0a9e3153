"""Grammars of the values that markup and headers carry: refresh, robots directives, rel tokens, Link headers.

What always holds: strings in, small values out; nothing raises on any text, and every pattern runs in linear
time. This module knows no tree and resolves no URL.

Sources: WHATWG HTML 4.2.5.3 (shared declarative refresh steps), RFC 8288 (Link), RFC 6596 (canonical),
Google's documentation of the robots meta tag and X-Robots-Tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

__all__ = [
    "directives",
    "headers",
    "is_html",
    "language_tag",
    "link_header",
    "media_type",
    "refresh",
    "rel_tokens",
    "x_robots_tag",
]

_REFRESH: Final = re.compile(r"[\t\n\f\r ]*(?:(\d+)(\.\d+)?|(?=\.))[\d.]*(.*)", re.DOTALL)
_URL_WORD: Final = re.compile(r"url[\t\n\f\r ]*=[\t\n\f\r ]*", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8})*")
_SPACE: Final = "\t\n\f\r "
#: directives that have a value of their own after a colon; before any other colon stands an agent
_VALUED: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_LINK_TARGET: Final = re.compile(r"[\s,]*<([^>]*)>")
_LINK_PARAMETER: Final = re.compile(
    r"\s*;\s*([^\s=;,\"]*)(?:\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;,\"]*)))?"
)
_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
#: first tags by which MIME Sniffing 7.1 knows HTML
_HTML_START: Final = re.compile(
    rb"[\t\n\f\r ]*(?:<(?:!doctype[\t\n\f\r ]+html|html|head|script|iframe|h1|div|font|table|a|style|title"
    rb"|b|body|br|p)[\t\n\f\r />]|<!--|<\?xml[^>]*>\s*(?:<!--.{0,200}?-->\s*)?<(?:!doctype\s+html|html)\b)",
    re.IGNORECASE | re.DOTALL,
)


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


def directives(content: str) -> list[str]:
    """Directives of a robots meta tag, lower case, in the order written; `none` stays `none`."""
    return [word for part in content.split(",") if (word := " ".join(part.lower().split()))]


def x_robots_tag(lines: Iterable[str], agent: str) -> list[str]:
    """Directives of X-Robots-Tag lines that concern this agent: those for all and those after its name.

    Each line has its own agent: joining lines first would give one agent's rule to another.
    """
    found: list[str] = []
    for line in lines:
        concerned = True
        for part in line.split(","):
            word = " ".join(part.lower().split())
            head, colon, tail = word.partition(":")
            if colon and head.strip() not in _VALUED:
                concerned, word = head.strip() == agent.lower(), tail.strip()
            if concerned and word:
                found.append(word)
    return found


@lru_cache(maxsize=4096)
def rel_tokens(rel: str) -> str | None:
    """Tokens of a rel attribute: lower case, one space between two; None when there are none."""
    return " ".join(rel.lower().split())[:200] or None


def language_tag(text: str) -> str | None:
    """A language tag (BCP 47) with `-` between its parts; None when the text is none."""
    text = text.strip()
    return text.replace("_", "-") if len(text) <= 35 and _LANGUAGE.fullmatch(text) else None


def link_header(lines: Iterable[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Target (not resolved) and rel tokens of each link in Link lines; the first rel of a link counts."""
    for line in lines:
        at = 0
        while target := _LINK_TARGET.match(line, at):
            at, rel = target.end(), None
            while (parameter := _LINK_PARAMETER.match(line, at)) and parameter.end() > at:
                at = parameter.end()
                if rel is None and parameter[1].lower() == "rel":
                    rel = parameter[2] if parameter[2] is not None else parameter[3] or ""
            yield target[1].strip(), frozenset((rel or "").lower().split())


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


def is_html(content_type: str | None, body: bytes) -> bool:
    """Whether a body is a page: by its type, and without a type by its first bytes (MIME Sniffing 7.1)."""
    essence = media_type(content_type)
    if essence:
        return essence in _HTML_TYPES
    start = body[3:1448] if body.startswith(b"\xef\xbb\xbf") else body[:1445]
    return _HTML_START.match(start) is not None
