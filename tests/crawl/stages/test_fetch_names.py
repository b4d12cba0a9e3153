"""The whole fetch stage, with real sockets, against a name server that lies.

Every address of 127.0.0.0/8 is this machine's: 127.0.0.2 is allowed, and a trap listens on 127.0.0.1.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crawl import policy
from crawl.politeness.clock import HostState
from tests.crawl.rawserver import RawServer, response
from tests.crawl.stages.fetching import NO_RULES, SETTINGS, Result, fetch_group, plan_of
from tests.dnsserver import (
    SERVFAIL,
    DnsServer,
    Say,
    alias,
    code,
    garbage,
    in_turn,
    leads_to,
    nothing,
    serving,
    silence,
    slow,
    truncated,
)
from tests.trap import Trap, trap

ALLOWED, FORBIDDEN = "127.0.0.2", "127.0.0.1"
PAGES = {"/robots.txt": NO_RULES, "/1": response(200, b"one"), "/2": response(200, b"two")}


@dataclass(frozen=True)
class Outcome:
    """What a fetch left, what the name server was asked, and what went where it must not."""

    result: Result
    names: DnsServer
    trap: Trap

    def of(self, host: str) -> list[tuple[str, str, str | None]]:
        """(path, outcome, reason) of the host's records, skips and robots.txt included, in order."""
        return [
            ("/" + record.url.split("/", 3)[3], record.outcome, record.reason)
            for record, _ in self.result.entries
            if record.host == host
        ]


def settings_for(names: DnsServer, **dns: Any) -> policy.Settings:
    return replace(
        SETTINGS,
        egress=policy.Egress(allow=(f"{ALLOWED}/32",)),
        dns=policy.Dns(servers=(names.setting,), timeout=timedelta(seconds=0.4), **dns),
    )


def crawl(
    says: dict[str, Say],
    places: Iterable[str],
    *,
    pages: dict[str, Any] | None = None,
    hosts: dict[str, HostState] | None = None,
) -> Outcome:
    """Fetches `places` (host/path) from a server on the allowed address, by the names as they are said."""

    async def main() -> Outcome:
        served = {**PAGES, **(pages or {})}
        with serving() as names:
            names.says.update(says)
            async with RawServer(served, address=ALLOWED) as server:
                with trap(server.port) as caught:
                    for path, said in served.items():
                        if isinstance(said, str):  # a redirect to that place
                            host, _, rest = said.partition("/")
                            target = server.url("/" + rest, host)
                            server.says[path] = response(302, b"", f"Location: {target}")
                    urls = [server.url("/" + p.partition("/")[2], p.partition("/")[0]) for p in places]
                    result = await fetch_group(
                        server, plan_of(urls), settings=settings_for(names), hosts=hosts
                    )
                    return Outcome(result, names, caught)

    return asyncio.run(main())


# --- where requests go --------------------------------------------------------------------------------------


def test_a_name_that_moves_to_a_forbidden_address_is_denied_and_the_kept_connection_not_used() -> None:
    """The answer that was checked is the one that is used, and each request has its own."""
    says = in_turn(leads_to(ALLOWED, ttl=0), leads_to(FORBIDDEN, ttl=0))
    found = crawl({"a.test": says}, ["a.test/1", "a.test/2"])
    assert found.of("a.test") == [
        ("/robots.txt", "OK", None),
        ("/1", "EGRESS_DENIED", FORBIDDEN),
        ("/2", "EGRESS_DENIED", FORBIDDEN),
    ]
    assert found.result.server.paths() == ["/robots.txt"]
    assert found.trap.connections == []


def test_while_an_answer_lasts_the_second_page_goes_over_the_kept_connection() -> None:
    says = in_turn(leads_to(ALLOWED, ttl=60), leads_to("127.0.0.3", ttl=60))
    found = crawl({"a.test": says}, ["a.test/1", "a.test/2"])
    first, second = found.result.fetches()
    assert [(f.outcome, f.address, f.conn_reused) for f in (first, second)] == [("OK", ALLOWED, True)] * 2
    assert found.result.server.connections == 1


def test_after_it_the_second_page_goes_where_the_name_has_moved_over_a_new_connection() -> None:
    moved_to = "127.0.0.3"

    async def main() -> tuple[Result, RawServer]:
        with serving() as names:
            async with RawServer(dict(PAGES), address=ALLOWED) as old:
                new = RawServer(dict(PAGES), address=moved_to)
                new._tasks = set()
                new._server = await asyncio.start_server(new._serve, moved_to, old.port)
                turns = [leads_to(ALLOWED, ttl=0)] * 2 + [leads_to(moved_to, ttl=0)]
                names.says["a.test"] = in_turn(*turns)
                settings = replace(
                    settings_for(names), egress=policy.Egress(allow=(f"{ALLOWED}/32", f"{moved_to}/32"))
                )
                urls = [old.url(path, "a.test") for path in ("/1", "/2")]
                result = await fetch_group(old, plan_of(urls), settings=settings)
                await new.__aexit__(None, None, None)
                return result, new

    result, new = asyncio.run(main())
    assert [(f.address, f.conn_reused, f.outcome) for f in result.fetches()] == [
        (ALLOWED, True, "OK"),
        (moved_to, False, "OK"),
    ]
    assert result.server.paths() == ["/robots.txt", "/1"]
    assert new.paths() == ["/2"]


def test_of_mixed_answers_only_permitted_addresses_are_pinned_and_the_row_says_which_were_refused() -> None:
    hosts = [f"h{i}.test" for i in range(8)]
    mixed = leads_to(FORBIDDEN, ALLOWED, "10.0.0.1", "169.254.169.254")
    found = crawl(dict.fromkeys(hosts, mixed), [f"{host}/1" for host in hosts])
    assert {(f.outcome, f.address) for f in found.result.fetches()} == {("OK", ALLOWED)}
    for record in found.result.fetches() + found.result.fetches("robots"):
        assert record.dns_note is not None
        refused = record.dns_note.removesuffix(" refused").split(", ")
        assert sorted(refused) == ["10.0.0.1", FORBIDDEN, "169.254.169.254"]
    assert found.trap.connections == []


def test_a_permitted_address_that_fails_is_no_reason_to_try_a_forbidden_one() -> None:
    async def main() -> Result:
        with serving(a_test=leads_to(ALLOWED, FORBIDDEN)) as names, trap() as caught:
            server = RawServer(port=caught.port)  # nobody listens on the allowed address
            result = await fetch_group(
                server, plan_of([server.url("/1"), server.url("/2")]), settings=settings_for(names)
            )
            assert caught.connections == []
            return result

    assert {r.outcome for r in asyncio.run(main()).fetches("robots")} == {"REFUSED"}


def test_with_one_address_allowed_no_way_leads_to_the_listener_beside_it() -> None:
    """Names, aliases, IPv6 that embeds it, addresses in all spellings, redirects of pages and robots.txt."""
    says = {
        "a.test": leads_to(ALLOWED),
        "in.a.test": leads_to(FORBIDDEN),
        "robots.test": leads_to(ALLOWED),
        "in.robots.test": leads_to(FORBIDDEN),
    }
    leads = {
        "plain.test": FORBIDDEN,
        "alias.test": FORBIDDEN,
        "six.test": "::1",
        "mapped.test": f"::ffff:{FORBIDDEN}",
        "nat.test": "64:ff9b::7f00:1",
        "zero.test": "0.0.0.0",
    }
    says |= {name: leads_to(address) for name, address in leads.items()}
    says["alias.test"] = alias("b.test", "c.test", to=(FORBIDDEN,))
    literals = ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]", "[::1]"]
    places = [f"{host}/1" for host in [*leads, *literals, "localhost"]]
    pages = {"/hop": "in.a.test/1", "robots.test/robots.txt": "in.robots.test/robots.txt"}
    found = crawl(says, [*places, "a.test/hop", "robots.test/1"], pages=pages)
    assert found.trap.connections == []
    for name, address in leads.items():
        assert found.of(name) == [("/1", "EGRESS_DENIED", address)]
    for literal in ("127.0.0.1", "[::ffff:7f00:1]", "[::1]", "localhost"):
        assert {outcome for _, outcome, _ in found.of(literal)} == {"EGRESS_DENIED"}, literal
    assert found.of("in.a.test") == [("/1", "EGRESS_DENIED", FORBIDDEN)]
    assert ("/1", "ROBOTS_UNREACHABLE") in [(path, outcome) for path, outcome, _ in found.of("robots.test")]
    assert {f.address for f in found.result.fetches() + found.result.fetches("robots")} == {ALLOWED}


def test_proxies_of_the_environment_see_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with trap() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{FORBIDDEN}:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        found = crawl({"a.test": leads_to(ALLOWED)}, ["a.test/1"])
        assert [outcome for _, outcome, _ in found.of("a.test")] == ["OK", "OK"]
        assert proxy.connections == []


# --- names that fail ----------------------------------------------------------------------------------------


def test_each_failure_of_a_name_is_typed_and_no_other_host_suffers() -> None:
    good = {f"good{i}.test": leads_to(ALLOWED) for i in range(5)}
    says = {
        **good,
        "nx.test": nothing,
        "fail.test": code(SERVFAIL),
        "silent.test": silence,
        "slow.test": slow(0.6, leads_to(ALLOWED)),
        "late.test": slow(0.1, leads_to(ALLOWED)),
        "cut.test": truncated(leads_to(ALLOWED)),
        "garbage.test": garbage(b"\xff" * 40),
        "loop.test": alias("x.test", "loop.test"),
    }
    found = crawl(says, [f"{host}/1" for host in says])
    robots = {record.host: record for record in found.result.fetches("robots")}
    expected = {
        "nx.test": "DNS_FAILURE",
        "fail.test": "DNS_TIMEOUT",
        "silent.test": "DNS_TIMEOUT",
        "slow.test": "DNS_TIMEOUT",
        "garbage.test": "DNS_TIMEOUT",
        "loop.test": "DNS_FAILURE",
    }
    assert {host: robots[host].outcome for host in expected} == expected
    for host in expected:
        assert robots[host].reason
        assert robots[host].dns_ms is not None
        assert (robots[host].address, robots[host].dns_cached) == (None, False)
    assert robots["silent.test"].reason == "no answer in 0.4 s"
    fetched = {record.host for record in found.result.fetches() if record.outcome == "OK"}
    assert fetched == {*good, "late.test", "cut.test"}


# --- look-ups in the table ----------------------------------------------------------------------------------


def test_a_name_resolved_ahead_is_a_hit_and_every_look_up_is_told() -> None:
    soon = [f"soon{i}.test" for i in range(6)]
    later = {host: HostState.new(host, host, 1) for host in soon}
    due = datetime.now(UTC) + timedelta(seconds=0.3)
    found = crawl(
        {host: leads_to(ALLOWED) for host in ("now.test", *soon)},
        [f"{host}/{n}" for host in ("now.test", *soon) for n in (1, 2)],
        hosts={host: replace(state, next_allowed_at=due) for host, state in later.items()},
    )
    records = found.result.fetches("robots") + found.result.fetches()
    asked = [r for r in records if r.dns_cached is False]
    assert [(r.host, r.kind) for r in asked] == [("now.test", "robots")]
    assert all(r.dns_cached and r.dns_ms == 0.0 for r in records if r not in asked)
    assert (asked[0].dns_ms or 0.0) > 0
    assert all(found.names.times(host) == 1 for host in ("now.test", *soon))


def test_a_host_that_is_an_address_is_no_look_up() -> None:
    found = crawl({}, [f"{ALLOWED}/1"])
    assert [(r.outcome, r.dns_ms, r.dns_cached) for r in found.result.fetches()] == [("OK", None, None)]


def test_what_was_learnt_of_a_name_stands_in_its_hosts_row_also_when_it_was_asked_ahead() -> None:
    found = crawl({"a.test": leads_to(ALLOWED, "127.0.0.9", ttl=60)}, ["a.test/1", "a.test/2"])
    state = found.result.state()
    assert set(state.addresses) == {ALLOWED, "127.0.0.9"}
    assert state.addresses_expire_at is not None
    last = found.result.fetches()[-1]
    left = (state.addresses_expire_at - last.started_at).total_seconds()
    assert 40 < left <= 60
