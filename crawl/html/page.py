"""What a page says, as one value: what `crawl.html.read` gives.

What always holds: everything in it follows from the bytes, the header and the URL it was read with; a page
that could not be read says so in `error` and nothing else. It reads nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawl.html import pagelinks
from crawl.html.pagelinks import Links

__all__ = ["Page", "unread"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page says."""

    charset: str  # WHATWG name of the encoding it was read in
    title: str
    description: str | None
    language: str | None  # BCP 47
    language_source: str | None  # markup, header or detected; None without a language
    text: str  # visible text, one space between words
    base: str  # what its links are relative to
    links: Links
    canonical: str | None  # rel=canonical of the head, absolute; a hint only
    robots: tuple[str, ...]  # directives of its robots meta tags, those for our agent included
    refresh: tuple[float, str] | None  # seconds and absolute target of a meta refresh; a reload is none
    scripts: int  # script elements
    script_chars: int  # characters in them
    signs: tuple[str, ...]  # that scripts make its text (crawl.html.scripted)
    error: str | None = None  # memory: there was not enough to read it, and nothing of it is here


def unread(page_url: str) -> Page:
    """A page of which nothing could be read for want of memory."""
    return Page(
        charset="utf-8",
        title="",
        description=None,
        language=None,
        language_source=None,
        text="",
        base=page_url,
        links=pagelinks.NONE,
        canonical=None,
        robots=(),
        refresh=None,
        scripts=0,
        script_chars=0,
        signs=(),
        error="memory",
    )
