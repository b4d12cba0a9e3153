"""A lake with many known URLs and rows in every table, made with the lake's own writing and committing.

Rows are plausible in what decides how a round reads them (keys, order, runs, due times, hosts, days) and
filler elsewhere. Nothing is due: every URL was fetched and is next due weeks after `NOW`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from crawl import url
from crawl.keys import Keyer
from crawl.policy import Settings
from crawl.schema import TABLES
from cycles.rounds.round import hold
from cycles.settings.config import policy_version, to_json
from lake import delta, files, identity, rounds, runs
from lake.entries import FileEntry
from lake.store import connect
from lake.tables import create_all

__all__ = ["NOW", "fill"]

#: planning time of the first round after what is filled in
NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
_HOSTS: Final = 10_000
_FILLER: Final[Mapping[pa.DataType, Any]] = {
    pa.int64(): 0,
    pa.int32(): 1,
    pa.float64(): 0.5,
    pa.string(): "filler",
    pa.bool_(): True,
    pa.timestamp("us", tz="UTC"): NOW - timedelta(days=1),
    pa.binary(): b"filler",
    pa.list_(pa.string()): [],
}

Column: TypeAlias = "pa.Array[Any] | np.ndarray | list[Any] | str | int | float | datetime"


def fill(root: str, known: int, count: int = 10) -> None:
    """Make a lake with `known` URLs, found and fetched in `count` rounds a day apart."""
    store = connect(root)
    secret = identity.create(store, url.psl_hash(), url.RULES_VERSION).secret
    create_all(store)
    settings = Settings()
    _outside(root, Keyer(secret))
    each = known // count
    with hold(store, settings.fetching.lease, print) as (fence, who):
        for number in range(1, count + 1):
            now = NOW - timedelta(days=count + 1 - number)
            listing = list(_round(root, Keyer(secret), number, now, each))
            row = {
                "opened_at": now,
                "driver": str(who),
                "now": now,
                "window_s": 600.0,
                "settings": to_json(settings),
                "policy_version": policy_version(settings),
                "counts": {"links_merged_through": number},
            }
            rounds.roll_forward(store, rounds.seal(store, fence, number, listing, (), row), now)


def _rows(table: str, count: int, **columns: Column) -> pa.Table:
    """Rows of a table: what is given, a value alone for all rows; null where allowed, filler elsewhere."""
    arrays = []
    for field in TABLES[table]:
        given = columns.pop(field.name, None)
        if given is None and (field.metadata or {}).get(b"nullable") != b"yes":
            given = _FILLER[field.type]
        if isinstance(given, (pa.Array, np.ndarray)) or (isinstance(given, list) and len(given) == count):
            arrays.append(pa.array(given, field.type))
        elif given is None:
            arrays.append(pa.nulls(count, field.type))
        else:
            arrays.append(pa.array([given] * count, field.type))
    assert not columns, f"{table} has no {sorted(columns)}"
    return pa.table(arrays, schema=pa.schema([field.remove_metadata() for field in TABLES[table]]))


def _urls(number: int, count: int) -> tuple[list[str], list[str], list[str]]:
    """(URLs, hosts, domains) that a round finds."""
    names = [f"www.site{i % _HOSTS}.test" for i in range(count)]
    urls = [f"http://{name}/chapter/{number}/page-{i}.html" for i, name in enumerate(names)]
    return urls, names, [name.removeprefix("www.") for name in names]


def _round(root: str, keyer: Keyer, number: int, now: datetime, count: int) -> Iterator[FileEntry]:
    """The files of one round."""
    store = connect(root)
    day = now.date()
    urls, hosts, domains = _urls(number, count)
    keys = keyer.url_keys(urls, domains)
    order = np.argsort(keys)
    keys = keys[order]
    urls, hosts, domains = ([column[i] for i in order] for column in (urls, hosts, domains))
    seen = _rows(
        "seen",
        count,
        url_key=keys,
        url=urls,
        discovered_url=urls,
        origin=[f"http://{host}" for host in hosts],
        host=hosts,
        domain=domains,
        state="FETCHED",
        found_by="link",
        last_outcome="OK",
        http_status=200,
        first_seen_round=number,
        last_checked_at=now,
        etag="filler",
        document_key=keys,
        next_fetch_at=NOW + timedelta(days=30),
        round=number,
    )
    name = runs.name(0, number, number)
    yield files.write(store, "seen", seen, name=name)
    signals = _rows("signals", count, url_key=keys, round=number, in_links=3, best_depth=1)
    yield files.write(store, "signals", signals, name=runs.name(0, number, number))
    yield files.write(store, "hosts", _hosts(keyer, number), name=runs.name(0, number, number))
    yield from _appended(root, keys, urls, hosts, number, day)


def _hosts(keyer: Keyer, number: int) -> pa.Table:
    names = [f"www.site{i}.test" for i in range(_HOSTS)]
    keys = np.array([keyer.host_key(name) for name in names])
    order = np.argsort(keys)
    names = [names[i] for i in order]
    return _rows(
        "hosts",
        len(names),
        host_key=keys[order],
        host=names,
        domain=[name.removeprefix("www.") for name in names],
        circuit="closed",
        delay_ms=1000.0,
        round=number,
    )


def _appended(
    root: str, keys: np.ndarray, urls: list[str], hosts: list[str], number: int, day: date
) -> Iterator[FileEntry]:
    """What a round of that size adds to the tables that only grow."""
    store, count = connect(root), len(keys)
    ordered = np.sort(keys)
    plain: dict[str, Column] = {"round": number, "day": [day] * count}
    positions = np.arange(count)
    tables: dict[str, dict[str, Column]] = {
        "frontier": {"url_key": keys, "url": urls, "host": hosts, "group": 0, "position": positions},
        "fetches": {
            "kind": "page",
            "url": urls,
            "url_key": keys,
            "host": hosts,
            "status": 200,
            "outcome": "OK",
            "response_headers": "Content-Type: text/html\nETag: filler",
        },
        "documents": {"document_key": ordered, "first_url_key": ordered, "url": urls, "text": "words " * 20},
        "links": {"target_key": ordered, "target_url": urls, "source_key": keys},
        "outbox": {"kind": "new", "url_key": keys, "document_key": keys},
    }
    for table, columns in tables.items():
        yield files.write(store, table, _rows(table, count, **plain, **columns))
    some = count // 10
    plain = {"round": number, "day": [day] * some}
    hashes = [f"{number:08x}{i:056x}" for i in range(some)]
    yield files.write(store, "bodies", _rows("bodies", some, **plain, body_hash=hashes))
    yield files.write(store, "rejects", _rows("rejects", some, **plain, stage="parse", reason="scope_host"))
    yield files.write(store, "clusters", _rows("clusters", some, **plain, url_key=keys[:some]))
    origins = [f"http://{host}" for host in hosts[:some]]
    robots = _rows("robots", some, round=number, origin=origins, how="unavailable", text="")
    yield files.write(store, "robots", robots)


def _outside(root: str, keyer: Keyer) -> None:
    """The tables that commands write between rounds."""
    store = connect(root)
    urls, _, domains = _urls(1, 1000)
    seeds = _rows(
        "seeds",
        len(urls),
        url=urls,
        url_key=keyer.url_keys(urls, domains),
        kind="page",
        verdict="accepted",
        added_at=NOW - timedelta(days=1_000),  # before any round: a seed given later makes its URL due
    )
    pauses = _rows("suppressions", 10, kind="pause", pattern=[f"paused{i}.test" for i in range(10)])
    for table, rows in (("seeds", seeds), ("suppressions", pauses), ("audit", _rows("audit", 10))):
        delta.commit(store, table, app="fill", app_version=1, adds=[files.write(store, table, rows)])
