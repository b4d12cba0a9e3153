"""Ctrl-C and SIGTERM: both end a command tidily, and neither in the middle of what cannot be taken back.

What always holds: SIGTERM raises where Ctrl-C does, in the main thread, so that every `with` lets go of what
it holds; while something is `postponed` a signal waits until it is over. The handlers of whoever called are
put back. Other threads are never interrupted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = ["Terminated", "postponed", "tidy"]


class Terminated(KeyboardInterrupt):
    """SIGTERM: the same as Ctrl-C, but for its exit code."""


@contextmanager
def tidy() -> Iterator[None]:
    """SIGTERM raises Terminated while the block runs."""

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # tidying up is under way; a second one changes nothing
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def postponed() -> Iterator[None]:
    """A signal that comes while the block runs is delivered when the block is over."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    caught: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda got, _: caught.append(got)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    if caught:
        signal.raise_signal(caught[0])
