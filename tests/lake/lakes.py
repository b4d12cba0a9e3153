"""Small lakes for tests: rounds committed straight to the tables, as a driver would leave them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from lake import delta, files, runs, snapshot
from lake.snapshot import Snapshot
from lake.store import Store, connect
from lake.tables import SPECS, create_all
from tests.lake import rows


def new(root: object) -> Store:
    """An empty lake."""
    store = connect(str(root))
    create_all(store)
    return store


def put(store: Store, name: str, table: pa.Table, *, file_name: str | None = None, app: str = "test") -> None:
    """Commit rows as one file, sorted as the table wants it."""
    spec = SPECS[name]
    if spec.sort:
        table = table.sort_by([(column, "ascending") for column in spec.sort])
    if name in runs.KEYS and file_name is None:
        last = pc.max(table["round"]).as_py()
        file_name = runs.name(0, last, last)
    delta.commit(store, name, app=app, adds=[files.write(store, name, table, name=file_name)])


def commit_round(
    store: Store,
    number: int,
    *,
    now: datetime = rows.NOW,
    day: date = rows.DAY,
    kind: str = "round",
    fence: int = 1,
    counts: Mapping[str, object] | None = None,
    committed_at: datetime | None = None,
    settings: tuple[str, str] = ("{}", ""),
    **tables: pa.Table,
) -> Snapshot:
    """One round: rows of any tables (several files of a table: a list), then its row in `rounds`.

    `settings`: as JSON, and the version that names them.
    """
    for name, given in tables.items():
        for part in given if isinstance(given, list) else [given]:
            if "day" in part.column_names:
                part = part.set_column(0, "day", pa.array([day] * part.num_rows, pa.date32()))
            put(store, name, part)
    versions = snapshot.heads(store, tuple(name for name in SPECS if name != "rounds"))
    add_entry(
        store,
        number,
        versions,
        now=now,
        kind=kind,
        fence=fence,
        counts=counts,
        committed_at=committed_at,
        settings=settings,
    )
    return snapshot.latest(store)


def add_entry(
    store: Store,
    number: int,
    versions: Mapping[str, int],
    *,
    now: datetime = rows.NOW,
    kind: str = "round",
    fence: int = 1,
    counts: Mapping[str, object] | None = None,
    committed_at: datetime | None = None,
    settings: tuple[str, str] = ("{}", ""),
) -> None:
    """A row of `rounds`."""
    plain = ("bytes_read", "bytes_written", "stage_ms", "plan", "actual")
    entry = rows.table(
        "rounds",
        round=[number],
        kind=[kind],
        now=[now],
        opened_at=[now],
        committed_at=[committed_at or now],
        fence=[fence],
        versions=[json.dumps(dict(versions))],
        counts=[json.dumps(counts or {})],
        settings=[settings[0]],
        policy_version=[settings[1]],
        **{name: ["{}"] for name in plain},
    )
    put(store, "rounds", entry)
