"""Rejects: counts add up however work was spread."""

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.rejects import Rejects, total
from crawl.schema import REJECTS

DAY = date(2026, 3, 1)
ROW = st.tuples(
    st.sampled_from(["depth", "scope_host"]),
    st.sampled_from(["a.test", "b.test"]),
    st.just(""),
    st.integers(1, 5),
    st.sampled_from(["http://a.test/1", "http://a.test/2", "http://b.test/"]),
)


def test_a_tally_counts_and_keeps_the_smallest_example() -> None:
    tally = Rejects()
    tally.add("depth", "a.test", "http://a.test/2")
    tally.add("depth", "a.test", "http://a.test/1", 4)
    assert list(tally) == [("depth", "a.test", "", 5, "http://a.test/1")]


@settings(max_examples=50)
@given(st.lists(ROW, max_size=12), st.integers(0, 12))
def test_two_tallies_add_up_to_the_one_of_all_rows(
    rows: list[tuple[str, str, str, int, str]], cut: int
) -> None:
    def table(part: list[tuple[str, str, str, int, str]]):
        return Rejects(part).rows("parse", day=DAY, round_=7, policy_version="p")

    assert total([table(rows[:cut]), table(rows[cut:])]) == total([table(rows)])


def test_no_rejects_are_a_table_without_rows() -> None:
    assert Rejects().rows("parse", day=DAY, round_=7, policy_version="p").schema.names == REJECTS.names
    assert total([]).num_rows == 0
