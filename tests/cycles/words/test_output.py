"""Every format says the same rows; none lets a stranger's text steer a terminal, none leaves half a file."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.errors import UsageError
from cycles.words import output

NOW = datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)
FULL = {
    "n": 2**62,
    "t": 'a,"b"\nc',
    "x": 0.1,
    "at": NOW,
    "d": date(2026, 1, 2),
    "b": b"\x01\xff",
    "l": ["x", "y"],
    "y": True,
}
ROWS = [FULL, dict.fromkeys(FULL)]
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("t", pa.string()),
        ("x", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("d", pa.date32()),
        ("b", pa.binary()),
        ("l", pa.list_(pa.string())),
        ("y", pa.bool_()),
    ]
)
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA)


def emitted(form: str, table: pa.Table = TABLE) -> tuple[bytes, str | None]:
    out = io.BytesIO()
    remark = output.emit(table.schema, table.to_batches(max_chunksize=1), form, out)
    return out.getvalue(), remark


def test_json_is_an_array_of_whole_rows() -> None:
    data, _ = emitted("json")
    first, second = json.loads(data)
    assert {
        "n": 2**62,
        "t": 'a,"b"\nc',
        "x": 0.1,
        "at": "2026-01-02T03:04:05.600000+00:00",
        "d": "2026-01-02",
        "b": "01ff",
        "l": ["x", "y"],
        "y": True,
    } == first
    assert dict.fromkeys(SCHEMA.names) == second


def test_csv_has_a_header_and_empty_nulls() -> None:
    data, _ = emitted("csv")
    header, first, second = csv.reader(io.StringIO(data.decode(), newline=""))
    assert SCHEMA.names == header
    assert [
        str(2**62),
        'a,"b"\nc',
        "0.1",
        NOW.isoformat(),
        "2026-01-02",
        "01ff",
        '["x", "y"]',
        "true",
    ] == first
    assert [""] * 8 == second


def test_parquet_keeps_rows_and_types_and_needs_no_place_to_seek() -> None:
    class Pipe(io.BytesIO):
        def tell(self) -> int:
            raise OSError("illegal seek")

        def seekable(self) -> bool:
            return False

    out = Pipe()
    output.emit(SCHEMA, TABLE.to_batches(max_chunksize=1), "parquet", out)
    found = pq.read_table(io.BytesIO(out.getvalue()))
    assert TABLE == found.cast(SCHEMA)


def test_a_table_shows_all_columns() -> None:
    text = emitted("table")[0].decode()
    assert all(name in text.splitlines()[0] for name in SCHEMA.names)
    assert "2026-01-02 03:04:05.600" in text
    assert "4611686018427387904" in text


@pytest.mark.parametrize("form", output.FORMATS)
def test_no_rows_are_no_fault(form: str) -> None:
    data, remark = emitted(form, SCHEMA.empty_table())
    assert data
    assert remark is None
    if form == "json":
        assert [] == json.loads(data)


def test_a_table_for_the_eye_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "ROWS", 3)
    data, remark = emitted("table", pa.table({"n": range(5)}))
    assert 2 + 3 == len(data.decode().splitlines())
    assert remark is not None
    assert "3 of 5 rows" in remark


def test_a_long_value_is_cut_in_a_table_alone_and_that_is_said() -> None:
    long = "http://a.test/" + "x" * 3000
    data, remark = emitted("table", pa.table({"url": [long, "http://b.test/"]}))
    assert "http://a.test/" + "x" * (output.CELL - 15) + "…" in data.decode().splitlines()[2]
    assert output.CELL == max(map(len, data.decode().splitlines()))
    assert remark is not None
    assert "values cut to 100 characters; --format csv, json or parquet gives all" in remark
    for form in ("csv", "json", "parquet"):
        whole, said = emitted(form, pa.table({"url": [long] * 3}))
        assert said is None
        assert form == "parquet" or 3 == whole.count(long.encode())


def test_parquet_for_a_terminal_is_refused() -> None:
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    with pytest.raises(UsageError, match="--output"):
        output.emit(SCHEMA, TABLE.to_batches(), "parquet", Terminal())


@given(text=st.text(max_size=50))
@settings(max_examples=100)
def test_what_is_shown_has_no_control_characters(text: str) -> None:
    assert output.shown(text).isprintable()
    assert output.safe(text) == text or not text.isprintable()


def test_a_title_cannot_move_the_cursor() -> None:
    assert "\\x1b[2J\\n" == output.safe("\x1b[2J\n")
    text = emitted("table", pa.table({"title": ["[bold]\x1b[2Jx"]}))[0].decode()
    assert "[bold]\\x1b[2Jx" in text


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("a.csv", "csv"),
        ("x/a.JSON", "json"),
        ("a.b.parquet", "parquet"),
        ("a.txt", "table"),
        ("csv", "table"),
    ],
)
def test_the_ending_of_a_file_says_its_format(path: str, form: str) -> None:
    assert form == output.form_of(path)
    assert "table" == output.form_of(None)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, ""),
        (True, "yes"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00"),
        (1.0, "1"),
        (0.123456789, "0.1235"),
        (12.3456, "12.35"),
        (1234567.8, "1234568"),
        (-0.00001234567, "-1.235e-05"),
        (math.inf, "inf"),
        (Decimal("12"), "12"),
        (b"\0" * 20, "00" * 16 + "…"),
        ({"a": [1]}, '{"a": [1]}'),
    ],
)
def test_values_for_the_eye_are_short(value: Any, told: str) -> None:
    assert told == output.shown(value)


def test_sums_and_what_is_no_number_are_plain() -> None:
    assert [12, 1.5, None, None] == output.plain([Decimal(12), Decimal("1.5"), float("nan"), float("inf")])
    assert {"a": "2026-01-02"} == json.loads(output.to_json({"a": date(2026, 1, 2)}))


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    with output.opened(str(target), io.BytesIO()) as out:
        out.write(b"x")
        assert not target.exists()
    assert b"x" == target.read_bytes()


def test_what_fails_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")

    def fails() -> None:
        with output.opened(str(target), io.BytesIO()) as out:
            out.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert ["out.csv"] == [path.name for path in tmp_path.iterdir()]
    assert "old" == target.read_text()


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="no-folder"),
        output.opened(str(tmp_path / "no-folder" / "x"), io.BytesIO()),
    ):
        pass


def test_without_a_file_all_goes_to_standard_output() -> None:
    stdout = io.BytesIO()
    with output.opened(None, stdout) as out:
        out.write(b"x")
    assert b"x" == stdout.getvalue()
