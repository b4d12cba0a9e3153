from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crawl import policy, url
from crawl.fetching.hostqueue import Ask
from crawl.fetching.ledger import Known, Ledger
from crawl.keys import Keyer
from crawl.net.egress import Guard
from crawl.net.exchange import STALE, Answer
from crawl.outcomes import Outcome
from crawl.politeness.clock import HostState
from crawl.records import Fetch, Planned, Skip

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KEYER = Keyer(b"0123456789abcdef")


def plan(*urls: str) -> list[Planned]:
    origins, hosts, domains = url.split_many(urls)
    return [
        Planned(url_key=KEYER.url_key(u), url=u, origin=o, host=h, domain=d, position=i, depth=3)
        for i, (u, o, h, d) in enumerate(zip(urls, origins, hosts, domains, strict=True))
    ]


def ledger(*urls: str, **changes: Any) -> Ledger:
    values: dict[str, Any] = {
        "hosts": {},
        "robots": {},
        "known": lambda key: None,
        "settings": policy.Settings(),
        "keyer": KEYER,
        "guard": Guard(policy.Egress()),
        "round_": 1,
        "now": NOW,
    }
    return Ledger(plan(*urls), **{**values, **changes})


def done(ask: Ask, outcome: Outcome = Outcome.OK, status: int | None = 200, **changes: Any) -> Fetch:
    values: dict[str, Any] = {
        "started_at": NOW,
        "finished_at": NOW + timedelta(seconds=1),
        "required_gap_ms": 0.0,
        "gap_rule": "none",
        "total_ms": 1000.0,
        "policy_version": "p",
        "depth": ask.depth,
        "referrer_key": ask.referrer_key,
        "planned": ask.planned,
    }
    return Fetch(
        kind=ask.kind,
        url=ask.url,
        url_key=ask.url_key,
        origin=ask.origin,
        host=ask.host,
        domain=ask.domain,
        attempt=ask.attempt,
        chain_id=ask.chain_id,
        hop=ask.hop,
        outcome=outcome.value,
        status=status,
        **{**values, **changes},
    )


def first(book: Ledger, host: str = "a.test") -> Ask:
    ask = book.next(book.queue(host, host))
    assert ask is not None
    return ask


def moved(to: str) -> Answer:
    lines = f"Location: {to}"
    return Answer(outcome=Outcome.REDIRECT, reason=None, began=0.0, ended=0.0, status=302, headers=lines)


def test_what_was_asked_or_skipped_is_not_asked_again() -> None:
    book = ledger("http://a.test/1", "http://a.test/2", "http://a.test/3")
    book.fold(done(first(book)), None)
    two = first(book)
    skip = Skip(
        url_key=two.url_key,
        url=two.url,
        host=two.host,
        depth=0,
        outcome="ROBOTS_DENIED",
        reason="r",
        decided_at=NOW,
    )
    book.queue("a.test", "a.test").put_back(two)
    book.fold(skip, None)
    assert first(book).url == "http://a.test/3"
    assert book.asked == 2


@pytest.mark.parametrize(
    ("to", "judged"),
    [
        ("/2", (Outcome.REDIRECT, None, "http://a.test/2")),
        ("#x", (Outcome.REDIRECT_LOOP, None, "http://a.test/1")),
        ("", (Outcome.REDIRECT_LOOP, None, "http://a.test/1")),
        ("mailto:x@a.test", (Outcome.BAD_REDIRECT, "url_scheme", None)),
        ("http://", (Outcome.BAD_REDIRECT, "url_invalid", None)),
        ("\\\\other.test\\a", (Outcome.REDIRECT, None, "http://other.test/a")),
    ],
)
def test_a_redirect_is_judged_by_its_target(to: str, judged: tuple[Outcome, str | None, str | None]) -> None:
    book = ledger("http://a.test/1")
    assert book.judge(first(book), moved(to)) == judged


def test_the_sixth_redirect_in_a_row_is_one_too_many() -> None:
    book = ledger("http://a.test/1")
    ask = first(book)
    assert book.judge(replace(ask, hop=4), moved("/2"))[0] is Outcome.REDIRECT
    assert book.judge(replace(ask, hop=5), moved("/2"))[0] is Outcome.TOO_MANY_REDIRECTS


def test_a_hop_knows_its_chain_and_wakes_its_host() -> None:
    book = ledger("http://a.test/1")
    ask = first(book)
    woken = book.fold(done(ask, Outcome.REDIRECT, 302, next_url="http://b.a.test/2"), None)
    assert [queue.state.host for queue in woken] == ["b.a.test"]
    hop = first(book, "b.a.test")
    assert (hop.hop, hop.chain_id, hop.referrer_key, hop.depth) == (1, ask.chain_id, ask.url_key, 3)
    assert not hop.planned
    assert book.judge(hop, moved("http://a.test/1"))[0] is Outcome.REDIRECT_LOOP


def test_a_planned_target_is_a_hop_on_its_own_host_and_has_its_own_turn_on_another() -> None:
    book = ledger("http://a.test/1", "http://a.test/2", "http://b.a.test/3", "http://a.test/4")
    one = first(book)
    book.fold(done(one, Outcome.REDIRECT, 302, next_url="http://a.test/4"), None)
    four = first(book)
    assert (four.url, four.hop, four.chain_id) == ("http://a.test/4", 1, one.chain_id)
    assert book.fold(done(four), None) == []
    two = first(book)
    assert book.fold(done(two, Outcome.REDIRECT, 302, next_url="http://b.a.test/3"), None) == []
    three = first(book, "b.a.test")
    assert (three.url, three.hop) == ("http://b.a.test/3", 0)
    assert three.chain_id not in (one.chain_id, two.chain_id)
    book.fold(done(three), None)
    assert book.next(book.queue("a.test", "a.test")) is None


@pytest.mark.parametrize(
    "known",
    [Known(state="FETCHED", due=False), Known(state="FETCHED", due=True, etag='"e"', depth=9)],
)
def test_a_known_target_is_asked_if_due_with_what_is_known_of_it(known: Known) -> None:
    book = ledger("http://a.test/1", known=lambda key: known)
    book.fold(done(first(book), Outcome.REDIRECT, 302, next_url="http://a.test/2"), None)
    hop = book.next(book.queue("a.test", "a.test"))
    assert (hop is not None) is known.due
    if hop is not None:
        assert (hop.etag, hop.depth) == ('"e"', 9)


def test_a_second_try_is_made_once_and_costs_the_host_nothing() -> None:
    book = ledger("http://a.test/1")
    ask = first(book)
    book.fold(done(ask, Outcome.RESET, None, reason=STALE), None)
    again = first(book)
    assert (again.attempt, again.url, again.planned) == (2, ask.url, True)
    book.fold(done(again, Outcome.RESET, None, reason=STALE), None)
    queue = book.queue("a.test", "a.test")
    assert book.next(queue) is None
    assert queue.state.consecutive_errors == 1


def test_what_is_left_is_counted_once_by_host_and_reason() -> None:
    book = ledger("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://c.test/1")
    book.fold(done(first(book), Outcome.REDIRECT, 302, next_url="http://a.test/2"), None)
    assert dict(book.left({"b.test": "backoff"})) == {
        ("a.test", "window"): 1,
        ("b.test", "backoff"): 1,
        ("c.test", "window"): 1,
    }


def test_only_hosts_that_taught_something_are_told_with_their_days_count() -> None:
    state = replace(HostState.new("a.test", "a.test", 1), budget_day=NOW.date(), urls_on_budget_day=5)
    book = ledger("http://a.test/1", "http://b.test/1", hosts={"a.test": state})
    book.fold(done(first(book)), None)
    (changed,) = book.changed_hosts()
    assert (changed.host, changed.urls_on_budget_day) == ("a.test", 6)
    yesterday = replace(state, budget_day=NOW.date() - timedelta(days=1))
    book = ledger("http://a.test/1", hosts={"a.test": yesterday})
    book.fold(done(first(book)), None)
    assert next(iter(book.changed_hosts())).urls_on_budget_day == 1


def test_a_resumed_host_is_left_alone_for_its_gap_from_the_resume() -> None:
    state = replace(HostState.new("a.test", "a.test", 1), next_allowed_at=NOW, delay_ms=5_000.0)
    book = ledger("http://a.test/1", "http://b.test/1", hosts={"a.test": state})
    book.resume(NOW + timedelta(hours=1))
    asked, never = (book.queue(host, host).state.next_allowed_at for host in ("a.test", "b.test"))
    assert asked == NOW + timedelta(hours=1, seconds=5)
    assert never == NOW + timedelta(hours=1, seconds=1)


def test_joined_hosts_share_a_clock_that_every_request_to_one_of_them_moves() -> None:
    manners = policy.Politeness(groups={"news": ("a.test", "*.b.test")}, factor=0.0)
    book = ledger(
        "http://a.test/1",
        "http://x.b.test/2",
        "http://c.test/3",
        settings=policy.Settings(politeness=manners),
    )
    one, two, three = (book.queue(host, host) for host in ("a.test", "x.b.test", "c.test"))
    assert one.joined is two.joined is not None
    assert (one.state.politeness_group, three.joined, three.state.politeness_group) == ("news", None, None)
    book.fold(done(first(book)), None)
    ended = NOW + timedelta(seconds=1)
    assert one.joined.allowed_at == ended + timedelta(seconds=1)
    assert two.state.next_allowed_at is None
    ask = first(book, "x.b.test")
    book.fold(done(ask, Outcome.RATE_LIMITED, 429, retry_after_ms=30_000.0), None)
    assert one.joined.allowed_at == ended + timedelta(seconds=30)
    book.resume(ended + timedelta(seconds=40))
    assert one.joined.allowed_at == ended + timedelta(seconds=70)


def test_a_member_that_cannot_be_reached_holds_the_others_up_for_a_gap_only() -> None:
    manners = policy.Politeness(
        groups={"news": ("a.test", "b.test")}, factor=0.0, backoff_base=timedelta(seconds=60)
    )
    book = ledger("http://a.test/1", "http://b.test/2", settings=policy.Settings(politeness=manners))
    book.fold(done(first(book), Outcome.REFUSED, None), None)
    joined = book.queue("b.test", "b.test").joined
    assert joined is not None
    assert joined.allowed_at == NOW + timedelta(seconds=2)


def test_a_group_is_spared_what_members_met_in_an_earlier_round_need() -> None:
    manners = policy.Politeness(groups={"news": ("a.test", "b.test")})
    before = replace(
        HostState.new("b.test", "b.test", 1), next_allowed_at=NOW + timedelta(seconds=9), delay_ms=9_000.0
    )
    book = ledger("http://a.test/1", settings=policy.Settings(politeness=manners), hosts={"b.test": before})
    joined = book.queue("a.test", "a.test").joined
    assert joined is not None
    assert (joined.allowed_at, joined.gap_ms) == (NOW + timedelta(seconds=9), 9_000.0)


def test_a_back_off_under_way_when_everything_was_killed_goes_on_after_the_resume() -> None:
    """What the journal tells is folded in, then each host is left alone for a gap: the longer one holds."""
    before = ledger("http://a.test/1", "http://a.test/2", "http://b.test/3")
    records = [
        done(first(before), Outcome.RATE_LIMITED, 429, retry_after_ms=90_000.0),
        done(first(before, "b.test"), Outcome.OK),
    ]
    resumed = ledger("http://a.test/1", "http://a.test/2", "http://b.test/3")
    for record in records:
        before.fold(record, None)
        resumed.fold(record, None)
    ended = NOW + timedelta(seconds=1)
    resumed.resume(ended + timedelta(seconds=20))
    cooled, other = (resumed.queue(host, host).state for host in ("a.test", "b.test"))
    assert cooled == before.queue("a.test", "a.test").state
    assert (cooled.next_allowed_at, cooled.gap_rule) == (ended + timedelta(seconds=90), "retry_after")
    assert other.next_allowed_at == ended + timedelta(seconds=20 + 10)  # ten times its one second
    late = ledger("http://a.test/1")
    late.fold(records[0], None)
    late.resume(ended + timedelta(seconds=80))
    assert late.queue("a.test", "a.test").state.next_allowed_at == ended + timedelta(seconds=80 + 60)
