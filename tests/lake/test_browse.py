"""A lake for notebooks: one round, whole, in pandas."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from crawl.errors import NoSuchLake, UsageError
from lake import identity
from lake.browse import browse
from lake.store import Store
from tests.lake import lakes, rows


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = lakes.new(tmp_path)
    identity.create(made, "psl", 1, b"a secret of sixteen")
    lakes.commit_round(made, 1, seen=rows.seen([1, 2], 1))
    lakes.commit_round(made, 2, seen=rows.seen([2, 3], 2, state=["FETCHED", "DISCOVERED"]))
    return made


def test_the_newest_round_is_shown_and_earlier_ones_as_they_were(store: Store) -> None:
    lake = browse(store.root, rows.NOW)
    assert (2, [1, 2]) == (lake.round, lake.rounds)
    first = lake.at(1)
    assert (1, [1]) == (first.round, first.rounds)
    question = "SELECT url_key, state FROM urls ORDER BY url_key"
    assert {1: "DISCOVERED", 2: "FETCHED", 3: "DISCOVERED"} == dict(
        lake.sql(question).itertuples(index=False)
    )
    assert {1: "DISCOVERED", 2: "DISCOVERED"} == dict(first.sql(question).itertuples(index=False))
    assert lake.at(1).at(2).sql(question).equals(lake.sql(question))


def test_what_is_committed_meanwhile_is_not_shown(store: Store) -> None:
    lake = browse(store.root, rows.NOW)
    lakes.commit_round(store, 3, seen=rows.seen([4], 3))
    assert 3 == len(lake.frame("urls"))
    assert [1, 2] == lake.rounds
    assert 4 == len(browse(store.root, rows.NOW).frame("urls"))


def test_now_decides_what_is_due(store: Store) -> None:
    question = "SELECT count(*) FILTER (due) AS due FROM urls"
    assert 3 == browse(store.root, rows.NOW).sql(question)["due"].item()
    assert 0 == browse(store.root, rows.NOW - timedelta(seconds=1)).sql(question)["due"].item()


def test_a_whole_table_or_view_is_a_frame(store: Store) -> None:
    lake = browse(store.root, rows.NOW)
    assert [1, 2, 2, 3] == sorted(lake.frame("seen")["url_key"])
    assert [1, 2, 3] == sorted(lake.frame("urls")["url_key"])
    assert lake.frame("documents").empty
    assert "text" in lake.frame("documents").columns


def test_a_name_that_is_none_a_wrong_statement_and_an_unknown_round_are_told(store: Store) -> None:
    lake = browse(store.root, rows.NOW)
    with pytest.raises(UsageError, match=r"no table or view 'url'; there are: .*urls"):
        lake.frame("url")
    with pytest.raises(UsageError, match="urll"):
        lake.sql("SELECT urll FROM urls")
    with pytest.raises(UsageError, match="no round 9"):
        lake.at(9)


def test_it_writes_nothing_and_refuses_statements_that_would(store: Store) -> None:
    before = store.list("")
    lake = browse(store.root, rows.NOW)
    lake.sql("SELECT 1")
    with pytest.raises(UsageError):
        lake.sql("CREATE TABLE t AS SELECT 1")
    with pytest.raises(UsageError):
        lake.sql(f"COPY (SELECT 1) TO '{store.root}/x.csv'")
    assert before == store.list("")


def test_a_lake_without_rounds_is_empty_and_a_place_without_a_lake_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoSuchLake):
        browse(tmp_path / "none")
    made = lakes.new(tmp_path / "new")
    identity.create(made, "psl", 1, b"a secret of sixteen")
    lake = browse(tmp_path / "new")
    assert (0, [], True) == (lake.round, lake.rounds, lake.frame("urls").empty)
    assert repr(lake) == f"Browsed('{tmp_path}/new', round=0)"


def test_a_key_stays_exact_where_others_are_null(store: Store) -> None:
    key = 2**62 + 1
    frame = browse(store.root, rows.NOW).sql(
        f"SELECT * FROM (VALUES ({key}::BIGINT, 1), (NULL, 2)) AS t(key, n) ORDER BY n"
    )
    assert key == frame["key"][0]
    assert frame["key"].isna().tolist() == [False, True]
    assert str(frame["n"].dtype) == "int32"
