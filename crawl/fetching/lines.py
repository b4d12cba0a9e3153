"""An agenda in which those who share a clock stand in one line and take turns one after the other.

What always holds: of a line, one at most has its turn, and none gets it before both its own time and the
line's; whoever stands in no line is on the agenda itself. A line costs its members nothing while they wait:
only its first is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from crawl.fetching.agenda import Agenda

__all__ = ["Lines"]

Key = TypeVar("Key", bound=Hashable)
Line = TypeVar("Line", bound=Hashable)


class Lines(Generic[Key, Line]):
    """Keys that wait for a time, alone or in line.

    `line_of` a key never changes; `opens` says when a line may go on.
    """

    def __init__(
        self, slots: int, line_of: Callable[[Key], Line | None], opens: Callable[[Line], float]
    ) -> None:
        self._agenda: Agenda[Any] = Agenda(slots)  # keys that stand in no line, and lines
        self._line_of = line_of
        self._opens = opens
        self._lines: dict[Line, Agenda[Key]] = {}

    @property
    def waiting(self) -> int:
        """How many wait for their time, a line counted as one, and not while one of it has its turn."""
        return self._agenda.waiting

    def waiters(self) -> Iterator[Key]:
        """Those who wait, in no order."""
        for who in self._agenda.waiters():
            if who not in self._lines:
                yield who
        for line in self._lines.values():
            yield from line.waiters()

    @property
    def granted(self) -> int:
        """How many have their turn now."""
        return self._agenda.granted

    def __contains__(self, key: Key) -> bool:
        line = self._line_of(key)
        return key in self._agenda if line is None else line in self._lines and key in self._lines[line]

    def put(self, key: Key, at: float) -> None:
        """`key` wants a turn, not before `at`. Raises ValueError if it waits or has one already."""
        line = self._line_of(key)
        if line is None:
            self._agenda.put(key, at)
            return
        self._lines.setdefault(line, Agenda(1)).put(key, at)
        self._arrange(line)

    def claim(self, now: float) -> Key | None:
        """Grants a turn to the one that has waited longest past its time; None if nobody may start now."""
        who: Any = self._agenda.claim(now)
        return self._lines[who].claim(now) if who in self._lines else who

    def release(self, key: Key) -> None:
        """The turn of `key` is over; it waits for none until it is put again."""
        line = self._line_of(key)
        if line is None:
            self._agenda.release(key)
            return
        self._lines[line].release(key)
        self._agenda.release(line)
        self._arrange(line)

    def next_at(self) -> float | None:
        """When the next turn may begin; None while nobody waits or no slot is free."""
        return self._agenda.next_at()

    def clear(self) -> None:
        """Forgets all who wait."""
        self._agenda.clear()
        for line in self._lines.values():
            line.clear()

    def _arrange(self, line: Line) -> None:
        """Has the line wait for the time at which its first may go on."""
        at = self._lines[line].next_at()
        if at is None:  # nobody waits, or one has its turn
            return
        at = max(at, self._opens(line))
        if line in self._agenda:
            self._agenda.move(line, at)
        else:
            self._agenda.put(line, at)
