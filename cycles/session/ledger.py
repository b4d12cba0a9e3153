"""What commands write between rounds: rows of `seeds`, `suppressions` and `audit`, one commit each.

What always holds: rows appear all or not at all, and a commit that had a rival is made again, not lost. These
tables are read at their newest version, so no round need know. It never touches what rounds write.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import pyarrow as pa

from crawl.schema import AUDIT
from lake import delta, files
from lake.store import Store

__all__ = ["append", "audit"]

#: app id of commits made by hand; their versions only count up
APP: Final = "operator"


def append(store: Store, table: str, batches: Iterable[pa.Table]) -> int:
    """Write batches of rows as one file and commit it; the number of rows. Raises LakeError, Conflict."""
    rows = 0
    some = (batch for batch in batches if batch.num_rows)
    first = next(some, None)
    if first is None:
        return 0
    with files.Writer(store, table) as writer:
        writer.add(first)
        rows += first.num_rows
        for batch in some:
            writer.add(batch)
            rows += batch.num_rows
    delta.commit(store, table, app=APP, adds=[writer.entry])
    return rows


def audit(
    store: Store, *, at: datetime, who: str, action: str, subject: str, detail: str | None = None
) -> None:
    """Note who did what by hand."""
    row = {"at": at, "who": who, "action": action, "subject": subject, "detail": detail}
    append(store, "audit", [pa.Table.from_pylist([row], schema=AUDIT)])
