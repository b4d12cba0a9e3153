"""The language of a text: what a page or its header declares, else what the text itself looks like.

What always holds: nothing raises on any text; the same text gives the same answer; a tag is BCP 47, a guess
the bare language (with its script where Chinese needs one); a text too short or too mixed to tell gives None.
Only the beginning of a text is looked at, so that a guess costs under 0.1 ms whatever the page.

The library is CLD2, which Chrome had; why: docs/decisions/022-charset-and-language.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

import pycld2

from crawl.html import markup

__all__ = ["SAMPLE", "detect", "of_header", "told"]

#: characters of a text that are looked at
SAMPLE: Final = 2_000

#: codes of CLD2 that BCP 47 writes otherwise
_TODAY: Final = {"iw": "he", "jw": "jv", "in": "id", "mo": "ro", "ji": "yi"}
#: what CLD2 calls text of no language, and its jests
_NONE: Final = re.compile(r"un|xx.*|zz.*|tlh")


def of_header(values: Sequence[str]) -> str | None:
    """The one language that Content-Language names; None for several, which tell whom a page is for (RFC
    9110 8.5), not what it is written in.
    """
    named = [part for value in values for part in value.split(",") if part.strip()]
    return markup.language_tag(named[0]) if len(named) == 1 else None


def told(
    declared: str | None, header: Sequence[str], text: str
) -> tuple[str | None, Literal["markup", "header", "detected"] | None]:
    """The language and who told it: what the content declares, else the header's lines, else the text."""
    if declared:
        return declared, "markup"
    if named := of_header(header):
        return named, "header"
    guess = detect(text)
    return guess, "detected" if guess else None


def detect(text: str) -> str | None:
    """The language of the beginning of a text; None when that does not tell."""
    sample = text[:SAMPLE]
    try:
        sure, _, found = pycld2.detect(sample.encode("utf-8", "replace"), isPlainText=True)
    except pycld2.error:  # it takes no control characters
        clean = "".join([char if char.isprintable() else " " for char in sample])
        try:
            sure, _, found = pycld2.detect(clean.encode("utf-8", "replace"), isPlainText=True)
        except pycld2.error:
            return None
    code = str(found[0][1])
    return _TODAY.get(code, code) if sure and not _NONE.fullmatch(code) else None
