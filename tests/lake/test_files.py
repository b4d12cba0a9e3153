"""Data files: the table's columns, order and statistics, or nothing."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from crawl.errors import LakeError, UsageError
from lake import files
from lake.entries import FileEntry, Spans
from lake.store import Store, connect
from lake.tables import SPECS, spec
from tests.lake import rows


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return connect(tmp_path)


def test_rows_come_back_as_they_were_without_the_day(store: Store) -> None:
    given_rows = rows.table("links", target_key=[-5, 3], round=[7, 7], anchor=["ä", None])
    entry = files.write(store, "links", given_rows)
    assert entry.path.startswith("day=2026-03-01/00000007-")
    assert entry.partition == {"day": "2026-03-01"}
    assert entry.rows == 2
    assert entry.size == store.list("links")[0].size
    assert files.read(store, entry).equals(given_rows.drop_columns("day"))


def test_an_entry_survives_json(store: Store) -> None:
    entry = files.write(store, "seen", rows.seen([1, 2], 3))
    assert FileEntry.from_dict(json.loads(json.dumps(entry.to_dict()))) == entry
    assert entry.bounds("url_key") == (1, 2)
    assert entry.bounds("http_status") is None  # wholly null
    assert json.loads(entry.stats)["nullCount"]["http_status"] == 2


def test_keys_are_packed_by_difference_and_the_order_is_told(store: Store) -> None:
    entry = files.write(store, "seen", rows.seen(list(range(0, 150_000, 3)), 1))
    meta = pq.ParquetFile(store.url(entry.location)).metadata
    group = meta.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert "DELTA_BINARY_PACKED" in columns["url_key"].encodings
    assert "RLE_DICTIONARY" in columns["state"].encodings
    assert columns["url_key"].statistics.max == 149_997
    assert [s.column_index for s in group.sorting_columns] == [0]
    assert meta.num_row_groups == 1


def test_large_rows_make_small_row_groups(store: Store) -> None:
    texts = ["x" * 1_000_000 + str(i) for i in range(150)]
    entry = files.write(store, "documents", rows.table("documents", document_key=range(150), text=texts))
    meta = pq.ParquetFile(store.url(entry.location)).metadata
    assert max(meta.row_group(i).num_rows for i in range(meta.num_row_groups)) < 75
    assert meta.num_rows == 150


def test_batches_make_one_file_in_whole_row_groups(store: Store) -> None:
    with files.Writer(store, "signals", name="run-L0-1-1-x.parquet") as writer:
        for start in range(0, 200_000, 1_000):
            keys = range(start, start + 1_000)
            writer.add(rows.table("signals", url_key=keys, round=[1] * 1_000))
    meta = pq.ParquetFile(store.url(writer.entry.location)).metadata
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [131_072, 68_928]
    assert writer.entry.name == "run-L0-1-1-x.parquet"
    assert writer.entry.bounds("url_key") == (0, 199_999)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.slice(0, 0), "no rows"),
        (lambda t: t.drop_columns("state"), r"missing columns \['state'\]"),
        (lambda t: t.append_column("extra", pa.array([1, 2])), r"unknown columns \['extra'\]"),
        (lambda t: t.set_column(0, "url_key", pa.array([2, 1])), "sorted by url_key"),
        (lambda t: t.set_column(0, "url_key", pa.array([1, None], pa.int64())), r"null in \['url_key'\]"),
        (lambda t: t.set_column(0, "url_key", pa.array(["x", "y"])), "seen: "),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_leave_nothing(store: Store, change, told) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=told):
        files.write(store, "seen", change(rows.seen([1, 2], 1)))
    assert store.list("") == []


def test_order_is_checked_across_batches(store: Store) -> None:
    def unsorted() -> None:
        with files.Writer(store, "signals") as writer:
            writer.add(rows.table("signals", url_key=[5]))
            writer.add(rows.table("signals", url_key=[4]))

    with pytest.raises(UsageError, match="sorted"):
        unsorted()
    assert store.list("") == []


def test_several_columns_of_an_order_decide_one_after_the_other(store: Store) -> None:
    files.write(store, "frontier", rows.table("frontier", group=[0, 0, 1], position=[1, 2, 0]))
    with pytest.raises(UsageError, match="group, position"):
        files.write(store, "frontier", rows.table("frontier", group=[0, 0], position=[2, 1]))


def test_a_file_holds_one_day(store: Store) -> None:
    two = rows.table("outbox", day=[date(2026, 3, 1), date(2026, 3, 2)], url_key=[1, 2])
    with pytest.raises(UsageError, match="one day"):
        files.write(store, "outbox", two)
    entry = files.write(store, "outbox", two.drop_columns("day"), day=date(2026, 4, 1))
    assert entry.path.startswith("day=2026-04-01/")
    with pytest.raises(UsageError, match="day"):
        files.write(store, "seen", rows.seen([1], 1), day=date(2026, 4, 1))


def test_names_are_never_used_twice() -> None:
    assert len({files.new_name(3) for _ in range(1_000)}) == 1_000


def test_work_files_hold_any_columns(store: Store) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    assert files.write_work(store, "_work/w.parquet", table) > 0
    assert files.read_work(store, "_work/w.parquet").equals(table)
    assert files.read_work(store, "_work/w.parquet", ["b"]).column_names == ["b"]


def test_a_damaged_and_a_missing_file_are_lake_errors(store: Store) -> None:
    store.write("bad.parquet", b"PAR1 no")
    with pytest.raises(LakeError, match="damaged"):
        files.read_work(store, "bad.parquet")
    with pytest.raises(LakeError, match="not there"):
        files.read_work(store, "none.parquet")


def test_of_a_damaged_work_file_the_error_tells_how_to_go_on_without(store: Store) -> None:
    store.write("_work/round-00000007/planned.parquet", b"PAR1 no")
    with pytest.raises(LakeError, match=r"damaged: .* move _work/round-00000007 away"):
        files.read_work(store, "_work/round-00000007/planned.parquet")


def test_statistics_are_exact_to_the_microsecond() -> None:
    spans = Spans(["t"])
    late = datetime(2026, 1, 1, 0, 0, 0, 123_456, UTC)
    spans.add(pa.table({"t": pa.array([late], pa.timestamp("us", "UTC"))}))
    assert json.loads(spans.json())["maxValues"]["t"] == "2026-01-01T00:00:00.123456Z"


@settings(max_examples=50)
@given(some.lists(some.lists(some.none() | some.integers(-(2**63), 2**63 - 1)), max_size=4))
def test_statistics_over_batches_are_those_of_all_rows(batches: list[list[int | None]]) -> None:
    spans = Spans(["k"])
    for batch in batches:
        spans.add(pa.table({"k": pa.array(batch, pa.int64())}))
    every = [v for batch in batches for v in batch]
    known = [v for v in every if v is not None]
    told = json.loads(spans.json())
    assert told["numRecords"] == len(every)
    assert told["nullCount"] == {"k": len(every) - len(known)}
    assert told["minValues"] == ({"k": min(known)} if known else {})
    assert told["maxValues"] == ({"k": max(known)} if known else {})


def test_no_table_promises_statistics_it_must_not() -> None:
    for table in SPECS.values():
        for name in table.stats:
            kind = table.stored.field(name).type
            assert kind in (pa.int64(), pa.int32(), pa.string(), pa.date32(), pa.timestamp("us", "UTC")), name
        assert set(table.sort) <= set(table.stored.names)
    assert spec("seen").partition == ()
    assert spec("links").partition == ("day",)
