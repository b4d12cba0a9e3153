"""The rules of a robots.txt (RFC 9309): what an origin asks crawlers to leave alone.

`parse` reads a file and never fails; `Rules.verdict` says whether an agent may ask for a URL, by which line.

What always holds: the longest matching rule decides, Allow on a tie; without one a URL is allowed;
/robots.txt itself always is. There is no switch that turns this off.
What it does not do: it requests nothing, and waits for nothing (Crawl-delay goes to crawl.politeness).

Choices where peers differ: common misspellings of Disallow and a missing colon are read as meant; an agent's
group is the one of exactly its product token, not of a prefix; an agent line names one agent. How paths are
compared: crawl.robots.matching.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crawl.policy import Robots
from crawl.robots.grammar import TOKEN, Reader, decode
from crawl.robots.matching import Group, path_of

__all__ = ["Rules", "Verdict", "parse", "read"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be asked for. `rule` and `line` (from 1) are null where no rule decided."""

    allowed: bool
    rule: str | None = None
    line: int | None = None


_ALLOWED: Final = Verdict(True)
#: agents whose group is remembered; a crawl asks for one
_AGENTS: Final = 64


class Rules:
    """A robots.txt as read. Immutable in what it says; groups are compiled when first asked for."""

    __slots__ = ("_chosen", "_compiled", "_reader", "sitemaps")

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._compiled: dict[str, Group] = {}
        self._chosen: dict[str, Group | None] = {}  # by agent
        #: absolute http(s) URLs of the Sitemap lines, each once
        self.sitemaps = tuple(reader.sitemaps)

    def verdict(self, agent: str, url: str) -> Verdict:
        """May `agent` (a product token, or a whole User-Agent header) ask for `url`? Any text is answered."""
        try:
            group = self._chosen[agent]
        except KeyError:
            group = self._choose(agent)
        if group is None or (path := path_of(url)) == _ROBOTS:
            return _ALLOWED
        line = group.deciding(path)
        return _ALLOWED if line is None else Verdict(line.allow, line.text(), line.number)

    def _choose(self, agent: str) -> Group | None:
        """The rules that hold for an agent; None where none do."""
        name = self._group_of(agent)
        group = None if name is None else self._compiled.get(name)
        if group is None and name is not None:
            group = self._compiled[name] = Group(self._reader.rules(name))
        if len(self._chosen) >= _AGENTS:
            self._chosen.clear()
        self._chosen[agent] = group
        return group

    def crawl_delay(self, agent: str) -> float | None:
        """Seconds between requests that the agent's group asks for; None where it says nothing usable."""
        name = self._group_of(agent)
        return None if name is None else self._reader.delay(name)

    def _group_of(self, agent: str) -> str | None:
        """Name of the group that holds for an agent: its longest token that has one, else `*`."""
        agents = self._reader.agents
        named: list[str] = [token for token in TOKEN.findall(agent.lower()) if token in agents]
        if named:
            return max(named, key=len)  # RFC 9309 2.2.1 has one token; a whole header may hold several
        return "*" if "*" in agents else None


#: RFC 9309 2.2.2: the file itself is always allowed
_ROBOTS: Final = "/robots.txt"


def parse(body: bytes, base: str | None = None, limit: int = Robots().bytes) -> Rules:
    """Reads a robots.txt: whatever it holds, without failing.

    UTF-8, other octets as escapes, a byte-order mark (or what is left of one) aside. A body over `limit`
    bytes is cut there, at the last line that is whole. `base`: the file's URL, for relative Sitemap lines.
    """
    return read(decode(body, limit), base)


def read(text: str, base: str | None) -> Rules:
    """Rules of a text that was decoded before: a copy of a lake has its text."""
    reader = Reader(base)
    reader.read(text)
    return Rules(reader)
