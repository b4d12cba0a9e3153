"""Hosts that share a public address, through the whole fetch stage: the guard takes loopback for public."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from crawl.net.egress import Guard
from crawl.politeness.addresscap import Cap
from crawl.records import Fetch
from tests.crawl.rawserver import RawServer, Seen, response
from tests.crawl.stages.fetching import NO_RULES, Result, fetch_group, plan_of, polite

HOSTS = [f"h{i}.d{i}.test" for i in range(8)]


class PublicLoopback(Guard):
    """Loopback is the internet."""

    def public(self, ip: str) -> bool:
        return ip.startswith("127.")


async def slowly(seen: Seen, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.15)
    writer.write(response(200, b"x"))


def crawl(hosts: Iterable[str], says: Any = slowly, **options: Any) -> Result:
    settings = polite(**options.pop("politeness", {}))
    guard = options.pop("guard", PublicLoopback(settings.egress))

    async def main() -> Result:
        async with RawServer({"/robots.txt": NO_RULES, "/1": says}) as server:
            plan = plan_of(server.url("/1", host) for host in hosts)
            return await fetch_group(server, plan, settings=settings, guard=guard, **options)

    return asyncio.run(main())


def records(result: Result) -> list[Fetch]:
    made = [record for record, _ in result.entries if isinstance(record, Fetch)]
    return sorted(made, key=lambda record: record.started_at)


def open_at_once(made: list[Fetch]) -> int:
    return max(sum(r.started_at <= one.started_at < r.finished_at for r in made) for one in made)


def test_hosts_at_one_address_start_apart_and_no_more_are_open_than_its_cap_allows() -> None:
    waits: set[str] = set()
    caps = {"address_delay": timedelta(seconds=0.03), "address_in_flight": 2}
    result = crawl(HOSTS, politeness=caps, progress=lambda seen: waits.update(seen["waiting"]))
    made = records(result)
    assert [r.outcome for r in result.fetches()] == ["OK"] * len(HOSTS)
    assert min(b.started_at - a.started_at for a, b in pairwise(made)) >= timedelta(seconds=0.03)
    assert open_at_once(made) == 2
    seen = sorted(result.server.seen, key=lambda one: one.started)
    assert max(sum(s.started <= one.started < s.ended for s in seen) for one in seen) <= 2
    assert {(r.address_gap_ms, r.address_in_flight) for r in made} == {(30.0, 2)}
    first, *_, last = [r.address_wait_ms for r in made]
    assert first == 0.0
    assert (last or 0.0) > 100.0
    assert "address" in waits


def test_an_address_that_is_not_public_has_no_cap() -> None:
    result = crawl(HOSTS, guard=None)
    made = records(result)
    assert open_at_once(made) > 4
    assert {(r.address_gap_ms, r.address_in_flight, r.address_wait_ms) for r in made} == {(None,) * 3}


def test_a_group_keeps_to_its_part_of_what_the_plan_knows_and_shares_what_it_does_not() -> None:
    part = {"127.0.0.1": Cap(in_flight=1, delay_s=0.02)}
    made = records(crawl(HOSTS[:3], caps=part))
    assert {(r.address_gap_ms, r.address_in_flight) for r in made} == {(20.0, 1)}
    assert open_at_once(made) == 1
    made = records(crawl(HOSTS[:1], groups=2))
    assert {(r.address_gap_ms, r.address_in_flight) for r in made} == {(500.0, 2)}


def test_the_gap_of_a_host_holds_beside_the_cap_of_its_address() -> None:
    says = response(200, b"x")

    async def main() -> Result:
        settings = polite(address_delay=timedelta(seconds=0.01), min_delay=timedelta(seconds=0.25))
        async with RawServer({"/robots.txt": NO_RULES, "/1": says, "/2": says}) as server:
            plan = plan_of(server.url(path, host) for host in HOSTS[:4] for path in ("/1", "/2"))
            guard = PublicLoopback(settings.egress)
            return await fetch_group(server, plan, settings=settings, guard=guard)

    by_host: dict[str, list[Fetch]] = {}
    for record in records(asyncio.run(main())):
        by_host.setdefault(record.host, []).append(record)
    for made in by_host.values():
        assert len(made) == 3
        for before, after in pairwise(made):
            assert after.started_at >= before.finished_at + timedelta(seconds=0.25)


def test_who_stands_in_line_when_the_window_closes_is_carried_over_and_told_why() -> None:
    result = crawl(HOSTS, politeness={"address_delay": timedelta(seconds=0.4)}, window=1.0)
    assert set(result.visited.carried) <= {(host, why) for host in HOSTS for why in ("address", "window")}
    assert "address" in {why for _, why in result.visited.carried}
    assert sum(result.visited.carried.values()) + len(result.fetches()) == len(HOSTS)


def test_an_address_whose_hosts_fail_or_are_paused_blocks_nobody() -> None:
    async def reset(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    def held(host: str, domain: str) -> bool:
        return host in HOSTS[2:4]

    says = {f"{HOSTS[i]}/robots.txt": reset for i in range(2)}

    async def main() -> Result:
        settings = polite(address_delay=timedelta(seconds=0.01), address_in_flight=1)
        async with RawServer({"/robots.txt": NO_RULES, "/1": response(200), **says}) as server:
            plan = plan_of(server.url("/1", host) for host in HOSTS)
            guard = PublicLoopback(settings.egress)
            return await fetch_group(server, plan, settings=settings, guard=guard, held=held, window=8.0)

    result = asyncio.run(main())
    assert {r.host for r in result.fetches() if r.outcome == "OK"} == set(HOSTS[4:])
    assert {key: n for key, n in result.visited.carried.items() if key[1] == "paused"} == {
        (host, "paused"): 1 for host in HOSTS[2:4]
    }


def test_after_a_resume_an_address_is_left_alone_for_one_gap_first() -> None:
    began = datetime.now(UTC)
    result = crawl(HOSTS[:1], politeness={"address_delay": timedelta(seconds=0.5)}, resumed=True)
    assert records(result)[0].started_at - began >= timedelta(seconds=0.5)
