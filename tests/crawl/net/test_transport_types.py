"""Answers that nobody reads: ended early, with their connection where that costs less than a new one."""

import asyncio
import gzip
from typing import Any

import pytest

from crawl import policy
from crawl.documents.screen import Screen
from crawl.net.exchange import Answer, Request
from crawl.net.incoming import Incoming, settle
from crawl.net.transport import Transport
from crawl.outcomes import Outcome
from tests.crawl.rawserver import RawServer, Seen, dripping, response
from tests.crawl.talking import QUICK, ask, talk

SCREEN = Screen(policy.Content())
ZIP = b"PK\x03\x04" + bytes(100)
PAGE = b"<!doctype html><title>t</title>" + b"words " * 1_000


class Line:
    """A server that sends a body as long as anybody listens, and counts what it got rid of."""

    def __init__(self, head: bytes, first: bytes = b"", length: int = 50_000_000) -> None:
        self.head, self.first, self.length, self.sent = head, first, length, 0

    async def __call__(self, _: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(self.head + self.first)
        await writer.drain()
        while self.sent < self.length:
            writer.write(b"x" * 10_000)
            await writer.drain()
            self.sent += 10_000


def answers(
    says: dict[str, Any], *paths: str, screen: Screen | None = SCREEN
) -> tuple[list[Answer], RawServer]:
    """The answers to requests one after the other."""
    found: list[Answer] = []
    server = RawServer(says)

    async def one_by_one(transport: Transport, server: RawServer) -> None:
        for path in paths:
            found.append(await transport.get(ask(server, path, screen=screen)))

    talk(server, one_by_one)
    return found, server


def test_a_large_body_of_a_type_that_is_not_read_is_not_taken() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-iso9660-image\r\nContent-Length: 700000000\r\n\r\n"
    )
    line = Line(head)
    (answer,), server = answers({"/": line}, "/")
    assert (answer.outcome, answer.reason) == (Outcome.UNSUPPORTED_TYPE, "unsupported_type")
    assert (answer.status, answer.sniffed_type) == (200, "application/x-iso9660-image")
    assert (answer.wire_bytes, answer.body, answer.truncated) == (0, b"", False)
    assert "Content-Length: 700000000" in answer.headers
    assert line.sent < 10_000_000  # what buffers on the way swallow
    assert server.connections == 1


def test_a_body_that_does_not_tell_its_length_is_not_taken_either() -> None:
    line = Line(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n")
    (answer,), _ = answers({"/": line}, "/")
    assert (answer.outcome, answer.wire_bytes) == (Outcome.UNSUPPORTED_TYPE, 0)


def test_what_lies_is_known_by_its_first_bytes() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 50000000\r\n\r\n"
    line = Line(head, ZIP)
    (answer,), _ = answers({"/": line}, "/")
    assert (answer.outcome, answer.reason) == (Outcome.TYPE_MISMATCH, "type_mismatch")
    assert (answer.sniffed_type, answer.body) == ("application/zip", b"")
    assert 0 < answer.wire_bytes < 200_000


def test_a_small_rest_is_taken_for_the_sake_of_its_connection() -> None:
    says = {
        "/zip": response(200, ZIP, "Content-Type: application/zip"),
        "/lie": response(200, ZIP * 50, "Content-Type: text/html"),
        "/page": response(200, PAGE, "Content-Type: text/html"),
    }
    (archive, lie, page), server = answers(says, "/zip", "/lie", "/page")
    assert (archive.outcome, archive.wire_bytes, archive.body) == (Outcome.UNSUPPORTED_TYPE, len(ZIP), b"")
    assert (lie.outcome, lie.wire_bytes, lie.body) == (Outcome.TYPE_MISMATCH, 50 * len(ZIP), b"")
    assert (page.outcome, page.body, page.sniffed_type) == (Outcome.OK, PAGE, "text/html")
    assert (server.connections, page.reused) == (1, True)


def test_a_length_that_lies_does_not_let_more_in() -> None:
    body = b"5\r\nPK\x03\x04x\r\n" + b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    (answer,), _ = answers({"/": Line(head + body)}, "/")
    assert (answer.outcome, answer.sniffed_type) == (Outcome.TYPE_MISMATCH, "application/zip")
    assert answer.wire_bytes < 200_000


@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_the_verdict_does_not_depend_on_how_the_bytes_arrive(step: int) -> None:
    body = b"\n" * 700 + b"<html>" + b"w" * 1_500
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    incoming = Incoming(QUICK)
    incoming.reset(None, SCREEN)
    for line in head.splitlines(keepends=True):
        assert incoming.header(line) is None
    for piece in pieces:
        assert incoming.data(piece)
    assert incoming.end(whole=True) is None
    assert settle(incoming, 200, None) == (Outcome.OK, None, False)
    assert (incoming.body(), incoming.verdict and incoming.verdict.media_type) == (body, "text/html")


def test_coded_bodies_are_judged_by_what_is_inside() -> None:
    coded = ["Content-Type: text/html", "Content-Encoding: gzip"]
    says = {
        "/page": response(200, gzip.compress(PAGE), *coded),
        "/zip": response(200, gzip.compress(ZIP * 100), *coded),
        "/twice": response(200, gzip.compress(gzip.compress(PAGE)), *coded),
    }
    (page, archive, twice), _ = answers(says, "/page", "/zip", "/twice")
    assert (page.outcome, page.body) == (Outcome.OK, PAGE)
    assert (archive.outcome, archive.sniffed_type) == (Outcome.TYPE_MISMATCH, "application/zip")
    assert (twice.outcome, twice.sniffed_type) == (Outcome.TYPE_MISMATCH, "application/x-gzip")


def test_short_and_empty_answers_are_judged_at_their_end() -> None:
    says = {
        "/empty": response(200, b"", "Content-Type: text/html"),
        "/none": response(200),
        "/words": response(200, b"words"),
        "/lie": response(200, b"%PDF-1.4", "Content-Type: text/html"),
        "/page": response(200, b"<p>", "Content-Type: text/html"),
    }
    found, server = answers(says, *says)
    assert [answer.outcome.value for answer in found] == [
        *("OK", "OK", "UNSUPPORTED_TYPE", "TYPE_MISMATCH", "OK"),
    ]
    assert [answer.sniffed_type for answer in found] == [
        *("text/html", "text/plain", "text/plain", "application/pdf", "text/html"),
    ]
    assert server.connections == 1


def test_only_an_answer_that_brings_a_page_is_judged() -> None:
    says = {
        "/lost": response(404, ZIP, "Content-Type: application/zip"),
        "/moved": response(301, ZIP, "Content-Type: application/zip", "Location: /"),
    }
    (lost, moved), _ = answers(says, "/lost", "/moved")
    assert (lost.outcome, lost.sniffed_type) == (Outcome.NOT_FOUND, None)
    assert (moved.outcome, moved.sniffed_type) == (Outcome.REDIRECT, None)


def test_without_a_screen_any_type_is_taken() -> None:
    says = {"/": response(200, ZIP, "Content-Type: application/zip")}
    (answer,), _ = answers(says, "/", screen=None)
    assert (answer.outcome, answer.body, answer.sniffed_type) == (Outcome.OK, ZIP, None)


def test_a_body_cut_before_its_type_shows_is_told_as_cut() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
    (answer,), _ = answers({"/": dripping(head + b"wo", b"", 1, 30.0)}, "/")
    assert (answer.outcome, answer.sniffed_type) == (Outcome.TIMEOUT, "text/plain")


def test_a_handle_forgets_the_screen_of_the_request_before() -> None:
    says = {"/": response(200, ZIP, "Content-Type: application/zip")}
    found: list[Answer] = []

    async def both(transport: Transport, server: RawServer) -> None:
        for screen in (SCREEN, None, SCREEN):
            request = Request(url=server.url("/"), pin="127.0.0.1", screen=screen)
            found.append(await transport.get(request))

    talk(RawServer(says), both)
    assert [answer.outcome.value for answer in found] == ["UNSUPPORTED_TYPE", "OK", "UNSUPPORTED_TYPE"]
