"""A lake that was made before some of today's columns: every reader takes them as null."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crawl import schema
from lake import compaction, delta, files, ranges, runs, snapshot, sql, tables
from lake.store import Store, connect

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A lake whose `hosts` knows no `level` and no `in_domains`, with one file; today's code after that."""
    store = connect(str(tmp_path / "lake"))
    spec = tables.SPECS["hosts"]
    before = pa.schema([f for f in spec.schema if f.name not in ("lastmod_recall", "in_domains")])
    with monkeypatch.context() as then:
        older = dict(tables.SPECS)
        older["hosts"] = tables.Spec(
            name="hosts",
            schema=before,
            partition=spec.partition,
            sort=spec.sort,
            stats=spec.stats,
            description="",
        )
        then.setattr(tables, "SPECS", older)
        tables.create_all(store)
        commit(store, files.write(store, "hosts", rows(before, 1, 2, round_=1), name=runs.name(0, 1, 1)))
    return store


def rows(columns: pa.Schema, *keys: int, round_: int) -> pa.Table:
    values: dict[str, Any] = {
        pa.int64(): 0,
        pa.int32(): 0,
        pa.float64(): 0.5,
        pa.string(): "x",
        pa.timestamp("us", tz="UTC"): NOW,
        pa.list_(pa.string()): [],
        pa.date32(): date(2026, 1, 1),
    }
    made = {f.name: [values[f.type]] * len(keys) for f in columns}
    return pa.table({**made, "host_key": list(keys), "round": [round_] * len(keys)}, schema=columns)


def commit(store: Store, *entries: files.FileEntry) -> None:
    delta.commit(store, "hosts", app="test", adds=entries)


def test_files_without_a_column_are_read_as_if_it_were_null_or_nothing(old: Store) -> None:
    (entry,) = snapshot.latest(old).files("hosts")
    found = runs.rows(old, [entry], ranges.np.array([1, 2]))
    assert found.column_names == schema.HOSTS.names
    assert found["lastmod_recall"].to_pylist() == [None, None]
    assert found["in_domains"].to_pylist() == [0, 0]
    for read in (
        files.read(old, entry),
        ranges.slice(old, entry, "host_key", 1, 2),
        ranges.slice(old, entry, "host_key", 1, 2, ["lastmod_recall"]),
        ranges.slice(old, entry, "host_key", 7, 9, ["lastmod_recall"]),
        next(iter(compaction.row_groups(old, entry))),
    ):
        assert "lastmod_recall" in read.column_names


@pytest.mark.parametrize("grown", [False, True])
def test_sql_sees_old_and_new_files_alike(old: Store, grown: bool) -> None:
    if grown:
        tables.grow(old, snapshot.latest(old).missing())
        commit(old, files.write(old, "hosts", rows(schema.HOSTS, 3, round_=2), name=runs.name(0, 2, 2)))
    with sql.connect(old, snapshot.latest(old), NOW) as reader:
        answer = reader.ask("SELECT host_key, lastmod_recall FROM hosts ORDER BY 1").table().to_pylist()
    told = [(row["host_key"], row["lastmod_recall"]) for row in answer]
    assert told == [(1, None), (2, None), *([(3, 0.5)] if grown else [])]


def test_a_table_grows_once_with_its_comments_and_says_what_files_may_lack(old: Store) -> None:
    missing = snapshot.latest(old).missing()
    assert missing == {"hosts": {"lastmod_recall", "in_domains"}}
    tables.grow(old, missing)
    tables.grow(old, missing)
    now = snapshot.latest(old)
    assert now.missing() == {}
    assert now.lacking("hosts") == {"lastmod_recall", "in_domains"}
    assert now.lacking("robots") == frozenset()
    fields = json.loads(delta.handle(old, "hosts").schema().to_json())["fields"]
    comments = {field["name"]: field["metadata"].get("comment") for field in fields}
    assert comments["lastmod_recall"] == schema.HOSTS.field("lastmod_recall").metadata[b"comment"].decode()
    assert len(runs.rows(old, now.files("hosts"), ranges.np.array([1, 2]))) == 2
