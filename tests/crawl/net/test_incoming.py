import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawl import policy
from crawl.net.exchange import DROPPED
from crawl.net.incoming import Incoming, settle
from crawl.outcomes import Outcome

HEADS = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 103 X\r\n",
    b"A: HTTP/1.1\r\n",
    b"B: c\r\n",
    b"\r\n",
    b"\n",
    b"x" * 90,
]
LIMITS = policy.Limits(header_bytes=200, header_lines=8, wire_bytes=100, decoded_bytes=150)


def take(*lines: bytes, body: bytes = b"", whole: bool = True) -> Incoming:
    incoming = Incoming(LIMITS)
    for line in lines:
        if incoming.header(line) is not None:
            return incoming
    if body:
        incoming.data(body)
    incoming.end(whole=whole)
    return incoming


def test_lines_are_kept_as_received_without_the_status_line() -> None:
    incoming = take(b"HTTP/1.1 200 OK\r\n", b"A: \xe9\r\n", b" folded\r\n", b"B:2\n", b"\r\n", body=b"hello")
    assert incoming.lines() == "A: \xe9\n folded\nB:2"
    assert (incoming.status, incoming.body(), incoming.wire) == (200, b"hello", 5)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"HTTP/1.1 200\r\n", 200),
        (b"HTTP/2 404 \r\n", 404),
        (b"HTTP/1.1 200: OK\r\n", 200),
        (b"HTTP/1.1 abc\r\n", None),
        (b"HTTP/1.1\r\n", None),
    ],
)
def test_the_status_is_read_from_the_first_line(line: bytes, status: int | None) -> None:
    assert take(line, b"\r\n").status == status


def test_interim_heads_are_forgotten_but_counted() -> None:
    incoming = Incoming(LIMITS)
    for _ in range(4):
        assert incoming.header(b"HTTP/1.1 103 Early Hints\r\n") is None
        assert incoming.header(b"\r\n") is None
    assert incoming.header(b"HTTP/1.1 200 OK\r\n") == 0
    assert incoming.stop == "header_lines"


def test_caps_stop_the_answer_with_what_fits() -> None:
    incoming = Incoming(LIMITS)
    assert incoming.header(b"A: " + b"x" * 300) == 0
    assert incoming.stop == "header_bytes"
    incoming.reset(None)
    assert incoming.header(b"HTTP/1.1 200 OK\r\n") is None
    assert incoming.data(b"x" * 60)
    assert not incoming.data(b"x" * 60)
    assert (incoming.stop, len(incoming.body())) == ("wire_bytes", 100)
    incoming.reset(10)
    assert not incoming.data(b"x" * 11)
    assert (incoming.stop, len(incoming.body())) == ("decoded_bytes", 10)


def test_a_reset_leaves_nothing_of_the_answer_before() -> None:
    incoming = take(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n", b"\r\n", body=b"x")
    incoming.reset(None)
    assert (incoming.status, incoming.lines(), incoming.body(), incoming.length) == (None, "", b"", 0)
    assert incoming.progress == 0


def test_several_lines_of_content_encoding_are_one_list() -> None:
    body = gzip.compress(gzip.compress(b"hello"))
    coding = b"Content-Encoding: gzip\r\n"
    incoming = take(b"HTTP/1.1 200 OK\r\n", coding, coding, b"\r\n", body=body)
    assert incoming.body() == b"hello"


@pytest.mark.parametrize(
    ("status", "lines", "fault", "settled"),
    [
        (200, b"", None, (Outcome.OK, None, False)),
        (200, b"", "body_cut", (Outcome.RESET, "body_cut", True)),
        (200, b"", "encoding_absent", (Outcome.OK, "encoding_absent", False)),
        (200, b"", "encoding_unknown", (Outcome.MALFORMED, "encoding_unknown", False)),
        (200, b"", DROPPED, (Outcome.RESET, DROPPED, True)),
        (200, b"Location: /x\r\n", None, (Outcome.OK, None, False)),
        (302, b"Location: /x\r\n", "chunking", (Outcome.REDIRECT, None, False)),
        (302, b"", None, (Outcome.BAD_REDIRECT, "no_location", False)),
        (300, b"", None, (Outcome.BAD_REDIRECT, "no_location", False)),
        (304, b"Location: /x\r\n", None, (Outcome.NOT_MODIFIED, None, False)),
        (305, b"Location: /x\r\n", None, (Outcome.BAD_REDIRECT, None, False)),
        (404, b"", "body_cut", (Outcome.NOT_FOUND, "body_cut", True)),
    ],
)
def test_status_and_fault_together_make_the_outcome(
    status: int, lines: bytes, fault: str | None, settled: tuple[Outcome, str | None, bool]
) -> None:
    incoming = take(b"HTTP/1.1 %d X\r\n" % status, lines, b"\r\n")
    assert settle(incoming, status, fault) == settled


@given(st.lists(st.sampled_from(HEADS), max_size=6), st.lists(st.integers(1, 9), max_size=9))
def test_lines_drained_together_are_taken_as_they_are_one_by_one(lines: list[bytes], cuts: list[int]) -> None:
    together, alone = Incoming(LIMITS), Incoming(LIMITS)
    going_on = all(alone.header(line) is None for line in lines)
    at = 0
    for size in [*cuts, len(lines)]:
        together.pending.extend(lines[at : at + size])
        at += size
        if not together.drain():
            break
    assert together.stop == alone.stop
    if going_on:
        assert (together.status, together.headed, together.progress) == (
            alone.status,
            alone.headed,
            alone.progress,
        )
        together.end(whole=True)
        alone.end(whole=True)
        assert together.lines() == alone.lines()


def test_more_lines_than_allowed_are_not_kept_however_many_come() -> None:
    incoming = Incoming(LIMITS)
    for _ in range(10_000):
        incoming.pending.append(b"A: b\r\n")
    assert len(incoming.pending) == LIMITS.header_lines + 1
    assert not incoming.drain()
    assert incoming.stop == "header_lines"


def test_a_request_may_have_caps_of_its_own_above_the_limits() -> None:
    incoming = Incoming(LIMITS)
    incoming.reset(None, None, 1_000)
    incoming.header(b"HTTP/1.1 200 OK\r\n")
    incoming.header(b"\r\n")
    assert incoming.data(b"x" * 900)
    assert not incoming.data(b"x" * 200)
    assert (incoming.stop, len(incoming.body())) == ("wire_bytes", 1_000)
    incoming.reset(None)
    incoming.header(b"HTTP/1.1 200 OK\r\n")
    incoming.header(b"\r\n")
    assert not incoming.data(b"x" * 900)
