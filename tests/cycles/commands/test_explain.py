"""The facts of a URL's story, decision by decision, and what is said of one that is not known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from crawl.errors import UsageError
from crawl.policy import Limits, Scope, Settings
from cycles.commands import pausing, seeding
from cycles.commands.explain import explain
from cycles.session.setup import Lake
from cycles.words import story
from tests.lake import lakes, rows

NOW = rows.NOW
DAY = timedelta(days=1)
URL = "http://a.test/page"
HOME = "http://a.test/"


def key(lake: Lake, url: str = URL) -> int:
    return lake.keyer().url_key(url)


def known(lake: Lake, number: int, **columns: Any) -> pa.Table:
    """The row of URL that a round wrote."""
    given = {
        "url": [URL],
        "host": ["a.test"],
        "domain": ["a.test"],
        "origin": ["http://a.test"],
        "first_seen_round": [1],
        "found_by": ["link"],
        "first_referrer_key": [key(lake, HOME)],
        **{name: [value] for name, value in columns.items()},
    }
    return rows.seen([key(lake)], number, **given)


def link(lake: Lake, round_: int, *, admitted: bool = True, depth: int = 1) -> pa.Table:
    return rows.table(
        "links",
        round=[round_],
        source_key=[key(lake, HOME)],
        target_key=[key(lake)],
        target_url=[URL],
        anchor=["the page"],
        via=["a"],
        depth=[depth],
        admitted=[admitted],
    )


def planned(lake: Lake, round_: int) -> pa.Table:
    return rows.table(
        "frontier",
        round=[round_],
        group=[0],
        position=[4],
        url_key=[key(lake)],
        url=[URL],
        host=["a.test"],
        tier=["high"],
        score=[0.6],
        reason=["new"],
        predicted_start_ms=[1500.0],
        count=[1],
    )


def cut(round_: int, reason: str, score: float, count: int = 10) -> pa.Table:
    return rows.table(
        "frontier",
        round=[round_],
        group=[-1],
        position=[-1],
        host=["a.test"],
        reason=[reason],
        score=[score],
        count=[count],
    )


def asked(lake: Lake, round_: int, outcome: str = "OK") -> pa.Table:
    return rows.table(
        "fetches",
        round=[round_],
        kind=["page"],
        url=[URL],
        url_key=[key(lake)],
        host=["a.test"],
        chain_id=[round_],
        outcome=[outcome],
    )


def test_a_story_from_discovery_over_a_cut_to_its_fetch(lake: Lake) -> None:
    home = rows.seen([key(lake, HOME)], 1, url=[HOME], host=["a.test"])
    first = pa.concat_tables([home, known(lake, 1, score=0.4, next_fetch_at=NOW)]).sort_by("url_key")
    lakes.commit_round(lake.store, 1, now=NOW, seen=first, links=link(lake, 1))
    lakes.commit_round(lake.store, 2, now=NOW + DAY, frontier=[cut(2, "host_capacity", 0.65)])
    done = known(
        lake, 3, state="FETCHED", next_fetch_at=NOW + 9 * DAY, last_outcome="OK", interval_s=604800.0
    )
    lakes.commit_round(
        lake.store, 3, now=NOW + 2 * DAY, frontier=planned(lake, 3), fetches=asked(lake, 3), seen=done
    )
    lakes.commit_round(lake.store, 4, now=NOW + 3 * DAY)
    found = explain(lake, URL, NOW + 3 * DAY)
    assert HOME == found["referrer"]
    assert "FETCHED" == found["row"]["state"]
    one, two, three, four = found["decisions"]
    assert ("discovered", 1) == (one["decision"], one["round"])
    assert ("left_out", "host_capacity", 10) == (two["decision"], two["reason"], two["cut_with"])
    assert (0.4, 0.65) == (two["score"], two["cut_off"])
    assert two["short_by"] == pytest.approx(0.25)
    assert ("planned", "new", 4, "FETCHED", True) == (
        three["decision"],
        three["reason"],
        three["position"],
        three["state"],
        three["asked"],
    )
    assert ("not_due", NOW + 9 * DAY) == (four["decision"], four["until"])
    assert 1 == len(found["fetches"])
    assert "the page" == found["links"][0]["anchor"]


def test_what_was_planned_and_not_reached_is_told_apart(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=known(lake, 1, next_fetch_at=NOW))
    lakes.commit_round(lake.store, 2, now=NOW + DAY, frontier=planned(lake, 2))
    decision = explain(lake, URL, NOW)["decisions"][1]
    assert ("planned", None, False) == (decision["decision"], decision["state"], decision["asked"])


def test_of_several_cuts_that_of_its_kind_counts(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=known(lake, 1, state="BLOCKED", next_fetch_at=NOW))
    cuts = [cut(2, "blocked", 0.5, 3), cut(2, "host_capacity", 0.7, 99)]
    lakes.commit_round(lake.store, 2, now=NOW + DAY, frontier=cuts)
    decision = explain(lake, URL, NOW)["decisions"][1]
    assert ("left_out", "blocked", None, 3) == (
        decision["decision"],
        decision["reason"],
        decision["short_by"],
        decision["cut_with"],
    )


def test_a_pause_is_told_for_the_rounds_it_held(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=known(lake, 1, next_fetch_at=NOW))
    pausing.pause(lake, "a.test", reason="asked by its owner", who="me", now=NOW + DAY / 2)
    lakes.commit_round(lake.store, 2, now=NOW + DAY)
    pausing.resume(lake, "a.test", who="me", now=NOW + 1.5 * DAY)
    lakes.commit_round(lake.store, 3, now=NOW + 2 * DAY)
    found = explain(lake, URL, NOW)["decisions"]
    assert ["discovered", "paused", "left_out"] == [d["decision"] for d in found]
    assert "pause of a.test: asked by its owner" == found[1]["reason"]
    assert found[2]["reason"] is None


def test_what_is_gone_rests_until_its_date(lake: Lake) -> None:
    lakes.commit_round(
        lake.store, 1, now=NOW, seen=known(lake, 1, state="GONE", next_fetch_at=NOW + 90 * DAY)
    )
    lakes.commit_round(lake.store, 2, now=NOW + DAY)
    decision = explain(lake, URL, NOW)["decisions"][1]
    assert {"decision": "not_due", "until": NOW + 90 * DAY}.items() <= decision.items()


def test_a_seed_that_was_cut_in_its_first_round_is_told_so(lake: Lake) -> None:
    row = known(lake, 1, found_by="seed", first_referrer_key=None, score=0.4, next_fetch_at=NOW)
    lakes.commit_round(lake.store, 1, now=NOW, seen=row, frontier=cut(1, "host_capacity", 0.5))
    (decision,) = explain(lake, URL, NOW)["decisions"]
    assert ("left_out", "host_capacity", 0) == (
        decision["decision"],
        decision["reason"],
        decision["host_planned"],
    )
    assert decision["short_by"] == pytest.approx(0.1)


@pytest.mark.parametrize("reason", ["host_backoff", "host_delay", "paused", "circuit_open"])
def test_no_score_decides_where_nothing_of_a_host_could_be_asked(lake: Lake, reason: str) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=known(lake, 1, next_fetch_at=NOW))
    lakes.commit_round(lake.store, 2, now=NOW + DAY, frontier=cut(2, reason, 0.5))
    decision = explain(lake, URL, NOW)["decisions"][1]
    assert (reason, None, None) == (decision["reason"], decision["cut_off"], decision["short_by"])


def test_a_url_that_a_redirect_led_to_was_asked_though_not_planned(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, now=NOW, seen=known(lake, 1, next_fetch_at=NOW + 9 * DAY))
    done = known(lake, 2, state="FETCHED", next_fetch_at=NOW + 9 * DAY, last_outcome="OK")
    lakes.commit_round(lake.store, 2, now=NOW + DAY, fetches=asked(lake, 2), seen=done)
    decision = explain(lake, URL, NOW)["decisions"][1]
    assert ("hop", "FETCHED", True) == (decision["decision"], decision["state"], decision["asked"])


def test_what_upkeep_has_merged_away_is_not_made_up(lake: Lake) -> None:
    """Only the newest row is left: what was planned and asked is known all the same, the rest is not."""
    lakes.commit_round(lake.store, 1, now=NOW)
    lakes.commit_round(
        lake.store, 2, now=NOW + DAY, frontier=planned(lake, 2), fetches=asked(lake, 2, "TIMEOUT")
    )
    lakes.commit_round(lake.store, 3, now=NOW + 2 * DAY)
    lakes.commit_round(lake.store, 4, now=NOW + 3 * DAY, seen=known(lake, 4, next_fetch_at=NOW + 9 * DAY))
    one, two, three, _ = explain(lake, URL, NOW)["decisions"]
    assert ["discovered", "planned", "lost"] == [each["decision"] for each in (one, two, three)]
    assert (None, "TIMEOUT", True) == (two["state"], two["last_outcome"], two["asked"])


def test_the_robots_copy_that_decided_is_named_without_its_text(lake: Lake) -> None:
    copies = rows.table(
        "robots",
        round=[1, 1],
        origin=["http://a.test"] * 2,
        version=["other", "mine"],
        how=["fetched"] * 2,
        text=["User-agent: *\nDisallow: /", "User-agent: *\nAllow: /page\nDisallow: /"],
    )
    lakes.commit_round(lake.store, 1, seen=known(lake, 1, robots_version="mine"), robots=copies)
    found = explain(lake, URL, NOW)
    copy = found["robots_copy"]
    assert ("mine", "http://a.test") == (copy["version"], copy["origin"])
    assert "text" not in copy
    assert (True, "Allow: /page", 2) == (copy["allowed"], copy["rule"], copy["line"])
    assert found["robots_newest"] is None


def test_a_newer_robots_copy_is_judged_beside_the_one_that_decided(lake: Lake) -> None:
    copies = rows.table(
        "robots",
        round=[1, 2],
        origin=["http://a.test"] * 2,
        version=["old", "new"],
        how=["fetched"] * 2,
        text=["", "User-agent: *\nDisallow: /"],
    )
    lakes.commit_round(lake.store, 1, seen=known(lake, 1, robots_version="old"), robots=copies)
    found = explain(lake, URL, NOW)
    assert ("old", True, None) == tuple(found["robots_copy"][name] for name in ("version", "allowed", "line"))
    assert ("new", False, 2) == tuple(found["robots_newest"][name] for name in ("version", "allowed", "line"))
    told = story.told(found)
    assert "no rule speaks of it, so it is allowed" in told
    assert "the newest robots.txt of http://a.test: copy new" in told
    assert "forbidden by line 2, Disallow: /" in told


def test_any_spelling_of_a_url_finds_it(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=known(lake, 1))
    found = explain(lake, "HTTP://A.test:80/x/../page#top", NOW)
    assert URL == found["url"]
    assert found["row"] is not None


def test_an_unknown_url_has_no_decisions_and_its_links_if_there_are_any(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, links=link(lake, 1))
    found = explain(lake, URL, NOW)
    assert (None, [], None) == (found["row"], found["decisions"], found["scope"])
    assert [1] == [row["round"] for row in found["links"]]
    assert 0 == found["merged_through"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(scope=Scope(domains=("b.test",))), "scope_host"),
        (Settings(scope=Scope(exclude=("/page*",))), "scope_excluded"),
        (Settings(limits=Limits(depth=2)), "depth"),
        (Settings(limits=Limits(url_chars=10)), "url_too_long"),
    ],
)
def test_what_scope_rejects_is_told_by_its_reason(lake: Lake, settings: Settings, reason: str) -> None:
    lakes.commit_round(lake.store, 1, links=link(lake, 1, admitted=False, depth=3))
    assert reason == explain(Lake(lake.store, settings), URL, NOW)["scope"]


def test_a_seed_that_waits_is_told(lake: Lake) -> None:
    seeding.add(lake, [URL], None, priority="high", who="me", now=NOW, tell=lambda _: None)
    found = explain(lake, URL, NOW)
    assert [("me", "high", "accepted")] == [
        (seed["added_by"], seed["priority"], seed["verdict"]) for seed in found["seeds"]
    ]


@pytest.mark.parametrize("text", ["nonsense", "ftp://a.test/", ""])
def test_what_is_no_url_is_refused(lake: Lake, text: str) -> None:
    with pytest.raises(UsageError, match="no URL"):
        explain(lake, text, NOW)


def test_what_is_no_candidate_is_named_all_the_same(lake: Lake) -> None:
    robots, target = "http://a.test/robots.txt", "http://b.test/elsewhere"
    names = rows.table(
        "links",
        round=[1, 1],
        source_key=[key(lake, robots), key(lake)],
        target_key=[key(lake), key(lake, target)],
        target_url=[URL, target],
        via=["robots", "redirect"],
        admitted=[True, False],
    )
    fetched = rows.table(
        "fetches", round=[1], kind=["robots"], url=[robots], url_key=[key(lake, robots)], chain_id=[1]
    )
    columns = {"first_referrer_key": key(lake, robots), "found_by": "robots"}
    columns["redirect_to_key"] = key(lake, target)
    lakes.commit_round(lake.store, 1, now=NOW, seen=known(lake, 1, **columns), links=names, fetches=fetched)
    found = explain(lake, URL, NOW)
    assert (robots, target) == (found["referrer"], found["redirects_to"])
    assert [robots] == [link["source_url"] for link in found["links"]]
    text = story.told(found)
    assert f"named by {robots} in round 1" in text
    assert f"redirects to {target}\n" in text
    assert f"{robots} names it in a Sitemap line (round 1" in text
