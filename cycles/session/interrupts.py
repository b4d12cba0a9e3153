"""Ctrl-C and SIGTERM: both end a command tidily, and neither in the middle of what cannot be taken back.

What always holds: SIGTERM raises where Ctrl-C does, in the main thread, so that every `with` lets go of what
it holds; while something is `postponed` a signal waits until it is over. The handlers of whoever called are
put back. Other threads are never interrupted.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

__all__ = ["INTERRUPTED", "TERMINATED", "Terminated", "postponed", "tidy"]

#: exit codes, as a shell gives them: 128 and the signal
INTERRUPTED: Final = 130
TERMINATED: Final = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM: the same as Ctrl-C, but for its exit code."""


@contextmanager
def tidy(tell: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Ctrl-C is answered at once and a second one ends the process; SIGTERM raises Terminated.

    To end at once is safe: whatever a round has done is resumed, as after any other sudden death.
    """

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # tidying up is under way; a second one changes nothing
        raise Terminated

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
        tell("stopping; Ctrl-C again stops at once")
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate), signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


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
