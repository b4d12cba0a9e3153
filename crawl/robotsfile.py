"""The lines of a robots.txt, sorted into groups (RFC 9309 2.2): its grammar, and what is met in its place.

What always holds: any bytes are read, in time linear in their length; unknown lines end no group.
What it does not do: it matches no URL (crawl.robots).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from crawl.errors import UrlError
from crawl.url import canonical

__all__ = ["TOKEN", "Line", "Reader", "decode"]


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
#: line ends to Python and Protego, but not to RFC 9309
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
    """Sorts lines into groups. `agents`: rules by lower-case product token; `delays`: seconds likewise."""

    def __init__(self, base: str | None) -> None:
        self._base = base
        self.agents: dict[str, list[Line]] = {}
        self.delays: dict[str, float] = {}
        self.sitemaps: dict[str, None] = {}
        # The agents whom the next rule, and the next Crawl-delay, is about. They part where a Crawl-delay
        # stands between agent lines: it ends no group of rules (RFC 9309 2.2.4), but it speaks for those
        # above it alone.
        self._ruled: dict[str, None] = {}
        self._delayed: dict[str, None] = {}
        self._rules_began = self._delay_began = False

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
            rule = Line(number, kind == "allow", value)
            for name in self._ruled:
                self.agents[name].append(rule)

    def _agent(self, value: str) -> None:
        match = _AGENT.match(value)
        if match is None:
            return
        name = (match[1] or "*").lower()
        if self._rules_began:
            self._ruled = {}
            self._rules_began = False
        if self._delay_began:
            self._delayed = {}
            self._delay_began = False
        self.agents.setdefault(name, [])
        self._ruled[name] = self._delayed[name] = None

    def _delay(self, value: str) -> None:
        self._delay_began = True
        match = _DELAY.match(value)
        if match is not None:
            for name in self._delayed:
                self.delays[name] = float(match[1])

    def _sitemap(self, value: str) -> None:
        try:
            self.sitemaps[canonical(value, self._base)] = None
        except UrlError:
            return


def decode(body: bytes, limit: int) -> str:
    """The text of a body, without byte-order mark, cut at the last whole line before `limit` bytes."""
    if len(body) > limit:
        # the line that the limit cuts could say the opposite of what it says in full
        body = body[: max(body.rfind(b"\n", 0, limit + 1), body.rfind(b"\r", 0, limit + 1)) + 1]
    text = body.decode("utf-8", "replace")
    return text.removeprefix("\ufeff").removeprefix("\ufffd")
