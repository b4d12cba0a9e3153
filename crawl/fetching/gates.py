"""Gates before public addresses: hosts that share one go through it one by one.

What always holds: at an address with a cap, no more requests are open at once than it says, and two starts
are at least so far apart; whoever must wait stands in line, first come, first served, and holds no slot. Only
the first of a line is called, for the moment at which it may go; one that does not go then makes room for the
next. A host (or each of its lanes) has one request under way.
It knows no clock (times are arguments, seconds that never go back), and nothing of what is asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from crawl.politeness.addresscap import Cap

__all__ = ["FREE", "Gates", "Pass"]

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A request may start now. `cap` None: its address has none."""

    cap: Cap | None
    waited_s: float = 0.0


FREE: Final = Pass(cap=None)


class _Gate(Generic[Key]):
    def __init__(self, cap: Cap, opens: float) -> None:
        self.cap = cap
        self.opens = opens
        self.in_flight = 0
        self.called: Key | None = None
        self.line: deque[Key] = deque()


class Gates(Generic[Key]):
    """The gates of one group of hosts."""

    def __init__(
        self,
        capped: Callable[[str], bool],
        caps: Mapping[str, Cap],
        other: Cap,
        call: Callable[[Key, float], bool],
        *,
        opens: float,
    ) -> None:
        """`capped` says which addresses have a cap, `caps` which one; `other` is that of any other.

        `call(key, at)` has `key` come back at that time, or says False: it has something else to wait for.
        Nothing starts before `opens`, with the distance of a start that might have been just before.
        """
        self._capped = capped
        self._caps = caps
        self._other = other
        self._call = call
        self._opens = opens
        self._gates: dict[str, _Gate[Key]] = {}
        self._inside: dict[Key, _Gate[Key]] = {}
        self._called: dict[Key, _Gate[Key]] = {}
        self._since: dict[Key, float] = {}

    def enter(self, key: Key, address: str, now: float) -> Pass | None:
        """Lets a request start at this address now; None: it has to `stand` in line."""
        gate = self._gate(address) if self._capped(address) else None
        if self._called.get(key) not in (None, gate):
            self.step_down(key, now)  # it was called for another address, and goes elsewhere
        if gate is None:
            return FREE
        if gate.called is key:
            gate.called = None
            del self._called[key]
        elif gate.called is not None or gate.line or now < gate.opens or self._full(gate):
            return None
        gate.in_flight += 1
        gate.opens = now + gate.cap.delay_s
        self._inside[key] = gate
        self._go_on(gate, now)
        return Pass(cap=gate.cap, waited_s=now - self._since.pop(key, now))

    def stand(self, key: Key, address: str, now: float) -> None:
        """`key` waits in the line of this address until it is called, maybe at once."""
        gate = self._gate(address)
        gate.line.append(key)
        self._since.setdefault(key, now)
        self._go_on(gate, now)

    def leave(self, key: Key, now: float) -> None:
        """The request of `key`, if it went through a gate, has ended."""
        gate = self._inside.pop(key, None)
        if gate is not None:
            gate.in_flight -= 1
            self._go_on(gate, now)

    def step_down(self, key: Key, now: float) -> None:
        """`key`, if it was called, does not go: the next in its line may."""
        gate = self._called.pop(key, None)
        if gate is not None:
            gate.called = None
            self._since.pop(key, None)
            self._go_on(gate, now)

    def standing(self) -> Iterator[Key]:
        """Those in line, called or not."""
        yield from self._called
        for gate in self._gates.values():
            yield from gate.line

    def _gate(self, address: str) -> _Gate[Key]:
        gate = self._gates.get(address)
        if gate is None:
            cap = self._caps.get(address, self._other)
            gate = self._gates[address] = _Gate(cap, self._opens + cap.delay_s)
        return gate

    @staticmethod
    def _full(gate: _Gate[Key]) -> bool:
        return gate.in_flight >= gate.cap.in_flight

    def _go_on(self, gate: _Gate[Key], now: float) -> None:
        """Calls the first in line, if there is room."""
        while gate.called is None and gate.line and not self._full(gate):
            key = gate.line.popleft()
            if self._call(key, max(now, gate.opens)):
                gate.called = key
                self._called[key] = gate
            else:
                self._since.pop(key, None)
