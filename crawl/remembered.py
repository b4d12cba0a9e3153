"""Answers about texts that come again and again: host names, origins.

What always holds: what is remembered is bounded in bytes, not in entries alone. Strangers choose these texts,
and a host of eight thousand characters is a URL too: answers about long ones are worked out each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

__all__ = ["LONGEST", "remembered"]

#: no name in DNS is longer than 253 octets (RFC 1035 2.3.4); scheme and port come on top
LONGEST: Final = 270

P = ParamSpec("P")
T = TypeVar("T")


def remembered(entries: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`lru_cache` for a pure function of texts, of which the last is the long one. No keywords."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(*texts: P.args, **none: P.kwargs) -> T:
            last = texts[-1]
            if isinstance(last, str) and len(last) <= LONGEST:
                return cached(*texts)
            return function(*texts, **none)

        return call

    return decorate
