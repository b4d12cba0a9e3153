"""What `crawl explain` says of a sitemap or feed: how many URLs it named, what of it was not read, and why.

What always holds: only rows of the lake are told; what is said of its entries is that of the last reading
that is kept, since an unchanged list is not read again. It reads no lake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cycles.words.output import safe
from cycles.words.wording import LISTED, counted, said

__all__ = ["named", "unlisted"]

_CONFIRMED: Final = frozenset({"OK", "NOT_MODIFIED"})
#: what a list turned out to be, or what was wrong with it (crawl.sitemap)
_INSTEAD: Final[Mapping[str, str]] = {
    "html": "it is an HTML page",
    "empty": "it is empty",
    "encoding_truncated": "its compression ends early",
    "encoding_corrupt": "its compression is broken",
    "encoding_members": "its compression has more members than anybody needs",
}


def unlisted(row: Mapping[str, Any]) -> str | None:
    """Why what came was not read as a list; None where it is none, or was read."""
    code, _, more = str(row["reason"]).partition(" ")
    if code != "not_a_sitemap":
        return None
    why = more.strip("()")
    instead = _INSTEAD.get(why) or (safe(why) if why != code else "")
    return f"not read: {said(code, LISTED)}" + (f"; {instead}" if instead else "")


def named(
    row: Mapping[str, Any], readings: Sequence[Mapping[str, Any]], rejects: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Lines about a list that was read.

    `readings`: (round, urls) of the rounds that read it, oldest first; `rejects`: those of its host. A reject
    of another list of the same host may stand for several: then only the one it names is told.
    """
    if row.get("kind") not in ("sitemap", "feed") or row["last_outcome"] not in _CONFIRMED:
        return
    if readings:
        last = readings[-1]
        yield f"named {counted(last['urls'], 'URL')} when it was read last, in round {last['round']}"
    else:
        yield f"no URL that this {row['kind']} names is kept"
    faults = {
        reject["reason"]: reject["round"]
        for reject in rejects
        if reject["example"] == row["url"] and reject["reason"] in LISTED
    }
    for reason, round_ in faults.items():
        yield f"in round {round_}: {said(reason, LISTED)}"
