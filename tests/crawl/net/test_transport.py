import asyncio
import gzip
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crawl import policy
from crawl.net.egress import Guard
from crawl.net.exchange import DROPPED, STALE, Answer, Request, header, location
from crawl.net.transport import Transport
from crawl.outcomes import Outcome
from tests.crawl.rawserver import RawServer, Say, Seen, closing, dripping, resetting, response, silent

LOOPBACK = policy.Egress(allow=("127.0.0.0/8", "::1/128"))
QUICK = policy.Limits(
    request_deadline=timedelta(seconds=1.2),
    idle=timedelta(seconds=0.4),
    connect_timeout=timedelta(seconds=0.5),
    wire_bytes=200_000,
    decoded_bytes=300_000,
)
Talk = Callable[[Transport, RawServer], Awaitable[None]]


def talk(
    says: dict[str, bytes | Say],
    with_them: Talk,
    *,
    egress: policy.Egress = LOOPBACK,
    limits: policy.Limits = QUICK,
    address: str = "127.0.0.1",
    **options: Any,
) -> None:
    async def main() -> None:
        agent = policy.Agent(name="tester", contact="https://example.com/bot")
        transport = Transport(Guard(egress), limits, agent, **options)
        async with RawServer(says, address=address) as server, transport:
            await with_them(transport, server)

    asyncio.run(main())


def ask(server: RawServer, path: str, **changes: Any) -> Request:
    return Request(**{"url": server.url(path), "pin": "127.0.0.1", **changes})


def get(said: bytes | Say, **changes: Any) -> Answer:
    """The answer to one request."""
    answers: list[Answer] = []

    async def once(transport: Transport, server: RawServer) -> None:
        answers.append(await transport.get(ask(server, "/")))
        assert transport.in_flight == 0

    talk({"/": said}, once, **changes)
    return answers[0]


def test_an_answer_tells_what_came_and_how() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        answer = await transport.get(ask(server, "/page"))
        assert (answer.outcome, answer.reason, answer.status) == (Outcome.OK, None, 200)
        assert (answer.body, answer.wire_bytes, answer.truncated) == (b"hello", 5, False)
        assert answer.headers == "Content-Type: text/html\nX-Odd: \xe9\nContent-Length: 5"
        assert header(answer.headers, "content-type") == "text/html"
        assert header(answer.headers, "type") is None
        assert (answer.http_version, answer.address, answer.reused) == ("1.1", "127.0.0.1", False)
        assert answer.connect_ms is not None
        assert answer.tls_ms is None
        assert 0 <= answer.connect_ms <= (answer.first_byte_ms or 0) <= answer.total_ms + 1
        again = await transport.get(ask(server, "/page"))
        assert (again.body, again.reused, again.connect_ms) == (b"hello", True, 0)

    talk({"/page": response(200, b"hello", "Content-Type: text/html", "X-Odd: \xe9")}, check)


def test_a_request_says_who_we_are_and_nothing_more() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        await transport.get(ask(server, "/x", headers=('If-None-Match: "e"',)))
        await transport.get(ask(server, "/x"))
        first, second = server.seen
        assert first.header("user-agent") == "tester/1.0 (+https://example.com/bot)"
        assert first.header("accept-encoding") == "gzip, deflate, br, zstd"
        assert first.header("if-none-match") == '"e"'
        assert first.host == f"a.test:{server.port}"
        names = {line.partition(":")[0].lower() for line in second.lines[1:]}
        assert names == {"host", "user-agent", "accept", "accept-encoding"}

    talk({"/x": response(200, b"", "Set-Cookie: a=b; Path=/")}, check)


def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert get(response(200, b"direct")).body == b"direct"


def test_redirects_are_told_not_followed() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        answer = await transport.get(ask(server, "/a"))
        assert (answer.outcome, answer.status, location(answer)) == (Outcome.REDIRECT, 301, "/caf%C3%A9")
        assert server.paths() == ["/a"]

    talk({"/a": b"HTTP/1.1 301 X\r\nLocation: /caf\xc3\xa9\r\nContent-Length: 0\r\n\r\n"}, check)


@pytest.mark.parametrize(
    "said",
    [
        response(302, b"x" * 900_000, "Location: /b"),
        closing(b"HTTP/1.1 302 X\r\nLocation: /b\r\nTransfer-Encoding: chunked\r\n\r\nNot a chunk."),
        closing(b"HTTP/1.1 302 X\r\nLocation: /b\r\nContent-Length: 10\r\n\r\nx"),
    ],
)
def test_the_body_of_a_redirect_does_not_matter(said: bytes | Say) -> None:
    answer = get(said)
    assert (answer.outcome, location(answer)) == (Outcome.REDIRECT, "/b")
    assert answer.wire_bytes < 200_000


def test_a_redirect_without_a_target_is_bad() -> None:
    assert get(response(302)).outcome is Outcome.BAD_REDIRECT
    assert get(response(305, b"", "Location: http://proxy.test/")).outcome is Outcome.BAD_REDIRECT


@pytest.mark.parametrize(
    ("said", "outcome", "reason", "truncated"),
    [
        (closing(response(200, b"x", "Content-Length: 500")), Outcome.RESET, "body_cut", True),
        (resetting(response(200, b"x", "Content-Length: 500")), Outcome.RESET, "body_cut", True),
        (
            closing(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
            Outcome.RESET,
            "body_cut",
            True,
        ),
        (
            closing(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nok\r\n0\r\n\r\n"),
            Outcome.MALFORMED,
            "chunking",
            True,
        ),
        (
            response(200, gzip.compress(b"x" * 9999, mtime=0)[:-9], "Content-Encoding: gzip"),
            Outcome.MALFORMED,
            "encoding_truncated",
            True,
        ),
        (response(200, b"abc", "Content-Encoding: foo"), Outcome.MALFORMED, "encoding_unknown", False),
        (response(200, b"plain", "Content-Encoding: gzip"), Outcome.OK, "encoding_absent", False),
        (response(200, b"x" * 200_001), Outcome.TOO_LARGE, "wire_bytes", True),
        (
            response(200, gzip.compress(bytes(300_001), mtime=0), "Content-Encoding: gzip"),
            Outcome.TOO_LARGE,
            "decoded_bytes",
            True,
        ),
        (response(500, b"x", "Content-Length: 1"), Outcome.SERVER_ERROR, None, False),
        (closing(response(500, b"x", "Content-Length: 9")), Outcome.SERVER_ERROR, "body_cut", True),
    ],
)
def test_bodies_that_are_not_whole_say_so(
    said: bytes | Say, outcome: Outcome, reason: str | None, truncated: bool
) -> None:
    answer = get(said)
    assert (answer.outcome, answer.reason, answer.truncated) == (outcome, reason, truncated)
    assert answer.status is not None


def test_exactly_the_limits_is_whole() -> None:
    assert get(response(200, b"x" * 200_000)).outcome is Outcome.OK
    zeros = response(200, gzip.compress(bytes(300_000)), "Content-Encoding: gzip")
    answer = get(zeros)
    assert (answer.outcome, len(answer.body)) == (Outcome.OK, 300_000)


def test_a_body_up_to_the_close_is_whole() -> None:
    assert get(closing(b"HTTP/1.0 200 OK\r\n\r\nto the end")).body == b"to the end"


@pytest.mark.parametrize(
    ("said", "outcome", "reason"),
    [
        (resetting(), Outcome.RESET, "receive_failed"),
        (closing(b""), Outcome.RESET, "no_answer"),
        (silent(), Outcome.TIMEOUT, "idle"),
        (dripping(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n", 100, 0.1), Outcome.TIMEOUT, "deadline"),
        (dripping(response(200, b"", "Content-Length: 99"), b"x", 99, 0.1), Outcome.TIMEOUT, "deadline"),
        (dripping(response(200, b"x", "Content-Length: 99"), b"x", 1, 9), Outcome.TIMEOUT, "idle"),
        (response(200, b"", "X-Big: " + "x" * 70_000), Outcome.MALFORMED, "header_bytes"),
        (response(200, b"", *["A: b"] * 300), Outcome.MALFORMED, "header_lines"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000, Outcome.MALFORMED, "header_lines"),
    ],
)
def test_answers_that_never_come_are_told_apart(said: bytes | Say, outcome: Outcome, reason: str) -> None:
    answer = get(said)
    assert (answer.outcome, answer.reason) == (outcome, reason)


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.0\r\n", b"<html>raw</html>", b"ICY 200 OK\r\n\r\n"])
def test_what_is_no_http_is_malformed(said: bytes) -> None:
    answer = get(closing(said))
    assert (answer.outcome, answer.status) == (Outcome.MALFORMED, None)
    assert answer.reason


@pytest.mark.parametrize(
    ("said", "outcome", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/ht", Outcome.RESET, "head_cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", Outcome.RESET, "head_cut"),
        (b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nA: b", Outcome.RESET, "head_cut"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nx", Outcome.MALFORMED, "interim_only"),
        (b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\nx", Outcome.MALFORMED, "header_line"),
        (b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\nx", Outcome.MALFORMED, "header_nul"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx", Outcome.MALFORMED, "content_length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\nx", Outcome.MALFORMED, "transfer_coding"),
        (b"HTTP/1.2 200 OK\r\n\r\nx", Outcome.MALFORMED, "http_version"),
        (b"SSH-2.0-x\r\n", Outcome.MALFORMED, "no_http"),
        (response(600), Outcome.MALFORMED, "status_out_of_range"),
        (response(206, b"x"), Outcome.MALFORMED, "unasked_206"),
        (response(204), Outcome.OK, None),
        (response(205), Outcome.OK, None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 20 + b"\r\n\r\nx", Outcome.RESET, "body_cut"),
    ],
)
def test_each_breach_has_a_reason_of_ours(said: bytes, outcome: Outcome, reason: str | None) -> None:
    answer = get(closing(said))
    assert (answer.outcome, answer.reason) == (outcome, reason)


def test_a_connection_is_not_used_beyond_its_idle_limit() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        assert (await transport.get(ask(server, "/"))).reused is False
        assert (await transport.get(ask(server, "/"))).reused is True
        await asyncio.sleep(2.1)  # libcurl counts whole seconds
        assert (await transport.get(ask(server, "/"))).reused is False

    talk({"/": response(200, b"x")}, check, limits=replace(QUICK, keep_alive=timedelta(seconds=1)))


def test_time_spent_on_the_name_counts_against_the_deadline() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        answer = await transport.get(ask(server, "/", spent_ms=1_000.0))
        assert (answer.outcome, answer.reason) == (Outcome.TIMEOUT, "deadline")
        assert answer.total_ms < 1_000

    talk({"/": dripping(response(200, b"", "Content-Length: 99"), b"x", 99, 0.1)}, check)


def test_a_cookie_comes_back_nowhere_not_even_after_a_redirect() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        for path in ("/set", "/moved", "/set"):
            await transport.get(ask(server, path))
        assert [seen.header("cookie") for seen in server.seen] == [None] * 3

    cookie = "Set-Cookie: id=1; Path=/"
    talk({"/set": response(200, b"", cookie), "/moved": response(302, b"", cookie, "Location: /set")}, check)


def test_interim_answers_and_trailers_are_not_the_answer() -> None:
    said = (
        b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: t\r\n\r\n"
    )
    answer = get(said)
    assert (answer.body, answer.headers) == (b"ok", "A: b\nTransfer-Encoding: chunked")


def test_nobody_listening_is_refused_and_an_address_without_route_as_well() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        answer = await transport.get(Request(url="http://a.test:1/", pin="127.0.0.1"))
        assert (answer.outcome, answer.reason) == (Outcome.REFUSED, "econnrefused")
        assert (answer.address, answer.reused) == ("127.0.0.1", None)

    talk({}, check)


def test_a_forbidden_address_is_refused_before_a_connection_is_made() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        answer = await transport.get(ask(server, "/"))
        assert answer.outcome is Outcome.EGRESS_DENIED
        assert answer.reason == f"127.0.0.1 port {server.port}"
        assert server.connections == 0

    talk({"/": response(200)}, check, egress=policy.Egress())


def test_a_right_that_lapsed_while_connecting_sends_nothing() -> None:
    rights = [False, True]

    async def check(transport: Transport, server: RawServer) -> None:
        answer = await transport.get(ask(server, "/"))
        assert (answer.outcome, answer.reason) == (Outcome.RESET, "dropped")
        assert server.seen == []
        assert (await transport.get(ask(server, "/"))).outcome is Outcome.OK

    talk({"/": response(200)}, check, permit=lambda: rights.pop(0))


def test_a_kept_connection_is_judged_again() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        assert (await transport.get(ask(server, "/"))).outcome is Outcome.OK
        transport.guard = Guard(policy.Egress())
        answer = await transport.get(ask(server, "/"))
        assert answer.outcome is Outcome.EGRESS_DENIED
        assert (server.paths(), server.connections) == (["/"], 1)

    talk({"/": response(200)}, check)


def test_the_pin_holds_for_kept_connections_too() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        first = await transport.get(ask(server, "/"))
        second = await transport.get(ask(server, "/", pin="127.0.0.9"))
        third = await transport.get(ask(server, "/"))
        assert [first.address, second.address, third.address] == ["127.0.0.1", "127.0.0.9", "127.0.0.1"]
        assert (second.reused, third.reused) == (False, True)
        # the name in the URL does not rule either, and a literal address leads nowhere but to the pin
        fourth = await transport.get(ask(server, "/", url=f"http://127.0.0.77:{server.port}/"))
        assert fourth.address == "127.0.0.1"

    talk({"/": response(200)}, check, address="0.0.0.0")


def test_one_request_is_one_request_on_the_wire_even_when_the_kept_connection_is_dead() -> None:
    async def once(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if sum(s.connection == seen.connection for s in server_of[0].seen) == 1:
            writer.write(response(200, b"first"))
        else:
            writer.close()  # just as the next request arrives

    server_of: list[RawServer] = []

    async def check(transport: Transport, server: RawServer) -> None:
        server_of.append(server)
        assert (await transport.get(ask(server, "/1"))).body == b"first"
        answer = await transport.get(ask(server, "/2"))
        assert (answer.outcome, answer.reason) == (Outcome.RESET, STALE)
        assert server.paths() == ["/1", "/2"]
        assert (await transport.get(ask(server, "/3"))).body == b"first"

    talk({"/1": once, "/2": once, "/3": once}, check)


def test_dropping_all_ends_every_transfer_and_leaves_the_transport_usable() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        tasks = [asyncio.create_task(transport.get(ask(server, "/slow"))) for _ in range(3)]
        while len(server.seen) < 3:
            await asyncio.sleep(0.01)
        assert transport.in_flight == 3
        transport.drop_all()
        answers = await asyncio.gather(*tasks)
        assert {(a.outcome, a.reason) for a in answers} == {(Outcome.RESET, DROPPED)}
        assert (await transport.get(ask(server, "/"))).outcome is Outcome.OK

    talk({"/": response(200), "/slow": silent()}, check)


def test_a_cancelled_asker_drops_its_transfer() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        task = asyncio.create_task(transport.get(ask(server, "/slow")))
        while not server.seen:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert transport.in_flight == 0

    talk({"/slow": silent()}, check)


def test_over_the_byte_budget_bodies_wait_and_all_arrive() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        answers = await asyncio.gather(*(transport.get(ask(server, "/big")) for _ in range(8)))
        assert [(a.outcome, len(a.body)) for a in answers] == [(Outcome.OK, 150_000)] * 8
        assert transport.budget.held == 0

    talk({"/big": response(200, b"x" * 150_000)}, check, budget=100_000)


def test_many_requests_at_once_share_pooled_handles() -> None:
    async def check(transport: Transport, server: RawServer) -> None:
        for _ in range(3):
            urls = [server.url("/", f"h{i}.test") for i in range(40)]
            answers = await asyncio.gather(
                *(transport.get(Request(url=url, pin="127.0.0.1")) for url in urls)
            )
            assert all(a.body == b"hello" for a in answers)
        assert sorted(s.host for s in server.seen)[:3] == [f"h0.test:{server.port}"] * 3
        assert server.connections == 40

    talk({"/": response(200, b"hello")}, check)
