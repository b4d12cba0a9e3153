"""Every column that SQL can name is explained."""

from __future__ import annotations

from pathlib import Path

from crawl.schema import TABLES
from lake import meanings, snapshot, sql
from tests.lake import lakes, rows


def test_every_column_of_every_table_and_view_has_a_meaning(tmp_path: Path) -> None:
    lake = lakes.new(tmp_path / "lake")
    with sql.connect(lake, snapshot.latest(lake), rows.NOW) as reader:
        told = reader.ask("FROM columns").table().to_pylist()
        known = {
            (name, column)
            for name in (*TABLES, *sql.VIEWS, "files", "columns")
            for column in reader.ask(f'FROM "{name}"').schema.names
        }
    assert known == {(row["table_name"], row["column_name"]) for row in told}
    assert len(known) == len(told)
    assert all(row["meaning"] and row["type"] for row in told)


def test_a_views_column_means_what_its_tables_say_unless_it_is_worked_out() -> None:
    found = {
        (row["table_name"], row["column_name"]): row["meaning"] for row in meanings.meanings().to_pylist()
    }
    assert found["urls", "depth"] == found["seen", "depth"]
    assert found["urls", "depth"].startswith("fewest links from a seed at discovery")
    assert found["pages", "title"] == found["documents", "title"]
    assert found["urls", "due"] == meanings.COMPUTED["urls", "due"]


def test_each_view_names_its_sources() -> None:
    assert set(sql.VIEWS) == set(meanings.SOURCES)
    assert {table for tables in meanings.SOURCES.values() for table in tables} <= set(TABLES)
