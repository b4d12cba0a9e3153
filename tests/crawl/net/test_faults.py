"""What libcurl's errors become. That real servers cause them is tested with the transport."""

import re
from pathlib import Path

import pycurl
import pytest

from crawl.net import faults
from crawl.outcomes import Outcome

#: every error that libcurl has a name for, by number
CODES = sorted({getattr(pycurl, name) for name in dir(pycurl) if name.startswith("E_")})
NAMED = set(faults.REASONS)


@pytest.mark.parametrize("code", [code for code in CODES if 0 < code < 1_000])
@pytest.mark.parametrize("text", ["", "error:0A000410:SSL::alert", "something odd: 0x5a", "(err 99)"])
def test_every_error_has_an_outcome_and_a_reason_of_ours(code: int, text: str) -> None:
    outcome, reason = faults.of_request(code, text)
    assert outcome in Outcome
    assert reason in NAMED
    assert faults.of_body(code, text) in NAMED


def test_reasons_are_codes_with_a_meaning() -> None:
    for code, meaning in faults.REASONS.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]+", code)
        assert meaning
        assert meaning[0] != " "


def test_the_documentation_has_every_reason(repo_root: Path) -> None:
    page = (repo_root / "docs" / "requests.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page.partition("## Reasons")[2], re.MULTILINE))
    assert told == faults.REASONS


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        (1, "Received HTTP/0.9 when not allowed", "no_http"),
        (1, "Unsupported HTTP/1 subversion in response", "http_version"),
        (8, "Version mismatch (from HTTP/1 to HTTP/3)", "http_version"),
        (1, "Unsupported response code in HTTP response", "status_line"),
        (8, "Header without colon", "header_line"),
        (8, "NUL byte in header", "header_nul"),
        (8, "Carriage return found in header", "header_cr"),
        (8, "Invalid Content-Length: value", "content_length"),
        (61, "Unsolicited Transfer-Encoding (foo) found", "transfer_coding"),
        (61, "", "transfer_coding"),
        (8, "Multiple Location headers", "locations"),
        (100, "A value or data field grew larger than allowed", "header_bytes"),
        (100, "Too many response headers, 5000 is max", "header_lines"),
        (8, "words of another version", "protocol"),
        (27, "Out of memory", "internal"),
    ],
)
def test_breaches_of_http_are_told_apart(code: int, text: str, reason: str) -> None:
    assert faults.of_request(code, text) == (Outcome.MALFORMED, reason)


@pytest.mark.parametrize(
    ("verify", "reason"),
    [
        (0, "tls_wrong_host"),
        (1, "tls_wrong_host"),
        (9, "tls_not_yet_valid"),
        (10, "tls_expired"),
        (18, "tls_self_signed"),
        (20, "tls_unknown_ca"),
        (24, "tls_bad_certificate"),
    ],
)
def test_certificates_are_judged_by_number(verify: int, reason: str) -> None:
    assert faults.of_request(60, "any words", verify=verify) == (Outcome.TLS_FAILURE, reason)


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        (35, "TLS connect error: error:0A00010B:SSL routines::wrong version number", "tls_none"),
        (35, "TLS connect error: error:0A00042E:SSL routines::x", "tls_protocol_version"),
        (35, "TLS connect error: error:0A000410:SSL routines::x", "tls_refused"),
        (35, "TLS connect error: error:0A000458:SSL routines::x", "tls_unknown_name"),
        (
            56,
            "OpenSSL SSL_read: error:0A00045C:SSL routines::x, errno 0",
            "tls_client_certificate",
        ),
        (35, "Recv failure: Connection reset by peer", "tls_cut"),
        (35, "OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to a.test:443", "tls_cut"),
        (35, "gnutls says no", "tls_failed"),
    ],
)
def test_handshakes_that_failed_are_told_apart(code: int, text: str, reason: str) -> None:
    assert faults.of_request(code, text) == (Outcome.TLS_FAILURE, reason)


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        (18, "transfer closed", "body_cut"),
        (56, "chunk hex-length char not a hex digit: 0x5a", "chunking"),
        (56, "Connection reset by peer", "body_cut"),
        (28, "", "deadline"),
        (92, "HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)", "http2_internal_error"),
        (92, "HTTP/2 stream 1 reset by server (error 0xb ENHANCE_YOUR_CALM)", "http2_enhance_your_calm"),
        (92, "HTTP/2 stream 1 reset by server (error 0xff)", "http2_stream"),
        (92, "HTTP/2 stream 1 was reset", "http2_stream"),
        (16, "", "body_cut"),
    ],
)
def test_bodies_that_broke_are_told_apart(code: int, text: str, reason: str) -> None:
    assert faults.of_body(code, text) == reason


def test_connections_that_failed_carry_the_systems_name() -> None:
    assert faults.of_request(7, "", system=111, connected=False) == (Outcome.REFUSED, "econnrefused")
    assert faults.of_request(7, "", system=110, connected=False) == (Outcome.CONNECT_TIMEOUT, "etimedout")
    assert faults.of_request(7, "", system=0, connected=False) == (Outcome.REFUSED, "unreachable")
    assert faults.of_request(28, "", connected=False) == (Outcome.CONNECT_TIMEOUT, "connect_timeout")
    assert faults.of_request(28, "") == (Outcome.TIMEOUT, "deadline")
