import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake import files, ranges, runs
from lake.store import connect
from tests.lake import rows


def as_keys(values):
    return np.unique(np.asarray(sorted(values), dtype=np.int64))


def write_run(store, keys, last, *, level=0, first=None, state="DISCOVERED"):
    keys = sorted(keys)
    table = rows.seen(keys, last, state=[f"{state}"] * len(keys))
    return files.write(store, "seen", table, name=runs.name(level, last if first is None else first, last))


def test_a_name_says_level_and_rounds():
    assert runs.Name(2, 7, 12) == runs.parse("seen/" + runs.name(2, 7, 12))
    assert runs.name(0, 1, 1) != runs.name(0, 1, 1)
    assert runs.parse("part-00000-c0ffee.snappy.parquet").level == -1


def test_files_of_one_run_are_grouped_newest_rounds_first_and_foreign_ones_before_all(tmp_path):
    store = connect(tmp_path)
    old = [write_run(store, [1], 8, level=1, first=1), write_run(store, [9], 8, level=1, first=1)]
    new = [write_run(store, [1], 9)]
    foreign = [files.write(store, "seen", rows.seen([4], 2), name="part-0.parquet")]

    grouped = runs.group([*old, *new, *foreign])

    assert [foreign, new, old] == [list(run.files) for run in grouped]
    assert [True, False, False] == [run.foreign for run in grouped]
    assert 2 == grouped[2].rows


few = st.sets(st.integers(-20, 20), max_size=15)
many = st.lists(few, max_size=4)


@settings(max_examples=40, deadline=None)
@given(many, few)
def test_known_is_exact(tmp_path_factory, runs_of_keys, asked):
    store = connect(tmp_path_factory.mktemp("lake"))
    entries = [write_run(store, keys, n) for n, keys in enumerate(runs_of_keys, 1) if keys]

    found = runs.known(store, entries, as_keys(asked))

    everything = set().union(*runs_of_keys) if runs_of_keys else set()
    assert [key in everything for key in sorted(asked)] == found.tolist()


@settings(max_examples=40, deadline=None)
@given(many, few)
def test_rows_are_the_newest_of_each_key(tmp_path_factory, runs_of_keys, asked):
    store = connect(tmp_path_factory.mktemp("lake"))
    entries = [write_run(store, keys, n) for n, keys in enumerate(runs_of_keys, 1) if keys]
    if not entries:
        return

    found = runs.rows(store, entries, as_keys(asked), ["url_key", "round"]).to_pylist()

    newest = {key: n for n, keys in enumerate(runs_of_keys, 1) for key in keys}
    assert [(key, newest[key]) for key in sorted(asked) if key in newest] == [
        tuple(r.values()) for r in found
    ]


def test_rows_come_whole_and_ascending(tmp_path):
    store = connect(tmp_path)
    entries = [write_run(store, [1, 2, 3], 1), write_run(store, [2], 2, state="FETCHED")]

    found = runs.rows(store, entries, as_keys([1, 2, 7]))

    assert rows.seen([1], 1).schema.names == found.column_names
    assert [(1, "DISCOVERED", 1), (2, "FETCHED", 2)] == list(
        zip(found["url_key"].to_pylist(), found["state"].to_pylist(), found["round"].to_pylist(), strict=True)
    )


def test_a_foreign_file_is_sorted_when_read_and_its_newest_rows_win(tmp_path):
    store = connect(tmp_path)
    mixed = pa.concat_tables([rows.seen([5, 1], 9), rows.seen([1, 3], 2)])
    files.write_work(store, "seen/part-0.parquet", mixed)
    foreign = files.FileEntry(table="seen", path="part-0.parquet", size=1, rows=4)
    entries = [foreign, write_run(store, [1, 3], 5)]

    assert [True, False, True, True] == runs.known(store, entries, as_keys([1, 2, 3, 5])).tolist()
    found = runs.rows(store, entries, as_keys([1, 3, 5]), ["url_key", "round"])
    assert [(1, 9), (3, 5), (5, 9)] == [tuple(row.values()) for row in found.to_pylist()]
    assert [[1, 1, 3, 5], [1, 3]] == [keys.tolist() for keys in runs.key_batches(store, entries)]


def test_row_groups_that_cannot_match_are_not_decoded(tmp_path, monkeypatch):
    store = connect(tmp_path)
    monkeypatch.setattr(files, "ROW_GROUP", 10)
    entry = write_run(store, range(100), 1)
    decoded = []
    read = ranges.read_keys
    monkeypatch.setattr(
        ranges, "read_keys", lambda file, n, column: decoded.append(n) or read(file, n, column)
    )

    runs.known(store, [entry], as_keys([15, 73]))
    assert [1, 7] == decoded

    decoded.clear()
    assert [list(range(42, 50)), [50, 51]] == [k.tolist() for k in runs.key_batches(store, [entry], 42, 51)]
    assert [4, 5] == decoded


def test_a_file_whose_bounds_exclude_all_keys_is_not_opened(tmp_path):
    store = connect(tmp_path)
    entry = write_run(store, [10, 20], 1)
    store.delete([entry.location])

    assert [False, False] == runs.known(store, [entry], as_keys([1, 5])).tolist()
    assert [] == list(runs.key_batches(store, [entry], 21, 30))
    assert 0 == runs.rows(store, [entry], as_keys([1])).num_rows


def test_known_asks_any_key_column(tmp_path):
    store = connect(tmp_path)
    entry = files.write(store, "documents", rows.table("documents", document_key=[3, 9]))
    assert [True, False] == runs.known(store, [entry], as_keys([3, 4]), "document_key").tolist()


def test_known_texts_is_exact(tmp_path):
    store = connect(tmp_path)
    entry = files.write(store, "bodies", rows.table("bodies", body_hash=["aa", "cc"]))
    asked = pa.array(["cc", "bb", "aa", "zz"])
    assert [True, False, True, False] == runs.known_texts(store, [entry], asked, "body_hash").tolist()
    assert [] == runs.known_texts(store, [entry], pa.array([], pa.string()), "body_hash").tolist()


def test_newest_of_a_range_takes_one_row_a_key_from_all_runs(tmp_path):
    store = connect(tmp_path)
    entries = [write_run(store, range(10), 1), write_run(store, [3, 4], 2)]
    found = runs.newest_in(store, entries, 2, 4, ["url_key", "round"])
    assert [(2, 1), (3, 2), (4, 2)] == [tuple(row.values()) for row in found.to_pylist()]
    assert 0 == runs.newest_in(store, entries, 50, 60).num_rows


def test_asking_no_files_for_rows_is_a_mistake(tmp_path):
    with pytest.raises(ValueError, match="no files"):
        runs.rows(connect(tmp_path), [], as_keys([1]))
