"""Merge against a slow reference that handles one URL at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl import lifecycle, priority, recrawl
from crawl.columns import Bools, Ints
from crawl.outcomes import TABLE, Outcome
from crawl.schema import CANDIDATES, SEEN, SIGNALS, VISITS
from crawl.stages import merge
from crawl.state import State
from tests.crawl.urlrows import NOW, REAL, ROUND, SETTINGS, fetched, host_of, link, ok, row, url_of, visit


def fold(
    rows: Sequence[dict[str, Any]] = (),
    links: Sequence[dict[str, Any]] = (),
    visits: Sequence[dict[str, Any]] = (),
    *,
    known: Sequence[int] | None = None,
    **options: Any,
) -> merge.Merged:
    have = np.array(sorted([r["url_key"] for r in rows] if known is None else known), dtype=np.int64)

    def ask(keys: Ints) -> Bools:
        assert np.all(np.diff(keys) > 0)
        return np.isin(keys, have)

    return merge.fold(
        pa.Table.from_pylist(list(rows), SEEN),
        pa.Table.from_pylist(list(links), CANDIDATES),
        pa.Table.from_pylist(list(visits), VISITS),
        known=ask,
        **{"settings": SETTINGS, "policy_version": "p1", "now": NOW, "round": ROUND} | options,
    )


def one(merged: merge.Merged) -> dict[str, Any]:
    [found] = merged.seen.to_pylist()
    return dict(found)


# --- new URLs
# --------------------------------------------------------------------------------------------------


def test_a_url_nobody_knew_becomes_a_row_due_at_once() -> None:
    made = one(fold(links=[link(4, discovered_url="http://B.one.test:80/4")]))
    assert ("DISCOVERED", "http://b.one.test/4", "http://B.one.test:80/4") == (
        made["state"],
        made["url"],
        made["discovered_url"],
    )
    assert ("http://b.one.test", "b.one.test", "one.test") == (made["origin"], made["host"], made["domain"])
    assert (NOW, NOW, NOW, ROUND, ROUND) == (
        made["first_seen_at"],
        made["eligible_since"],
        made["next_fetch_at"],
        made["first_seen_round"],
        made["round"],
    )
    assert "discovery" == made["tier"]


def test_the_first_path_is_the_smallest_depth_then_source_and_a_seed_before_all() -> None:
    links = [link(1, 60, 3), link(1, 40, 2), link(1, 30, 2), link(1, 20, 3)]
    made = one(fold(links=links))
    assert (2, 30, "link") == (made["depth"], made["first_referrer_key"], made["found_by"])
    made = one(fold(links=[*links, link(1, None, 0), link(1, -5, 0, found_by="redirect")]))
    assert (0, None, "seed") == (made["depth"], made["first_referrer_key"], made["found_by"])


def test_among_links_of_one_page_the_smallest_text_counts() -> None:
    spellings = [url_of(1) + "?utm_b", url_of(1) + "?utm_a", url_of(1) + "?utm_c"]
    made = one(fold(links=[link(1, target_url=text) for text in spellings]))
    assert spellings[1] == made["url"]


def test_a_known_url_that_was_linked_to_gets_signals_and_no_row() -> None:
    merged = fold([fetched(1)], [link(1, 60, 3), link(1, 61, 4, counts=False, score=0.75)])
    assert 0 == len(merged.seen)
    assert [{"url_key": 1, "round": ROUND, "in_links": 1, "best_depth": 3, "best_score": 0.75}] == (
        merged.signals.to_pylist()
    )


def test_in_links_of_a_new_url_are_counted_from_the_start_and_a_seed_is_none() -> None:
    merged = fold(links=[link(1), link(1, 51), link(2, None, 0)])
    assert {1: 2} == {s["url_key"]: s["in_links"] for s in merged.signals.to_pylist()}


def test_a_seed_that_is_fetched_in_its_first_round_has_one_row() -> None:
    planned = row(
        1, depth=0, found_by="seed", first_referrer_key=None, first_seen_at=NOW, first_seen_round=ROUND
    )
    merged = fold([planned], [link(1, None, 0), link(1)], [ok(1, depth=0)], known=[])
    made = one(merged)
    assert ("FETCHED", "seed", 901) == (made["state"], made["found_by"], made["document_key"])
    assert [None] == merged.before["document_key"].to_pylist()


def test_a_hop_to_a_url_nobody_knew_makes_its_row() -> None:
    made = one(fold(visits=[ok(2, planned=False, referrer_key=1, depth=0)]))
    assert ("FETCHED", "redirect", 1, 0) == (
        made["state"],
        made["found_by"],
        made["first_referrer_key"],
        made["depth"],
    )
    assert "two.test" == made["domain"]


def test_a_visited_url_that_nobody_ever_met_is_an_error() -> None:
    with pytest.raises(ValueError, match="not met"):
        fold(visits=[ok(2)])


# --- visits
# ----------------------------------------------------------------------------------------------------


def test_a_first_page_is_fetched_parsed_stored_and_told() -> None:
    made = one(fold([row(1)], visits=[ok(1, canonical_hint="http://x.test/")]))
    assert "FETCHED" == made["state"]
    assert {NOW} == {
        made[name]
        for name in (
            "first_fetched_at",
            "last_checked_at",
            "fetched_at",
            "parsed_at",
            "stored_at",
            "index_ready_at",
        )
    }
    assert (901, "h2", 20, '"n"', None) == (
        made["document_key"],
        made["content_hash"],
        made["content_length"],
        made["etag"],
        made["last_modified"],
    )
    assert (1, 0, None, 0.0) == (
        made["crawl_count"],
        made["change_count"],
        made["last_changed_at"],
        made["checks_decayed"],
    )
    assert 7 * 86_400.0 == made["interval_s"]
    assert "discovery" != made["tier"]


def test_not_modified_and_the_same_content_move_a_row_identically() -> None:
    quiet = one(fold([fetched(1)], visits=[visit(1, "NOT_MODIFIED", http_status=304)]))
    same = one(
        fold(
            [fetched(1)],
            visits=[
                visit(
                    1,
                    "OK",
                    http_status=200,
                    content_hash="h1",
                    content_length=10,
                    etag='"e"',
                    last_modified="Mon",
                )
            ],
        )
    )
    differing = {name for name in SEEN.names if quiet[name] != same[name]}
    assert {"last_outcome", "http_status"} == differing
    assert (14 * 86_400.0, 501, '"e"') == (quiet["interval_s"], quiet["document_key"], quiet["etag"])
    assert (10 * 86_400.0, 0.0) == (quiet["unchanged_exposure_s"], quiet["changed_exposure_s"])
    assert (NOW, NOW - timedelta(days=10)) == (quiet["stored_at"], quiet["index_ready_at"])


def test_a_change_halves_the_interval_and_is_counted() -> None:
    made = one(fold([fetched(1)], visits=[ok(1)]))
    assert (3.5 * 86_400.0, 1, NOW) == (made["interval_s"], made["change_count"], made["last_changed_at"])
    assert (10 * 86_400.0, 1.0, 1.0) == (
        made["changed_exposure_s"],
        made["checks_decayed"],
        made["changes_decayed"],
    )


def test_other_bytes_with_the_same_text_are_a_change_but_no_event() -> None:
    made = one(fold([fetched(1)], visits=[ok(1, document_key=501)]))
    assert 1 == made["change_count"]
    assert NOW - timedelta(days=10) == made["index_ready_at"]


def test_a_host_that_is_down_changes_nothing_but_the_next_time() -> None:
    made = one(fold([fetched(1)], visits=[visit(1, "CONNECT_TIMEOUT", reason="no answer in 10 s")]))
    assert ("FETCHED", 1, "no answer in 10 s", None) == (
        made["state"],
        made["attempts"],
        made["last_error"],
        made["reason"],
    )
    assert 501 == made["document_key"]
    assert 7 * 86_400.0 == made["interval_s"]
    assert NOW < made["next_fetch_at"] < NOW + timedelta(minutes=5)


def test_a_retry_is_never_before_what_the_server_asked_for() -> None:
    made = one(fold([row(1)], visits=[visit(1, "UNAVAILABLE", http_status=503, retry_after_ms=7_200_000.0)]))
    assert NOW + timedelta(hours=2) <= made["next_fetch_at"]
    assert "FAILED_RETRYABLE" == made["state"]


def test_a_page_is_gone_after_its_sightings_and_forgets_its_content() -> None:
    seen_gone = {
        "last_outcome": "NOT_FOUND",
        "gone_sightings": 2,
        "gone_since": NOW - timedelta(days=2),
        "attempts": 2,
    }
    merged = fold([fetched(1, **seen_gone)], visits=[visit(1, "NOT_FOUND", http_status=404)])
    made = one(merged)
    assert ("GONE", 3, "not_found") == (made["state"], made["gone_sightings"], made["reason"])
    assert [None] * 4 == [made[name] for name in ("document_key", "content_hash", "etag", "last_modified")]
    assert NOW == made["index_ready_at"]
    assert [501] == merged.before["document_key"].to_pylist()
    assert made["next_fetch_at"] > NOW + timedelta(days=60)


def test_one_sighting_retires_nothing() -> None:
    made = one(fold([fetched(1)], visits=[visit(1, "NOT_FOUND", http_status=404)]))
    assert ("FETCHED", 1, NOW, 501) == (
        made["state"],
        made["gone_sightings"],
        made["gone_since"],
        made["document_key"],
    )


def test_a_held_host_keeps_its_pages_and_their_evidence() -> None:
    seen_gone = {"last_outcome": "NOT_FOUND", "gone_sightings": 2, "gone_since": NOW - timedelta(days=2)}
    visits = [visit(key, "NOT_FOUND", http_status=404) for key in (1, 2)]
    merged = fold([fetched(1, **seen_gone), fetched(2, **seen_gone)], visits=visits, held={"b.one.test"})
    first, second = merged.seen.to_pylist()
    assert ("FETCHED", "retire_guard", 3, 501) == (
        first["state"],
        first["reason"],
        first["gone_sightings"],
        first["document_key"],
    )
    assert "GONE" == second["state"]
    assert NOW < first["next_fetch_at"] < NOW + timedelta(days=2)


def test_what_robots_denied_is_blocked_with_its_copy_and_rests() -> None:
    made = one(fold([row(1)], visits=[visit(1, "ROBOTS_DENIED", reason="robots_rule", robots_version="r7")]))
    assert ("BLOCKED", "robots_rule", "r7", 0) == (
        made["state"],
        made["reason"],
        made["robots_version"],
        made["crawl_count"],
    )
    assert made["next_fetch_at"] > NOW + timedelta(days=60)


def test_a_parse_that_failed_keeps_the_document_and_forgets_the_validators() -> None:
    made = one(
        fold(
            [fetched(1)],
            visits=[ok(1, outcome="PARSE_FAILED", reason="parse_deadline", document_key=None)],
        )
    )
    assert ("QUARANTINED", "parse_deadline", 501, None, None) == (
        made["state"],
        made["reason"],
        made["document_key"],
        made["etag"],
        made["content_hash"],
    )


def test_content_that_is_no_page_any_more_loses_its_document_and_says_why() -> None:
    made = one(fold([fetched(1)], visits=[ok(1, outcome="UNSUPPORTED_TYPE", document_key=None)]))
    assert ("FETCHED", "unsupported_type", None, "h2") == (
        made["state"],
        made["reason"],
        made["document_key"],
        made["content_hash"],
    )
    again = one(fold([made], visits=[visit(1, "NOT_MODIFIED", http_status=304)]))
    assert "unsupported_type" == again["reason"]


def test_a_redirect_names_its_target_until_the_page_is_back() -> None:
    moved = one(fold([fetched(1)], visits=[visit(1, "REDIRECT", http_status=301, redirect_to_key=44)]))
    assert (44, 1, 501) == (moved["redirect_to_key"], moved["change_count"], moved["document_key"])
    again = one(fold([moved], visits=[visit(1, "REDIRECT", http_status=301, redirect_to_key=44)]))
    assert 1 == again["change_count"]
    back = one(fold([moved], visits=[visit(1, "OK", http_status=200, content_hash="h1")]))
    assert back["redirect_to_key"] is None


def test_a_request_tells_more_than_a_skip_of_the_same_url() -> None:
    skip = visit(1, "ROBOTS_DENIED", fetched_at=REAL + timedelta(minutes=1))
    for visits in ([ok(1), skip], [skip, ok(1)]):
        assert "FETCHED" == one(fold([row(1)], visits=visits))["state"]


# --- against the reference
# -------------------------------------------------------------------------------------

KEYS = st.integers(1, 9)
AGES = st.sampled_from([timedelta(hours=3), timedelta(days=1), timedelta(days=40)])
OUTCOMES = st.sampled_from([str(outcome) for outcome in Outcome])


@st.composite
def previous_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for key in sorted(draw(st.sets(KEYS))):
        made = fetched(key) if draw(st.booleans()) else row(key)
        made |= {
            "state": str(draw(st.sampled_from(list(State)))),
            "last_outcome": draw(st.none() | OUTCOMES),
            "attempts": draw(st.integers(0, 5)),
            "gone_sightings": draw(st.integers(0, 3)),
            "gone_since": draw(st.none() | AGES.map(lambda age: NOW - age)),
            "reason": draw(st.sampled_from([None, "because"])),
            "redirect_to_key": draw(st.sampled_from([None, 3])),
            "interval_s": draw(st.sampled_from([0.0, 3_600.0, 9e6])),
        }
        rows.append(made)
    return rows


@st.composite
def paths(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for _ in range(draw(st.integers(0, 12))):
        key, source = draw(KEYS), draw(st.sampled_from([None, 21, 22, 23]))
        made.append(
            link(
                key,
                source,
                0 if source is None else draw(st.integers(1, 3)),
                target_url=url_of(key) + draw(st.sampled_from(["", "?a", "?b"])),
                counts=source is not None and draw(st.booleans()),
                importance=draw(st.sampled_from([0.2, 0.5, 0.8])),
                score=draw(st.sampled_from([0.1, 0.4])),
            )
        )
    return made


@st.composite
def visits_of(draw: st.DrawFn, may: Sequence[int]) -> list[dict[str, Any]]:
    made = []
    for key in sorted(draw(st.sets(KEYS))):
        hop = key not in may or draw(st.booleans())
        made.append(
            visit(
                key,
                draw(OUTCOMES),
                planned=not hop,
                referrer_key=21 if hop else None,
                http_status=draw(st.sampled_from([None, 200, 404])),
                etag=draw(st.sampled_from([None, '"v"'])),
                content_hash=draw(st.sampled_from([None, "h2"])),
                document_key=draw(st.sampled_from([None, 501, 999])),
                changed=draw(st.booleans()),
                redirect_to_key=draw(st.sampled_from([None, 3, 4])),
                retry_after_ms=draw(st.sampled_from([None, 1e7])),
                reason=draw(st.sampled_from([None, "why"])),
                robots_version=draw(st.sampled_from([None, "r2"])),
            )
        )
    return made


@st.composite
def rounds(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    rows, links = draw(previous_rows()), draw(paths())
    may = {r["url_key"] for r in rows} | {p["target_key"] for p in links}
    return rows, links, draw(visits_of(sorted(may)))


def score_of(
    importance: float, interval: float, changes: float, checks: float, depth: int, age: float
) -> float:
    found = priority.score(
        importance=np.array([importance]),
        waited_s=np.zeros(1),
        interval_s=np.array([interval]),
        changes=np.array([changes]),
        checks=np.array([checks]),
        depth=np.array([depth]),
        age_s=np.array([age]),
        policy=SETTINGS.planning,
    )
    return float(found[0])


def new_row(ways: Sequence[dict[str, Any]]) -> dict[str, Any]:
    def order(way: dict[str, Any]) -> tuple[Any, ...]:
        source = way["source_key"]
        return way["depth"], source is not None, source or 0, way["target_url"], way["found_by"]

    first = min(ways, key=order)
    key, importance = first["target_key"], max(way["importance"] for way in ways)
    return row(
        key,
        url=first["target_url"],
        discovered_url=first["target_url"],
        depth=first["depth"],
        found_by=first["found_by"],
        first_referrer_key=first["source_key"],
        first_seen_at=NOW,
        first_seen_round=ROUND,
        policy_version="p1",
        importance=importance,
        score=score_of(importance, 0, 0, 0, first["depth"], 0),
        eligible_since=NOW,
        next_fetch_at=NOW,
        round=ROUND,
    )


def after_visit(old: dict[str, Any], came: dict[str, Any], held: bool) -> dict[str, Any]:  # noqa: C901 - one life in one piece
    """One row after one visit, written as one would tell it."""
    outcome, state = Outcome(came["outcome"]), State(old["state"])
    rule, new = TABLE[outcome], dict(old)
    well = outcome in {Outcome.OK, Outcome.NOT_MODIFIED, Outcome.REDIRECT, Outcome.UNSUPPORTED_TYPE}
    absent = outcome in {Outcome.NOT_FOUND, Outcome.GONE}
    answer = rule.asked and rule.against == "none"

    same_kind = (
        old["last_outcome"] is not None and TABLE[Outcome(old["last_outcome"])].against == rule.against
    )
    if rule.against == "none":
        new["attempts"] = 0 if answer else old["attempts"]
    else:
        new["attempts"] = (old["attempts"] if same_kind else 0) + 1
    if absent:
        new["gone_sightings"] += 1
        new["gone_since"] = old["gone_since"] or NOW
    elif answer:
        new["gone_sightings"], new["gone_since"] = 0, None
    spent = lifecycle.spent(
        outcome,
        attempts=new["attempts"],
        unconfirmed=NOW - (old["last_checked_at"] or old["first_seen_at"]),
        gone_sightings=new["gone_sightings"],
        gone_for=NOW - (new["gone_since"] or NOW),
        retry=SETTINGS.retry,
        recrawl=SETTINGS.recrawl,
    )
    after = lifecycle.next_state(state, outcome, spent=spent)
    kept = held and state is State.FETCHED and after in {State.GONE, State.TERMINAL}
    after = State.FETCHED if kept else after
    new["chain_id"] = new["chain_hop"] = None

    waited = (NOW - old["last_checked_at"]).total_seconds() if old["last_checked_at"] else None
    moved = outcome is Outcome.REDIRECT and came["redirect_to_key"] != old["redirect_to_key"]
    unread = outcome is Outcome.UNSUPPORTED_TYPE
    changed = (
        waited is not None
        and well
        and (came["changed"] or moved or (unread and old["document_key"] is not None))
    )
    new["crawl_count"] += came["http_status"] is not None
    if waited is not None and well:
        fade = 2 ** (-waited / timedelta(days=180).total_seconds())
        new["checks_decayed"] = old["checks_decayed"] * fade + 1
        new["changes_decayed"] = old["changes_decayed"] * fade + changed
        new["changed_exposure_s" if changed else "unchanged_exposure_s"] += waited
    if changed:
        new["change_count"] += 1
        new["last_changed_at"] = NOW
    if well or outcome in {Outcome.PARSE_FAILED, Outcome.TOO_LARGE, Outcome.TYPE_MISMATCH}:
        new["last_checked_at"] = NOW

    content = outcome in {Outcome.OK, Outcome.UNSUPPORTED_TYPE}
    same = outcome in {Outcome.OK, Outcome.NOT_MODIFIED}
    parsed = same and came["document_key"] is not None
    for name in ("etag", "last_modified"):
        if content or (outcome is Outcome.NOT_MODIFIED and came[name] is not None):
            new[name] = came[name]
    if unread or (content and came["content_hash"] is not None):
        new["content_hash"] = came["content_hash"]
    if unread or came["content_length"] is not None:
        new["content_length"] = came["content_length"]
    if came["sniffed_type"] is not None:
        new["sniffed_type"] = came["sniffed_type"]
    if parsed:
        new["document_key"], new["parsed_at"] = came["document_key"], NOW
        new["canonical_hint"] = came["canonical_hint"]
    if unread:
        new["document_key"] = None
    if outcome in {Outcome.PARSE_FAILED, Outcome.TYPE_MISMATCH} or after is State.GONE:
        new |= {"content_hash": None, "etag": None, "last_modified": None}
    if after is State.GONE:
        new["document_key"] = None
    if outcome in {Outcome.REDIRECT, Outcome.REDIRECT_LOOP}:
        new["redirect_to_key"] = came["redirect_to_key"]
    elif well:
        new["redirect_to_key"] = None
    if content or outcome is Outcome.PARSE_FAILED:
        new["first_fetched_at"] = old["first_fetched_at"] or NOW
    if content or outcome in {Outcome.PARSE_FAILED, Outcome.NOT_MODIFIED}:
        new["fetched_at"] = NOW
    if same and new["document_key"] is not None:
        new["stored_at"] = NOW
    if new["document_key"] != old["document_key"]:
        new["index_ready_at"] = NOW

    keys = np.array([old["url_key"]])
    if after in {State.GONE, State.TERMINAL} or (well and after is State.QUARANTINED):
        due = recrawl.resting(url_key=keys, now=NOW, policy=SETTINGS.recrawl)
    elif well:
        interval, due = recrawl.schedule(
            url_key=keys,
            now=NOW,
            previous_interval_s=np.array([old["interval_s"]]),
            changed=np.array([changed]),
            first=np.array([waited is None]),
            policy=SETTINGS.recrawl,
        )
        new["interval_s"] = float(interval[0])
    else:
        due = recrawl.retries(
            url_key=keys,
            now=NOW,
            outcomes=[str(outcome)],
            attempts=np.array([new["attempts"]]),
            retry_after_ms=np.array([came["retry_after_ms"] or math.nan]),
            retry=SETTINGS.retry,
            recrawl=SETTINGS.recrawl,
        )
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(due[0]))
    new["next_fetch_at"] = new["eligible_since"] = at

    told = came["reason"] or str(outcome).lower()
    settled = after in {State.FETCHED, State.GONE, State.TERMINAL, State.BLOCKED, State.QUARANTINED}
    if kept:
        new["reason"] = "retire_guard"
    elif outcome is Outcome.UNSUPPORTED_TYPE:
        new["reason"] = told
    elif well:
        empty = same and new["document_key"] is None
        new["reason"] = (old["reason"] or "no_content") if empty else None
    elif not (after is state and settled and rule.final is not after):
        new["reason"] = told
    age = NOW - max(old["first_seen_at"], new["last_changed_at"] or old["first_seen_at"])
    new["score"] = score_of(
        old["importance"],
        new["interval_s"],
        new["changes_decayed"],
        new["checks_decayed"],
        old["depth"],
        age.total_seconds(),
    )
    answered = np.array([new["last_checked_at"] is not None])
    new["tier"] = priority.tier(np.array([new["score"]]), answered, SETTINGS.planning)[0]
    return new | {
        "state": str(after),
        "policy_version": "p1",
        "robots_version": came["robots_version"] or old["robots_version"],
        "last_outcome": str(outcome),
        "last_error": None if well else came["reason"] or str(outcome),
        "visited_round": ROUND,
        "http_status": old["http_status"] if came["http_status"] is None else came["http_status"],
        "round": ROUND,
    }


def reference(
    rows: Sequence[dict[str, Any]],
    links: Sequence[dict[str, Any]],
    visits: Sequence[dict[str, Any]],
    held: set[str],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of `seen` and of `signals`."""
    known = {r["url_key"]: r for r in rows}
    ways: dict[int, list[dict[str, Any]]] = {}
    for path in links:
        ways.setdefault(path["target_key"], []).append(path)
    for came in visits:
        if not came["planned"]:
            score = score_of(0.8, 0, 0, 0, came["depth"], 0)
            hop = link(
                came["url_key"], came["referrer_key"], came["depth"], found_by="redirect", counts=False
            )
            ways.setdefault(came["url_key"], []).append(hop | {"importance": 0.8, "score": score})
    fresh = {key: new_row(paths) for key, paths in ways.items() if key not in known}
    seen = dict(fresh)
    for came in visits:
        key = came["url_key"]
        seen[key] = after_visit(known.get(key) or fresh[key], came, host_of(key) in held)
    signals = [
        {
            "url_key": key,
            "round": ROUND,
            "in_links": sum(path["counts"] for path in paths),
            "best_depth": min(path["depth"] for path in paths),
            "best_score": max(path["score"] for path in paths),
        }
        for key, paths in sorted(ways.items())
        if any(path["source_key"] is not None for path in paths)
    ]
    return [seen[key] for key in sorted(seen)], signals


def near(expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
    assert [r["url_key"] for r in expected] == [r["url_key"] for r in found]
    for one_of, other in zip(expected, found, strict=True):
        assert {k: v for k, v in one_of.items() if not isinstance(v, float)} == {
            k: other[k] for k, v in one_of.items() if not isinstance(v, float)
        }
        floats = {k: v for k, v in one_of.items() if isinstance(v, float)}
        assert pytest.approx(floats) == {k: other[k] for k in floats}


@hypothesis(max_examples=100, deadline=None)
@given(case=rounds(), held=st.sampled_from([set(), {"a.one.test"}]))
def test_a_fold_is_what_the_reference_says(case: tuple[Any, Any, Any], held: set[str]) -> None:
    seen, signals = reference(*case, held)
    merged = fold(*case, held=held)
    assert SEEN == merged.seen.schema
    assert SIGNALS == merged.signals.schema
    near(seen, merged.seen.to_pylist())
    near(signals, merged.signals.to_pylist())
    known = {r["url_key"]: r["document_key"] for r in case[0]}
    assert [(key, known.get(key)) for key in merged.seen["url_key"].to_pylist()] == [
        (r["url_key"], r["document_key"]) for r in merged.before.to_pylist()
    ]


@hypothesis(max_examples=60, deadline=None)
@given(case=rounds(), cut=st.sets(st.integers(1, 9), max_size=3), chance=st.randoms(use_true_random=False))
def test_any_split_into_ranges_and_any_order_gives_the_same_rows(
    case: tuple[Any, Any, Any], cut: set[int], chance: Any
) -> None:
    whole = fold(*case)
    parts = []
    for lo, hi in zip([-math.inf, *sorted(cut)], [*sorted(cut), math.inf], strict=True):
        rows, links, visits = (
            [one_of for one_of in some if lo < one_of[name] <= hi]
            for some, name in zip(case, ("url_key", "target_key", "url_key"), strict=True)
        )
        for some in (rows, links, visits):
            chance.shuffle(some)
        parts.append(fold(rows, links, visits))
    for name in ("seen", "signals", "before"):
        pieces = pa.concat_tables([getattr(part, name) for part in parts])
        assert getattr(whole, name).equals(pieces)


@hypothesis(max_examples=60, deadline=None)
@given(case=rounds())
def test_what_was_visited_is_due_later_than_now(case: tuple[Any, Any, Any]) -> None:
    visited = {came["url_key"] for came in case[2]}
    for made in fold(*case).seen.to_pylist():
        assert made["url_key"] not in visited or made["next_fetch_at"] > NOW
