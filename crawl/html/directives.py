"""What a page asks of those who index: the robots meta tag and X-Robots-Tag, as words and as what they mean.

What always holds: nothing raises on any text, in linear time; a directive counts for whom it names (`robots`,
or our agent), each header line on its own; several that disagree add up to the most restrictive; a word that
is none stays among the words and means nothing. What follows from a directive is `crawl.stages.parse`'s and
the settings'.

Sources: Google's documentation of the robots meta tag and X-Robots-Tag; `nocache` is Bing's word for
`noarchive`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from crawl.dates import lastmod

__all__ = ["NOTHING", "Meant", "meant", "of_headers", "of_meta", "telling", "withheld", "written"]

#: one directive; the date after unavailable_after may have a comma behind its weekday
_WORD: Final = re.compile(
    r"\s*((?:[^:,]{0,100}:\s*)?unavailable_after\s*:\s*"
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\s*,)?[^,]*"
    r"|[^,]*)(?:,|$)",
    re.IGNORECASE,
)
_VALUED: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_EVERYBODY: Final = frozenset({"*", "robots"})
#: characters of all directives of a page that are kept
_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """What the directives of a page come to."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    unavailable_after: datetime | None = None  # the earliest; a date that is none asks for nothing


NOTHING: Final = Meant()


def of_meta(content: str) -> list[str]:
    """Directives of a robots meta tag, lower case, in the order written; `none` stays `none`."""
    return [word for part in _WORD.findall(content) if (word := _squeezed(part))]


def of_headers(lines: Iterable[str], agent: str) -> list[str]:
    """Directives of X-Robots-Tag lines that concern this agent: those for all and those after its name.

    An agent's name counts to the end of its line or to the next name. Each line has its own: joining them
    first would give one agent's rule to another.
    """
    ours = _EVERYBODY | {agent.lower()}
    found: list[str] = []
    for line in lines:
        concerned = True
        for part in _WORD.findall(line):
            word = _squeezed(part)
            head, colon, tail = word.partition(":")
            if colon and head.strip() not in _VALUED:
                concerned, word = head.strip() in ours, tail.strip()
            if concerned and word:
                found.append(word)
    return found


def meant(words: Sequence[str]) -> Meant:
    """What directives come to, wherever they were written."""
    if not words:
        return NOTHING
    said = frozenset(words)
    dates = [at for word in said if (at := _date(word)) is not None]
    return Meant(
        noindex=not said.isdisjoint({"noindex", "none"}),
        nofollow=not said.isdisjoint({"nofollow", "none"}),
        noarchive=not said.isdisjoint({"noarchive", "nocache"}),
        unavailable_after=min(dates, default=None),
    )


def telling(words: Iterable[str]) -> list[str]:
    """Those of some directives that ask for anything here."""
    return [word for word in words if meant([word]) != NOTHING]


def withheld(said: Meant, now: datetime | None) -> str | None:
    """Why a text is to be withheld: noindex or unavailable_after. Without `now` no date has passed."""
    if said.noindex:
        return "noindex"
    passed = said.unavailable_after is not None and now is not None and said.unavailable_after <= now
    return "unavailable_after" if passed else None


def written(words: Iterable[str]) -> str | None:
    """Directives as one text, each once; None when there are none."""
    return ", ".join(dict.fromkeys(words))[:_KEPT] or None


def _squeezed(part: str) -> str:
    return " ".join(part.lower().split())


def _date(word: str) -> datetime | None:
    head, _, value = word.partition(":")
    return lastmod.moment(value.strip()) if head.strip() == "unavailable_after" else None
