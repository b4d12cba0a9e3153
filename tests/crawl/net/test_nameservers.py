"""What name servers may send, and how long they may take."""

import asyncio
from collections.abc import Iterable
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.net import nameservers
from crawl.net.nameservers import Found, NameServers, ResolveError
from crawl.outcomes import Outcome
from tests.dnsserver import (
    A,
    DnsServer,
    Reply,
    Say,
    alias,
    garbage,
    in_turn,
    leads_to,
    serving,
    silence,
    slow,
)


def ask(say: Say, limit: float = 5.0) -> Found:
    async def main() -> Found:
        with serving(a_test=say) as server:
            made = NameServers([server.setting], limit)
            try:
                return await made.ask("a.test", limit)
            finally:
                await made.close()

    return asyncio.run(main())


def failure(say: Say, limit: float = 5.0) -> ResolveError:
    with pytest.raises(ResolveError) as caught:
        ask(say, limit)
    return caught.value


async def together(
    server: DnsServer, names: Iterable[str], limit: float = 5.0
) -> dict[str, Found | ResolveError]:
    made = NameServers([server.setting], limit)
    names = list(names)
    try:
        found = await asyncio.gather(*(made.ask(name, limit) for name in names), return_exceptions=True)
    finally:
        await made.close()
    assert all(isinstance(one, Found | ResolveError) for one in found)
    return dict(zip(names, found, strict=True))  # type: ignore[arg-type]


# --- aliases ------------------------------------------------------------------------------------------------


def test_the_shortest_ttl_of_a_chain_of_aliases_counts() -> None:
    answer = ask(alias("b.test", "c.test", to=("192.0.2.9",), ttl=70, ttls=(50, 7)))
    assert (answer.addresses, answer.ttl) == (("192.0.2.9",), 7)
    assert ask(alias("b.test", to=("192.0.2.9",), ttl=5, ttls=(50,))).ttl == 5


def test_a_chain_that_ends_with_ipv6_is_followed_as_well() -> None:
    assert ask(alias("b.test", "c.test", to=("2001:db8::9",))).addresses == ("2001:db8::9",)


def test_an_alias_of_nothing_says_of_what() -> None:
    error = failure(alias("b.test", "c.test"))
    assert (error.outcome, error.detail) == (
        Outcome.DNS_FAILURE,
        "an alias of c.test, which has no address",
    )


def test_aliases_in_a_circle_and_without_end_are_no_address() -> None:
    for chain in (["a.test"], ["b.test", "a.test"], [f"n{i}.test" for i in range(40)]):
        error = failure(alias(*chain, to=("192.0.2.9",) if len(chain) > 2 else ()))
        assert (error.outcome, error.detail) == (Outcome.DNS_FAILURE, "its aliases come to no end")


def test_addresses_of_names_that_were_not_asked_about_are_nobodys() -> None:
    def lie(question: object) -> Reply:
        return Reply((("b.test", A, 60, "192.0.2.66"), ("a.test", A, 60, "192.0.2.1")))

    assert ask(lie).addresses == ("192.0.2.1",)
    assert failure(lambda _: Reply((("b.test", A, 60, "192.0.2.66"),))).outcome is Outcome.DNS_FAILURE


# --- patience -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("takes", [0.6, 1.1])
def test_a_name_that_takes_longer_than_a_quick_server_led_to_expect_is_waited_for(
    takes: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nameservers, "YOUNG", 0.2)

    async def main() -> None:
        with serving() as server:
            server.says |= {"*.quick.test": leads_to("192.0.2.1")}
            server.says["slow.test"] = slow(takes, leads_to("192.0.2.2", ttl=0))
            made = NameServers([server.setting], 2.5)
            for i in range(20):  # c-ares learns to ask again after a quarter of a second
                await made.ask(f"q{i}.quick.test", 2.5)
            assert (await made.ask("slow.test", 2.5)).addresses == ("192.0.2.2",)
            await made.close()

    asyncio.run(main())


def test_many_silent_names_end_in_time_and_hold_no_other_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nameservers, "YOUNG", 0.1)

    async def main() -> None:
        with serving() as server:
            server.says |= {"*.dead.test": silence, "late.test": slow(0.3, leads_to("192.0.2.1"))}
            dead = [f"d{i}.dead.test" for i in range(30)]
            began = monotonic()
            found = await together(server, [*dead, "late.test"], 0.8)
            assert monotonic() - began < 20, "a time-out, not a hang"
            assert isinstance(found["late.test"], Found)
            for name in dead:
                error = found[name]
                assert isinstance(error, ResolveError)
                assert (error.outcome, error.detail) == (Outcome.DNS_TIMEOUT, "no answer in 0.8 s")

    asyncio.run(main())


# --- nonsense -----------------------------------------------------------------------------------------------


def test_nonsense_for_one_name_costs_no_other_name_its_answer() -> None:
    async def main() -> None:
        with serving() as server:
            server.says |= {"*.good.test": slow(0.1, leads_to("192.0.2.1"))}
            server.says |= {"*.bad.test": garbage(b"\xff" * 40)}
            good, bad = [f"n{i}.good.test" for i in range(20)], [f"n{i}.bad.test" for i in range(3)]
            found = await together(server, [*good, *bad])
            assert [type(found[name]) for name in good] == [Found] * 20
            assert [type(found[name]) for name in bad] == [ResolveError] * 3

    asyncio.run(main())


def test_a_name_whose_server_sends_nonsense_once_is_asked_again() -> None:
    assert ask(in_turn(*[garbage(b"\xff" * 40)] * 5, leads_to("192.0.2.1"))).addresses == ("192.0.2.1",)


@hypothesis(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5))
def test_no_bytes_from_a_name_server_make_more_than_a_typed_error(lies: list[bytes]) -> None:
    error = failure(in_turn(*(garbage(data) for data in lies)), 0.05)
    assert error.outcome in (Outcome.DNS_FAILURE, Outcome.DNS_TIMEOUT)
