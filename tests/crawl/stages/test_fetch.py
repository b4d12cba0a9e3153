import asyncio
import time
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from crawl import outcomes, policy
from crawl.fetching import journal
from crawl.outcomes import Outcome
from crawl.politeness.clock import HostState
from crawl.records import Fetch, Skip
from crawl.stages import fetch
from tests.crawl.rawserver import RawServer, Seen, closing, dripping, resetting, response, silent
from tests.crawl.stages.fetching import (
    KEYER,
    NO_RULES,
    NOW,
    SETTINGS,
    Memory,
    Result,
    crawl,
    fetch_group,
    plan_of,
    polite,
)


def moved(to: str, status: int = 302) -> bytes:
    return response(status, b"", f"Location: {to}")


# --- what is asked and kept ---------------------------------------------------------------------------------


def test_planned_pages_are_asked_in_order_after_robots_txt_and_their_bodies_kept() -> None:
    result = crawl({"/1": response(200, b"one"), "/2": response(200, b"two")}, ["/1", "/2"])
    assert result.server.paths() == ["/robots.txt", "/1", "/2"]
    assert result.outcomes() == {"/1": "OK", "/2": "OK"}
    assert result.body("/1") == b"one"
    first = result.fetches()[0]
    assert (first.status, first.bytes, first.wire_bytes, first.truncated) == (200, 3, 3, False)
    assert (first.address, first.conn_reused, first.http_version) == ("127.0.0.1", True, "1.1")
    assert (first.hop, first.attempt, first.planned, first.depth) == (0, 1, True, 1)
    assert first.chain_id == KEYER.chain_id(first.url_key, 7)
    assert first.robots_version == result.visited.robots[0].version
    assert first.response_headers == "Content-Length: 3"
    state = result.state()
    assert (state.budget_day, state.urls_on_budget_day) == (NOW.date(), 2)
    assert dict(result.visited.carried) == {}


def test_every_record_stands_in_the_journal_before_the_hosts_next_request() -> None:
    written: list[int] = []

    class Watching(Memory):
        def append(self, record: Fetch | Skip, body: bytes | None) -> None:
            super().append(record, body)
            written.append(len(server_of[0].seen))

    server_of: list[RawServer] = []

    async def main() -> None:
        async with RawServer({"/robots.txt": NO_RULES}) as server:
            server_of.append(server)
            await fetch_group(server, plan_of(server.url(f"/{i}") for i in range(5)), sink=Watching())

    asyncio.run(main())
    assert written == [1, 2, 3, 4, 5, 6]


def test_what_was_appended_is_flushed_before_any_host_is_asked_again() -> None:
    unsafe: dict[str, str] = {}  # host and URL of records that a kill would take
    asked_too_early: list[str] = []

    class Buffered(Memory):
        def append(self, record: Fetch | Skip, body: bytes | None) -> None:
            super().append(record, body)
            unsafe[record.host] = record.url

        def flush(self) -> None:
            unsafe.clear()

    async def say(seen: Any, writer: asyncio.StreamWriter) -> None:
        asked_too_early.extend(host for host in [seen.host.split(":")[0]] if host in unsafe)
        writer.write(NO_RULES if seen.path == "/robots.txt" else response(200, b"<p>x"))

    async def main() -> int:
        says: dict[str, Any] = dict.fromkeys(("/robots.txt", *(f"/{i}" for i in range(5))), say)
        async with RawServer(says) as server:
            hosts = [f"h{i}.test" for i in range(20)]
            plan = plan_of(server.url(f"/{i}", host) for host in hosts for i in range(5))
            await fetch_group(server, plan, sink=Buffered())
            return len(server.seen)

    assert asyncio.run(main()) == 20 * 6
    assert asked_too_early == []
    assert unsafe == {}


def test_an_error_of_the_journal_ends_the_task() -> None:
    class Full(Memory):
        def append(self, record: Fetch | Skip, body: bytes | None) -> None:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        crawl({}, ["/1"], sink=Full())


def test_both_validators_are_sent_and_304_keeps_no_body() -> None:
    plan = {"etag": 'W/"e"', "last_modified": "Sun, 06 Nov 1994 08:49:37 GMT", "content_hash": "h"}
    result = crawl({"/1": response(304)}, ["/1"], plan=plan)
    seen = result.server.seen[-1]
    assert seen.header("if-none-match") == 'W/"e"'
    assert seen.header("if-modified-since") == "Sun, 06 Nov 1994 08:49:37 GMT"
    (record,) = result.fetches()
    assert (record.outcome, record.known_hash, record.body_hash) == ("NOT_MODIFIED", "h", None)
    assert record.request_validators == (
        'If-None-Match: W/"e"\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT'
    )
    assert result.state().validator_304_rate == 1.0


def test_a_304_nobody_asked_for_is_malformed() -> None:
    assert crawl({"/1": response(304)}, ["/1"]).outcomes() == {"/1": "MALFORMED"}


def test_a_body_that_is_known_is_told_by_its_hash() -> None:
    known = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    result = crawl({"/1": response(200, b"hello")}, ["/1"], plan={"content_hash": known})
    (record,) = result.fetches()
    assert record.body_hash == record.known_hash == known


@pytest.mark.parametrize(
    ("say", "outcome", "kept"),
    [
        (dripping(response(200, b"", "Content-Length: 99"), b"x", 99, 0.1), "TIMEOUT", b"xxx"),
        (closing(response(200, b"x", "Content-Length: 99")), "RESET", b"x"),
        (resetting(response(200, b"x", "Content-Length: 99")), "RESET", b"x"),
        (resetting(), "RESET", None),
        (silent(), "TIMEOUT", None),
        (response(200, b"x" * 200_001), "TOO_LARGE", b"x" * 200_000),
        (response(200, b"x", "Content-Encoding: foo"), "MALFORMED", None),
        (closing(response(500, b"x", "Content-Length: 99")), "SERVER_ERROR", None),
        (response(206, b"part", "Content-Range: bytes 0-3/99"), "MALFORMED", None),
        (closing(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"), "RESET", None),
    ],
)
def test_what_came_of_a_body_is_kept_and_flagged(say: Any, outcome: str, kept: bytes | None) -> None:
    result = crawl({"/1": say}, ["/1"])
    record = result.fetches()[-1]  # a kept connection that was reset without a byte is tried once more
    assert record.outcome == outcome
    body = result.body("/1")
    assert (body is None) == (kept is None) == (record.body_hash is None)
    if kept is not None:
        assert body is not None
        assert body.startswith(kept)
        assert record.truncated
        assert record.bytes == len(body)


def test_a_kept_connection_the_server_closed_is_tried_once_more_in_the_open() -> None:
    async def once(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if seen.path == "/2" and not retried:
            retried.append(seen.connection)
            writer.close()  # just as the request arrives
        else:
            writer.write(response(200, seen.path.encode()))

    retried: list[int] = []
    result = crawl({"/1": once, "/2": once}, ["/1", "/2"])
    assert result.server.paths() == ["/robots.txt", "/1", "/2", "/2"]
    tries = [f for f in result.fetches() if f.url.endswith("/2")]
    assert [(f.attempt, f.outcome, f.reason) for f in tries] == [
        (1, "RESET", "stale_connection"),
        (2, "OK", None),
    ]
    assert result.state().consecutive_errors == 0


def test_dead_kept_connections_do_not_make_a_loop() -> None:
    async def never(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.close()

    result = crawl({"/1": response(200, b"x"), "/2": never}, ["/1", "/2"])
    assert result.server.paths().count("/2") <= 2
    assert result.outcomes()["/2"] == "RESET"


# --- redirects ----------------------------------------------------------------------------------------------


def test_a_redirect_to_an_unknown_url_of_the_domain_is_followed_at_once() -> None:
    says = {"/1": moved("/2", 301), "/2": moved("//b.a.test:PORT/3"), "/3": response(200, b"end")}

    async def two(seen: Seen, writer: asyncio.StreamWriter) -> None:
        port = seen.host.split(":")[1]
        writer.write(moved(f"http://b.a.test:{port}/3"))

    result = crawl({**says, "/2": two}, ["/1", "/4"])
    one, hop, end = [f for f in result.fetches() if not f.url.endswith("/4")]
    assert [f.outcome for f in (one, hop, end)] == ["REDIRECT", "REDIRECT", "OK"]
    assert [f.hop for f in (one, hop, end)] == [0, 1, 2]
    assert len({f.chain_id for f in (one, hop, end)}) == 1
    assert (one.next_url, one.final_url_key) == (hop.url, hop.url_key)
    assert (hop.referrer_key, end.referrer_key) == (one.url_key, hop.url_key)
    assert (end.host, end.domain, end.planned, end.depth) == ("b.a.test", "a.test", False, 1)
    assert end.final_url_key == end.url_key
    assert result.server.paths("b.a.test") == ["/robots.txt", "/3"]
    assert result.body("/3") == b"end"


def test_a_planned_target_is_asked_once_as_a_hop() -> None:
    result = crawl({"/1": moved("/3"), "/3": response(200, b"x")}, ["/1", "/2", "/3"])
    assert result.server.paths() == ["/robots.txt", "/1", "/3", "/2"]
    target = next(f for f in result.fetches() if f.url.endswith("/3"))
    assert (target.hop, target.planned) == (1, True)


def test_a_target_that_was_asked_already_ends_the_chain() -> None:
    result = crawl({"/1": response(200), "/2": moved("/1"), "/3": moved("/1")}, ["/1", "/2", "/3"])
    assert result.server.paths() == ["/robots.txt", "/1", "/2", "/3"]
    assert result.outcomes() == {"/1": "OK", "/2": "REDIRECT", "/3": "REDIRECT"}


@pytest.mark.parametrize(("due", "asked"), [(True, True), (False, False)])
def test_a_known_target_is_asked_only_if_it_is_due(due: bool, asked: bool) -> None:
    old = fetch.Known(state="FETCHED", due=due, etag='"k"', content_hash="h", depth=4, parsed=True)
    result = crawl({"/1": moved("/2"), "/2": response(304)}, ["/1"], known=lambda key: old)
    assert ("/2" in result.server.paths()) is asked
    if asked:
        hop = result.fetches()[1]
        assert (hop.outcome, hop.depth, hop.parsed_before) == ("NOT_MODIFIED", 4, True)
        assert hop.request_validators == 'If-None-Match: "k"'


def test_loops_and_long_chains_end_with_their_outcome() -> None:
    says = {"/a": moved("/b"), "/b": moved("/a"), "/self": moved("#x")}
    says |= {f"/n{i}": moved(f"/n{i + 1}") for i in range(12)}
    result = crawl(says, ["/a", "/self", "/n0"])
    outcomes = result.outcomes()
    assert (outcomes["/a"], outcomes["/b"], outcomes["/self"]) == (
        "REDIRECT",
        "REDIRECT_LOOP",
        "REDIRECT_LOOP",
    )
    assert [p for p in result.server.paths() if p.startswith("/n")] == [f"/n{i}" for i in range(6)]
    assert outcomes["/n5"] == "TOO_MANY_REDIRECTS"


def test_a_redirect_to_another_spelling_of_the_same_key_is_followed() -> None:
    says = {"/p?b=1&a=2": moved("/p?a=2&b=1"), "/p?a=2&b=1": response(200, b"sorted")}
    result = crawl(says, ["/p?b=1&a=2"])
    assert [f.outcome for f in result.fetches()] == ["REDIRECT", "OK"]
    assert len({f.url_key for f in result.fetches()}) == 1
    says = {"/p?b=1&a=2": moved("/p?a=2&b=1"), "/p?a=2&b=1": moved("/p?b=1&a=2")}
    result = crawl(says, ["/p?b=1&a=2"])
    assert [f.outcome for f in result.fetches()] == ["REDIRECT", "REDIRECT_LOOP"]


def test_another_spelling_that_answered_is_not_asked_again_after_a_resume() -> None:
    async def main() -> tuple[list[str], Result]:
        async with RawServer({"/robots.txt": NO_RULES, "/1": response(200), "/2": response(200)}) as server:
            server.says["/1?utm_source=x"] = moved("/1")
            plan = plan_of([server.url("/1?utm_source=x"), server.url("/2")])
            first = await fetch_group(server, plan)
            asked = server.paths()
            return asked, await fetch_group(server, plan, done=first.entries[:3])

    asked, second = asyncio.run(main())
    assert asked == ["/robots.txt", "/1?utm_source=x", "/1", "/2"]
    assert second.server.paths() == [*asked, "/2"]


def test_a_redirect_to_another_domain_is_told_not_followed() -> None:
    result = crawl({"/1": moved("http://other.test/x")}, ["/1"])
    (record,) = result.fetches()
    assert (record.outcome, record.next_url) == ("REDIRECT", "http://other.test/x")
    assert {s.host.split(":")[0] for s in result.server.seen} == {"a.test"}


@pytest.mark.parametrize("to", ["ftp://a.test/", "javascript:alert(1)", "http://a.test:99999/"])
def test_a_redirect_to_what_is_no_page_is_bad(to: str) -> None:
    assert crawl({"/1": moved(to)}, ["/1"]).outcomes() == {"/1": "BAD_REDIRECT"}


def test_a_hop_outside_the_scope_is_not_asked() -> None:
    settings = replace(SETTINGS, scope=policy.Scope(exclude=("/private/*",)))
    result = crawl({"/1": moved("/private/x")}, ["/1"], settings=settings)
    assert result.server.paths() == ["/robots.txt", "/1"]


# --- robots.txt ---------------------------------------------------------------------------------------------


def test_what_is_out_of_scope_by_now_is_not_asked_nor_is_its_hosts_robots_txt() -> None:
    """The operator narrowed the scope after these URLs had been met."""
    narrow = policy.Scope(domains=("a.test",), exclude=("/old/*",))
    done = crawl(
        {"/in": response(200, b"in")},
        ["a.test/in", "a.test/old/1", "b.test/out"],
        settings=replace(SETTINGS, scope=narrow),
    )
    assert done.server.paths() == ["/robots.txt", "/in"]
    assert done.outcomes() == {"/in": "OK", "/old/1": "SCOPE_DENIED", "/out": "SCOPE_DENIED"}
    assert {skip.reason for skip in done.skips} == {"scope_excluded", "scope_host"}


def test_what_robots_txt_denies_is_never_asked_not_even_as_a_hop() -> None:
    rules = response(200, b"User-agent: *\nDisallow: /no")
    result = crawl(
        {"/robots.txt": rules, "/1": moved("/no/hop"), "/3": response(200)}, ["/no/1", "/1", "/no/2", "/3"]
    )
    assert result.server.paths() == ["/robots.txt", "/1", "/3"]
    assert {(s.outcome, s.url.rpartition("/")[2], s.planned) for s in result.skips} == {
        ("ROBOTS_DENIED", "1", True),
        ("ROBOTS_DENIED", "2", True),
        ("ROBOTS_DENIED", "hop", False),
    }
    assert all("Disallow: /no (line 2)" in s.reason for s in result.skips)
    assert result.skips[0].robots_version == result.visited.robots[0].version


@pytest.mark.parametrize("answer", [response(503), response(429), closing(b""), silent()])
def test_an_unreachable_robots_txt_defers_the_whole_origin(answer: Any) -> None:
    result = crawl({"/robots.txt": answer}, ["/1", "/2"])
    assert result.server.paths() == ["/robots.txt"]
    assert result.outcomes() == {"/1": "ROBOTS_UNREACHABLE", "/2": "ROBOTS_UNREACHABLE"}
    (copy,) = result.visited.robots
    assert copy.how == "unreachable"
    assert result.state().consecutive_errors == 1


@pytest.mark.parametrize("changes", [{}, {"wire_bytes": 60}])
def test_a_robots_txt_that_is_cut_loses_the_line_that_is_cut(changes: dict[str, int]) -> None:
    """Half a line could say the opposite of the whole one: `Allow: /`, of `Allow: /nothing`."""
    rules = b"User-agent: *\nDisallow: /\n#" + b"-" * 24 + b"\nAllow: /nothing\n"
    assert rules[:60].endswith(b"\nAllow: /")
    bytes_ = 60 if not changes else 1_000
    settings = replace(
        SETTINGS, robots=policy.Robots(bytes=bytes_), limits=replace(SETTINGS.limits, **changes)
    )
    result = crawl({"/robots.txt": response(200, rules), "/1": response(200)}, ["/1"], settings=settings)
    assert result.outcomes() == {"/1": "ROBOTS_DENIED"}
    (copy,) = result.visited.robots
    assert copy.text.endswith("-\n")


def test_no_robots_txt_allows_everything() -> None:
    result = crawl({"/robots.txt": response(404), "/1": response(200)}, ["/1"])
    assert result.visited.robots[0].how == "unavailable"
    assert result.outcomes() == {"/1": "OK"}


def test_a_copy_that_is_still_valid_is_used_without_asking() -> None:
    first = crawl({"/robots.txt": response(200, b"User-agent: *\nDisallow: /no")}, ["/1"])
    copy = first.visited.robots[0]

    async def again(valid_until: datetime) -> Result:
        async with RawServer({"/robots.txt": NO_RULES}) as server:
            robots = {server.url("/")[:-1]: replace(copy, valid_until=valid_until)}
            return await fetch_group(server, plan_of([server.url("/no")]), robots=robots)

    result = asyncio.run(again(NOW + timedelta(seconds=1)))
    assert (result.server.paths(), result.outcomes()) == ([], {"/no": "ROBOTS_DENIED"})
    result = asyncio.run(again(NOW))
    assert result.server.paths() == ["/robots.txt", "/no"]


def test_redirects_of_robots_txt_are_followed_inside_the_domain() -> None:
    async def over(seen: Seen, writer: asyncio.StreamWriter) -> None:
        port = seen.host.split(":")[1]
        writer.write(moved(f"http://www.a.test:{port}/rules"))

    says = {
        "a.test/robots.txt": over,
        "www.a.test/rules": response(200, b"User-agent: *\nDisallow: /no"),
        "/yes": response(200),
    }
    result = crawl(says, ["/yes", "/no"])
    assert result.outcomes() == {"/yes": "OK", "/no": "ROBOTS_DENIED"}
    assert result.server.paths() == ["/robots.txt", "/rules", "/yes"]
    (copy,) = result.visited.robots
    assert copy.origin.startswith("http://a.test:")


@pytest.mark.parametrize("to", ["/robots.txt", "ftp://a.test/robots.txt", "http://a.test:99999/"])
def test_a_robots_txt_that_leads_nowhere_counts_as_none(to: str) -> None:
    result = crawl({"/robots.txt": moved(to), "/1": response(200)}, ["/1"])
    assert result.server.paths() == ["/robots.txt", "/1"]
    assert result.visited.robots[0].how == "unavailable"


def test_a_robots_txt_in_another_domain_is_asked_for_once_both_have_one_owner() -> None:
    """Nothing is asked meanwhile, nothing is lost, and what is found there is the asking origin's."""

    async def main() -> tuple[Result, list[str], Result]:
        async with RawServer({"/yes": response(200), "/no": response(200)}) as server:
            server.says["a.test/robots.txt"] = moved(f"http://www.other.test:{server.port}/rules")
            server.says["www.other.test/rules"] = response(200, b"User-agent: *\nDisallow: /no")
            plan = plan_of([server.url("/yes"), server.url("/no")])
            first = await fetch_group(server, plan)
            asked = server.paths()
            copies = {copy.origin: copy for copy in first.visited.robots}
            return first, asked, await fetch_group(server, plan, robots=copies)

    first, asked, second = asyncio.run(main())
    assert asked == ["/robots.txt"]
    assert (first.outcomes(), dict(first.visited.carried)) == ({}, {("a.test", "robots_elsewhere"): 2})
    (copy,) = first.visited.robots
    assert (copy.how, copy.elsewhere) == ("elsewhere", ("other.test",))
    assert second.outcomes() == {"/yes": "OK", "/no": "ROBOTS_DENIED"}
    assert second.server.paths()[1:] == ["/robots.txt", "/rules", "/yes"]
    (copy,) = second.visited.robots
    assert copy.origin.startswith("http://a.test:")
    assert (copy.how, copy.elsewhere) == ("fetched", ("other.test",))
    hops = second.fetches("robots")
    assert [(f.host, f.domain, f.hop) for f in hops] == [
        ("a.test", "a.test", 0),
        ("www.other.test", "other.test", 1),
    ]
    assert len({f.chain_id for f in hops}) == 1


def test_a_rule_that_came_while_a_url_waited_forbids_it_without_a_connection_for_it() -> None:
    old = crawl({"/robots.txt": NO_RULES, "/1": response(200)}, ["/1"]).visited.robots[0]
    aged = replace(old, valid_until=NOW)

    async def main() -> Result:
        async with RawServer({"/robots.txt": response(200, b"User-agent: *\nDisallow: /1")}) as server:
            where = server.url("/1")
            copies = {where.removesuffix("/1"): replace(aged, origin=where.removesuffix("/1"))}
            return await fetch_group(server, plan_of([where]), robots=copies)

    result = asyncio.run(main())
    assert result.server.paths() == ["/robots.txt"]
    (skip,) = result.skips
    assert (skip.outcome, skip.reason) == ("ROBOTS_DENIED", "Disallow: /1 (line 2)")
    assert skip.robots_version == result.visited.robots[0].version != old.version


def test_a_chain_of_an_earlier_round_goes_on_where_it_ended() -> None:
    says = {"/1": moved("/2"), "/2": moved("/3"), "/3": response(200)}
    result = crawl(says, ["/1"], plan={"chain_id": 77, "chain_hop": 4})
    assert [(f.hop, f.outcome) for f in result.fetches()] == [(4, "REDIRECT"), (5, "TOO_MANY_REDIRECTS")]
    assert {f.chain_id for f in result.fetches()} == {77}
    assert "/3" not in result.server.paths()


# --- second tries -------------------------------------------------------------------------------------------


def once_reset(then: bytes, count: int = 1) -> Any:
    """Resets the first requests, each on a connection of its own, then answers."""
    seen_before = 0

    async def say(seen: Seen, writer: asyncio.StreamWriter) -> None:
        nonlocal seen_before
        seen_before += 1
        if seen_before <= count:
            await resetting(b"HTTP/1.1 200 X\r\n")(seen, writer)
        else:
            writer.write(then)

    return say


def soon(monkeypatch: pytest.MonkeyPatch, base: float = 0.2, **changes: Any) -> None:
    """Makes the retries of a reset due soon."""
    table: Any = outcomes.TABLE
    rule = replace(table[Outcome.RESET], base=timedelta(seconds=base))
    monkeypatch.setitem(table, Outcome.RESET, replace(rule, **changes))


def test_a_lost_connection_is_tried_again_in_the_round_while_there_is_other_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    soon(monkeypatch)
    says = {"/1": once_reset(response(200, b"late")), **{f"/{n}": response(200) for n in range(2, 12)}}
    settings = polite(min_delay=timedelta(milliseconds=250))
    result = crawl(says, [f"/{n}" for n in range(1, 12)], settings=settings)
    tries = [(f.attempt, f.outcome) for f in result.fetches() if f.url.endswith("/1")]
    assert tries == [(1, "RESET"), (2, "OK")]
    assert result.body("/1") == b"late"
    assert dict(result.visited.carried) == {}


@pytest.mark.parametrize(("patience", "attempts"), [(0.0, [1]), (5.0, [1, 2])])
def test_nobody_waits_for_a_second_try_alone_unless_told_to(
    monkeypatch: pytest.MonkeyPatch, patience: float, attempts: list[int]
) -> None:
    soon(monkeypatch)
    settings = replace(SETTINGS, retry=policy.Retry(patience=timedelta(seconds=patience)))
    result = crawl({"/1": once_reset(response(200))}, ["/1"], settings=settings)
    assert [f.attempt for f in result.fetches()] == attempts


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_task_resumed_between_two_tries_makes_the_second_one(
    monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """Records: robots.txt, /2, /1 lost; then /1 once more."""
    soon(monkeypatch, 0.1)
    settings = replace(SETTINGS, retry=policy.Retry(patience=timedelta(seconds=5)))

    async def main() -> tuple[Result, Result]:
        async with RawServer({"/robots.txt": NO_RULES, "/2": response(200)}) as server:
            server.says["/1"] = once_reset(response(200), 1 if cut == 3 else 2)
            plan = plan_of([server.url("/2"), server.url("/1")])
            first = await fetch_group(server, plan, settings=settings)
            return first, await fetch_group(server, plan, settings=settings, done=first.entries[:cut])

    first, second = asyncio.run(main())
    assert [f.outcome for f in first.fetches()][:2] == ["OK", "RESET"]
    last = [f for f in second.fetches() if f.url.endswith("/1")][-1]
    assert (last.attempt, last.outcome) == (2 if cut == 3 else 1, "OK")
    assert dict(second.visited.carried) == {}


def test_a_host_that_never_answered_in_the_round_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    soon(monkeypatch)
    settings = replace(SETTINGS, retry=policy.Retry(patience=timedelta(seconds=5)))

    told = crawl({"/robots.txt": NO_RULES, "/1": response(200)}, ["/1"]).visited.robots[0]

    async def main() -> Result:
        async with RawServer({"/1": resetting()}) as server:
            origin = server.url("")
            copies = {origin: replace(told, origin=origin)}
            return await fetch_group(server, plan_of([origin + "/1"]), robots=copies, settings=settings)

    assert [f.attempt for f in asyncio.run(main()).fetches()] == [1]


def test_crawl_delay_holds_from_the_request_for_robots_txt_on() -> None:
    rules = response(200, b"User-agent: *\nCrawl-delay: 0.15")
    result = crawl({"/robots.txt": rules}, ["/1", "/2"])
    assert _smallest_gap(result.server.seen) >= 0.15
    assert [f.gap_rule for f in result.fetches()] == ["crawl_delay", "crawl_delay"]
    assert result.state().robots_delay_ms == 150


# --- politeness ---------------------------------------------------------------------------------------------


def _smallest_gap(seen: list[Seen]) -> float:
    return min(after.started - before.ended for before, after in pairwise(seen))


def _gaps_hold(result: Result) -> None:
    """What SQL proves from the table: no start before the previous end plus the gap in force."""
    by_host: dict[str, list[Fetch]] = {}
    for record, _ in result.entries:
        if isinstance(record, Fetch):
            by_host.setdefault(record.host, []).append(record)
    for records in by_host.values():
        for before, after in pairwise(sorted(records, key=lambda r: r.started_at)):
            wait = timedelta(milliseconds=after.required_gap_ms)
            assert after.started_at >= before.finished_at + wait


def test_the_server_sees_the_gap_between_all_requests_of_a_host() -> None:
    says = {"/1": moved("/hop"), "/hop": response(200)}
    settings = polite(min_delay=timedelta(milliseconds=60))
    result = crawl(says, ["/1", "/2", "/3"], settings=settings)
    assert len(result.server.seen) == 5
    assert _smallest_gap(result.server.seen) >= 0.060
    assert [f.required_gap_ms for f in result.fetches()] == [60.0] * 4
    _gaps_hold(result)


def test_the_gap_grows_with_how_long_the_last_request_took() -> None:
    async def slow(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(response(200))

    result = crawl({"/1": slow}, ["/1", "/2"], settings=polite(factor=3.0))
    one, two = result.fetches()
    assert two.gap_rule == "factor"
    assert two.required_gap_ms == pytest.approx(3 * one.total_ms, abs=0.01)
    _gaps_hold(result)


def test_hosts_do_not_wait_for_each_other() -> None:
    async def slow(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(response(200))

    places = [f"h{i}.test/x" for i in range(20)]
    started = time.monotonic()
    result = crawl({"/x": slow}, places)
    assert len(result.fetches()) == 20
    assert time.monotonic() - started < 3  # one after the other: 6 s


def test_one_slot_serves_one_request_at_a_time() -> None:
    running = [0, 0]

    async def counted(seen: Seen, writer: asyncio.StreamWriter) -> None:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.01)
        running[0] -= 1
        writer.write(response(200))

    settings = replace(SETTINGS, fetching=replace(SETTINGS.fetching, in_flight=1))
    result = crawl({"/x": counted}, [f"h{i}.test/x" for i in range(6)], settings=settings)
    assert len(result.fetches()) == 6
    assert running[1] == 1


def test_retry_after_backs_the_host_off_and_other_hosts_go_on() -> None:
    says = {"a.test/1": response(429, b"", "Retry-After: 3600"), "/x": response(200)}
    result = crawl(says, ["/1", "/2", "/3", "b.test/x"])
    assert result.server.paths("a.test") == ["/robots.txt", "/1"]
    assert dict(result.visited.carried) == {("a.test", "retry_after"): 2}
    assert result.fetches()[-1].outcome == "OK" or result.fetches()[0].outcome == "OK"
    limited = next(f for f in result.fetches() if f.status == 429)
    assert limited.retry_after_ms == 3_600_000
    state = result.state()
    assert state.backoff_until == limited.finished_at + timedelta(hours=1)


def test_a_short_retry_after_is_waited_for() -> None:
    async def busy_once(seen: Seen, writer: asyncio.StreamWriter) -> None:
        first = sum(s.path == "/1" for s in result_server[0].seen) == 1
        writer.write(response(503, b"", "Retry-After: 1") if first else response(200))

    result_server: list[RawServer] = []

    async def main() -> Result:
        async with RawServer({"/robots.txt": NO_RULES, "/1": busy_once, "/2": response(200)}) as server:
            result_server.append(server)
            return await fetch_group(server, plan_of([server.url("/1"), server.url("/2")]))

    result = asyncio.run(main())
    one, two = result.server.seen[1:]
    assert two.started - one.ended >= 1.0
    assert result.fetches()[1].gap_rule == "retry_after"


def test_a_host_that_keeps_failing_is_left_with_its_circuit_open() -> None:
    settings = polite(backoff_base=timedelta(seconds=1), circuit_after=1)
    result = crawl({"/1": resetting()}, ["/1", "/2"], settings=settings, window=1.5)
    assert dict(result.visited.carried) == {("a.test", "circuit_open"): 1}
    assert result.state().circuit == "open"


def test_the_clock_of_an_earlier_round_holds() -> None:
    soon = datetime.now(NOW.tzinfo) + timedelta(milliseconds=300)
    state = HostState(
        host_key=KEYER.host_key("a.test"),
        host="a.test",
        domain="a.test",
        next_allowed_at=soon,
        delay_ms=250.0,
        gap_rule="floor",
    )
    result = crawl({}, ["/1"], hosts={"a.test": state})
    first = result.fetches("robots")[0]
    assert first.started_at >= soon
    assert (first.required_gap_ms, first.gap_rule) == (250.0, "floor")


# --- addresses ----------------------------------------------------------------------------------------------


def test_a_forbidden_address_is_not_connected_to() -> None:
    settings = replace(SETTINGS, egress=policy.Egress())
    result = crawl({}, ["/1", "/2"], settings=settings)
    assert result.server.connections == 0
    assert result.outcomes() == {"/1": "EGRESS_DENIED", "/2": "EGRESS_DENIED"}
    assert result.skips[0].reason == "127.0.0.1"


def test_a_redirect_to_a_forbidden_address_is_not_connected_to() -> None:
    dns = policy.Dns(hosts={"*.test": "127.0.0.1", "in.a.test": "10.0.0.1"})
    result = crawl({"/1": moved("http://in.a.test/")}, ["/1"], settings=replace(SETTINGS, dns=dns))
    (skip,) = result.skips
    assert (skip.outcome, skip.host, skip.planned) == ("EGRESS_DENIED", "in.a.test", False)


def test_a_robots_txt_at_a_forbidden_address_is_unreachable() -> None:
    dns = policy.Dns(hosts={"*.test": "127.0.0.1", "in.a.test": "10.0.0.1"})
    says = {"/robots.txt": moved("http://in.a.test/robots.txt")}
    result = crawl(says, ["/1"], settings=replace(SETTINGS, dns=dns))
    assert result.outcomes() == {"/1": "ROBOTS_UNREACHABLE"}


def test_nobody_listening_is_refused_and_counts_against_the_host() -> None:
    async def main() -> Result:
        async with RawServer({}) as server:
            return await fetch_group(server, plan_of(["http://a.test:1/x"]))

    result = asyncio.run(main())
    (robots,) = result.fetches("robots")
    assert (robots.outcome, robots.reason, robots.status) == ("REFUSED", "econnrefused", None)
    assert result.outcomes() == {"/x": "ROBOTS_UNREACHABLE"}


# --- window, lease, resume ----------------------------------------------------------------------------------


def test_the_window_closes_and_what_is_left_is_carried_over() -> None:
    settings = polite(min_delay=timedelta(milliseconds=200))
    started = time.monotonic()
    result = crawl({}, [f"/{i}" for i in range(50)], settings=settings, window=0.7)
    assert time.monotonic() - started < 5
    carried = dict(result.visited.carried)
    assert set(carried) == {("a.test", "window")}
    assert carried["a.test", "window"] == 50 - len(result.fetches())
    assert 1 <= len(result.fetches()) <= 3


def test_a_window_that_is_closed_already_asks_nothing() -> None:
    result = crawl({}, ["/1", "b.test/2"], window=0.0)
    assert result.server.seen == []
    assert dict(result.visited.carried) == {("a.test", "window"): 1, ("b.test", "window"): 1}


def test_without_permission_nothing_is_sent_and_the_task_ends() -> None:
    with pytest.raises(fetch.LeaseLost, match="lapsed"):
        crawl({}, ["/1"], permit=lambda: False)


def test_a_lapsed_lease_drops_open_transfers_and_ends_the_task() -> None:
    held = [True]

    async def stall(seen: Seen, writer: asyncio.StreamWriter) -> None:
        held[0] = False
        await asyncio.sleep(30)

    sink = Memory()
    settings = replace(SETTINGS, limits=replace(SETTINGS.limits, idle=timedelta(seconds=20)))
    seen: list[Seen] = []

    async def main() -> None:
        async with RawServer({"/robots.txt": NO_RULES, "/1": stall}) as server:
            try:
                plan = plan_of([server.url("/1"), server.url("/2")])
                await fetch_group(server, plan, sink=sink, settings=settings, permit=lambda: held[0])
            finally:
                seen.extend(server.seen)

    started = time.monotonic()
    with pytest.raises(fetch.LeaseLost):
        asyncio.run(main())
    assert time.monotonic() - started < 10
    assert [s.path for s in seen] == ["/robots.txt", "/1"]
    assert [r.url.rpartition("/")[2] for r, _ in sink.entries()] == ["robots.txt"]


def test_a_lease_that_comes_back_lets_the_task_go_on() -> None:
    answers = iter([True, True, *([False] * 2)])
    result = crawl({}, ["/1", "/2", "/3"], permit=lambda: next(answers, True))
    assert sorted(result.outcomes()) == ["/1", "/2", "/3"]


SITE = {
    "/1": moved("/hop"),
    "/hop": moved("/end"),
    "/end": response(200, b"end"),
    "/2": response(200, b"two"),
    "/3": response(404),
    "/4": response(500),
}


@pytest.mark.parametrize("cut", range(9))
def test_a_task_resumed_after_any_record_asks_the_rest_and_nothing_twice(cut: int) -> None:
    paths = ["/1", "/2", "/3", "/4", "/no"]
    rules = response(200, b"User-agent: *\nDisallow: /no")

    async def main() -> None:
        async with RawServer({**SITE, "/robots.txt": rules}) as server:
            plan = plan_of(server.url(p) for p in paths)
            whole = await fetch_group(server, plan)
            assert len(whole.entries) == 8
            before = server.paths()
            server.seen.clear()
            rest = await fetch_group(server, plan, done=whole.entries[:cut])
            asked = [r for r, _ in whole.entries[:cut] if isinstance(r, Fetch)]
            assert server.paths() == before[len(asked) :]
            both = whole.entries[:cut] + rest.entries
            assert [_gist(r) for r, _ in both] == [_gist(r) for r, _ in whole.entries]
            assert [b for _, b in both] == [b for _, b in whole.entries]
            assert rest.visited.robots == whole.visited.robots
            assert rest.state().urls_on_budget_day == whole.state().urls_on_budget_day
            assert rest.state().consecutive_errors == whole.state().consecutive_errors

    asyncio.run(main())


def _gist(record: Fetch | Skip) -> tuple[object, ...]:
    if isinstance(record, Skip):
        return record.url, record.outcome, record.reason
    return record.kind, record.url, record.outcome, record.hop, record.chain_id, record.final_url_key


@pytest.mark.parametrize("replayed", [True, False])
def test_after_a_resume_every_host_is_left_alone_for_one_full_gap(replayed: bool) -> None:
    settings = polite(min_delay=timedelta(milliseconds=300))

    async def main() -> None:
        async with RawServer({"/robots.txt": NO_RULES}) as server:
            plan = plan_of([server.url("/1"), server.url("/2", "b.test")])
            whole = await fetch_group(server, plan, settings=settings)
            done = whole.entries[:1] if replayed else []
            server.seen.clear()
            started = time.monotonic()
            await fetch_group(server, plan, settings=settings, done=done, resumed=True)
            assert min(s.started for s in server.seen) - started >= 0.3

    asyncio.run(main())


def test_progress_is_told() -> None:
    told: list[fetch.Progress] = []
    crawl({}, ["/1", "/2"], progress=told.append)
    assert told[-1]["asked"] == told[-1]["planned"] == 2
    assert told[-1]["requests"] == 3
    assert told[-1]["in_flight"] == 0


def test_journalled_bodies_are_read_back_by_offset() -> None:
    sink = Memory()
    crawl({"/1": response(200, b"<p>one")}, ["/1"], sink=sink)
    record, body, offset = list(journal.decode(bytes(sink.data)))[1]
    assert isinstance(record, Fetch)
    assert record.outcome == Outcome.OK
    assert journal.frame_at(bytes(sink.data), offset) == (record, body)


def test_a_host_paused_in_mid_fetch_is_asked_no_more_and_the_rest_is_carried() -> None:
    asked: list[str] = []

    def held(host: str, domain: str) -> bool:
        asked.append(host)
        return host == "a.test" and asked.count("a.test") > 3  # robots.txt and two pages have had their turn

    result = crawl({}, [f"/{n}" for n in range(6)], held=held)

    assert {("a.test", "paused"): 4} == dict(result.visited.carried)
    assert 2 == len(result.fetches())
