"""How well a host's sitemaps tell which pages changed: evidence from visits, kept in `hosts`.

precision   of the pages whose announced change was looked at, the share that had changed
recall      of the pages on its lists that were seen to have changed, the share that had been announced

What always holds: evidence comes from visits alone, whatever made a page due, so a host that is not believed
is still judged by its ordinary visits and can win belief back; counts stop growing at `MEMORY`, so that old
evidence fades; a host with less than `ENOUGH` of it is believed. (Google's own measure of the web's dates:
precision below 0.2, recall below 0.5. Hence they are measured, per host, and not trusted.)
What is believed, and that a page is due, is crawl.sitemap.announced's.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl.columns import Bools, among, floats, ints, make, take, texts
from crawl.schema import HOSTS

__all__ = ["ENOUGH", "EVIDENCE", "LEAST", "MEMORY", "evidence", "learnt", "unbelieved"]

#: announced changes looked at before a host's dates may be disbelieved
ENOUGH: Final = 10
#: precision below which they are: an ordinary visit finds a change about that often (metric
#: recrawl_changed_rate: over 20 %), so that the dates tell nothing
LEAST: Final = 0.2
#: looks and changes that count at most: what comes later outweighs them
MEMORY: Final = 500.0

_EVIDENCE: Final[dict[str, pa.DataType]] = {
    "host": pa.string(),
    "looked": pa.int64(),  # pages visited whose change had been announced
    "right": pa.int64(),  # those of them that had changed
    "changed": pa.int64(),  # listed pages seen to have changed
}
EVIDENCE: Final = pa.schema(_EVIDENCE)
_NEVER: Final = np.iinfo(np.int64).min


def evidence(before: pa.Table, after: pa.Table) -> pa.Table:
    """EVIDENCE by host from rows (SEEN) of visited URLs before and after their visits, in the same order."""
    checked = ints(before["last_checked_at"], _NEVER)
    confirmed = ints(after["last_checked_at"], _NEVER) > checked
    listed = np.asarray(pc.is_valid(before["announced_by"]), dtype=np.bool_)
    counts = listed & confirmed & (checked != _NEVER) & (among(before["kind"], ["sitemap", "feed"]) < 0)
    announced = counts & (ints(before["lastmod"], _NEVER) > checked)
    changed = counts & (ints(after["change_count"]) > ints(before["change_count"]))
    told = announced | changed
    rows = make(
        EVIDENCE,
        len(before),
        host=before["host"],
        looked=announced.astype(np.int64),
        right=(announced & changed).astype(np.int64),
        changed=changed.astype(np.int64),
    )
    return total(rows.filter(pa.array(told)))


def total(rows: pa.Table) -> pa.Table:
    """EVIDENCE added up, one row a host, by name."""
    grouped: Any = rows.group_by("host").aggregate([(n, "sum") for n in ("looked", "right", "changed")])
    names = ["host", "looked_sum", "right_sum", "changed_sum"]
    found: pa.Table = grouped.select(names).rename_columns(EVIDENCE.names).cast(EVIDENCE)
    return found.sort_by("host")


def learnt(hosts: pa.Table, found: pa.Table) -> pa.Table:
    """Rows of HOSTS with what EVIDENCE adds to their precision and recall."""
    found = total(found)
    at = among(hosts["host"], found["host"])
    some: Bools = at >= 0
    if not some.any():
        return hosts
    rows = take(found, np.where(some, at, 0))
    new = {name: np.where(some, ints(rows[name]), 0) for name in ("looked", "right", "changed")}
    columns: dict[str, Any] = {name: hosts[name] for name in hosts.column_names}
    for share, count, more in (
        ("lastmod_precision", "lastmod_looked", "looked"),
        ("lastmod_recall", "lastmod_changed", "changed"),
    ):
        old = np.minimum(np.nan_to_num(floats(hosts[count])), MEMORY)
        hits = np.nan_to_num(floats(hosts[share])) * old + new["right"]
        after = old + new[more]
        moved = new[more] > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            value = pa.array(hits / after, mask=~(after > 0))
        columns[share] = pc.if_else(pa.array(moved), value, hosts[share])
        columns[count] = pc.if_else(pa.array(moved), pa.array(after), hosts[count])
    return make(HOSTS, len(hosts), **columns)


def unbelieved(hosts: pa.Table) -> frozenset[str]:
    """Names of the hosts (rows of HOSTS) whose dates tell nothing."""
    looked, precision = floats(hosts["lastmod_looked"]), floats(hosts["lastmod_precision"])
    with np.errstate(invalid="ignore"):
        poor = (looked >= ENOUGH) & (precision < LEAST)
    return frozenset(take(texts(hosts["host"].to_pylist()), np.flatnonzero(poor)).to_pylist())
