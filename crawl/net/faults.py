"""What libcurl's errors mean here: outcomes, and reasons in our own words.

What always holds: every error has a row; a reason is one of `REASONS` or the name of a system error
(`econnrefused`), so that SQL can count them: libcurl's own texts change with its versions and carry parts of
what the server sent, so they are read here and go no further. Errors are known by libcurl's numbers, which
are part of its ABI; this module needs no libcurl.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from typing import Final

from crawl.outcomes import Outcome

__all__ = ["REASONS", "of_body", "of_request"]

#: reasons of a request that got no whole answer, and what each means (`crawl explain` says it so)
REASONS: Final[Mapping[str, str]] = {
    # --- we ended it
    "deadline": "it was not over at limits.request_deadline",
    "idle": "nothing came for limits.idle",
    "connect_timeout": "no connection within limits.connect_timeout",
    "header_bytes": "the head is larger than limits.header_bytes",
    "header_lines": "the head has more lines than limits.header_lines",
    "wire_bytes": "the body is larger than limits.wire_bytes",
    "decoded_bytes": "the decoded body is larger than limits.decoded_bytes",
    "unsupported_type": "its media type is none of content.types",
    "type_mismatch": "its first bytes are of another type than it declares",
    "dropped": "we dropped it ourselves; nothing was learnt",
    # --- the connection
    "unreachable": "no connection could be made",
    "stale_connection": "the server closed a kept connection as the request went out",
    "no_answer": "the connection ended without an answer",
    "send_failed": "the connection was lost while asking",
    "receive_failed": "the connection was lost while waiting for the answer",
    "head_cut": "the connection ended inside the head",
    "body_cut": "the connection ended inside the body",
    # --- TLS
    "tls_expired": "the certificate has expired",
    "tls_not_yet_valid": "the certificate is not valid yet",
    "tls_wrong_host": "the certificate is another host's",
    "tls_self_signed": "the certificate is signed by itself",
    "tls_unknown_ca": "the certificate's authority is not trusted",
    "tls_revoked": "the certificate was revoked",
    "tls_weak": "key or signature of the certificate is too weak",
    "tls_bad_certificate": "the certificate, or its chain, does not stand the test",
    "tls_refused": "the server refused the handshake",
    "tls_protocol_version": "no version of TLS that both sides speak",
    "tls_client_certificate": "the server wants a certificate of ours",
    "tls_unknown_name": "the server knows no such host (SNI)",
    "tls_none": "what answers on that port is no TLS",
    "tls_cut": "the connection was lost during the handshake",
    "tls_failed": "the handshake failed",
    # --- HTTP/1
    "no_http": "what came is no HTTP/1 or newer",
    "http_version": "a version of HTTP that nobody speaks",
    "status_line": "a status line that is none",
    "status_out_of_range": "a status outside 200 to 599",
    "interim_only": "an interim answer (1xx) in the place of the answer",
    "header_line": "a header line without a colon",
    "header_nul": "a NUL in the head",
    "header_cr": "a carriage return inside a header line",
    "content_length": "a Content-Length that is none, or several that differ",
    "transfer_coding": "a Transfer-Encoding nobody asked for",
    "locations": "several Location lines that differ",
    "chunking": "broken chunks",
    "protocol": "a breach of the protocol",
    "internal": "the HTTP library failed",
    # --- HTTP/2 (RFC 9113 7)
    "http2": "the HTTP/2 connection broke down",
    "http2_stream": "the server ended the HTTP/2 stream",
    "http2_protocol_error": "HTTP/2 PROTOCOL_ERROR",
    "http2_internal_error": "HTTP/2 INTERNAL_ERROR",
    "http2_flow_control_error": "HTTP/2 FLOW_CONTROL_ERROR",
    "http2_stream_closed": "HTTP/2 STREAM_CLOSED",
    "http2_frame_size_error": "HTTP/2 FRAME_SIZE_ERROR",
    "http2_refused_stream": "HTTP/2 REFUSED_STREAM",
    "http2_cancel": "HTTP/2 CANCEL",
    "http2_compression_error": "HTTP/2 COMPRESSION_ERROR",
    "http2_enhance_your_calm": "HTTP/2 ENHANCE_YOUR_CALM",
    "http2_inadequate_security": "HTTP/2 INADEQUATE_SECURITY",
    "http2_http_1_1_required": "HTTP/2 HTTP_1_1_REQUIRED",
    # --- content codings (crawl.net.content)
    "encoding_truncated": "the coded body ends before its end",
    "encoding_corrupt": "the coded body is damaged",
    "encoding_members": "the coded body has more members than anybody needs",
    "encoding_unknown": "a content coding that cannot be undone",
    "encoding_absent": "a content coding that was declared and not applied",
    # --- what nobody asked for
    "unasked_206": "a part, though all was asked for",
    "unasked_304": "unchanged, though nothing was known",
    "no_location": "a redirect without a target",
    "several_locations": "a redirect with several targets",
}

#: libcurl's error numbers (curl/curl.h)
_UNSUPPORTED, _CANNOT_CONNECT, _WEIRD, _HTTP2, _PARTIAL = 1, 7, 8, 16, 18
_TIMED_OUT, _TLS_CONNECT, _NOTHING, _SEND, _RECEIVE = 28, 35, 52, 55, 56
_PEER_CERTIFICATE, _TRANSFER_CODING, _HTTP2_STREAM, _TOO_LARGE = 60, 61, 92, 100
_LOST: Final = {
    _NOTHING: "no_answer",
    _SEND: "send_failed",
    _RECEIVE: "receive_failed",
    _PARTIAL: "body_cut",
    _HTTP2: "http2",
    _HTTP2_STREAM: "http2_stream",
}
#: of TLS, whatever it says: engine, key, cipher, trust store, issuer, pinning, OCSP, client certificate
_TLS: Final = frozenset({35, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91, 98})
#: what a breach of HTTP/1 is called, by a part of libcurl's text, in lower case
_BREACHES: Final = (
    ("http/0.9", "no_http"),
    ("subversion", "http_version"),
    ("version mismatch", "http_version"),
    ("http version", "http_version"),
    ("response code", "status_line"),
    ("status line", "status_line"),
    ("without colon", "header_line"),
    ("nul byte", "header_nul"),
    ("carriage return", "header_cr"),
    ("content-length", "content_length"),
    ("transfer-encoding", "transfer_coding"),
    ("chunk", "chunking"),
    ("multiple location", "locations"),
    ("too many response headers", "header_lines"),
    ("grew larger", "header_bytes"),
    ("too large response headers", "header_bytes"),
)
#: X509_V_ERR_… of OpenSSL (x509_vfy.h)
_VERIFY: Final = {
    9: "tls_not_yet_valid",
    10: "tls_expired",
    18: "tls_self_signed",
    19: "tls_unknown_ca",  # a root of its own in the chain
    20: "tls_unknown_ca",
    21: "tls_unknown_ca",
    23: "tls_revoked",
    27: "tls_unknown_ca",
    62: "tls_wrong_host",
    64: "tls_wrong_host",  # of an address
    66: "tls_weak",
    67: "tls_weak",
    68: "tls_weak",
}
#: reasons of OpenSSL (sslerr.h); those of alerts are 1000 + the alert's number (RFC 8446 6)
_OPENSSL: Final = re.compile(r"error:[0-9A-Fa-f]{2}([0-9A-Fa-f]{6})")
_HANDSHAKE: Final = {
    0x0C6: "tls_none",  # packet length too long
    0x09C: "tls_none",  # http request
    0x10B: "tls_none",  # wrong version number
    0x102: "tls_protocol_version",
    0x18A: "tls_weak",  # dh key too small
    0x18D: "tls_weak",  # ca md too weak
    0x18F: "tls_weak",  # ee key too small
    0x126: "tls_cut",  # unexpected eof while reading
    1000 + 42: "tls_client_certificate",
    1000 + 70: "tls_protocol_version",
    1000 + 71: "tls_protocol_version",  # insufficient security
    1000 + 112: "tls_unknown_name",
    1000 + 116: "tls_client_certificate",
}
_ALERTS: Final = range(1000, 1256)
_STREAM_ERROR: Final = re.compile(r"\(err(?:or)? (0x[0-9a-f]+|\d+)\b", re.IGNORECASE)
#: error codes of RFC 9113 7; 4 and the reserved ones do not end a stream
_HTTP2_ERRORS: Final = {
    1: "http2_protocol_error",
    2: "http2_internal_error",
    3: "http2_flow_control_error",
    5: "http2_stream_closed",
    6: "http2_frame_size_error",
    7: "http2_refused_stream",
    8: "http2_cancel",
    9: "http2_compression_error",
    11: "http2_enhance_your_calm",
    12: "http2_inadequate_security",
    13: "http2_http_1_1_required",
}


def of_request(
    code: int, text: str, *, verify: int = 0, system: int = 0, connected: bool = True
) -> tuple[Outcome, str]:
    """(outcome, reason) of a request without an answer.

    `code`, `text`: libcurl's error; `verify`: OpenSSL's verdict on the certificate (0: good, or not asked);
    `system`: errno of the failed connection; `connected`: whether there was a connection.
    """
    if code == _TIMED_OUT:
        return (Outcome.TIMEOUT, "deadline") if connected else (Outcome.CONNECT_TIMEOUT, "connect_timeout")
    if code == _CANNOT_CONNECT:
        name = errno.errorcode.get(system, "unreachable").lower()
        return Outcome.CONNECT_TIMEOUT if system == errno.ETIMEDOUT else Outcome.REFUSED, name
    if code in _TLS or (code in _LOST and _OPENSSL.search(text)):
        return Outcome.TLS_FAILURE, _of_tls(code, text, verify)
    if code in _LOST:
        return Outcome.RESET, _of_http2(text) if code == _HTTP2_STREAM else _LOST[code]
    return Outcome.MALFORMED, _breach(code, text)


def of_body(code: int, text: str) -> str:
    """Why a body is not whole, from libcurl's error after the head."""
    if code == _TIMED_OUT:
        return "deadline"
    if code == _RECEIVE and "chunk" in text.lower():
        return "chunking"
    if code == _HTTP2_STREAM:
        return _of_http2(text)
    return "body_cut" if code in _LOST else _breach(code, text)


def _breach(code: int, text: str) -> str:
    lower = text.lower()
    for part, reason in _BREACHES:
        if part in lower:
            return reason
    if code == _TRANSFER_CODING:
        return "transfer_coding"
    return "protocol" if code in (_UNSUPPORTED, _WEIRD, _TOO_LARGE) else "internal"


def _of_tls(code: int, text: str, verify: int) -> str:
    if code == _PEER_CERTIFICATE:
        # libcurl compares names itself, after a chain that may be good: no verdict of OpenSSL's is that one
        return _VERIFY.get(verify, "tls_bad_certificate" if verify > 1 else "tls_wrong_host")
    found = _OPENSSL.search(text)
    if found is None:
        lost = any(part in text for part in ("Recv failure", "Send failure", "SYSCALL", "reset", "closed"))
        return "tls_cut" if lost else "tls_failed"
    reason = int(found[1], 16) & 0x7FFFFF
    return _HANDSHAKE.get(reason, "tls_refused" if reason in _ALERTS else "tls_failed")


def _of_http2(text: str) -> str:
    found = _STREAM_ERROR.search(text)
    return _HTTP2_ERRORS.get(int(found[1], 0), "http2_stream") if found else "http2_stream"
