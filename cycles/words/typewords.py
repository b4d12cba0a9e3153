"""What `crawl explain` says about media types: why an answer was not read, and as what a document was.

What always holds: declared and real type are both named where they differ; texts of servers are shown without
control characters. It reads no lake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cycles.words.output import safe

__all__ = ["read_as", "unread"]

_PAGES: Final = ("text/html", "application/xhtml+xml")


def unread(row: Mapping[str, Any], fetches: Sequence[Mapping[str, Any]]) -> str | None:
    """Why what came was not read; None where types have nothing to do with it.

    `fetches`: requests for the URL, and for others of their chains.
    """
    brought = [fetch for fetch in fetches if fetch["url_key"] == row["url_key"] and fetch["sniffed_type"]]
    declared = brought[-1]["content_type"] if brought else None
    found = row["sniffed_type"] or "of an unknown type"
    if row["last_outcome"] == "TYPE_MISMATCH":
        said = f"it says {safe(declared)}" if declared else "it says no type"
        return f"not read: {said}, but its first bytes are those of {safe(found)}; nothing of it is kept"
    if row["reason"] == "unsupported_type":
        if row.get("kind") not in (None, "page") and brought and brought[-1].get("kind") == "page":
            return (
                f"not read: it was asked for as a page, and {safe(found)} is none of content.types; the next"
                f" request reads it as a {row['kind']}"
            )
        differs = declared and declared.partition(";")[0].strip().lower() != found
        said = f" (it says {safe(declared)})" if declared and differs else ""
        return f"not read: it is {safe(found)}{said}, which is none of content.types; nothing of it is kept"
    if str(row["reason"]).startswith("reader_failed"):
        return f"the reader of {safe(found)} could make nothing of it"
    if row["reason"] == "no_content":
        return f"without a text (no_content): {_textless(row, fetches)}"
    return None


def _textless(row: Mapping[str, Any], fetches: Sequence[Mapping[str, Any]]) -> str:
    answers = [one for one in fetches if one["url_key"] == row["url_key"] and one["outcome"] == "OK"]
    if answers and (answers[-1]["status"] != 200 or answers[-1]["bytes"] == 0):
        return f"an answer {answers[-1]['status']} brings none"
    kind = answers[-1]["content_type"] if answers else None
    return f"of {safe(kind)} nothing could be read" if kind else "in what came nothing could be read"


def read_as(page: Mapping[str, Any]) -> str:
    """As what a document was read, unless it is a page: with what its reader told besides."""
    kind, more = page.get("sniffed_type"), page.get("metadata")
    if kind is None or kind in _PAGES:
        return ""
    return f", read as {safe(kind)}" + (f" {safe(more[:200])}" if more else "")
