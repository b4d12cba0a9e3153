"""https over real sockets: whom we believe, and what each failure is called."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from crawl import policy
from crawl.net.exchange import Request
from crawl.net.transport import Transport
from crawl.outcomes import Outcome
from tests.crawl import certificates
from tests.crawl.rawserver import RawServer, closing, resetting, response
from tests.crawl.talking import Server, answer_of, ask, talk

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
OK = {"/": response(200, b"hello")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def tls(folder: Path) -> policy.Tls:
    return policy.Tls(ca_file=str(certificates.ca_file(folder)))


def test_an_authority_of_the_operators_is_believed_and_the_time_of_the_handshake_told(
    tls: policy.Tls,
) -> None:
    async def check(transport: Transport, server: Server) -> None:
        first = await transport.get(ask(server, "/"))
        assert (first.outcome, first.body, first.http_version) == (Outcome.OK, b"hello", "1.1")
        assert (first.tls_ms or 0) > 0
        again = await transport.get(ask(server, "/"))
        assert (again.reused, again.body) == (True, b"hello")

    talk(RawServer(OK, tls=certificates.context("a.test")), check, tls=tls)


def test_without_it_the_authority_is_unknown() -> None:
    answer = answer_of(RawServer(OK, tls=certificates.context("a.test")))
    assert (answer.outcome, answer.reason) == (Outcome.TLS_FAILURE, "tls_unknown_ca")
    assert (answer.status, answer.body, answer.address) == (None, b"", "127.0.0.1")


def old() -> ssl.SSLContext:
    made = certificates.context("a.test")
    made.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        made.minimum_version, made.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    return made


def choosy() -> ssl.SSLContext:
    made = certificates.context("a.test")
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("NULL:aNULL:@SECLEVEL=0")  # what no client offers
    return made


def nameless() -> ssl.SSLContext:
    made = certificates.context("a.test")
    made.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (lambda _: certificates.expired("a.test"), "tls_expired"),
        (lambda _: certificates.too_early("a.test"), "tls_not_yet_valid"),
        (lambda _: certificates.context("b.test"), "tls_wrong_host"),
        (lambda _: certificates.context("a.test", by="theirs"), "tls_unknown_ca"),
        (lambda folder: certificates.self_signed("a.test", folder), "tls_self_signed"),
    ],
)
def test_each_bad_certificate_has_its_reason(
    context: object, reason: str, folder: Path, tls: policy.Tls
) -> None:
    server = RawServer(OK, tls=context(folder))  # type: ignore[operator]
    answer = answer_of(server, tls=tls)
    assert (answer.outcome, answer.reason) == (Outcome.TLS_FAILURE, reason)
    assert (answer.status, answer.headers, answer.body) == (None, "", b"")
    assert server.seen == []


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (old, "tls_protocol_version"),
        (choosy, "tls_refused"),
        (nameless, "tls_unknown_name"),
    ],
)
def test_each_refusal_of_the_server_has_its_reason(
    context: Callable[[], ssl.SSLContext], reason: str, tls: policy.Tls
) -> None:
    """By a server that blocks: asyncio's closes before its alert has gone out."""
    made = context()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            connection, _ = listener.accept()
            with (
                connection,
                contextlib.suppress(OSError),
                made.wrap_socket(connection, server_side=True) as it,
            ):
                it.recv(1_000)

        thread = threading.Thread(target=refuse)
        thread.start()
        port = listener.getsockname()[1]

        async def check(transport: Transport, _: Server) -> None:
            answer = await transport.get(Request(url=f"https://a.test:{port}/", pin="127.0.0.1"))
            assert (answer.outcome, answer.reason) == (Outcome.TLS_FAILURE, reason)

        talk(RawServer(), check, tls=tls)
        thread.join()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (closing(b"HTTP/1.1 400 Plain HTTP here\r\nContent-Length: 0\r\n\r\n"), "tls_none"),
        (closing(b"\x15\x03\x03\x00\x02\x02\x28"), "tls_refused"),
        (closing(b""), "tls_cut"),
        (resetting(b""), "tls_cut"),
    ],
)
def test_what_is_no_tls_is_told_as_well(said: object, reason: str, tls: policy.Tls) -> None:
    class Plain(RawServer):
        def url(self, path: str, host: str = "a.test") -> str:
            return f"https://{host}:{self.port}{path}"

        async def talk(self, reader: Reader, writer: Writer, number: int) -> None:
            await reader.read(100)
            await said(None, writer)  # type: ignore[operator]

    answer = answer_of(Plain(), tls=tls)
    assert (answer.outcome, answer.reason) == (Outcome.TLS_FAILURE, reason)


def test_the_name_decides_which_certificate_is_shown(tls: policy.Tls) -> None:
    shown = certificates.context("other.test")
    right = certificates.context("a.test")

    def by_name(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = right if name == "a.test" else shown

    shown.sni_callback = by_name  # type: ignore[assignment]
    assert answer_of(RawServer(OK, tls=shown), tls=tls).outcome is Outcome.OK


def test_a_failure_leaves_nothing_behind_for_the_next_request(tls: policy.Tls) -> None:
    """Handles are pooled: the verdict on one certificate must not be told of the next."""

    async def check(transport: Transport, server: Server) -> None:
        for host, reason in [("b.test", "tls_wrong_host"), ("a.test", None), ("b.test", "tls_wrong_host")]:
            answer = await transport.get(ask(server, "/", url=f"https://{host}:{server.port}/"))
            assert answer.reason == reason
        assert len(server.seen) == 1

    talk(RawServer(OK, tls=certificates.context("a.test")), check, tls=tls)


def test_a_handshake_that_never_ends_is_a_connect_timeout(tls: policy.Tls) -> None:
    class Mute(RawServer):
        def url(self, path: str, host: str = "a.test") -> str:
            return f"https://{host}:{self.port}{path}"

        async def talk(self, reader: Reader, writer: Writer, number: int) -> None:
            await asyncio.sleep(30)

    answer = answer_of(Mute(), tls=tls)
    assert (answer.outcome, answer.reason) == (Outcome.CONNECT_TIMEOUT, "connect_timeout")
