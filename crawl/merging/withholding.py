"""What a URL's row knows of what its page asks of those who index: is its text withheld, and from when on.

What always holds: a text is withheld from the answer on that asks for it, or from the first answer after the
date it gave; only a parse gives it free, since what was withheld is not stored. A withheld document that
still has its text (the header alone asked, or the date came) is let go: the row names none until the page is
parsed anew. What is withheld is no document to an indexer, so that one published before is told as deleted.
It reads no page (crawl.html.directives) and stores nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl.columns import Bools, Column, Ints, flags, ints

__all__ = ["Kept", "after", "due", "published"]

_TIME: Final = pa.timestamp("us", tz="UTC")
_AFTER_DATE: Final = "unavailable_after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Columns of `seen` after some visits."""

    withheld: Any
    unavailable_after: Any
    header_robots: Any
    fallen: Bools  # it was published, and is withheld now without having been parsed


def after(
    rows: pa.Table, visits: pa.Table, *, came: Bools, news: Bools, gone: Bools, keep: bool, now: datetime
) -> Kept:
    """Rows of `seen` before and their visits, same keys in the same order.

    `came`: it answered with content or that this is unchanged; `news`: and was parsed; `gone`: its content is
    forgotten; `keep`: the operator keeps what asks not to be indexed.
    """
    parsed, answered = pa.array(news), pa.array(came)
    told, known = visits["unavailable_after"], rows["unavailable_after"]
    until = pc.if_else(parsed, told, pc.if_else(answered, pc.coalesce(told, known), known))
    earlier: Any = pc.less_equal
    passed = pa.array(flags(earlier(until, pa.scalar(now, _TIME))) & (not keep))
    asked = pc.coalesce(visits["withheld"], pc.if_else(passed, _AFTER_DATE, None))
    before = rows["withheld"]
    withheld = pc.if_else(
        parsed, visits["withheld"], pc.if_else(answered, pc.coalesce(before, asked), before)
    )
    withheld = pc.if_else(pa.array(gone), None, withheld)
    # of its headers a 304 brings some, a 200 all
    whole = came & (ints(visits["http_status"]) != 304)
    said = visits["header_robots"]
    said = pc.if_else(pa.array(whole), said, pc.coalesce(said, rows["header_robots"]))
    valid, was = (np.asarray(pc.is_valid(column), dtype=np.bool_) for column in (withheld, before))
    return Kept(
        withheld=withheld,
        unavailable_after=pc.if_else(pa.array(gone), None, until),
        header_robots=pc.if_else(pa.array(gone), None, said),
        fallen=valid & ~was & ~news,
    )


def published(document: Column, withheld: Column) -> Any:
    """The document that an indexer may know: none while it is withheld."""
    return pc.if_else(pc.is_valid(withheld), None, document)


def due(at: Ints, unavailable_after: Column, now: int, floor: timedelta) -> Ints:
    """Not later than the date after which the page is to be withheld, where that is still to come; but no
    sooner than `floor` from now, or a page that names the next minute again and again would be asked all day.
    """
    until = ints(unavailable_after, 0)
    soonest = now + floor // timedelta(microseconds=1)
    return np.where(until > now, np.minimum(at, np.maximum(until, soonest)), at)
