"""robots.txt: verdicts, and the copy a lake keeps (outside cases: tests/conformance)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl import schema
from crawl.outcomes import Outcome, from_status
from crawl.policy import Robots
from crawl.robots import WAITING, RobotsCopy, Verdict, _Read, obtained, parse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORIGIN = "http://a.test"


# --- reading ---


def test_a_verdict_names_the_deciding_line() -> None:
    star = b"# hello\nUser-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /*.pdf$\n"
    rules = parse(star + b"\nUser-agent: x\nDisallow: /x\n")
    assert rules.verdict("bot", "http://a.test/a/c") == Verdict(False, "Disallow: /a", 3)
    assert rules.verdict("bot", "http://a.test/a/b/c") == Verdict(True, "Allow: /a/b", 4)
    assert rules.verdict("bot", "http://a.test/z.pdf") == Verdict(False, "Disallow: /*.pdf$", 5)
    assert rules.verdict("bot", "http://a.test/") == Verdict(True)
    assert rules.verdict("X/1.0", "http://a.test/a") == Verdict(True)
    assert rules.verdict("x", "http://a.test/x?y") == Verdict(False, "Disallow: /x", 8)


def test_escapes_in_rule_and_url_are_compared_in_one_spelling() -> None:
    rules = parse("User-agent: *\nDisallow: /%7eu\nDisallow: /é\n".encode())
    assert rules.verdict("b", "http://a.test/~u/x") == Verdict(False, "Disallow: /%7eu", 2)
    assert rules.verdict("b", "http://a.test/%C3%A9") == Verdict(False, "Disallow: /é", 3)


def test_an_agents_own_group_hides_the_star_group() -> None:
    rules = parse(b"User-agent: *\nDisallow: /\nCrawl-delay: 9\n\nUser-agent: Mine\nDisallow:\n")
    assert rules.verdict("mine", "http://a.test/x").allowed
    assert not rules.verdict("minelayer", "http://a.test/x").allowed
    assert rules.crawl_delay("mine") is None
    assert rules.crawl_delay("other") == 9.0


def test_a_line_cut_by_the_limit_is_not_read() -> None:
    text = b"User-agent: *\nDisallow: /private\n"
    assert parse(text, limit=len(text) - 8).verdict("b", "http://a.test/pub").allowed
    assert not parse(text + b"#", limit=len(text)).verdict("b", "http://a.test/private").allowed


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_reading_never_fails(data: bytes) -> None:
    rules = parse(data)
    rules.verdict("bot", "http://a.test/x%zz?é")
    rules.crawl_delay("bot")
    assert all(s.startswith("http") for s in rules.sitemaps)


_LINES = st.sampled_from(
    [
        "User-agent: *",
        "User-agent: b",
        "Disallow: /",
        "Allow: /a",
        "Disallow: /a*c$",
        "Disallow:",
        "Crawl-delay: 2",
        "x",
        "",
    ]
)


@given(st.lists(_LINES, max_size=12), st.sampled_from(["/", "/a", "/abc", "/b?a=c"]))
@settings(max_examples=100)
def test_a_denial_always_names_its_line(lines: list[str], path: str) -> None:
    verdict = parse("\n".join(lines).encode()).verdict("b", "http://a.test" + path)
    if not verdict.allowed:
        assert verdict.line is not None
        assert lines[verdict.line - 1] == verdict.rule


# --- the copy ---


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
