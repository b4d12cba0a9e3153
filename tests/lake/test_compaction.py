import itertools
from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake import compaction, delta, files, runs
from lake.compaction import Merge
from lake.store import connect
from tests.lake import rows

BIG = 1 << 30


def entry(level, first, last, *, path=None, size=10, count=10):
    return files.FileEntry(table="seen", path=path or runs.name(level, first, last), size=size, rows=count)


def levels(*spec):
    return [entry(*one) for one in spec]


def test_nothing_is_merged_before_a_level_is_full():
    assert compaction.tiers([], 3) is None
    assert compaction.tiers(levels((0, 1, 1), (0, 2, 2), (1, -0, 0)), 3) is None


def test_a_full_level_becomes_one_run_of_the_next():
    todo = compaction.tiers(levels((0, 4, 4), (0, 5, 5), (0, 6, 6), (1, 1, 3)), 3)
    assert runs.Name(1, 4, 6) == todo.name
    assert [4, 5, 6] == [run.name.first for run in todo.runs]


def test_a_level_that_becomes_full_by_the_merge_goes_along_at_once():
    todo = compaction.tiers(levels((0, 7, 7), (0, 8, 8), (0, 9, 9), (1, 1, 3), (1, 4, 6)), 3)
    assert runs.Name(2, 1, 9) == todo.name
    assert 5 == len(todo.runs)


def test_a_level_can_be_full_while_the_ones_below_are_not():
    todo = compaction.tiers(levels((0, 9, 9), (1, 1, 2), (1, 3, 4), (1, 5, 8)), 3)
    assert runs.Name(2, 1, 8) == todo.name
    assert compaction.tiers(levels((0, 9, 9), (1, 1, 8)), 2) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 120), st.integers(2, 8))
def test_a_row_is_rewritten_once_a_level_and_runs_stay_disjoint(rounds, ratio):
    table = []
    rewritten = dict.fromkeys(range(rounds), 0)
    for number in range(rounds):
        table.append(entry(0, number, number))
        while (todo := compaction.tiers(table, ratio)) is not None:
            for each in range(todo.name.first, todo.name.last + 1):
                rewritten[each] += 1
            table = [e for e in table if e not in todo.files]
            table.append(entry(todo.name.level, todo.name.first, todo.name.last))
    names = sorted((runs.parse(e.path) for e in table), key=lambda n: n.first)
    assert list(range(rounds)) == [n for name in names for n in range(name.first, name.last + 1)]
    highest = max(name.level for name in names)
    assert max(rewritten.values()) <= highest
    assert len(names) <= (ratio - 1) * (highest + 1)


def test_a_foreign_file_is_merged_with_every_run_it_may_touch():
    known = files.FileEntry(
        table="seen",
        path="part-0.parquet",
        size=1,
        rows=1,
        stats='{"minValues": {"round": 4}, "maxValues": {"round": 6}}',
    )
    todo = compaction.tiers([*levels((1, 1, 3), (0, 4, 4), (1, 5, 9), (0, 10, 10)), known], 3)
    assert runs.Name(1, 4, 9) == todo.name
    assert {"part-0.parquet", runs.Name(0, 4, 4), runs.Name(1, 5, 9)} == {
        "part-0.parquet" if run.foreign else run.name for run in todo.runs
    }
    unknown = entry(0, 0, 0, path="part-0.parquet")
    assert runs.Name(1, 0, 10) == compaction.tiers([*levels((1, 1, 3), (0, 10, 10)), unknown], 3).name


few = st.dictionaries(st.integers(-9, 9), st.sampled_from(["DISCOVERED", "FETCHED", "GONE"]), max_size=8)


@settings(max_examples=40, deadline=None)
@given(st.lists(few, min_size=2, max_size=5), st.integers(1, 5))
def test_a_merged_run_holds_the_newest_row_of_every_key(tmp_path_factory, lists, range_rows):
    store = connect(tmp_path_factory.mktemp("lake"))
    inputs = [
        files.write(
            store,
            "seen",
            rows.seen(sorted(one), n, state=[one[k] for k in sorted(one)]),
            name=runs.name(0, n, n),
        )
        for n, one in enumerate(lists, 1)
        if one
    ]
    if not inputs:
        return
    todo = Merge(tuple(reversed(runs.group(inputs))), runs.Name(1, 1, len(lists)))
    patch = pytest.MonkeyPatch()
    patch.setattr(compaction, "RANGE_ROWS", range_rows)
    try:
        out = compaction.merge(store, todo, BIG)
    finally:
        patch.undo()

    merged = pa.concat_tables([files.read(store, e) for e in out])
    newest = {key: (n, one[key]) for n, one in enumerate(lists, 1) for key in one}
    found = zip(*(merged[c].to_pylist() for c in ("url_key", "round", "state")), strict=True)
    assert [(key, *newest[key]) for key in sorted(newest)] == list(found)
    assert {runs.Name(1, 1, len(lists))} == {runs.parse(e.path) for e in out}


def test_a_large_run_is_written_in_several_files_of_one_name(tmp_path, monkeypatch):
    store = connect(tmp_path)
    inputs = [files.write(store, "seen", rows.seen(range(1_000), 1), name=runs.name(0, 1, 1))]
    monkeypatch.setattr(compaction, "RANGE_ROWS", 100)
    monkeypatch.setattr(files, "ROW_GROUP", 50)
    out = compaction.merge(store, Merge(tuple(runs.group(inputs)), runs.Name(1, 1, 1)), inputs[0].size // 4)
    assert 1_000 == sum(e.rows for e in out)
    assert len(out) >= 3
    assert 1 == len(runs.group(out))
    bounds = [e.bounds("url_key") for e in out]
    assert all(before[1] < after[0] for before, after in itertools.pairwise(bounds))


def test_signals_are_summed(tmp_path):
    store = connect(tmp_path)
    inputs = [
        files.write(
            store,
            "signals",
            rows.table(
                "signals",
                url_key=keys,
                round=[n] * len(keys),
                in_links=links,
                best_depth=depths,
                best_score=scores,
            ),
            name=runs.name(0, n, n),
        )
        for n, keys, links, depths, scores in (
            (1, [1, 2], [3, 1], [4, 2], [0.5, 0.1]),
            (2, [2, 9], [5, 1], [3, 1], [0.2, 0.9]),
        )
    ]
    out = compaction.merge(store, Merge(tuple(runs.group(inputs)), runs.Name(1, 1, 2)), BIG)
    assert [
        {"url_key": 1, "round": 1, "in_links": 3, "best_depth": 4, "best_score": 0.5},
        {"url_key": 2, "round": 2, "in_links": 6, "best_depth": 2, "best_score": 0.2},
        {"url_key": 9, "round": 2, "in_links": 1, "best_depth": 1, "best_score": 0.9},
    ] == files.read(store, out[0]).to_pylist()


def test_files_of_past_days_are_worth_gathering_and_those_gathered_are_not(monkeypatch):
    monkeypatch.setattr(compaction, "_MANY", 4)
    monkeypatch.setattr(compaction, "_SOME", 3)

    def of(day, name):
        partition = {"day": day} if day else {}
        return files.FileEntry(table="fetches", path=name, size=1, rows=1, partition=partition)

    today = date(2026, 3, 2)
    past = [of("2026-03-01", f"{n}.parquet") for n in range(2)]
    some = [of("2026-03-02", f"{n}.parquet") for n in range(3)]
    assert [past] == compaction.loose([*past, *some], today)
    assert [[*some, some[0]]] == compaction.loose([*some, some[0]], today)
    assert [] == compaction.loose([past[0], of("2026-03-01", "gathered-0.parquet")], today)
    assert [] == compaction.loose([of("", "a.parquet")] * 2, today)
    assert 1 == len(compaction.loose([of("", "a.parquet")] * 3, today))


@pytest.mark.parametrize(
    ("table", "first", "second"),
    [
        ("links", {"target_key": [1, 5]}, {"target_key": [2, 5]}),
        ("frontier", {"group": [0, 1], "position": [0, 0]}, {"group": [0, 0], "position": [1, 2]}),
        ("fetches", {"url_key": [5, 1]}, {"url_key": [3, 2]}),
        ("bodies", {"body_hash": ["b", "a"]}, {"body_hash": ["c", "d"]}),
    ],
)
def test_gathering_keeps_every_row_in_the_tables_order(tmp_path, table, first, second):
    store = connect(tmp_path)
    given_rows = [rows.table(table, **one) for one in (first, second)]
    inputs = [files.write(store, table, one) for one in given_rows]

    [out] = compaction.unite(store, inputs, BIG)

    column = next(iter(first))
    assert compaction.is_gathered(out)
    assert {"day": rows.DAY.isoformat()} == out.partition
    assert sorted(first[column] + second[column]) == sorted(files.read(store, out)[column].to_pylist())


def test_gathering_stores_a_text_once_as_it_was_first_stored(tmp_path):
    store = connect(tmp_path)
    inputs = [
        files.write(
            store, "documents", rows.table("documents", document_key=[1, 7], round=[2, 2], title=["a", "b"])
        ),
        files.write(
            store, "documents", rows.table("documents", document_key=[7], round=[1], title=["first"])
        ),
    ]
    [out] = compaction.unite(store, inputs, BIG)
    assert [(1, "a"), (7, "first")] == list(
        zip(*(files.read(store, out)[c].to_pylist() for c in ("document_key", "title")), strict=True)
    )


def test_a_merge_that_fails_leaves_no_file_behind(tmp_path, monkeypatch):
    store = connect(tmp_path)

    def batches():
        for number in range(10):
            yield rows.seen([number], 1)
        raise RuntimeError("stop")

    monkeypatch.setattr(compaction, "RANGE_ROWS", 2)
    with pytest.raises(RuntimeError, match="stop"):
        compaction.write_all(
            store, "seen", batches(), target_bytes=1, bytes_per_row=1, name=lambda: runs.name(1, 1, 1)
        )
    assert [] == store.list("seen")
    assert [] == store.list("_work")


def test_merged_files_can_be_committed_in_place_of_their_inputs(tmp_path):
    from tests.lake import lakes

    store = lakes.new(tmp_path)
    for number in range(1, 4):
        lakes.put(store, "seen", rows.seen([number, 10], number))
    todo = compaction.tiers(delta.files(store, "seen"), 3)
    out = compaction.merge(store, todo, BIG)
    delta.commit(store, "seen", app="test", adds=out, removes=todo.files, rewrite=True)
    assert [e.path for e in out] == [e.path for e in delta.files(store, "seen")]
    assert [1, 2, 3, 10] == files.read(store, out[0])["url_key"].to_pylist()
