"""robots.txt: verdicts, and the copy a lake keeps (outside cases: tests/conformance)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crawl import schema
from crawl.outcomes import Outcome, from_status
from crawl.policy import Robots
from crawl.robots.copies import WAITING, RobotsCopy, _Read, obtained

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORIGIN = "http://a.test"


def answer(
    *,
    status: int | None = None,
    outcome: Outcome | None = None,
    body: bytes | None = b"",
    previous: RobotsCopy | None = None,
    now: datetime = NOW,
    fresh_s: float | None = None,
    retry_after_s: float | None = None,
) -> RobotsCopy:
    if outcome is None:
        assert status is not None
        outcome = from_status(status)
    return obtained(
        ORIGIN,
        outcome=outcome,
        status=status,
        body=body,
        fresh_s=fresh_s,
        retry_after_s=retry_after_s,
        previous=previous,
        now=now,
        policy=Robots(),
    )


DENY = b"User-agent: *\nDisallow: /private\nSitemap: /s.xml\n"


def test_a_fetched_copy_holds_a_day_and_names_its_text() -> None:
    copy = answer(status=200, body=DENY)
    assert (copy.how, copy.valid_until - NOW) == ("fetched", timedelta(hours=24))
    assert copy.valid(NOW + timedelta(hours=23))
    assert not copy.valid(NOW + timedelta(hours=24))
    assert copy.sitemaps == ("http://a.test/s.xml",)
    assert not copy.verdict("b", ORIGIN + "/private/x").allowed
    assert copy.version == answer(status=200, body=DENY, now=NOW + timedelta(1)).version
    assert copy.version != answer(status=200, body=DENY + b"\nAllow: /x").version


@pytest.mark.parametrize(
    ("fresh_s", "life"),
    [
        (3600, timedelta(hours=1)),
        (1e12, timedelta(hours=24)),
        (0, timedelta(minutes=10)),
        (None, timedelta(hours=24)),
    ],
)
def test_an_origin_may_shorten_but_not_stretch_its_copy(fresh_s: float | None, life: timedelta) -> None:
    assert answer(status=200, body=DENY, fresh_s=fresh_s).valid_until - NOW == life
    assert answer(status=404, fresh_s=fresh_s).valid_until - NOW == life


def test_the_last_good_copy_stands_in_for_thirty_days() -> None:
    good = answer(status=200, body=DENY)
    later = NOW + timedelta(days=29)
    stale = answer(status=503, previous=good, now=later)
    assert (stale.how, stale.text, stale.version, stale.fetched_at) == (
        "last_good",
        good.text,
        good.version,
        NOW,
    )
    assert not stale.verdict("b", ORIGIN + "/private").allowed
    assert stale.verdict("b", ORIGIN + "/x").allowed
    assert stale.valid_until - later == timedelta(minutes=10)
    gone = answer(outcome=Outcome.REFUSED, body=None, previous=stale, now=NOW + timedelta(days=31))
    assert (gone.how, gone.version) == ("unreachable", "unreachable:REFUSED")
    assert not gone.verdict("b", ORIGIN + "/x").allowed
    assert gone.verdict("b", ORIGIN + "/robots.txt").allowed


def test_an_unreachable_origin_is_left_alone_as_long_as_it_asks_up_to_a_day() -> None:
    assert answer(status=429, retry_after_s=3600).valid_until - NOW == timedelta(hours=1)
    assert answer(status=503, retry_after_s=1e12).valid_until - NOW == timedelta(hours=24)


def test_a_304_renews_the_previous_copy_and_means_nothing_without_one() -> None:
    good = answer(status=200, body=DENY)
    later = NOW + timedelta(days=2)
    renewed = answer(status=304, body=None, previous=good, now=later)
    assert (renewed.how, renewed.fetched_at, renewed.version) == ("fetched", later, good.version)
    assert answer(status=304, body=None).how == "unreachable"


def test_redirects_that_lead_nowhere_leave_everything_allowed() -> None:
    for outcome in (Outcome.TOO_MANY_REDIRECTS, Outcome.BAD_REDIRECT, Outcome.REDIRECT_LOOP):
        copy = answer(outcome=outcome, status=302)
        assert copy.how == "unavailable"
        assert copy.verdict("b", ORIGIN + "/x").allowed


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 410, 425, 451, 499])
def test_every_answer_4xx_but_429_means_that_there_are_no_rules(status: int) -> None:
    assert answer(status=status, previous=answer(status=200, body=DENY)).how == "unavailable"
    assert answer(status=429).how == "unreachable"


def test_every_outcome_gives_a_copy() -> None:
    for outcome in Outcome:
        assert answer(outcome=outcome, body=None).how in {"fetched", "unavailable", *WAITING}


def test_a_copy_is_a_row_of_the_table() -> None:
    copy = answer(status=200, body=DENY)
    row = copy.to_row(7)
    assert set(row) == set(schema.ROBOTS.names)
    assert RobotsCopy.from_row(row) == copy
    with pytest.raises(KeyError):
        RobotsCopy.from_row({})


def test_rules_read_lately_are_kept_for_a_bounded_amount_of_text() -> None:
    kept = _Read(3_000)
    first = kept.rules("User-agent: *", ORIGIN)
    assert kept.rules("User-agent: *", ORIGIN) is first
    kept.rules("# " + "x" * 5_000, ORIGIN)  # more than there is room for: alone it stays
    assert kept.rules("User-agent: *", ORIGIN) is not first
    for number in range(9):
        kept.rules(f"# {number}", ORIGIN)
    assert kept.rules("# 8", ORIGIN) is kept.rules("# 8", ORIGIN)
    assert len(kept._found) == 5  # each counts 500 at least
