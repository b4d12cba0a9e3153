"""Publish: what an indexer must be told about the URLs of a round.

What always holds: an event for every URL whose document is not the one before: new (there was none), changed
(another), deleted (none any more). The same content, whatever the status, is no event. An event's id follows
from URL, document, round and kind, so that telling it twice can be seen. It delivers nothing.
"""

from __future__ import annotations

from datetime import date, datetime
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl.columns import flags, ints, make, take, texts
from crawl.merging import withholding
from crawl.schema import OUTBOX

__all__ = ["events"]

_KINDS: Final = ("new", "changed", "deleted")


def events(before: pa.Table, after: pa.Table, *, round: int, day: date, now: datetime) -> pa.Table:
    """Rows of `outbox` (OUTBOX), by url_key, from the columns url_key and document_key before and after.

    Both tables have the same keys in the same order; a URL without a document, or whose document was withheld
    (column `withheld` of after), has null. Raises ValueError else.
    """
    if not before["url_key"].equals(after["url_key"]):
        raise ValueError("before and after must have the same keys in the same order")
    old, new = before["document_key"].combine_chunks(), after["document_key"].combine_chunks()
    if "withheld" in after.column_names:
        new = withholding.published(new, after["withheld"].combine_chunks())
    had, has = (np.asarray(pc.is_valid(column), dtype=np.bool_) for column in (old, new))
    compare: Any = pc.not_equal
    kind = np.select([~had & has, flags(compare(old, new)), had & ~has], [0, 1, 2], -1)
    at = np.flatnonzero(kind >= 0)
    keys = take(after["url_key"], at)
    documents = take(new, at)
    kinds = take(texts(_KINDS), kind[at])
    told = zip(ints(keys).tolist(), documents.to_pylist(), kinds.to_pylist(), strict=True)
    return make(
        OUTBOX,
        len(at),
        day=day,
        round=round,
        event_id=texts(_event_id(*one, round) for one in told),
        kind=kinds,
        url_key=keys,
        document_key=documents,
        created_at=now,
    )


def _event_id(url_key: int, document_key: int | None, kind: str, round: int) -> str:
    named = f"{url_key} {document_key} {kind} {round}"
    return blake2b(named.encode(), digest_size=16).hexdigest()
