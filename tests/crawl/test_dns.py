import asyncio
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from hashlib import blake2b
from ipaddress import ip_address, ip_network

import pytest

from crawl import policy
from crawl.dns import Resolved, ResolveError, Resolver
from crawl.errors import SettingsError
from crawl.outcomes import Outcome


class NameServer(asyncio.DatagramProtocol):
    """Answers by the first label: ok, six (AAAA only), alias, nx, none (no address), fail, slow (silent)."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, int]] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        at, labels = 12, []
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += data[at] + 1
        kind = struct.unpack_from(">H", data, at + 1)[0]
        name = ".".join(labels)
        self.asked[name, kind] += 1
        head = labels[0].rstrip("0123456789")
        if head == "slow":
            return
        code = {"nx": 3, "fail": 2}.get(head, 0)
        answers: list[bytes] = []
        if head == "ok" and kind == 1:
            answers = [
                b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(a)
                for a in ("192.0.2.1", "192.0.2.2")
            ]
        elif head == "six" and kind == 28:
            data6 = socket.inet_pton(socket.AF_INET6, "2001:db8::5")
            answers = [b"\xc0\x0c" + struct.pack(">HHIH", 28, 1, 60, 16) + data6]
        elif head == "alias":
            target = b"\x06target\x04test\x00"
            answers = [b"\xc0\x0c" + struct.pack(">HHIH", 5, 1, 30, len(target)) + target]
            if kind == 1:
                answers.append(target + struct.pack(">HHIH", 1, 1, 7, 4) + socket.inet_aton("192.0.2.9"))
        flags = struct.pack(">H", 0x8180 | code)
        counts = struct.pack(">HHHH", 1, len(answers), 0, 0)
        reply = data[:2] + flags + counts + data[12 : at + 5] + b"".join(answers)
        self.transport.sendto(reply, peer)  # type: ignore[attr-defined]


Clock = Callable[[], float]


@asynccontextmanager
async def resolver(
    clock: Clock | None = None, **changes: object
) -> AsyncIterator[tuple[Resolver, NameServer]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    settings = policy.Dns(servers=(f"127.0.0.1:{port}",), **changes)  # type: ignore[arg-type]
    try:
        async with Resolver(settings, *([clock] if clock else [])) as made:
            yield made, server
    finally:
        transport.close()
        await asyncio.sleep(0)


def test_a_name_is_asked_once_however_many_want_it_and_kept_for_its_ttl() -> None:
    now = [0.0]

    async def main() -> None:
        async with resolver(lambda: now[0]) as (names, server):
            answers = await asyncio.gather(*(names.resolve("ok.test") for _ in range(20)))
            assert {a.addresses for a in answers} == {("192.0.2.1", "192.0.2.2")}
            assert answers[0].ttl_s == 60
            again = await names.resolve("ok.test")
            assert again.cached
            assert server.asked["ok.test", 1] == 1
            now[0] = 61.0
            assert names.known("ok.test") is None
            assert not (await names.resolve("ok.test")).cached

    asyncio.run(main())


def test_ipv6_is_asked_only_where_there_is_no_ipv4() -> None:
    async def main() -> None:
        async with resolver() as (names, server):
            assert (await names.resolve("six.test")).addresses == ("2001:db8::5",)
            await names.resolve("ok.test")
            assert server.asked["ok.test", 28] == 0

    asyncio.run(main())


def test_the_shortest_ttl_of_a_chain_of_aliases_counts() -> None:
    async def main() -> None:
        async with resolver() as (names, _):
            answer = await names.resolve("alias.test")
            assert (answer.addresses, answer.ttl_s) == (("192.0.2.9",), 7)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("nx.test", Outcome.DNS_FAILURE),
        ("none.test", Outcome.DNS_FAILURE),
        ("fail.test", Outcome.DNS_TIMEOUT),
        ("slow.test", Outcome.DNS_TIMEOUT),
        ("a..test", Outcome.DNS_FAILURE),
    ],
)
def test_failures_are_told_apart_and_remembered(name: str, outcome: Outcome) -> None:
    async def main() -> None:
        now = [0.0]
        async with resolver(lambda: now[0], timeout=timedelta(seconds=0.2)) as (names, server):
            for _ in range(3):
                with pytest.raises(ResolveError) as caught:
                    await names.resolve(name)
                assert caught.value.outcome is outcome
                assert caught.value.detail
            assert all(times <= 2 for times in server.asked.values())
            assert isinstance(names.known(name), ResolveError)
            now[0] = 61.0
            assert names.known(name) is None

    asyncio.run(main())


def test_an_asker_that_gives_up_takes_the_answer_from_nobody() -> None:
    async def main() -> None:
        async with resolver() as (names, _):
            first = asyncio.create_task(names.resolve("ok.test"))
            second = asyncio.create_task(names.resolve("ok.test"))
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).addresses
            with pytest.raises(asyncio.CancelledError):
                await first

    asyncio.run(main())


def local(host: str, hosts: dict[str, str]) -> str | None:
    answer = Resolver(policy.Dns(hosts=hosts)).known(host)
    assert not isinstance(answer, ResolveError)
    return None if answer is None else answer.addresses[0]


def test_listed_names_win_exact_before_the_longest_suffix() -> None:
    hosts = {"*.test": "127.0.0.1", "*.b.test": "127.0.0.2", "a.b.test": "127.0.0.3"}
    assert local("x.test", hosts) == "127.0.0.1"
    assert local("x.y.test", hosts) == "127.0.0.1"
    assert local("x.b.test", hosts) == "127.0.0.2"
    assert local("a.b.test", hosts) == "127.0.0.3"
    assert local("test", hosts) is None
    assert local("x.other", hosts) is None


def test_a_range_spreads_hosts_by_a_fixed_hash() -> None:
    hosts = {"*.test": "127.1.0.0/16"}
    seen = {local(f"h{i}.test", hosts) for i in range(200)}
    assert len(seen) > 190
    assert all(ip_address(a) in ip_network("127.1.0.0/16") for a in seen if a)
    number = int.from_bytes(blake2b(b"a.test", digest_size=8).digest()[:4], "big")
    assert local("a.test", hosts) == str(ip_network("127.1.0.0/16")[1 + number % 65_534])


def test_an_address_is_its_own_answer() -> None:
    assert local("192.0.2.7", {}) == "192.0.2.7"
    assert local("[::1]", {"*.test": "127.0.0.1"}) == "::1"
    assert local("localhost", {}) == "127.0.0.1"


def test_answers_taken_over_are_used_until_they_expire() -> None:
    now = [0.0]
    names = Resolver(policy.Dns(hosts={"a.test": "127.0.0.1"}), lambda: now[0])
    names.remember("b.test", ["192.0.2.1"], 10)
    names.remember("a.test", ["192.0.2.1"], 10)
    known = names.known("b.test")
    assert isinstance(known, Resolved)
    assert known.addresses == ("192.0.2.1",)
    own = names.known("a.test")
    assert isinstance(own, Resolved)
    assert own.addresses == ("127.0.0.1",)
    now[0] = 10.5
    assert names.known("b.test") is None


def test_a_listed_host_without_an_address_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"'a\.test' leads to 'nowhere'"):
        Resolver(policy.Dns(hosts={"a.test": "nowhere"}))
