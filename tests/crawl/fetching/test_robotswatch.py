from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crawl import policy
from crawl.fetching.hostqueue import Ask
from crawl.fetching.robotswatch import RobotsWatch
from crawl.keys import Keyer
from crawl.outcomes import Outcome
from crawl.records import Fetch
from crawl.robots.copies import RobotsCopy

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ORIGIN = "http://a.test"


def watch(
    copies: dict[str, RobotsCopy] | None = None,
    owned: tuple[str, ...] = (),
    window: timedelta = timedelta(0),
) -> RobotsWatch:
    keyer = Keyer(b"0123456789abcdef")
    rules = policy.Robots()
    return RobotsWatch(copies or {}, keyer, round_=1, now=NOW, robots=rules, window=window, owned=owned)


def record(ask: Ask, outcome: Outcome = Outcome.OK, status: int | None = 200, to: str | None = None) -> Fetch:
    return Fetch(
        kind="robots",
        url=ask.url,
        url_key=ask.url_key,
        origin=ask.origin,
        host=ask.host,
        domain=ask.domain,
        attempt=1,
        chain_id=ask.chain_id,
        hop=ask.hop,
        started_at=NOW,
        finished_at=NOW,
        required_gap_ms=0.0,
        gap_rule="none",
        total_ms=0.0,
        outcome=outcome.value,
        policy_version="p",
        status=status,
        next_url=to,
        response_headers="Cache-Control: max-age=3600",
    )


def test_an_origin_is_asked_once_and_its_copy_holds_for_the_round() -> None:
    seen = watch()
    assert seen.copy(ORIGIN) is None
    ask = seen.begin(ORIGIN)
    assert (ask.url, ask.kind, seen.pending(ORIGIN)) == ("http://a.test/robots.txt", "robots", True)
    copy = seen.answered(record(ask), b"User-agent: *\nDisallow: /no")
    assert isinstance(copy, RobotsCopy)
    assert (seen.copy(ORIGIN), seen.pending(ORIGIN)) == (copy, False)
    assert copy.valid_until == NOW + timedelta(hours=1)
    assert not seen.wanted(ask)
    assert list(seen.fresh) == [ORIGIN]


def test_only_a_copy_that_is_valid_at_planning_time_is_used() -> None:
    seen = watch()
    copy = seen.answered(record(seen.begin(ORIGIN)), b"")
    assert isinstance(copy, RobotsCopy)
    assert watch({ORIGIN: replace(copy, valid_until=NOW + timedelta(seconds=1))}).copy(ORIGIN) is not None
    assert watch({ORIGIN: replace(copy, valid_until=NOW)}).copy(ORIGIN) is None


def test_redirects_are_followed_inside_the_domain_at_most_five() -> None:
    seen = watch()
    ask = seen.begin(ORIGIN)
    for hop in range(1, 6):
        result = seen.answered(record(ask, Outcome.REDIRECT, 302, f"http://www.a.test/{hop}"), None)
        assert isinstance(result, Ask)
        assert (result.hop, result.host, result.chain_id) == (hop, "www.a.test", ask.chain_id)
        assert seen.pending(ORIGIN)
        ask = result
    copy = seen.answered(record(ask, Outcome.REDIRECT, 302, "http://www.a.test/6"), None)
    assert isinstance(copy, RobotsCopy)
    assert (copy.origin, copy.how) == (ORIGIN, "unavailable")


def test_a_copy_must_last_to_the_end_of_the_window() -> None:
    seen = watch()
    copy = seen.answered(record(seen.begin(ORIGIN)), b"")
    assert isinstance(copy, RobotsCopy)
    assert copy.valid_until == NOW + timedelta(hours=1)
    assert watch({ORIGIN: copy}, window=timedelta(minutes=59)).copy(ORIGIN) == copy
    assert watch({ORIGIN: copy}, window=timedelta(hours=1)).copy(ORIGIN) is None
    cut_off = replace(copy, how="unreachable")  # whoever asked to be left alone is left alone
    assert watch({ORIGIN: cut_off}, window=timedelta(hours=1)).copy(ORIGIN) == cut_off


def test_a_redirect_to_a_domain_of_another_owner_waits_for_the_round_that_owns_both() -> None:
    seen = watch()
    moved = record(seen.begin(ORIGIN), Outcome.REDIRECT, 302, "http://www.other.test/rules")
    copy = seen.answered(moved, None)
    assert isinstance(copy, RobotsCopy)
    assert (copy.how, copy.elsewhere, copy.valid(NOW)) == ("elsewhere", ("other.test",), False)
    assert not copy.verdict("x", ORIGIN + "/p").allowed
    seen = watch({ORIGIN: copy}, owned=copy.elsewhere)
    hop = seen.answered(record(seen.begin(ORIGIN), Outcome.REDIRECT, 302, moved.next_url), None)
    assert isinstance(hop, Ask)
    assert (hop.host, hop.hop) == ("www.other.test", 1)
    found = seen.answered(record(hop), b"User-agent: *\nDisallow: /no")
    assert isinstance(found, RobotsCopy)
    assert (found.origin, found.how, found.elsewhere) == (ORIGIN, "fetched", ("other.test",))
    assert not found.verdict("x", ORIGIN + "/no").allowed
    assert list(seen.fresh) == [ORIGIN]  # the result belongs to who asked


def test_a_robots_txt_that_leads_elsewhere_each_time_cannot_be_had() -> None:
    def next_round(before: RobotsCopy | None, *domains: str) -> RobotsCopy:
        seen = watch({} if before is None else {ORIGIN: before}, owned=before.elsewhere if before else ())
        ask = seen.begin(ORIGIN)
        for domain in domains[:-1]:
            hop = seen.answered(record(ask, Outcome.REDIRECT, 302, f"http://{domain}/"), None)
            assert isinstance(hop, Ask)
            ask = hop
        copy = seen.answered(record(ask, Outcome.REDIRECT, 302, f"http://{domains[-1]}/"), None)
        assert isinstance(copy, RobotsCopy)
        return copy

    first = next_round(None, "b.test")
    further = next_round(first, "b.test", "c.test")
    assert (further.how, further.elsewhere) == ("elsewhere", ("b.test", "c.test"))
    astray = next_round(first, "d.test")
    assert (astray.how, astray.valid_until - NOW) == ("unreachable", timedelta(minutes=10))
    assert next_round(replace(astray, valid_until=NOW), "e.test").how == "elsewhere"


def test_the_last_good_copy_serves_while_the_owner_is_waited_for() -> None:
    seen = watch()
    good = seen.answered(record(seen.begin(ORIGIN)), b"User-agent: *\nDisallow: /no")
    assert isinstance(good, RobotsCopy)
    seen = watch({ORIGIN: replace(good, valid_until=NOW)})
    copy = seen.answered(record(seen.begin(ORIGIN), Outcome.REDIRECT, 302, "http://b.test/"), None)
    assert isinstance(copy, RobotsCopy)
    assert (copy.how, copy.text, copy.elsewhere) == ("last_good", good.text, ("b.test",))


def test_a_request_that_cannot_be_made_leaves_the_origin_unreachable() -> None:
    seen = watch()
    copy = seen.fail(seen.begin(ORIGIN), Outcome.EGRESS_DENIED)
    assert copy.how == "unreachable"
    assert not seen.pending(ORIGIN)


def test_folding_the_records_of_an_earlier_attempt_continues_its_chain() -> None:
    first = watch()
    ask = first.begin(ORIGIN)
    moved = record(ask, Outcome.REDIRECT, 302, "http://www.a.test/rules")
    hop = first.answered(moved, None)
    assert isinstance(hop, Ask)
    second = watch()
    assert second.answered(moved, None) == hop
    assert second.pending(ORIGIN)
    assert second.wanted(hop)
    copy = second.answered(record(hop), b"User-agent: *")
    assert isinstance(copy, RobotsCopy)
    assert copy.origin == ORIGIN
    assert not second.wanted(hop)


def test_a_request_that_is_made_again_stays_pending_and_wanted() -> None:
    seen = watch()
    ask = seen.begin(ORIGIN)
    seen.again(record(ask, Outcome.RESET, None))
    assert seen.pending(ORIGIN)
    assert seen.wanted(ask)
