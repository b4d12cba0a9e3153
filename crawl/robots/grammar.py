"""The lines of a robots.txt, sorted into groups (RFC 9309 2.2): its grammar, and what is met in its place.

What always holds: any bytes are read, in time and memory linear in their length, since agents named together
share one list of rules; unknown lines end no group.
What it does not do: it matches no URL (crawl.robots.matching).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from crawl.errors import UrlError
from crawl.url import canonical

__all__ = ["TOKEN", "Line", "Reader", "decode"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Line:
    """One Allow or Disallow line."""

    number: int
    allow: bool
    path: str

    def text(self) -> str:
        """As a line of a robots.txt."""
        return f"{'Allow' if self.allow else 'Disallow'}: {self.path}"


#: a product token (RFC 9309 2.2.1), and what stands in for one in the wild
TOKEN: Final = re.compile(r"[\w-]+")
_AGENT: Final = re.compile(r"\*(?![\w-])|\*?([\w-]+)")
_NEWLINE: Final = re.compile("\r\n|\r|\n")
#: line ends to Python, but not to RFC 9309
_ODD: Final = re.compile("[\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
#: a number; after it nothing, a word of its own, or markup (some robots.txt are HTML)
_DELAY: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})(?=$|[\s<])")

#: fields as written, misspellings that peers read included, and what they are
_FIELDS: Final[Mapping[str, str]] = {
    "user-agent": "agent",
    "user-agents": "agent",
    "useragent": "agent",
    "user agent": "agent",
    "useg-agent": "agent",
    "allow": "allow",
    "disallow": "disallow",
    "dissallow": "disallow",
    "dissalow": "disallow",
    "disalow": "disallow",
    "diasllow": "disallow",
    "disallaw": "disallow",
    "desallow": "disallow",
    "crawl-delay": "delay",
    "sitemap": "sitemap",
}
_LINE: Final = re.compile(
    rf"[ \t]*({'|'.join(sorted(_FIELDS, key=len, reverse=True))})(?:[ \t]*:|[ \t])[ \t]*(.*)", re.IGNORECASE
)


class Reader:
    """Sorts lines into groups; agents by their lower-case product token."""

    def __init__(self, base: str | None) -> None:
        self._base = base
        self.sitemaps: dict[str, None] = {}
        # Sections by agent: agents named together share one. Rules and Crawl-delays part where a Crawl-delay
        # stands between agent lines: it ends no group of rules (RFC 9309 2.2.4), but it speaks for those
        # above it alone.
        self._rules: dict[str, list[list[Line]]] = {}
        self._delays: dict[str, list[list[float]]] = {}
        self._section: list[Line] = []
        self._delay_section: list[float] = []
        self._rules_began = self._delay_began = False

    @property
    def agents(self) -> Collection[str]:
        """Who is named, `*` included."""
        return self._rules.keys()

    def rules(self, agent: str) -> list[Line]:
        """The Allow and Disallow lines of an agent, all its groups together, in the order of the file."""
        return [line for section in self._rules.get(agent, ()) for line in section]

    def delay(self, agent: str) -> float | None:
        """Seconds of the agent's last Crawl-delay, None without one."""
        return next((section[-1] for section in reversed(self._delays.get(agent, [])) if section), None)

    def read(self, text: str) -> None:
        """Takes in all lines of a file."""
        for number, line in enumerate(_NEWLINE.split(text), 1):
            self._line(number, _ODD.sub(" ", line))

    def _line(self, number: int, text: str) -> None:
        match = _LINE.fullmatch(text.partition("#")[0].rstrip())
        if match is None:
            return
        kind, value = _FIELDS[match[1].lower()], match[2]
        if kind == "agent":
            self._agent(value)
        elif kind == "delay":
            self._delay(value)
        elif kind == "sitemap":
            self._sitemap(value)
        else:
            self._rules_began = self._delay_began = True
            self._section.append(Line(number, kind == "allow", value))

    def _agent(self, value: str) -> None:
        match = _AGENT.match(value)
        if match is None:
            return
        name = (match[1] or "*").lower()
        if self._rules_began:
            self._section = []
            self._rules_began = False
        if self._delay_began:
            self._delay_section = []
            self._delay_began = False
        _join(self._rules.setdefault(name, []), self._section)
        _join(self._delays.setdefault(name, []), self._delay_section)

    def _delay(self, value: str) -> None:
        self._delay_began = True
        match = _DELAY.match(value)
        if match is not None:
            self._delay_section[:] = [float(match[1])]

    def _sitemap(self, value: str) -> None:
        try:
            self.sitemaps[canonical(value, self._base)] = None
        except UrlError:
            return


def _join(sections: list[list[_T]], section: list[_T]) -> None:
    """An agent named twice in one section is in it once."""
    if not sections or sections[-1] is not section:
        sections.append(section)


def decode(body: bytes, limit: int) -> str:
    """The text of a body, without byte-order mark, cut at the last whole line before `limit` bytes."""
    if len(body) > limit:
        # the line that the limit cuts could say the opposite of what it says in full
        body = body[: max(body.rfind(b"\n", 0, limit + 1), body.rfind(b"\r", 0, limit + 1)) + 1]
    if body.startswith(_UTF_16):  # not allowed, and met
        return body.decode("utf-16", "replace")
    mark = next((mark for mark in _MARKS if body.startswith(mark)), b"")
    return body[len(mark) :].decode("utf-8", _AS_ESCAPES)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """What is no UTF-8 is octets of a path: as escapes they match a URL that has them, and no other."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(f"%{octet:02X}" for octet in error.object[error.start : error.end]), error.end


_AS_ESCAPES: Final = "crawl.robots.grammar.escapes"
codecs.register_error(_AS_ESCAPES, _escaped)
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: a byte-order mark, and what editors leave of one
_MARKS: Final = (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef")
