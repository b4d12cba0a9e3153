"""What a request asks, and what its answer says.

What always holds: header lines are as they were received, as Latin-1, so that no octet is lost. It opens no
connection and knows no HTTP library; how an answer comes in is crawl.net.incoming's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from crawl.documents.screen import Screen
from crawl.errors import UrlError
from crawl.outcomes import Outcome
from crawl.quickrecord import quickrecord

__all__ = ["DROPPED", "REDIRECTS", "STALE", "Answer", "Request", "header", "location", "values_of"]

#: reason of an answer whose transfer we ended ourselves: nothing was learnt
DROPPED: Final = "dropped"
#: reason of an answer that did not come because the server closed a kept connection meanwhile
STALE: Final = "stale_connection"
#: statuses whose Location is a target (RFC 9110 15.4; 300 only where it has one)
REDIRECTS: Final = frozenset({300, 301, 302, 303, 307, 308})


@quickrecord
class Request:
    """A GET of `url`, sent to the address `pin` and no other. `headers`: further lines, as `Name: value`."""

    url: str
    pin: str
    headers: tuple[str, ...] = ()
    decoded_bytes: int | None = None  # a tighter cap than the limits'
    body_bytes: int | None = None  # another cap than theirs, as received and decoded
    spent_ms: float = 0.0  # time that counts against the deadline already: resolving the name
    screen: Screen | None = None  # judges an answer of status 200 by its type; None: any is taken


@quickrecord
class Answer:
    """How one request ended. Times are milliseconds from dispatch; `began`, `ended` are the loop's clock.

    `outcome` is OK or what the status, the fault or the broken rule makes of it; `reason` its detail. A body
    that ended early or hit a cap is kept as far as it came, with `truncated`.
    """

    outcome: Outcome
    reason: str | None
    began: float
    ended: float
    status: int | None = None
    headers: str = ""  # lines as received, joined by line feeds, without the status line
    pieces: tuple[bytes, ...] = ()  # of the body, decoded, as it came
    size: int = 0  # of all pieces
    wire_bytes: int = 0
    truncated: bool = False
    http_version: str | None = None
    address: str | None = None
    reused: bool | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
    sniffed_type: str | None = None  # what the screen took it for; None: nobody looked

    @property
    def body(self) -> bytes:
        """Its pieces in one."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    @property
    def total_ms(self) -> float:
        """From dispatch to the end."""
        return (self.ended - self.began) * 1e3


def location(answer: Answer) -> str | None:
    """The Location of a redirect, octets beyond ASCII as escapes: what browsers ask for, whatever they spell.

    Raises UrlError where there are several that differ, which browsers refuse, too.
    """
    values = set(values_of(answer.headers, answer.headers.lower(), "location"))
    if len(values) > 1:
        raise UrlError("several_locations", answer.headers)
    value = next(iter(values), None)
    if value is None or value.isascii():
        return value
    return "".join(char if char.isascii() else f"%{ord(char):02X}" for char in value)


def header(lines: str, name: str) -> str | None:
    """First value of a header among lines as `Answer.headers` has them; `name` in lower case."""
    return next(values_of(lines, lines.lower(), name), None)


def values_of(lines: str, lower: str, name: str) -> Iterator[str]:
    """Values of a header, in order. `lower`: the lines in lower case (of Latin-1, so of the same length)."""
    at = lower.find(name)
    while at >= 0:
        end = at + len(name)
        if at == 0 or lower[at - 1] == "\n":
            line_end = lines.find("\n", end)
            gap, colon, value = lines[end : line_end if line_end >= 0 else None].partition(":")
            if colon and not gap.strip():
                yield value.strip(" \t\r")
        at = lower.find(name, end)
