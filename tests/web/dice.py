"""Chance from a key: every choice in the grown web is drawn from dice keyed by what it is for.

What always holds: the same key gives the same rolls on every machine and Python version (only
`Random.random()` is used, whose sequence Python guarantees). It keeps no global state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import TypeVar

__all__ = ["Dice", "number"]

T = TypeVar("T")


def number(*key: object) -> int:
    """A 64-bit number that depends on nothing but `key`."""
    text = "\x1f".join(map(str, key)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


class Dice:
    """A stream of choices that depends on nothing but its key."""

    __slots__ = ("random",)

    def __init__(self, *key: object) -> None:
        self.random = Random(number(*key)).random

    def below(self, bound: int) -> int:
        """A whole number in [0, bound)."""
        return int(self.random() * bound)

    def between(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * self.random()

    def chance(self, share: float) -> bool:
        """True in this share of the cases."""
        return self.random() < share

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices, all equally likely."""
        return choices[int(self.random() * len(choices))]

    def early(self, choices: Sequence[T]) -> T:
        """One of the choices, the first ones likelier (density falls as 1/√x: a few popular, a long tail)."""
        return choices[int(self.random() ** 2 * len(choices))]

    def gap(self, rate: float) -> float:
        """The time to the next event of a Poisson process with `rate` events a unit of time."""
        return -math.log(1.0 - self.random()) / rate
