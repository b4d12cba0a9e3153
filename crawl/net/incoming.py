"""An answer while it comes in.

What always holds: header lines are kept as received (as Latin-1, so that no octet is lost), of the final
answer alone: interim answers and trailers are counted and forgotten. Header lines, header bytes, wire bytes
and decoded bytes stop at their caps. It knows no HTTP library.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import Final

from crawl import policy
from crawl.documents.screen import Screen, Verdict, content_type
from crawl.documents.sniff import HEADER
from crawl.net.content import Decoder
from crawl.net.exchange import DROPPED, REDIRECTS, header, values_of
from crawl.outcomes import Outcome, brings_page, from_status

__all__ = ["Incoming", "settle"]

#: of a body that nobody reads (of a redirect, of a type left alone): up to this much saves the connection,
#: whose set-up would cost about as much
_UNREAD_BODY: Final = 65_536
#: a status that has not been looked for yet
_UNREAD: Final = -1
#: longest Content-Length that libcurl heeds; a longer one it takes for none at all
_LENGTH_DIGITS: Final = 18
#: how nearly all status lines begin
_STATUS_LINES: Final = {b"HTTP/1.1 %d" % status: status for status in range(100, 600)}
_LOST_LENGTH: Final = re.compile(rf"content-length\s*:\s*\d{{{_LENGTH_DIGITS + 1}}}")


class Incoming:
    """An answer while it comes in. `drain` and `data` say when to stop; `stop` says why.

    Header lines are put into `pending`, as they come, and counted there: a function of ours for each of them
    would take longer than the rest of their handling. `drain` takes them from there: to be called before each
    piece of the body but those for `take`, at the end, and now and then.
    """

    __slots__ = (
        "_began_body",
        "_chunks",
        "_code",
        "_declared",
        "_decoded_limit",
        "_decoder",
        "_limits",
        "_lines",
        "_lost_length",
        "_most_bytes",
        "_most_lines",
        "_screen",
        "_seen_bytes",
        "_seen_lines",
        "_text",
        "_wire_limit",
        "free",
        "headed",
        "length",
        "pending",
        "stop",
        "verdict",
        "wire",
    )

    def __init__(self, limits: policy.Limits) -> None:
        self._limits = limits
        self._most_lines, self._most_bytes = limits.header_lines, limits.header_bytes
        # one line more than allowed tells that there are too many; what is pending is never more
        self.pending: deque[bytes] = deque(maxlen=limits.header_lines + 1)
        self.reset(None)

    def reset(
        self, decoded_bytes: int | None, screen: Screen | None = None, body_bytes: int | None = None
    ) -> None:
        """Ready for the next answer, with a tighter cap on its decoded bytes, or other caps, if given."""
        limits = self._limits
        self.pending.clear()
        self._lines: list[bytes] = []
        self._chunks: list[bytes] = []
        self._decoder: Decoder | None = None
        self._began_body = self._lost_length = False
        self._screen = screen  # until it has given its verdict
        self._declared: str | None = None  # Content-Type of an answer that is screened
        self.verdict: Verdict | None = None
        self.headed = False  # the head of the answer, or of an interim one, is complete
        self._seen_bytes = self._seen_lines = 0
        self._code: int | None = _UNREAD
        self.free = 0  # as long as the body is no longer, `take` will do instead of `data`
        self._wire_limit = body_bytes or limits.wire_bytes
        most = body_bytes or limits.decoded_bytes
        self._decoded_limit = min(most, decoded_bytes or most)
        self._text = ""
        self.stop: str | None = None
        self.wire = 0
        self.length = 0

    @property
    def progress(self) -> int:
        """Grows with every byte that comes in."""
        return self._seen_bytes + self.wire

    def drain(self) -> bool:
        """Takes the header lines that came. Whether to go on."""
        if not self.pending:
            return self.stop is None
        lines = list(self.pending)
        self.pending.clear()
        if self._seen_lines == 0 and self._whole_head(lines):
            return self.stop is None
        return all(self.header(line) is None for line in lines)

    def _whole_head(self, lines: list[bytes]) -> bool:
        """Takes one head that came whole and within its caps, as nearly all do. False: it is none."""
        head = b"".join(lines)
        if (
            len(lines) > self._most_lines
            or len(head) > self._most_bytes
            or lines[-1] != b"\r\n"
            or head.rfind(b"HTTP/") > 0
        ):
            return False
        self._seen_lines, self._seen_bytes = len(lines), len(head)
        self._lines, self._code, self.headed = lines, _UNREAD, True
        if self._screen is not None and brings_page(self.status):
            self._head_done()
        return True

    def header(self, line: bytes) -> int | None:
        """One line of the head, of an interim answer, or of the trailers, line end included. 0 = stop."""
        self._seen_bytes += len(line)
        self._seen_lines += 1
        if self._seen_bytes > self._limits.header_bytes:
            self.stop = "header_bytes"
            return 0
        if self._seen_lines > self._limits.header_lines:
            self.stop = "header_lines"
            return 0
        if self._began_body:
            return None
        if line[:5] == b"HTTP/":
            self._lines.clear()
            self._code = _UNREAD
        self._lines.append(line)
        if len(line) > 2:
            self.headed = False
            return None
        self.headed = line in (b"\r\n", b"\n")
        if self.headed and self._screen is not None and brings_page(self.status):
            return self._head_done()
        return None

    def _head_done(self) -> int | None:
        """The head of an answer that is screened is complete: 0 = stop, its type tells enough."""
        self.begin_body()
        assert self._screen is not None
        self._declared = content_type(self._text)
        verdict = self._screen.declared(self._declared)
        return None if verdict is None or self._judged(verdict) else 0

    def _judged(self, verdict: Verdict) -> bool:
        """Whether to go on: with what is read, and with the rest of what is not where it saves a connection.

        (A stream of HTTP/2 ends without its connection.)
        """
        self.verdict, self._screen = verdict, None
        if verdict.reason is None:
            return True
        self._chunks.clear()
        self.length = 0
        announced = header(self._text, "content-length") or ""
        left = int(announced) - self.wire if announced.isdigit() and len(announced) < _LENGTH_DIGITS else None
        if left is None or left > _UNREAD_BODY or self._lines[0].startswith(b"HTTP/2"):
            self.stop = verdict.reason
            return False
        self._wire_limit = min(self._wire_limit, self.wire + left)
        return True

    def take(self, data: bytes) -> None:
        """`data` for a piece with which the body is no longer than `free`: nothing has to be looked at."""
        size = len(data)
        self.wire += size
        self.length += size
        self._chunks.append(data)

    def data(self, data: bytes) -> bool:
        """One piece of the body as it was sent."""
        if not self._began_body:
            self.begin_body()
        self.wire += len(data)
        if self.wire > self._wire_limit:
            data = data[: len(data) - (self.wire - self._wire_limit)]
            self.stop = "wire_bytes"
        if self.verdict is not None and self.verdict.reason is not None:
            return self.stop is None
        if self._decoder is not None:
            data = self._decoder.feed(data)
            if self._decoder.stopped():
                self.stop = self.stop or self._decoder.fault
        elif self.length + len(data) > self._decoded_limit:
            data = data[: self._decoded_limit - self.length]
            self.stop = self.stop or "decoded_bytes"
        self._chunks.append(data)
        self.length += len(data)
        if self._screen is not None and self.length >= HEADER and brings_page(self.status):
            if not self._judged(self._screen.shown(self._declared, self._text, self.body()[:HEADER])):
                return False
            if self.verdict is not None and self.verdict.reason is not None:
                return self.stop is None
        if self._screen is None and self._decoder is None:
            self.free = min(self._wire_limit, self._decoded_limit)
        return self.stop is None

    def begin_body(self) -> None:
        """The head is complete: read what rules the body."""
        self._began_body = True
        self._text = b"".join(self._lines[1:]).decode("latin-1").replace("\r\n", "\n").strip("\n")
        lower = self._text.lower()
        if "content-encoding" in lower:
            coding = ",".join(values_of(self._text, lower, "content-encoding"))
            self._decoder = Decoder(coding, self._decoded_limit) if coding else None
        if "location" in lower and self.redirects:
            self._wire_limit = min(self._wire_limit, _UNREAD_BODY)
        if _long_length(lower) and _LOST_LENGTH.search(lower) and "transfer-encoding" not in lower:
            announced = header(self._text, "content-length") or ""
            self._lost_length = len(announced) > _LENGTH_DIGITS and announced.isdigit()

    @property
    def redirects(self) -> bool:
        """Whether the answer names another place."""
        return self.status in REDIRECTS and header(self._text, "location") is not None

    def end(self, *, whole: bool) -> str | None:
        """Fault of the body's coding, if any. `whole`: the transfer ended as it should."""
        if not self._began_body and self._lines:
            self.begin_body()
        self._last_look(whole)
        if whole and self._lost_length and self.wire:
            return "body_cut"  # nobody sends as much as was announced
        if self._decoder is None:
            return None
        if whole:
            self._decoder.finish()
        return self._decoder.fault

    def _last_look(self, whole: bool) -> None:
        """Judge a body shorter than what a screen wants to see; one that was cut is not refused for that."""
        if self._screen is None or not brings_page(self.status):
            return
        verdict = self._screen.shown(self._declared, self._text, self.body()[:HEADER])
        self.verdict, self._screen = verdict if whole else replace(verdict, reason=None), None

    @property
    def status(self) -> int | None:
        """Status of the last answer begun, None before any."""
        if self._code == _UNREAD:
            if not self._lines:
                return None
            self._code = _STATUS_LINES.get(self._lines[0][:12]) or _odd_status(self._lines[0])
        return self._code

    def lines(self) -> str:
        """Header lines as received, once the head is complete."""
        return self._text

    def pieces(self) -> tuple[bytes, ...]:
        """What was decoded so far, as it came."""
        return tuple(self._chunks)

    def body(self) -> bytes:
        """What was decoded so far."""
        chunks = self._chunks
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _odd_status(line: bytes) -> int | None:
    code = line[:32].split(None, 2)[1:2]
    digits = code[0][:3] if code else b""
    return int(digits) if digits.isdigit() else None


def _long_length(lower: str) -> bool:
    """Whether the lines may hold a Content-Length that libcurl does not heed: a quick look."""
    at = lower.find("content-length")
    if at < 0:
        return False
    end = lower.find("\n", at)
    return (end if end >= 0 else len(lower)) - at > 14 + _LENGTH_DIGITS or lower.rfind("content-length") != at


def settle(incoming: Incoming, status: int, fault: str | None) -> tuple[Outcome, str | None, bool]:
    """(outcome, reason, truncated) of an answer with a whole head. `fault`: why its body is not whole."""
    outcome = from_status(status)
    if outcome is Outcome.REDIRECT and incoming.redirects:
        return outcome, None, False  # whatever became of its body
    if outcome is Outcome.REDIRECT:
        return Outcome.BAD_REDIRECT, "no_location" if status in REDIRECTS else f"status_{status}", False
    if outcome is Outcome.MALFORMED:
        return outcome, "status_out_of_range", fault is not None
    if status == 206:  # an answer to Range, which is never sent (RFC 9110 15.3.7)
        return Outcome.MALFORMED, "unasked_206", True
    verdict = incoming.verdict
    if verdict is not None and verdict.reason is not None and outcome is Outcome.OK:
        return verdict.outcome, verdict.reason, False  # however much came of what nobody reads
    if fault is None:
        return outcome, None, False
    if outcome is not Outcome.OK:
        return outcome, fault, True  # what it said stands without the rest of its body
    return _BODY_FAULTS.get(fault, _broken(fault)), fault, fault not in _NOT_TRUNCATED


def _broken(fault: str) -> Outcome:
    return Outcome.RESET if fault.startswith("http2") else Outcome.MALFORMED


#: what a 2xx becomes whose body is not whole
_BODY_FAULTS: Final = {
    "wire_bytes": Outcome.TOO_LARGE,
    "decoded_bytes": Outcome.TOO_LARGE,
    "body_cut": Outcome.RESET,
    "deadline": Outcome.TIMEOUT,
    "idle": Outcome.TIMEOUT,
    DROPPED: Outcome.RESET,
    "encoding_absent": Outcome.OK,
}
_NOT_TRUNCATED: Final = frozenset({"encoding_absent", "encoding_unknown"})
