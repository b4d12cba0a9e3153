import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.errors import LakeError
from lake import files, ranges
from lake.store import connect
from tests.lake import rows


def write_links(store, *targets, group_rows=None):
    """Work files with a sorted `target_key` column, in row groups of `group_rows`."""
    import pyarrow.parquet as pq

    sources = []
    for number, keys in enumerate(targets):
        path = f"_work/links-{number}.parquet"
        table = pa.table({"target_key": pa.array(sorted(keys), pa.int64()), "n": range(len(keys))})
        target = Path(store.root) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, target, row_group_size=group_rows or max(1, len(keys)))
        sources.append(("target_key", path))
    return sources


def counts(cuts, *targets):
    keys = np.sort(np.concatenate([np.asarray(t, dtype=np.int64) for t in targets]))
    return [int(np.searchsorted(keys, hi, "right") - np.searchsorted(keys, lo)) for lo, hi in cuts]


def assert_cover(cuts):
    assert cuts[0][0] == ranges.MIN
    assert cuts[-1][1] == ranges.MAX
    assert all(before[1] + 1 == after[0] for before, after in itertools.pairwise(cuts))


keys = st.one_of(
    st.integers(ranges.MIN, ranges.MAX), st.integers(-5, 5), st.sampled_from([ranges.MIN, ranges.MAX])
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(keys, max_size=40), max_size=5), st.integers(1, 12), st.integers(1, 9))
def test_ranges_cover_all_keys_and_hold_no_more_rows_than_asked_for(
    tmp_path_factory, lists, max_rows, group_rows
):
    store = connect(tmp_path_factory.mktemp("lake"))
    sources = write_links(store, *lists, group_rows=group_rows)

    cuts = ranges.cut(store, sources, max_rows)

    assert_cover(cuts)
    everything = [key for some in lists for key in some]
    for (lo, hi), count in zip(cuts, counts(cuts, *lists) if lists else [0], strict=True):
        inside = [key for key in everything if lo <= key <= hi]
        assert count <= max_rows or len(set(inside)) == 1


def test_few_rows_make_one_range(tmp_path):
    store = connect(tmp_path)
    assert [(ranges.MIN, ranges.MAX)] == ranges.cut(store, write_links(store, range(10), range(10)), 20)
    assert [(ranges.MIN, ranges.MAX)] == ranges.cut(store, [], 20)


def test_one_domain_that_holds_most_rows_of_a_wide_row_group_is_cut_all_the_same(tmp_path):
    store = connect(tmp_path)
    skewed = [ranges.MIN, *range(1_000), ranges.MAX]
    sources = write_links(store, skewed, skewed, skewed)

    cuts = ranges.cut(store, sources, 300)

    assert_cover(cuts)
    assert max(counts(cuts, skewed, skewed, skewed)) <= 300
    assert len(cuts) <= 40


def test_footers_alone_cut_a_long_sorted_run(tmp_path, monkeypatch):
    store = connect(tmp_path)
    sources = write_links(store, range(0, 100_000, 10), group_rows=1_000)
    monkeypatch.setattr(ranges, "read_keys", lambda *_: pytest.fail("a key column was read"))

    cuts = ranges.cut(store, sources, 2_500)

    assert [2_000, 2_000, 2_000, 2_000, 2_000] == counts(cuts, range(0, 100_000, 10))


def test_a_slice_has_exactly_the_rows_of_its_range(tmp_path):
    store = connect(tmp_path)
    entry = files.write(store, "seen", rows.seen(list(range(100)), 3))

    part = ranges.slice(store, entry, "url_key", 10, 19, ["url"])

    assert [f"http://d{key}.test/" for key in range(10, 20)] == part["url"].to_pylist()
    assert ["url"] == part.column_names
    assert 0 == ranges.slice(store, entry, "url_key", 200, 300, ["url", "depth"]).num_rows


def test_a_slice_of_an_unsorted_file_keeps_the_order_of_the_file(tmp_path):
    store = connect(tmp_path)
    files.write_work(store, "_work/x.parquet", pa.table({"k": pa.array([5, 1, 4, 2], pa.int64())}))
    assert [5, 4, 2] == ranges.slice(store, "_work/x.parquet", "k", 2, 9)["k"].to_pylist()


def test_a_damaged_file_is_a_lake_error_that_names_it(tmp_path):
    store = connect(tmp_path)
    store.write("_work/x.parquet", b"PAR1 nothing")
    with pytest.raises(LakeError, match=r"_work/x\.parquet"):
        ranges.slice(store, "_work/x.parquet", "k", 0, 9)


def test_a_work_file_written_anew_is_read_anew(tmp_path):
    store = connect(tmp_path)
    sources = write_links(store, range(100), group_rows=10)
    assert 10 == len(ranges.cut(store, sources, 10))
    write_links(store, range(20), group_rows=10)
    assert 2 == len(ranges.cut(store, sources, 10))
