"""Hosts that an operator joined: which group a host belongs to, and the one clock of a group.

What always holds: a host is in one group at most; a group's next request, to whichever member, starts no
earlier than the end of the last one plus the gap that this one made, the longest Crawl-delay of any member,
or what a member that pushed us back still has to be spared. An answer 429 or 503 of one member cools all;
that a member cannot be reached says nothing about the others, so back-off after other faults, and circuits,
stay each host's own.
What it does not do: it asks nobody, and packs nothing (crawl.planning.packing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from crawl import url
from crawl.policy import Politeness
from crawl.politeness.clock import HostState, gap

__all__ = ["Groups", "Joined"]

_MS: Final = timedelta(milliseconds=1)


class Groups:
    """The setting `[politeness] groups`: names of groups, each with hosts and `*.suffix` patterns.

    `a.test` is that host, `*.b.test` is b.test and every host below it.
    """

    def __init__(self, groups: Mapping[str, Sequence[str]]) -> None:
        self._hosts: dict[str, str] = {}
        self._below: dict[str, str] = {}
        self._domains: dict[str, list[str]] = {}
        for group, patterns in groups.items():
            for pattern in patterns:
                base = pattern.removeprefix("*.")
                (self._hosts if base == pattern else self._below)[base] = group
                self._domains.setdefault(url.domain(base), []).append(group)

    def __bool__(self) -> bool:
        return bool(self._hosts or self._below)

    def of(self, host: str) -> str | None:
        """The host's group, None for one with a clock of its own."""
        found = self._hosts.get(host)
        if found is not None or not self._below:
            return found
        while host:
            if host in self._below:
                return self._below[host]
            host = host.partition(".")[2]
        return None

    def near(self, domain: str) -> Sequence[str]:
        """Groups that have, or may have, hosts of this domain: a redirect may lead to one of them."""
        return self._domains.get(domain, ())


@dataclass(slots=True, eq=False)
class Joined:
    """The clock of one group in one round. Identity is the object."""

    name: str
    #: real time before which no member is asked; None while none was ever asked
    allowed_at: datetime | None = None
    #: end of the group's last request, as far as known
    last_end: datetime | None = None
    #: ms that each member asks for by its Crawl-delay, and by answers 429 and 503
    delays: dict[str, float] = field(default_factory=dict)
    slowed: dict[str, float] = field(default_factory=dict)

    @property
    def gap_ms(self) -> float:
        """Gap in force since the end of the last request; 0 where there was none."""
        if self.allowed_at is None or self.last_end is None:
            return 0.0
        return (self.allowed_at - self.last_end) / _MS

    def adopt(self, state: HostState, policy: Politeness, *, public: bool) -> None:
        """A member as an earlier round left it: what it has to be spared, the group has."""
        self._note(state)
        if state.next_allowed_at is None:
            return
        ended = state.next_allowed_at - state.delay_ms * _MS
        cooling = state.slowed_ms is not None and state.backoff_until is not None
        wait = state.delay_ms * _MS if cooling else gap(state, None, policy, public=public)[0]
        self._wait(ended, wait)

    def asked(self, state: HostState, finished_at: datetime, wait: timedelta) -> None:
        """A request to a member ended: `state` is the member's by now, `wait` the gap it made for all."""
        self._note(state)
        self._wait(finished_at, wait)

    def delay(self, state: HostState) -> None:
        """A member's Crawl-delay is another one by now."""
        self._note(state)
        if self.last_end is not None:
            self._wait(self.last_end, timedelta(0))

    def hold(self, until: datetime) -> None:
        """Leave all alone until then, whatever it was before."""
        if self.allowed_at is None or self.allowed_at < until:
            self.allowed_at = until

    def _note(self, state: HostState) -> None:
        for known, ms in ((self.delays, state.robots_delay_ms), (self.slowed, state.slowed_ms)):
            if ms is None:
                known.pop(state.host, None)
            else:
                known[state.host] = ms

    def _wait(self, ended: datetime, wait: timedelta) -> None:
        longest = max((0.0, *self.delays.values(), *self.slowed.values()))
        self.hold(ended + max(wait, longest * _MS))
        if self.last_end is None or self.last_end < ended:
            self.last_end = ended
