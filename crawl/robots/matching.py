"""Which rule of a robots.txt group decides about a path (RFC 9309 2.2.2).

What always holds: rule and path are compared in one spelling (`spelt`); the longest rule that matches
decides, Allow on a tie, the first line of equals; a verdict takes time linear in the bytes of the group's
rules, whatever they are: `*` is matched by looking for the next literal, never by going back.
What it does not do: it reads no file (crawl.robots.grammar) and chooses no group (crawl.robots).

Choices where peers differ, as their users expect them: a rule that allows `/dir/index.html` (or `.htm`)
allows `/dir/` too; a rule that does not begin with `/` or `*` matches nothing; `$` is an end only where it
ends a rule; the octets of a path are counted as percent-encoded where they are not ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from crawl.robots.grammar import Line

__all__ = ["Group", "path_of", "spelt"]

#: a URL whose path is spelt as it is compared
_COMMON: Final = re.compile(r"https?://[A-Za-z0-9.:-]*(/[A-Za-z0-9_.~/=-]*)")
_AUTHORITY: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
#: characters that stand for themselves in a spelling; `*` and `$` are what a rule makes of them
_ITSELF: Final = re.compile(r"[A-Za-z0-9_.~/=-]*")
_OTHER: Final = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9_.~/=%-]")
_ESCAPE: Final = re.compile(r"%[0-7][0-9A-F]")
_INDEX: Final = re.compile(r"(.*/)index\.html?")


def _spell(match: re.Match[str]) -> str:
    text = match[0]
    if len(text) == 3:  # an escape
        char = chr(int(text[1:], 16))
        # a slash that is data is none; the rest of ASCII means the same in both spellings
        return char if char.isascii() and (char.isalnum() or char in "_.~=-") else text.upper()
    return "".join(f"%{octet:02X}" for octet in text.encode("utf-8", "surrogatepass"))


def spelt(path: str) -> str:
    """The one spelling in which paths are compared: unreserved characters plain, everything else escaped."""
    return path if _ITSELF.fullmatch(path) else _OTHER.sub(_spell, path)


def path_of(url: str) -> str:
    """Path and query of a URL, as rules see them; of anything else: the text as a path."""
    common = _COMMON.fullmatch(url)
    if common is not None:
        return common[1]
    text = url.partition("#")[0]
    authority = _AUTHORITY.match(text)
    path = text[authority.end() :] if authority else text
    return spelt(path if path.startswith("/") else "/" + path)


@dataclass(frozen=True, slots=True)
class _Wild:
    """A rule with `*` or a final `$`: its literal beginning, the literals after it, and whether it ends."""

    weight: int
    line: Line
    head: str
    parts: tuple[str, ...]
    ends: bool

    def matches(self, path: str) -> bool:
        if not path.startswith(self.head):
            return False
        if not self.parts:
            return len(path) == len(self.head) or not self.ends
        at = len(self.head)
        *middle, last = self.parts
        for part in middle:
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        if self.ends:
            return len(path) - len(last) >= at and path.endswith(last)
        return path.find(last, at) >= 0


class Group:
    """The rules that hold for one agent, ready to be asked."""

    __slots__ = ("_lengths", "_plain", "_wild")

    def __init__(self, lines: Iterable[Line]) -> None:
        self._plain: dict[str, Line] = {}
        wild: dict[tuple[str, bool], Line] = {}
        for line in lines:
            for pattern in _patterns(line):
                if "*" in pattern or pattern.endswith("$"):
                    wild.setdefault((pattern, line.allow), line)
                else:
                    before = self._plain.get(pattern)
                    if before is None or (line.allow and not before.allow):
                        self._plain[pattern] = line
        # a longer plain rule is a more specific one: the first that matches decides among them
        self._lengths = sorted({len(pattern) for pattern in self._plain}, reverse=True)
        self._wild = [_wild(pattern, line) for (pattern, _), line in wild.items()]
        self._wild.sort(key=lambda rule: (-rule.weight, not rule.line.allow, rule.line.number))

    def deciding(self, path: str) -> Line | None:
        """The rule that decides about a path (of `path_of`), None where none does."""
        found: Line | None = None
        rank = (-1, False)
        for length in self._lengths:
            if length <= len(path) and (found := self._plain.get(path[:length])) is not None:
                rank = (_weight(path[:length]), found.allow)
                break
        for rule in self._wild:
            if (rule.weight, rule.line.allow) <= rank:
                break
            if rule.matches(path):
                return rule.line
        return found


def _patterns(line: Line) -> Iterable[str]:
    """What a line's path is compared as; nothing for an empty path."""
    path, end = line.path, ""
    if path.endswith("$"):
        path, end = path[:-1], "$"
    if not path.startswith(("/", "*")):
        return
    pattern = "*".join(spelt(part) for part in re.split(r"\*+", path)) + end
    yield pattern
    index = _INDEX.fullmatch(pattern) if line.allow else None
    if index is not None:
        yield index[1] + "$"


def _weight(pattern: str) -> int:
    """How specific a pattern is: its octets, an escaped ASCII character being one."""
    return len(pattern) - 2 * len(_ESCAPE.findall(pattern)) if "%" in pattern else len(pattern)


def _wild(pattern: str, line: Line) -> _Wild:
    ends = pattern.endswith("$")
    head, *parts = pattern.removesuffix("$").split("*")
    return _Wild(_weight(pattern), line, head, tuple(parts), ends)
