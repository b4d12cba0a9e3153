"""A host that may have several requests open, through the whole fetch stage, over real sockets."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from crawl.politeness.addresscap import Cap
from crawl.politeness.clock import HostState
from crawl.records import Fetch
from tests.crawl.rawserver import RawServer, Say, Seen, response
from tests.crawl.stages.fetching import KEYER, NO_RULES, Memory, Result, fetch_group, plan_of, polite
from tests.crawl.stages.test_fetch_gates import PublicLoopback

MS = timedelta(milliseconds=1)
PAGES = [f"/{n}" for n in range(10)]
FOUR = {"in_flight": {"a.test": 4}}


def slowly(seconds: float, answer: bytes = response(200, b"x")) -> Say:
    async def say(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        writer.write(answer)

    return say


def crawl(says: dict[str, Any], paths: Sequence[str] = PAGES, **options: Any) -> Result:
    """Fetches `paths` of a.test, which has four lanes; `politeness`: settings besides."""
    settings = polite(**{**FOUR, **options.pop("politeness", {})})

    async def main() -> Result:
        pages = dict.fromkeys(paths, slowly(0.02))
        async with RawServer({"/robots.txt": NO_RULES, **pages, **says}) as server:
            plan = plan_of(map(server.url, paths))
            return await fetch_group(server, plan, settings=settings, **options)

    return asyncio.run(main())


def records(result: Result) -> list[Fetch]:
    made = [record for record, _ in result.entries if isinstance(record, Fetch)]
    return sorted(made, key=lambda record: record.started_at)


def most_open(seen: Sequence[tuple[Any, Any]]) -> int:
    """Of spans (start, end)."""
    return max(len([1 for start, end in seen if start <= at < end]) for at, _ in seen)


def seen_open(result: Result, wanted: Callable[[str], bool] = lambda path: True) -> int:
    return most_open([(s.started, s.ended) for s in result.server.seen if wanted(s.path)])


def by_lane(made: Sequence[Fetch]) -> dict[int | None, list[Fetch]]:
    found: dict[int | None, list[Fetch]] = {}
    for record in made:
        found.setdefault(record.lane, []).append(record)
    return found


def gaps_hold(made: Sequence[Fetch]) -> None:
    for of_lane in by_lane(made).values():
        for before, after in pairwise(of_lane):
            assert after.started_at >= before.finished_at + after.required_gap_ms * MS


def asked_once(result: Result, paths: Sequence[str] = PAGES) -> None:
    assert sorted(result.server.paths()) == sorted(["/robots.txt", *paths])


def test_as_many_requests_are_open_as_the_operator_says_and_never_more() -> None:
    result = crawl({path: slowly(0.1) for path in PAGES})
    asked_once(result)
    assert set(result.outcomes().values()) == {"OK"}
    assert seen_open(result) == 4
    made = records(result)
    assert most_open([(r.started_at, r.finished_at) for r in made]) == 4
    assert set(by_lane(made)) == {0, 1, 2, 3}
    (robots, *pages) = made
    assert robots.kind == "robots"
    assert all(page.started_at >= robots.finished_at for page in pages)
    assert result.state().max_in_flight == 4


def test_each_lane_keeps_the_whole_gap() -> None:
    result = crawl({}, politeness={"min_delay": 80 * MS})
    made = records(result)
    asked_once(result)
    gaps_hold(made)
    assert all(len(of_lane) >= 2 for of_lane in by_lane(made).values())
    assert {r.required_gap_ms for r in made} <= {0.0, 80.0}
    # eleven requests on four lanes: the last one is the third of its lane
    assert made[-1].finished_at - made[0].started_at >= 2 * 80 * MS
    left = result.state().next_allowed_at
    assert left is not None
    assert left >= made[-1].finished_at + 80 * MS


def test_of_other_hosts_the_one_clock_stands() -> None:
    result = crawl({}, politeness={"in_flight": {"b.test": 4}})
    assert {record.lane for record in records(result)} == {None}
    assert seen_open(result) == 1
    assert result.state().max_in_flight == 1


def test_an_answer_429_cools_all_lanes_and_one_tries_first() -> None:
    says = {"/1": slowly(0.05, response(429)), "/2": slowly(0.1), "/3": slowly(0.15)}
    result = crawl(says, politeness={"backoff_base": 100 * MS})
    made = records(result)
    asked_once(result)
    (hit,) = [r for r in made if r.status == 429]
    later = [r for r in made if r.started_at > hit.finished_at]
    assert later[0].started_at >= hit.finished_at + 200 * MS
    # the next one goes alone, and a gap after it all do
    probe, *others = later
    assert others
    assert all(r.started_at >= probe.finished_at for r in others)
    assert {r.gap_rule for r in others} == {"slowed"}
    gaps_hold(made)


def test_answers_429_at_one_time_are_one_step_back() -> None:
    pushed = {path: slowly(0.1, response(429)) for path in PAGES[:4]}
    result = crawl(pushed, PAGES[:5], politeness={"backoff_base": 50 * MS, "circuit_after": 2})
    assert seen_open(result) == 4
    assert result.state().circuit == "closed"
    assert result.outcomes()["/4"] == "OK"


def test_an_open_circuit_gets_one_canary_over_all_lanes() -> None:
    hosts = {"a.test": HostState.new("a.test", "a.test", 1).but(circuit="open", consecutive_errors=3)}
    good = crawl({}, hosts=hosts)
    asked_once(good)
    pages = good.fetches()
    assert all(r.started_at >= pages[0].finished_at for r in pages[1:])
    assert good.state().circuit == "closed"
    assert seen_open(good) > 1
    bad = crawl({path: slowly(0.02, response(503)) for path in PAGES}, hosts=hosts)
    assert len(bad.fetches()) == 1
    assert dict(bad.visited.carried) == {("a.test", "circuit_open"): len(PAGES) - 1}


def test_a_circuit_that_opens_while_lanes_are_under_way_waits_for_its_canary() -> None:
    bad = dict.fromkeys(PAGES[:8], slowly(0.05, response(503)))
    result = crawl(bad, politeness={"backoff_base": 20 * MS, "circuit_after": 2})
    made = records(result)
    # four at once are one fault; then one at a time
    faults = [r for r in made if r.status == 503]
    assert [most_open([(r.started_at, r.finished_at) for r in faults[4:]])] == [1]
    assert len(faults) == 6  # four, the one that opened the circuit, and the canary
    assert result.visited.carried[("a.test", "circuit_open")] == len(PAGES) - 6


def test_a_crawl_delay_is_kept_in_full_with_one_request_at_a_time() -> None:
    rules = response(200, b"User-agent: *\nCrawl-delay: 0.1\n")
    result = crawl({"/robots.txt": rules}, PAGES[:4])
    asked_once(result, PAGES[:4])
    seen = sorted(result.server.seen, key=lambda one: one.started)
    assert all(after.started - before.ended >= 0.1 for before, after in pairwise(seen))
    assert {r.gap_rule for r in result.fetches()} == {"crawl_delay"}
    assert result.state().robots_delay_ms == 100.0


def test_a_crawl_delay_that_another_origin_states_waits_for_what_is_under_way() -> None:
    """Of one host, two ports: one is being asked on its lanes when the other's rules come in."""

    async def main() -> tuple[Result, RawServer]:
        rules = response(200, b"User-agent: *\nCrawl-delay: 0.1\n")
        pages: dict[str, Any] = dict.fromkeys(PAGES, slowly(0.15))
        async with (
            RawServer({"/robots.txt": NO_RULES, **pages}) as one,
            RawServer({"/robots.txt": slowly(0.05, rules), **pages}) as two,
        ):
            urls = [*map(one.url, PAGES[:3]), *map(two.url, PAGES[:2]), one.url("/3")]
            plan = plan_of(urls)
            return await fetch_group(one, plan, settings=polite(**FOUR)), two

    result, _ = asyncio.run(main())
    made = records(result)
    told = next(r for r in made if r.kind == "robots" and r.outcome == "OK" and r.origin != made[0].origin)
    first, *rest = [r for r in made if r.started_at > told.finished_at]
    before = max(r.finished_at for r in made if r.started_at < first.started_at)
    assert first.started_at >= before + 100 * MS
    assert all(b.started_at >= a.finished_at + 100 * MS for a, b in pairwise([first, *rest]))
    assert sum(r.kind == "page" for r in made) == 6


def test_nothing_is_asked_twice_where_redirects_meet() -> None:
    """Pages of several lanes lead to one that is planned, and to one that is not."""
    moved = {path: slowly(0.03, response(301, b"", "Location: /9")) for path in PAGES[:4]}
    moved |= {path: slowly(0.05, response(301, b"", "Location: /new")) for path in PAGES[4:8]}
    result = crawl({**moved, "/new": slowly(0.1), "/9": slowly(0.1)})
    asked_once(result, [*PAGES, "/new"])
    (target,) = [r for r in result.fetches() if r.url.endswith("/9")]
    assert target.hop == 0  # it has its own turn, whichever lane is quicker


def test_a_second_try_and_a_dropped_request_are_the_business_of_one_lane() -> None:
    lapsed: list[float] = []

    def permit() -> bool:
        return not lapsed or time.monotonic() > lapsed[0] + 0.1

    async def cut(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if not lapsed:
            lapsed.append(time.monotonic())
        await asyncio.sleep(0.3)
        writer.write(response(200))

    result = crawl({"/2": cut}, permit=permit, window=10.0)
    assert sorted(record.url.rpartition("/")[2] for record in result.fetches()) == sorted(
        p[1:] for p in PAGES
    )
    assert not result.visited.carried


def test_after_a_resume_each_lane_waits_one_full_gap_and_the_rest_is_asked_once() -> None:
    """The first attempt ends when its window closes; its records are all that the second knows of it."""
    sink = Memory()

    async def main() -> tuple[list[Fetch], Result, Result]:
        settings = polite(**FOUR, min_delay=150 * MS)
        pages = dict.fromkeys(PAGES, slowly(0.02))
        async with RawServer({"/robots.txt": NO_RULES, **pages}) as server:
            plan = plan_of(map(server.url, PAGES))
            first = await fetch_group(server, plan, settings=settings, sink=sink, window=0.1)
            again = Memory()
            done: Any = sink.entries()
            second = await fetch_group(server, plan, settings=settings, sink=again, done=done, resumed=True)
            all_of_it: Any = [*sink.entries(), *again.entries()]
            third = await fetch_group(server, plan, settings=settings, done=all_of_it)
            return records(first), second, third

    began = datetime.now(UTC)
    before, second, third = asyncio.run(main())
    after = records(second)
    assert 1 < len(before) < len(PAGES)
    assert sorted(second.server.paths()) == sorted(["/robots.txt", *PAGES])
    assert after[0].started_at >= max(began, before[-1].finished_at) + 150 * MS
    gaps_hold([*before, *after])
    # records alone teach what asking taught
    assert not third.entries
    assert replace(third.state(), next_allowed_at=None) == replace(
        second.state(),
        next_allowed_at=None,
        addresses=third.state().addresses,
        addresses_expire_at=third.state().addresses_expire_at,
    )


def test_lanes_are_bounded_by_the_cap_of_a_public_address() -> None:
    settings = polite(**FOUR)
    result = crawl(
        {path: slowly(0.06) for path in PAGES[:6]},
        PAGES[:6],
        guard=PublicLoopback(settings.egress),
        caps={"127.0.0.1": Cap(in_flight=2, delay_s=0.02)},
    )
    made = records(result)
    asked_once(result, PAGES[:6])
    assert seen_open(result) == 2
    assert min(b.started_at - a.started_at for a, b in pairwise(made)) >= 20 * MS


def test_a_pause_holds_all_lanes() -> None:
    answered: list[str] = []

    async def count(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        answered.append(seen.path)
        writer.write(response(200))

    result = crawl(dict.fromkeys(PAGES, count), held=lambda host, domain: len(answered) >= 3)
    assert 3 <= len(result.fetches()) <= 7
    assert dict(result.visited.carried) == {("a.test", "paused"): len(PAGES) - len(result.fetches())}


def test_what_is_left_when_the_window_closes_is_carried_over_once() -> None:
    result = crawl({}, window=0.4, politeness={"min_delay": 300 * MS})
    assert sum(result.visited.carried.values()) + len(result.fetches()) == len(PAGES)
    assert len(result.fetches()) < len(PAGES)


def test_a_row_of_lanes_is_taken_up_by_the_next_round() -> None:
    first = crawl({}, PAGES[:5], politeness={"min_delay": 100 * MS})
    state = replace(first.state(), host_key=KEYER.host_key("a.test"))
    last = max(r.finished_at for r in records(first))
    second = crawl({}, PAGES[:5], politeness={"min_delay": 100 * MS}, hosts={"a.test": state})
    assert all(r.started_at >= last + 100 * MS for r in records(second))
    assert records(second)[0].required_gap_ms == 100.0
