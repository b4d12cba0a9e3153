import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from math import inf

import pytest

from crawl import policy
from crawl.errors import SettingsError
from crawl.net import dns
from crawl.net.dns import LONGEST_TTL, Resolved, ResolveError, Resolver
from crawl.outcomes import Outcome
from tests.dnsserver import (
    AAAA,
    REFUSED,
    SERVFAIL,
    A,
    DnsServer,
    Say,
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

Clock = Callable[[], float]


@asynccontextmanager
async def resolver(
    clock: Clock | None = None, says: dict[str, Say] | None = None, **changes: object
) -> AsyncIterator[tuple[Resolver, DnsServer]]:
    with serving() as server:
        server.says.update(says or {"a.test": leads_to("192.0.2.1", "192.0.2.2")})
        settings = policy.Dns(servers=(server.setting,), **changes)  # type: ignore[arg-type]
        async with Resolver(settings, *([clock] if clock else [])) as made:
            yield made, server


def resolve(say: Say, name: str = "a.test", **changes: object) -> Resolved:
    async def main() -> Resolved:
        async with resolver(says={name: say}, **changes) as (names, _):
            return await names.resolve(name)

    return asyncio.run(main())


def failure(say: Say, name: str = "a.test", **changes: object) -> ResolveError:
    with pytest.raises(ResolveError) as caught:
        resolve(say, name, **changes)
    return caught.value


# --- answers ------------------------------------------------------------------------------------------------


def test_a_name_is_asked_once_however_many_want_it_and_kept_for_its_ttl() -> None:
    now = [0.0]

    async def main() -> None:
        async with resolver(lambda: now[0]) as (names, server):
            answers = await asyncio.gather(*(names.resolve("a.test") for _ in range(20)))
            assert {frozenset(a.addresses) for a in answers} == {frozenset(("192.0.2.1", "192.0.2.2"))}
            assert {(a.ttl_s, a.cached, a.note) for a in answers} == {(60, False, None)}
            again = await names.resolve("a.test")
            assert (again.cached, again.ms) == (True, 0.0)
            assert server.times("a.test") == 1
            now[0] = 61.0
            assert names.known("a.test") is None
            assert not (await names.resolve("a.test")).cached

    asyncio.run(main())


def test_an_answer_with_ttl_0_serves_those_who_waited_for_it_and_no_one_later() -> None:
    async def main() -> None:
        say = in_turn(leads_to("192.0.2.1", ttl=0), leads_to("192.0.2.2", ttl=0))
        async with resolver(says={"a.test": say}) as (names, server):
            both = await asyncio.gather(names.resolve("a.test"), names.resolve("a.test"))
            assert {a.addresses for a in both} == {("192.0.2.1",)}
            assert names.known("a.test") is None
            assert (await names.resolve("a.test")).addresses == ("192.0.2.2",)
            assert server.times("a.test") == 2

    asyncio.run(main())


@pytest.mark.parametrize("ttl", [86_401, 2**31 - 1])
def test_an_absurdly_long_ttl_is_cut_and_says_so(ttl: int) -> None:
    answer = resolve(leads_to("192.0.2.1", ttl=ttl))
    assert answer.ttl_s == LONGEST_TTL
    assert answer.note == f"TTL {ttl} s cut to 86400 s"


def test_a_ttl_with_its_highest_bit_set_counts_as_none() -> None:
    assert resolve(leads_to("192.0.2.1", ttl=2**31)).ttl_s == 0


def test_ipv6_is_asked_only_where_there_is_no_ipv4() -> None:
    async def main() -> None:
        says = {"six.test": leads_to("2001:db8::5"), "a.test": leads_to("192.0.2.1", "2001:db8::5")}
        async with resolver(says=says) as (names, server):
            assert (await names.resolve("six.test")).addresses == ("2001:db8::5",)
            assert (await names.resolve("a.test")).addresses == ("192.0.2.1",)
            assert server.times("a.test", AAAA) == 0

    asyncio.run(main())


def test_the_order_of_addresses_is_the_hosts_own_however_the_server_turns_them() -> None:
    ours = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    orders = {
        host: {resolve(leads_to(*ours[i:], *ours[:i]), host).addresses for i in range(3)}
        for host in ("a.test", "b.test", "c.test", "d.test")
    }
    assert all(len(found) == 1 for found in orders.values())
    assert len({found.pop()[0] for found in orders.values()}) > 1, "hosts spread over the addresses"


def test_more_addresses_than_can_be_of_use_are_left_out_and_it_says_so() -> None:
    many = [f"192.0.2.{i}" for i in range(1, 101)]
    answer = resolve(truncated(leads_to(*many, *many)))
    assert (len(answer.addresses), answer.note) == (32, "32 of 100 addresses used")


def test_a_truncated_answer_is_asked_for_again_over_tcp() -> None:
    async def main() -> None:
        async with resolver(says={"a.test": truncated(leads_to("192.0.2.1"))}) as (names, server):
            assert (await names.resolve("a.test")).addresses == ("192.0.2.1",)
            assert [q.tcp for q in server.asked] == [False, True]

    asyncio.run(main())


# --- failures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "say", "outcome"),
    [
        ("nx.test", nothing, Outcome.DNS_FAILURE),
        ("none.test", leads_to(), Outcome.DNS_FAILURE),
        ("a..test", nothing, Outcome.DNS_FAILURE),
        (f"{'a' * 64}.test", nothing, Outcome.DNS_FAILURE),
        ("fail.test", code(SERVFAIL), Outcome.DNS_TIMEOUT),
        ("refused.test", code(REFUSED), Outcome.DNS_TIMEOUT),
        ("garbage.test", garbage(b"\xff" * 40), Outcome.DNS_TIMEOUT),
        ("stranger.test", garbage(b"\xff" * 40, keep_id=False), Outcome.DNS_TIMEOUT),
        ("short.test", garbage(b""), Outcome.DNS_TIMEOUT),
        ("silent.test", silence, Outcome.DNS_TIMEOUT),
        ("cut.test", truncated(silence), Outcome.DNS_TIMEOUT),
    ],
)
def test_failures_are_told_apart_and_remembered(name: str, say: Say, outcome: Outcome) -> None:
    async def main() -> None:
        now = [0.0]
        async with resolver(lambda: now[0], {name: say}, timeout=timedelta(seconds=0.2)) as (names, server):
            for cached in (False, True, True):
                with pytest.raises(ResolveError) as caught:
                    await names.resolve(name)
                assert caught.value.outcome is outcome
                assert caught.value.detail
                assert caught.value.cached is cached
            asked = len(server.asked)
            assert isinstance(names.known(name), ResolveError)
            assert len(server.asked) == asked <= 6
            now[0] = 61.0
            assert names.known(name) is None

    asyncio.run(main())


def test_an_answer_after_the_limit_is_a_time_out() -> None:
    error = failure(slow(1.0, leads_to("192.0.2.1")), timeout=timedelta(seconds=0.15))
    assert (error.outcome, error.detail) == (Outcome.DNS_TIMEOUT, "no answer in 0.15 s")


def test_a_server_that_is_not_there_fails_and_the_next_one_answers() -> None:
    async def main() -> None:
        with serving(a_test=leads_to("192.0.2.1")) as server, serving() as gone:
            pass
        with serving(a_test=leads_to("192.0.2.1")) as server:
            settings = policy.Dns(servers=(gone.setting, server.setting))
            async with Resolver(settings) as names:
                assert (await names.resolve("a.test")).addresses == ("192.0.2.1",)

    asyncio.run(main())


def test_an_asker_that_gives_up_takes_the_answer_from_nobody() -> None:
    async def main() -> None:
        async with resolver() as (names, _):
            first = asyncio.create_task(names.resolve("a.test"))
            second = asyncio.create_task(names.resolve("a.test"))
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).addresses
            with pytest.raises(asyncio.CancelledError):
                await first

    asyncio.run(main())


def test_only_so_many_questions_are_open_at_once() -> None:
    async def main() -> None:
        says = {f"n{i}.test": slow(0.05, leads_to("192.0.2.1")) for i in range(12)}
        async with resolver(says=says, in_flight=3) as (names, server):
            await asyncio.gather(*(names.resolve(name) for name in says))
            assert server.open_at_once <= 3

    asyncio.run(main())


def test_names_that_nobody_answers_hold_others_up_for_a_second_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dns, "YOUNG", 0.05)

    async def main() -> None:
        says = {"a.test": leads_to("192.0.2.1"), "*.dead.test": silence}
        async with resolver(says=says, in_flight=2, prefetch=2) as (names, _):
            dead = [asyncio.create_task(names.resolve(f"d{i}.dead.test")) for i in range(6)]
            await asyncio.sleep(0)
            assert (await names.resolve("a.test")).addresses == ("192.0.2.1",)
            assert not any(one.done() for one in dead)
            for one in dead:
                one.cancel()
            await asyncio.gather(*dead, return_exceptions=True)

    asyncio.run(main())


# --- ahead of time ------------------------------------------------------------------------------------------


def test_names_asked_for_ahead_are_there_when_they_are_needed_failures_too() -> None:
    async def main() -> None:
        says = {f"n{i}.test": slow(0.02, leads_to("192.0.2.1")) for i in range(6)}
        async with resolver(says=says, prefetch=2) as (names, server):
            await names.prefetch([*says, "nx.test", "192.0.2.9", "n0.test"])
            assert server.open_at_once <= 2
            for name in says:
                assert (await names.resolve(name)).cached
                assert server.times(name) == 1
            assert [q.name for q in server.asked if q.kind == A][:2] == ["n0.test", "n1.test"]
            gone = names.known("nx.test")
            assert isinstance(gone, ResolveError)
            assert gone.cached

    asyncio.run(main())


def test_who_needs_a_name_that_is_being_asked_for_ahead_waits_for_that_answer() -> None:
    async def main() -> None:
        async with resolver(says={"a.test": slow(0.05, leads_to("192.0.2.1"))}) as (names, server):
            ahead = asyncio.create_task(names.prefetch(["a.test"]))
            await asyncio.sleep(0.01)
            answer = await names.resolve("a.test")
            assert (answer.cached, server.times("a.test")) == (False, 1)
            await ahead

    asyncio.run(main())


# --- without a server ---------------------------------------------------------------------------------------


def test_what_the_operator_lists_is_an_answer_from_memory_and_an_address_no_look_up_at_all() -> None:
    names = Resolver(policy.Dns(hosts={"*.test": "127.0.0.1"}))
    listed, own = names.known("a.test"), names.known("[2001:db8::1]")
    assert isinstance(listed, Resolved)
    assert isinstance(own, Resolved)
    assert (listed.addresses, listed.cached, listed.ms, listed.expires) == (("127.0.0.1",), True, 0.0, inf)
    assert (own.addresses, own.cached, own.ms, own.expires) == (("2001:db8::1",), None, None, inf)


def test_answers_taken_over_are_used_until_they_expire() -> None:
    now = [0.0]
    names = Resolver(policy.Dns(hosts={"a.test": "127.0.0.1"}), lambda: now[0])
    names.remember("b.test", ["192.0.2.1"], 10)
    names.remember("a.test", ["192.0.2.1"], 10)
    known = names.known("b.test")
    assert isinstance(known, Resolved)
    assert (known.addresses, known.expires) == (("192.0.2.1",), 10.0)
    own = names.known("a.test")
    assert isinstance(own, Resolved)
    assert own.addresses == ("127.0.0.1",)
    now[0] = 10.5
    assert names.known("b.test") is None


def test_a_listed_host_without_an_address_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"'a\.test' leads to 'nowhere'"):
        Resolver(policy.Dns(hosts={"a.test": "nowhere"}))
