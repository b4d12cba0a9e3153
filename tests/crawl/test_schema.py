"""The words of the lake: each column has a type, a meaning, and says whether it may be null."""

import pyarrow as pa
import pytest

from crawl import schema

EVERY = {**schema.TABLES, **schema.INTERNAL}
COLUMNS = [(table, field) for table, columns in EVERY.items() for field in columns]
CONVENTIONS = {
    "_ms": {pa.float64()},
    "_at": {pa.timestamp("us", tz="UTC")},
    "_key": {pa.int64()},
    "bytes": {pa.int64()},
}
#: A body itself, and stage times as one JSON text, bear names of this shape and are no such measure.
UNLIKE = {("bodies", "bytes"), ("rounds", "stage_ms")}


@pytest.mark.parametrize(("table", "field"), COLUMNS, ids=lambda value: getattr(value, "name", value))
def test_a_column_says_what_it_means_and_whether_it_may_be_null(table: str, field: pa.Field) -> None:
    assert len(field.metadata[b"comment"]) >= 3
    assert field.metadata[b"nullable"] in (b"yes", b"no")


@pytest.mark.parametrize(("ending", "types"), CONVENTIONS.items())
def test_an_ending_of_a_name_stands_for_one_unit(ending: str, types: set[pa.DataType]) -> None:
    found = {(t, f.name, f.type) for t, f in COLUMNS if f.name.endswith(ending) and (t, f.name) not in UNLIKE}
    assert found
    assert {entry for entry in found if entry[2] not in types} == set()


def test_no_table_names_a_column_twice() -> None:
    assert [table for table, columns in EVERY.items() if len(set(columns.names)) < len(columns)] == []


def test_a_column_of_one_name_has_one_type_in_every_table() -> None:
    types: dict[str, set[pa.DataType]] = {}
    for table, field in COLUMNS:
        if table in schema.INTERNAL or (table, field.name) in UNLIKE:
            continue
        types.setdefault(field.name, set()).add(field.type)
    assert {name: kinds for name, kinds in types.items() if len(kinds) > 1} == {}


def test_append_tables_are_those_with_a_day() -> None:
    assert set(schema.append_tables()) >= {"fetches", "links", "frontier", "rejects"}
    assert "seen" not in schema.append_tables()


def test_required_columns_are_those_without_a_question_mark() -> None:
    required = schema.required(schema.schema("seeds"))
    assert "url" in required
    assert "reason" not in required


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(KeyError):
        schema.schema("no such table")


@pytest.mark.parametrize("table", EVERY)
def test_an_empty_table_has_its_columns(table: str) -> None:
    empty = schema.empty(EVERY[table])
    assert (empty.num_rows, empty.schema) == (0, EVERY[table])
