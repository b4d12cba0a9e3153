"""What sitemaps and feeds say, by URL."""

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.schema import CANDIDATES, SEEN
from crawl.sitemap import announced
from tests.crawl.urlrows import NOW, ROUND, fetched, link, row

DAY = timedelta(days=1)


def told(*paths: dict[str, Any]) -> announced.Announced:
    return announced.reduce(pa.Table.from_pylist(list(paths), CANDIDATES))


def named(key: int, source: int = 60, lastmod: datetime | None = None, **columns: Any) -> dict[str, Any]:
    return link(key, source, 1, found_by="sitemap", announced=True, lastmod=lastmod, **columns)


def applied(rows: list[dict[str, Any]], *paths: dict[str, Any], believed: bool = True, **options: Any) -> Any:
    table = pa.Table.from_pylist(rows, SEEN)
    made, changed = announced.apply(
        table, told(*paths), np.full(len(rows), believed), now=NOW, round=ROUND, **options
    )
    assert made.schema == SEEN
    return made.to_pylist(), changed.tolist()


def test_the_newest_date_counts_then_the_smallest_source_and_the_strongest_kind() -> None:
    found = told(
        named(1, 62, NOW - DAY, changefreq="daily"),
        named(1, 61, NOW, changefreq="weekly", sitemap_priority=0.1),
        named(1, 60, NOW, changefreq="never"),
        named(2, 60),
        link(2, kind="feed"),
        link(2, kind="sitemap"),
        link(3),
    )
    assert found.keys.tolist() == [1, 2]
    given = announced.hints(found, np.array([1, 2, 3]))
    assert given["announced_by"].to_pylist() == [60, 60, None]
    assert given["lastmod"].to_pylist() == [NOW, None, None]
    assert given["changefreq"].to_pylist() == ["never", None, None]
    assert announced.kinds(found, np.array([1, 2, 3])).to_pylist() == ["page", "sitemap", "page"]


def test_nothing_announced_changes_nothing() -> None:
    assert announced.kinds(told(), np.array([1])).to_pylist() == ["page"]
    assert announced.hints(told(link(1)), np.array([1]))["announced_by"].to_pylist() == [None]
    assert applied([fetched(1)], link(1)) == ([fetched(1)], [False])


LATER = {"next_fetch_at": NOW + 30 * DAY, "eligible_since": NOW + 30 * DAY}


def test_a_page_that_changed_after_its_last_check_is_due_now() -> None:
    [made], [changed] = applied([fetched(1, **LATER)], named(1, 60, NOW - DAY))
    assert changed
    assert (made["next_fetch_at"], made["eligible_since"]) == (NOW, NOW)
    assert (made["lastmod"], made["announced_by"], made["round"]) == (NOW - DAY, 60, ROUND)
    assert made["visited_round"] == 5


@pytest.mark.parametrize(("days", "back"), [(1, True), (20, False)])
def test_a_page_that_is_gone_is_due_now_where_a_date_says_that_it_came_back(days: int, back: bool) -> None:
    gone = fetched(1, state="GONE", gone_sightings=3, gone_since=NOW - 5 * DAY, **LATER)
    [made], _ = applied([gone], named(1, 60, NOW - days * DAY))
    assert (made["next_fetch_at"] == NOW) is back


@pytest.mark.parametrize(
    ("date", "columns", "believed"),
    [
        (NOW - 11 * DAY, {}, True),  # before the last check
        (NOW + DAY, {}, True),  # in the future: not yet
        (NOW - DAY, {}, False),  # of a host whose dates tell nothing
        (None, {}, True),
        (NOW - DAY, {"state": "FAILED_RETRYABLE"}, True),
        (NOW - DAY, {"state": "BLOCKED"}, True),
        (NOW - DAY, {"lastmod": NOW - DAY}, True),  # told before
    ],
)
def test_an_announcement_that_is_none_moves_no_date(
    date: datetime | None, columns: dict[str, Any], believed: bool
) -> None:
    before = fetched(1, **LATER, **columns)
    [made], _ = applied([before], named(1, 60, date), believed=believed)
    assert made["next_fetch_at"] == before["next_fetch_at"]
    assert made["state"] == before["state"]


def test_what_was_visited_in_the_round_keeps_its_date_and_hears_what_was_said() -> None:
    [made], _ = applied([fetched(1, **LATER)], named(1, 60, NOW - DAY), visited=True)
    assert (made["next_fetch_at"], made["lastmod"]) == (NOW + 30 * DAY, NOW - DAY)


def test_a_known_page_that_is_named_as_a_sitemap_becomes_one_at_once() -> None:
    [made], [changed] = applied([fetched(1, **LATER)], link(1, 60, found_by="robots", kind="sitemap"))
    assert changed
    assert (made["kind"], made["next_fetch_at"], made["announced_by"]) == ("sitemap", NOW, None)
    [again], [changed] = applied([made], link(1, 61, found_by="robots", kind="sitemap"))
    assert (again["kind"], changed) == ("sitemap", False)


def test_rows_older_than_kinds_are_pages() -> None:
    old = fetched(1, **LATER, kind=None, visited_round=None)
    [made], _ = applied([old], named(1, 60))
    assert (made["kind"], made["visited_round"]) == ("page", 5)
    assert applied([row(2, visited_round=None)], named(2, 60))[0][0]["visited_round"] is None


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.builds(
            named,
            st.integers(1, 4),
            st.integers(60, 63),
            st.sampled_from([None, NOW, NOW - DAY]),
            changefreq=st.sampled_from([None, "daily"]),
        ),
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_any_order_of_announcements_tells_the_same(paths: list[dict[str, Any]], chance: Any) -> None:
    keys = np.array([1, 2, 3, 4])
    before = announced.hints(told(*paths), keys)
    chance.shuffle(paths)
    after = announced.hints(told(*paths), keys)
    for name in before:
        assert before[name].to_pylist() == after[name].to_pylist()
