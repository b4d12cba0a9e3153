"""Seed files of any kind: every line is a row, what is no seed is told with its number, the rest goes in."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawl.errors import UsageError
from crawl.keys import Keyer
from crawl.policy import Scope, Settings
from crawl.schema import SEEDS
from cycles.commands import seeding
from cycles.commands.seeding import Refusal, Seed, judge, read_file
from cycles.session import setup
from cycles.session.setup import Lake
from tests.cycles import smallround

KEYER = Keyer(b"\0" * 32)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def rows(seeds: Iterable[Seed], scope: Scope = Scope()) -> tuple[pa.Table, list[Refusal]]:  # noqa: B008
    told: list[Refusal] = []
    tables = judge(
        seeds,
        keyer=KEYER,
        settings=Settings(scope=scope),
        priority="high",
        now=NOW,
        added_by="me",
        refused=told.append,
    )
    return pa.concat_tables([SEEDS.empty_table(), *tables]), told


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_a_text_file_gives_its_lines_with_their_numbers(tmp_path: Path) -> None:
    file = written(tmp_path / "s.txt", b"\xef\xbb\xbfhttps://a.test/\n\n# a remark\n  https://b.test/x \r\n")
    assert [(1, "https://a.test/"), (4, "https://b.test/x")] == [(s.line, s.text) for s in read_file(file)]


def test_garbage_lines_are_told_with_number_and_reason_and_the_rest_is_accepted(tmp_path: Path) -> None:
    lines = [
        b"https://a.test/",
        b"\xff\xfe\x00garbage",
        b"not a url",
        b"ftp://a.test/",
        b"https://b.test/",
        b"https://a.test/" + b"x" * 70_000,
        b"https://c.test/",
    ]
    table, told = rows(read_file(written(tmp_path / "s.txt", b"\n".join(lines))))
    assert [2, 3, 4, 6] == [r.line for r in told]
    assert ["not_utf8", "url_scheme", "url_too_long"] == [told[i].reason for i in (0, 2, 3)]
    assert all(len(r.text) <= 200 for r in told)
    by_verdict = table.group_by("verdict").aggregate([("url", "count")]).to_pydict()
    assert {"accepted": 3, "refused": 4} == dict(
        zip(by_verdict["verdict"], by_verdict["url_count"], strict=True)
    )


def test_rows_have_the_tables_columns_and_a_refusal_has_no_key() -> None:
    table, _ = rows([Seed(1, "https://a.test/?b=1&a=2"), Seed(2, "nonsense", priority="low")])
    assert SEEDS.names == table.schema.names
    accepted, refused = table.to_pylist()
    assert KEYER.url_key("https://a.test/?b=1&a=2") == accepted["url_key"]
    assert ("page", "high", NOW, "me", None) == tuple(
        accepted[name] for name in ("kind", "priority", "added_at", "added_by", "reason")
    )
    assert refused["url_key"] is None
    assert ("low", "refused") == (refused["priority"], refused["verdict"])


def test_an_address_out_of_scope_is_refused_with_the_scopes_reason() -> None:
    table, told = rows([Seed(1, "https://b.test/"), Seed(2, "https://x.a.test/")], Scope(domains=("a.test",)))
    assert [Refusal(1, "https://b.test/", "scope_host")] == told
    assert ["refused", "accepted"] == table["verdict"].to_pylist()


def test_a_csv_file_names_its_columns(tmp_path: Path) -> None:
    data = b'priority,url,other\nlow,https://a.test/,1\n,https://b.test/,2\nhigh,"https://c.test/?a,b",3\n'
    seeds = list(read_file(written(tmp_path / "s.csv", data)))
    assert ["https://a.test/", "https://b.test/", "https://c.test/?a,b"] == [s.text for s in seeds]
    assert [(2, "low"), (3, None), (4, "high")] == [(s.line, s.priority) for s in seeds]


def test_a_csv_line_that_is_none_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    huge = b"x" * 200_000  # beyond what one field may hold
    data = (
        b"url,priority\nhttps://a.test/,\n"
        + huge
        + b",\nhttps://b.test/,urgent\n\xff,\n,\nhttps://c.test/,low\n"
    )
    _, told = rows(read_file(written(tmp_path / "s.csv", data)))
    assert [(3, "csv_broken"), (4, "priority_unknown"), (5, "not_utf8"), (6, "url_empty")] == [
        (r.line, r.reason) for r in told
    ]


def accepted(table: pa.Table) -> list[str]:
    return [row["url"] for row in table.to_pylist() if row["verdict"] == "accepted"]


@pytest.mark.parametrize("after", [b"", b'"https://e.test/\n', b'https://f.test/"\n', b"\n" * 80])
def test_an_unclosed_quote_is_told_by_its_line_and_swallows_no_other(tmp_path: Path, after: bytes) -> None:
    data = b'url,n\nhttps://a.test/,1\n"https://b.test/,2\nhttps://c.test/,3\n"https://d.test/",4\n' + after
    table, told = rows(read_file(written(tmp_path / "s.csv", data)))
    assert (3, "quote_open") == (told[0].line, told[0].reason)
    assert ["https://a.test/", "https://c.test/", "https://d.test/"] == accepted(table)[:3]


def test_only_line_ends_end_a_line(tmp_path: Path) -> None:
    data = "url\nhttps://a.test/\u2028\x0b\x85x\nhttps://b.test/\rhttps://c.test/\n".encode()
    assert 3 == len(accepted(rows(read_file(written(tmp_path / "s.csv", data)))[0]))


def test_a_value_in_quotes_may_go_on_over_lines_if_it_is_no_address(tmp_path: Path) -> None:
    data = b'url,remark\nhttps://a.test/,"one\n""two""\r\nthree"\nhttps://b.test/,""\n"https://c\n.test/",x\n'
    table, told = rows(read_file(written(tmp_path / "s.csv", data)))
    assert ["https://a.test/", "https://b.test/"] == accepted(table)[:2]
    assert (6, "quote_open") == (told[0].line, told[0].reason)


@pytest.mark.parametrize(
    ("text", "write"),
    [
        ("site.test:8077/x", "write http://site.test:8077/x,"),
        ("site.test/x", "write http://site.test/x,"),
        ("www.a.test", "write http://www.a.test,"),
        ("localhost:80", "write http://localhost:80,"),
        ("ftp://a.test/", "an address begins with http:// or https://"),
        ("mailto:me@a.test", "an address begins with http:// or https://"),
    ],
)
def test_an_address_without_a_scheme_is_told_with_what_to_write(lake: Lake, text: str, write: str) -> None:
    said: list[str] = []
    seeding.add(lake, [text], None, priority="high", who="me", now=NOW, tell=said.append)
    assert said[0].startswith(f"refused: url_scheme: {text} ({write}")


def test_what_is_no_address_with_a_scheme_either_stays_that(lake: Lake) -> None:
    said: list[str] = []
    seeding.add(lake, ["nonsense", "a b.test"], None, priority="high", who="me", now=NOW, tell=said.append)
    write = "(an address is written in full, like https://www.example.org/)"
    assert said == [f"refused: url_invalid: {text} {write}" for text in ("nonsense", "a b.test")]


def test_remarks_in_a_csv_file_are_no_seeds_and_count_as_lines(tmp_path: Path) -> None:
    data = b"url,n\n# of last year\nhttps://a.test/,1\nnonsense,2\n"
    table, told = rows(read_file(written(tmp_path / "s.csv", data)))
    assert accepted(table) == ["https://a.test/"]
    assert [(4, "url_invalid")] == [(r.line, r.reason) for r in told]


def test_a_csv_file_without_the_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no column `url`"):
        list(read_file(written(tmp_path / "s.csv", b"https://a.test/\n")))
    with pytest.raises(UsageError, match="no column `url`"):
        list(read_file(written(tmp_path / "empty.csv", b"")))


def test_a_parquet_file_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeding, "BATCH", 2)
    urls = [f"https://a.test/{n}" for n in range(4)]
    table = pa.table({"n": range(5), "url": [*urls, None], "kind": ["page", "feed", "page", "feed", "x"]})
    pq.write_table(table, tmp_path / "s.parquet")
    seeds = list(read_file(tmp_path / "s.parquet"))
    assert [1, 2, 3, 4, 5] == [s.line for s in seeds]
    assert ["page", "feed", "page", "feed", "page"] == [s.kind for s in seeds]
    assert "kind_unknown" == seeds[4].broken
    assert [2, 2, 1] == [
        batch.num_rows
        for batch in judge(
            seeds,
            keyer=KEYER,
            settings=Settings(),
            priority="low",
            now=NOW,
            added_by="me",
            refused=lambda _: None,
        )
    ]


@pytest.mark.parametrize("name", ["none.txt", "none.csv", "none.parquet"])
def test_a_file_that_is_not_there_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=name):
        list(read_file(tmp_path / name))


def test_a_file_that_is_no_parquet_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"s\.parquet"):
        list(read_file(written(tmp_path / "s.parquet", b"PAR1 nonsense")))


@given(data=st.binary(max_size=300), suffix=st.sampled_from([".txt", ".csv"]))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_become_rows_or_a_usage_error(tmp_path: Path, data: bytes, suffix: str) -> None:
    file = written(tmp_path / f"any{suffix}", b"url\n" + data)
    seeds = list(read_file(file))
    table, told = rows(seeds)
    assert len(seeds) == table.num_rows
    assert len(told) == table["verdict"].to_pylist().count("refused")


def test_a_seed_is_of_the_kind_it_names_else_of_the_commands() -> None:
    seeds = [Seed(1, "https://a.test/1"), Seed(2, "https://a.test/2", "feed")]
    common: Any = {"keyer": KEYER, "settings": Settings(), "priority": "low", "now": NOW, "added_by": "me"}
    [table] = judge(seeds, **common, refused=lambda _: None, kind="sitemap")
    assert table["kind"].to_pylist() == ["sitemap", "feed"]
    [table] = judge(seeds, **common, refused=lambda _: None)
    assert table["kind"].to_pylist() == ["page", "feed"]


def test_a_seed_is_given_no_earlier_than_the_last_round_was_planned_for(tmp_path: Path) -> None:
    lake = smallround.new(tmp_path / "lake")
    said: list[str] = []
    opened = setup.open_lake(lake.store.root)
    assert seeding.moment(opened, NOW, said.append) == NOW
    assert not said
    lake.play(([], []))
    late = smallround.NOW + timedelta(days=1)
    assert seeding.moment(opened, late, said.append) == late
    assert not said
    at = seeding.moment(opened, NOW, said.append)
    assert at == smallround.NOW + timedelta(microseconds=1)
    assert "2026-03-01 12:00:00" in said[0]
