"""What the Delta log says of a file: a reader drops files on the word of their statistics."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.entries import FileEntry, Spans, stats_json

LATE = datetime(2026, 3, 1, 12, 0, 0, 999_999, tzinfo=UTC)
ENTRY = FileEntry(
    table="links",
    path="day=2026-03-01/00000007-ab.parquet",
    size=10,
    rows=2,
    partition={"day": "2026-03-01"},
    stats=stats_json(2, {"target_key": 0, "url": "a"}, {"target_key": 9, "url": "b"}, {"target_key": 0}),
)


def spans(*batches: pa.Table) -> dict[str, dict[str, object]]:
    found = Spans(batches[0].column_names)
    for batch in batches:
        found.add(batch)
    told: dict[str, dict[str, object]] = json.loads(found.json())
    return told


def test_an_entry_survives_json_and_shares_nothing_with_its_dict() -> None:
    plain = ENTRY.to_dict()
    assert ENTRY == FileEntry.from_dict(json.loads(json.dumps(plain)))
    plain["partition"]["day"] = "2030-01-01"
    assert {"day": "2026-03-01"} == ENTRY.partition


def test_an_entry_knows_where_its_file_lies() -> None:
    assert ("links/day=2026-03-01/00000007-ab.parquet", "00000007-ab.parquet") == (ENTRY.location, ENTRY.name)


def test_bounds_are_told_where_both_ends_are_known() -> None:
    assert (0, 9) == ENTRY.bounds("target_key")  # a smallest key of 0 is a bound, not a gap
    assert ("a", "b") == ENTRY.bounds("url")
    assert None is ENTRY.bounds("anchor")
    assert None is FileEntry(table="t", path="p", size=1, rows=1).bounds("anchor")


def test_a_maximum_is_exact_to_the_microsecond() -> None:
    """A reader that skips files by a time cut to milliseconds loses the rows of the last one."""
    found = spans(pa.table({"at": pa.array([LATE], pa.timestamp("us", tz="UTC"))}))
    assert {"at": "2026-03-01T12:00:00.999999Z"} == found["maxValues"] == found["minValues"]


def test_times_on_a_whole_second_sort_as_text_among_others() -> None:
    times = [LATE.replace(microsecond=0), LATE]
    found = spans(pa.table({"at": pa.array(times, pa.timestamp("us", tz="UTC"))}))
    assert "2026-03-01T12:00:00.000000Z" == found["minValues"]["at"]


def test_days_and_long_texts_are_never_cut_short() -> None:
    found = spans(pa.table({"day": [date(2026, 3, 1)], "url": ["x" * 5000]}))
    assert {"day": "2026-03-01", "url": "x" * 5000} == found["maxValues"]


def test_a_column_wholly_null_has_its_null_count_alone() -> None:
    found = spans(pa.table({"a": pa.array([None, None], pa.int64()), "b": [1, 2]}))
    assert {"a": 2, "b": 0} == found["nullCount"]
    assert {"b": 1} == found["minValues"]
    assert 2 == found["numRecords"]


@pytest.mark.parametrize("column", [[True, False], [b"a"], [1.5]])
def test_what_may_have_no_statistics_is_refused(column: list[object]) -> None:
    with pytest.raises(TypeError, match="no statistics"):
        spans(pa.table({"a": column}))


@settings(max_examples=60)
@given(st.lists(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5), min_size=1, max_size=5))
def test_batches_make_the_statistics_of_the_whole(batches: list[list[int | None]]) -> None:
    found = spans(*(pa.table({"a": pa.array(batch, pa.int64())}) for batch in batches))
    values = [value for batch in batches for value in batch if value is not None]
    rows = sum(map(len, batches))
    assert {"a": rows - len(values)} == found["nullCount"]
    assert rows == found["numRecords"]
    assert (
        ({"a": min(values)}, {"a": max(values)}) == (found["minValues"], found["maxValues"])
        if values
        else ({} == found["minValues"] == found["maxValues"])
    )
