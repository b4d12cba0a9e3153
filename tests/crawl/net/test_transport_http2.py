"""HTTP/2 over real sockets, with a server that can do what none should."""

import asyncio
import gzip

import pytest

from crawl import policy
from crawl.net.egress import Guard
from crawl.net.exchange import STALE
from crawl.net.transport import Transport
from crawl.outcomes import Outcome
from tests.crawl import certificates
from tests.crawl.http2server import Http2Server, Say, Stream, page
from tests.crawl.rawserver import RawServer, response
from tests.crawl.talking import answer_of, ask, talk


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> policy.Tls:
    return policy.Tls(ca_file=str(certificates.ca_file(tmp_path_factory.mktemp("h2"))))


def served(says: dict[str, Say], address: str = "127.0.0.1") -> Http2Server:
    context = certificates.context("a.test", "b.test", alpn=("h2", "http/1.1"))
    return Http2Server(says, tls=context, address=address)


def test_http_2_is_spoken_where_it_is_offered_over_one_connection(tls: policy.Tls) -> None:
    async def check(transport: Transport, server: Http2Server) -> None:
        first = await transport.get(ask(server, "/", headers=('If-None-Match: "e"',)))
        assert (first.outcome, first.body, first.http_version) == (Outcome.OK, b"hello", "2")
        assert first.headers == "content-length: 5\nx-odd: y"
        second = await transport.get(ask(server, "/"))
        assert (second.reused, second.body, second.http_version) == (True, b"hello", "2")
        assert server.connections == 1
        one, two = (stream.headers for stream in server.seen)
        assert one["if-none-match"] == '"e"'
        assert set(two) == {
            ":method", ":path", ":scheme", ":authority", "user-agent", "accept", "accept-encoding"
        }  # fmt: skip

    talk(served({"/": page(b"hello", 200, ("x-odd", "y"))}), check, tls=tls)


def test_requests_at_one_time_share_the_connection_and_fail_each_by_itself(tls: policy.Tls) -> None:
    """Of a host with lanes. On a kept connection they are streams beside each other."""

    async def slow(stream: Stream) -> None:
        await asyncio.sleep(0.1)
        await page(b"hello", 200)(stream)

    async def check(transport: Transport, server: Http2Server) -> None:
        await transport.get(ask(server, "/"))
        paths = ("/slow", "/reset", "/slow")
        one, two, three = await asyncio.gather(*(transport.get(ask(server, path)) for path in paths))
        assert [(a.outcome, a.body, a.http_version) for a in (one, three)] == [
            (Outcome.OK, b"hello", "2")
        ] * 2
        assert (two.outcome, two.reason) == (Outcome.RESET, "http2_internal_error")
        assert [stream.path for stream in server.seen] == ["/", *paths]
        assert server.connections == 1

    talk(served({"/": page(b"hello", 200), "/slow": slow, "/reset": resetting(2)}), check, tls=tls)


def test_a_server_that_offers_http_1_is_asked_by_it(tls: policy.Tls) -> None:
    context = certificates.context("a.test", alpn=("http/1.1",))
    answer = answer_of(RawServer({"/": response(200, b"x")}, tls=context), tls=tls)
    assert (answer.outcome, answer.http_version) == (Outcome.OK, "1.1")


def resetting(code: int, *, after: bytes | None = None) -> Say:
    async def say(stream: Stream) -> None:
        if after is not None:
            await stream.head(200, ("content-length", "500"))
            await stream.body(after, end=False)
        await stream.reset(code)

    return say


@pytest.mark.parametrize(
    ("say", "outcome", "reason", "truncated"),
    [
        (resetting(1), Outcome.RESET, "http2_protocol_error", False),
        (resetting(2), Outcome.RESET, "http2_internal_error", False),
        (resetting(11), Outcome.RESET, "http2_enhance_your_calm", False),
        (resetting(2, after=b"part"), Outcome.RESET, "http2_internal_error", True),
        (resetting(8, after=b"part"), Outcome.RESET, "http2_cancel", True),
    ],
)
def test_a_stream_that_is_reset_says_why(
    say: Say, outcome: Outcome, reason: str, truncated: bool, tls: policy.Tls
) -> None:
    answer = answer_of(served({"/": say}), tls=tls)
    assert (answer.outcome, answer.reason, answer.truncated) == (outcome, reason, truncated)
    assert answer.body == (b"part" if truncated else b"")


def test_a_stream_that_was_refused_is_not_asked_twice_behind_our_back(tls: policy.Tls) -> None:
    async def check(transport: Transport, server: Http2Server) -> None:
        answer = await transport.get(ask(server, "/"))
        assert answer.outcome is Outcome.RESET
        assert answer.reason in (STALE, "http2_refused_stream")
        assert len(server.seen) == 1

    talk(served({"/": resetting(7)}), check, tls=tls)


@pytest.mark.parametrize("last", [0, 1])
def test_a_server_that_goes_away_is_told_as_a_lost_connection(last: int, tls: policy.Tls) -> None:
    async def leaving(stream: Stream) -> None:
        await stream.go_away(0, last)
        stream.writer.close()

    async def check(transport: Transport, server: Http2Server) -> None:
        answer = await transport.get(ask(server, "/leaving"))
        assert answer.outcome is Outcome.RESET, answer
        assert len(server.seen) == 1
        again = await transport.get(ask(server, "/"))
        assert (again.outcome, server.connections) == (Outcome.OK, 2)

    talk(served({"/leaving": leaving, "/": page(b"x")}), check, tls=tls)


def test_a_kept_connection_is_judged_again(tls: policy.Tls) -> None:
    async def check(transport: Transport, server: Http2Server) -> None:
        assert (await transport.get(ask(server, "/"))).outcome is Outcome.OK
        transport.guard = Guard(policy.Egress())
        answer = await transport.get(ask(server, "/"))
        assert answer.outcome is Outcome.EGRESS_DENIED
        assert (len(server.seen), server.connections) == (1, 1)

    talk(served({"/": page(b"x")}), check, tls=tls)


def test_the_pin_holds_and_connections_are_not_shared_among_hosts(tls: policy.Tls) -> None:
    """One certificate for both names: HTTP/2 would allow it (RFC 9113 9.1.1)."""

    async def check(transport: Transport, server: Http2Server) -> None:
        for host, pin in [("a.test", "127.0.0.1"), ("b.test", "127.0.0.1"), ("a.test", "127.0.0.9")]:
            answer = await transport.get(ask(server, "/", url=f"https://{host}:{server.port}/", pin=pin))
            assert (answer.address, answer.reused) == (pin, False)
        assert server.connections == 3

    talk(served({"/": page(b"x")}, address="0.0.0.0"), check, tls=tls)


@pytest.mark.parametrize(
    ("say", "outcome", "reason", "length"),
    [
        (page(b"x" * 200_001), Outcome.TOO_LARGE, "wire_bytes", 200_000),
        (
            page(gzip.compress(bytes(300_001)), 200, ("content-encoding", "gzip")),
            Outcome.TOO_LARGE,
            "decoded_bytes",
            300_000,
        ),
        (page(b"", 200, ("x-big", "y" * 70_000)), Outcome.MALFORMED, "header_bytes", 0),
        (page(b"", 200, *[("x", "y")] * 300), Outcome.MALFORMED, "header_lines", 0),
    ],
)
def test_caps_hold(say: Say, outcome: Outcome, reason: str, length: int, tls: policy.Tls) -> None:
    answer = answer_of(served({"/": say}), tls=tls)
    assert (answer.outcome, answer.reason, len(answer.body)) == (outcome, reason, length)


async def dripping(stream: Stream) -> None:
    await stream.head(200)
    for _ in range(100):
        await asyncio.sleep(0.1)
        await stream.body(b"x", end=False)


async def pinging(stream: Stream) -> None:
    """Alive, and silent."""
    while True:
        stream.talk.ping(b"12345678")
        await stream.flush()
        await asyncio.sleep(0.05)


async def settling(stream: Stream) -> None:
    while True:
        stream.talk.update_settings({4: 65_535})
        await stream.flush()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(("say", "reason"), [(dripping, "deadline"), (pinging, "idle"), (settling, "idle")])
def test_frames_that_bring_nothing_do_not_outlast_the_limits(say: Say, reason: str, tls: policy.Tls) -> None:
    answer = answer_of(served({"/": say}), tls=tls)
    assert (answer.outcome, answer.reason) == (Outcome.TIMEOUT, reason)


def test_interim_answers_are_not_the_answer(tls: policy.Tls) -> None:
    async def hinting(stream: Stream) -> None:
        for _ in range(3):
            await stream.head(103, ("link", "</x>"))
        await page(b"ok")(stream)

    answer = answer_of(served({"/": hinting}), tls=tls)
    assert (answer.outcome, answer.body, answer.headers) == (Outcome.OK, b"ok", "content-length: 2")


def test_many_requests_to_one_host_share_a_connection_and_all_are_answered(tls: policy.Tls) -> None:
    """Not what politeness does; but an operator may allow several at once."""

    async def check(transport: Transport, server: Http2Server) -> None:
        await transport.get(ask(server, "/"))
        answers = await asyncio.gather(*(transport.get(ask(server, "/")) for _ in range(20)))
        assert {answer.body for answer in answers} == {b"x" * 20_000}
        assert server.connections == 1

    talk(served({"/": page(b"x" * 20_000)}), check, tls=tls)


def test_over_the_byte_budget_bodies_wait_and_all_arrive(tls: policy.Tls) -> None:
    async def check(transport: Transport, server: Http2Server) -> None:
        urls = [f"https://{host}.test:{server.port}/{n}" for host in "ab" for n in range(6)]
        answers = await asyncio.gather(*(transport.get(ask(server, "/", url=url)) for url in urls))
        assert [(a.outcome, len(a.body)) for a in answers] == [(Outcome.OK, 150_000)] * len(urls)
        assert transport.budget.held == 0

    says = {f"/{n}": page(b"x" * 150_000) for n in range(6)}
    talk(served(says), check, tls=tls, budget=100_000)
