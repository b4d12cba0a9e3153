"""Whose turn it is: hosts by the time before which they must be left alone, and a number of slots.

What always holds: whoever waits occupies no slot; nobody is granted a turn before its time, nor while it has
one; there are never more turns than slots. Ties go to who came first. Time is an argument: seconds on any
clock that never goes back, real or virtual. It sleeps for nobody and knows nothing of requests.

The structure is Mercator's heap of back queues (Heydon and Najork 1999, 3.2) with slots for its threads.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

__all__ = ["Agenda"]

Key = TypeVar("Key", bound=Hashable)


class Agenda(Generic[Key]):
    """Keys that wait for a time, and those whose turn it is."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._heap: list[tuple[float, int, Key]] = []
        self._waiting: dict[Key, int] = {}  # who waits, and the number of the heap's entry that counts
        self._granted: set[Key] = set()
        self._number = 0

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def waiters(self) -> Iterator[Key]:
        """Those who wait, in no order."""
        return iter(self._waiting)

    @property
    def granted(self) -> int:
        """How many have their turn now."""
        return len(self._granted)

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting or key in self._granted

    def put(self, key: Key, at: float) -> None:
        """`key` wants a turn, not before `at`. Raises ValueError if it waits or has one already."""
        if key in self._waiting or key in self._granted:
            raise ValueError(f"{key!r} is on the agenda already")
        self._push(key, at)

    def move(self, key: Key, at: float) -> None:
        """`key`, which waits, wants its turn at another time. Raises ValueError if it does not wait."""
        if key not in self._waiting:
            raise ValueError(f"{key!r} does not wait")
        self._push(key, at)

    def claim(self, now: float) -> Key | None:
        """Grants a turn to the one that has waited longest past its time; None if nobody may start now."""
        if len(self._granted) >= self._slots:
            return None
        heap, waiting = self._heap, self._waiting
        while heap and heap[0][0] <= now:
            _, number, key = heapq.heappop(heap)
            if waiting.get(key) == number:  # else it was moved
                del waiting[key]
                self._granted.add(key)
                return key
        return None

    def release(self, key: Key) -> None:
        """The turn of `key` is over; it waits for none until it is put again."""
        self._granted.remove(key)

    def next_at(self) -> float | None:
        """When the next turn may begin; None while nobody waits or no slot is free."""
        while self._heap and self._waiting.get(self._heap[0][2]) != self._heap[0][1]:
            heapq.heappop(self._heap)  # it was moved
        if not self._heap or len(self._granted) >= self._slots:
            return None
        return self._heap[0][0]

    def clear(self) -> None:
        """Forgets all who wait."""
        self._heap.clear()
        self._waiting.clear()

    def _push(self, key: Key, at: float) -> None:
        self._number += 1
        self._waiting[key] = self._number
        heapq.heappush(self._heap, (at, self._number, key))
