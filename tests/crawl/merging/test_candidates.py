from __future__ import annotations

import pyarrow as pa
import pytest

from crawl.merging import candidates
from crawl.policy import Planning
from crawl.schema import CANDIDATES, LINKS, VISITS
from tests.crawl.urlrows import ok, url_of, visit

PLANNING = Planning()


def links(*rows: dict[str, object]) -> pa.Table:
    filled = {
        "target_key": 1,
        "target_url": url_of(1),
        "target_domain": "one.test",
        "source_key": 5,
        "via": "a",
    }
    filled |= {"depth": 2, "first_parse": True, "admitted": True}
    schema = pa.schema([LINKS.field(name) for name in candidates.LINK_COLUMNS])
    return pa.Table.from_pylist([filled | row for row in rows], schema=schema)


def test_links_become_paths_but_those_not_admitted() -> None:
    found = candidates.of_links(
        links({}, {"admitted": False, "target_key": 2}, {"first_parse": False}), PLANNING
    )
    assert CANDIDATES == found.schema
    assert [(1, 5, 2, "link", True), (1, 5, 2, "link", False)] == [
        (row["target_key"], row["source_key"], row["depth"], row["found_by"], row["counts"])
        for row in found.to_pylist()
    ]


def test_a_redirect_elsewhere_gives_more_than_a_link_and_a_near_page_more_than_a_far_one() -> None:
    found = candidates.of_links(links({}, {"via": "redirect"}, {"depth": 9}, {"via": "sitemap"}), PLANNING)
    link, redirect, far, _ = found["score"].to_pylist()
    assert redirect > link > far
    assert ["link", "redirect", "link", "sitemap"] == found["found_by"].to_pylist()


def test_seeds_have_no_source_and_their_priority_decides() -> None:
    found = candidates.of_seeds(
        pa.array([1, 2]),
        [url_of(1), url_of(2)],
        pa.array(["one", "two"]),
        ["one.test", "two.test"],
        pa.array(["low", "critical"]),
        pa.array(["page", "sitemap"]),
        PLANNING,
    )
    low, critical = found.to_pylist()
    assert (None, 0, "seed", False, "one") == (
        low["source_key"],
        low["depth"],
        low["found_by"],
        low["counts"],
        low["discovered_url"],
    )
    assert (0.2, 1.0) == (low["importance"], critical["importance"])
    assert critical["score"] > low["score"]


def test_what_a_site_lists_itself_gives_as_much_as_a_high_seed_and_what_a_feed_names_elsewhere_a_link() -> (
    None
):
    found = candidates.of_links(
        links(
            {"via": "sitemap", "target_kind": "page", "is_internal": False},
            {"via": "sitemap", "target_kind": "sitemap"},
            {"via": "feed", "target_kind": "page", "is_internal": True},
            {"via": "feed", "target_kind": "page", "is_internal": False},
            {"via": "robots", "target_kind": "sitemap"},
            {"via": "alternate", "target_kind": "feed"},
        ),
        PLANNING,
    ).to_pylist()
    assert [0.8, 0.8, 0.8, 0.5, 0.8, 0.5] == [row["importance"] for row in found]
    assert [True, True, True, False, False, False] == [row["announced"] for row in found]
    assert ["page", "sitemap", "page", "page", "sitemap", "feed"] == [row["kind"] for row in found]
    assert ["sitemap", "sitemap", "feed", "feed", "robots", "link"] == [row["found_by"] for row in found]


def test_only_visits_met_on_the_way_are_paths() -> None:
    came = [ok(1), visit(2, planned=False, referrer_key=1, depth=3)]
    found = candidates.of_hops(pa.Table.from_pylist(came, VISITS), PLANNING).to_pylist()
    assert [(2, 1, 3, "redirect", url_of(2), False)] == [
        (r["target_key"], r["source_key"], r["depth"], r["found_by"], r["target_url"], r["counts"])
        for r in found
    ]


def test_nothing_met_is_no_path() -> None:
    assert 0 == len(candidates.of_links(links(), PLANNING))
    assert 0 == len(candidates.of_hops(VISITS.empty_table(), PLANNING))


def test_the_best_seed_scores_highest() -> None:
    scores = [
        candidates.of_seeds(
            pa.array([1]),
            [url_of(1)],
            pa.array(["x"]),
            ["one.test"],
            pa.array([name]),
            pa.array(["page"]),
            PLANNING,
        )["score"][0].as_py()
        for name in ("critical", "high", "medium", "low")
    ]
    assert sorted(scores, reverse=True) == scores
    assert pytest.approx(0.3 * (1.0 - 0.2)) == scores[0] - scores[3]  # weight times importance
