"""Every table as foreign readers see it: partial or cut statistics make rows vanish without a word."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder

from crawl import schema
from lake import delta, files, tables
from lake.store import Store, connect
from lake.tables import SPECS

FIRST = datetime(2026, 3, 1, 23, 59, 59, 123_456, UTC)
#: longer than what writers of statistics cut to, differing only at the end
LONG = "é" * 300


def value(kind: pa.DataType, i: int) -> Any:
    """The i-th value of a type; all differ, in ascending order, at their last digit."""
    if pa.types.is_timestamp(kind):
        return FIRST + timedelta(microseconds=i)
    if kind == pa.date32():
        return date(2026, 3, 1) + timedelta(days=i)
    if kind == pa.string():
        return f"{LONG}{i:03d}"
    if kind == pa.binary():
        return b"\xff%03d" % i
    if kind == pa.bool_():
        return i % 2 == 0
    if kind == pa.float64():
        return i + 0.5
    if pa.types.is_list(kind):
        return [f"{i}"]
    return 2**62 + i if kind == pa.int64() else i


def three_files(table: tables.Spec) -> list[pa.Table]:
    """Full rows; rows where whatever may be null is; and a mixture."""
    needed = set(schema.required(table.schema))
    made = []
    for number, holes in enumerate(("none", "all", "some")):
        columns = {}
        for field in table.schema:
            values = [value(field.type, 10 * number + i) for i in range(3)]
            if field.name in table.partition:
                values = [value(field.type, number)] * 3
            elif field.name not in needed and holes != "none":
                values = [None] * 3 if holes == "all" else [None, values[1], values[2]]
            columns[field.name] = pa.array(values, field.type)
        made.append(pa.table(columns))
    return made


def readers(store: Store, name: str) -> dict[str, Callable[[str, Any, pa.DataType], int]]:
    """Count of rows where a column equals a value (None: is null), by reader."""
    opened = DeltaTable(store.url(name))
    dataset = opened.to_pyarrow_dataset()
    frame = pl.scan_delta(store.url(name))
    query = QueryBuilder().register("t", opened)
    duck = duckdb.connect()
    paths = [store.url(e.location) for e in delta.files(store, name)]
    duck.execute("set timezone = 'UTC'")
    duck.from_parquet(paths, hive_partitioning=bool(SPECS[name].partition)).create_view("t")

    def arrow(column: str, wanted: Any, kind: pa.DataType) -> int:
        place = pc.field(column)
        return int(
            dataset.count_rows(place.is_null() if wanted is None else place == pa.scalar(wanted, kind))
        )

    def polars(column: str, wanted: Any, kind: pa.DataType) -> int:
        place = pl.col(column)
        hit = place.is_null() if wanted is None else place == pl.lit(wanted)
        return int(frame.filter(hit).select(pl.len()).collect().item())

    def datafusion(column: str, wanted: Any, kind: pa.DataType) -> int:
        hit = "is null" if wanted is None else f"= {literal(wanted)}"
        found = query.execute(f'select count(*) as n from t where "{column}" {hit}').read_all()
        return int(found["n"][0].as_py())

    def duckdb_(column: str, wanted: Any, kind: pa.DataType) -> int:
        hit = "is null" if wanted is None else f"= {literal(wanted)}"
        return int(duck.execute(f'select count(*) from t where "{column}" {hit}').fetchall()[0][0])

    return {"pyarrow": arrow, "polars": polars, "datafusion": datafusion, "duckdb": duckdb_}


def literal(wanted: Any) -> str:
    if isinstance(wanted, datetime):
        return f"'{wanted.isoformat()}'::timestamptz"
    if isinstance(wanted, date):
        return f"'{wanted.isoformat()}'::date"
    if isinstance(wanted, str):
        return f"'{wanted}'"
    return str(wanted)


@pytest.mark.parametrize("name", SPECS)
def test_all_readers_find_every_row_by_every_column(name: str, tmp_path: Path) -> None:
    store = connect(tmp_path)
    table = SPECS[name]
    delta.create(store, name, table.schema, partition=table.partition, stats=table.stats)
    written = three_files(table)
    delta.commit(store, name, app="test", adds=[files.write(store, name, rows) for rows in written])
    everything = pa.concat_tables(written)
    found = readers(store, name)
    wrong = []
    for field in table.schema:
        expected = Counter(map(str, everything[field.name].to_pylist()))
        distinct = {str(v): v for v in everything[field.name].to_pylist()}
        asked = [v for key, v in distinct.items() if key == "None"]
        if not pa.types.is_list(field.type) and field.type != pa.binary():
            asked += [v for v in distinct.values() if v is not None][-2:]
        for wanted in asked:
            counts = {reader: count(field.name, wanted, field.type) for reader, count in found.items()}
            if set(counts.values()) != {expected[str(wanted)]}:
                wrong.append((field.name, wanted, counts, expected[str(wanted)]))
    assert not wrong


@pytest.mark.parametrize("name", ["seen", "fetches"])
def test_a_reader_skips_files_by_the_promised_columns(name: str, tmp_path: Path) -> None:
    store = connect(tmp_path)
    table = SPECS[name]
    delta.create(store, name, table.schema, partition=table.partition, stats=table.stats)
    written = three_files(table)
    delta.commit(store, name, app="test", adds=[files.write(store, name, rows) for rows in written])
    dataset = DeltaTable(store.url(name)).to_pyarrow_dataset()
    wanted = pc.field("url_key") == pa.scalar(value(pa.int64(), 21), pa.int64())
    assert len(list(dataset.get_fragments(filter=wanted))) == 1


def test_tables_are_created_once_whoever_comes_at_the_same_time(tmp_path: Path) -> None:
    store = connect(tmp_path)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: tables.create_all(store), range(3)))
    assert {name: delta.version(store, name) for name in SPECS} == dict.fromkeys(SPECS, 0)


def test_comments_descriptions_and_statistics_columns_lie_in_the_lake(tmp_path: Path) -> None:
    store = connect(tmp_path)
    tables.create_all(store)
    for name, table in SPECS.items():
        opened = DeltaTable(store.url(name))
        fields = {f["name"]: f for f in json.loads(opened.schema().to_json())["fields"]}
        for field in table.schema:
            assert fields[field.name]["metadata"] == {"comment": field.metadata[b"comment"].decode()}
        assert opened.metadata().configuration["delta.dataSkippingStatsColumns"] == ",".join(table.stats)
        assert opened.metadata().description == table.description
        assert opened.metadata().partition_columns == list(table.partition)
    assert "select max(round) from rounds" in SPECS["seen"].description
