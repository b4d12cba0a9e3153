"""Which driver may seal: each takes the next number, and a newer number ends the power of all older ones.

What always holds: a fence is a commit without files on `rounds`, app id `fence`, version = its number, with
who took it in its metadata. It is decided and made on one handle, so of several drivers that saw the same
last fence one wins. Whoever seals or records carries its own fence number in that very commit: a rival that
takes the next fence in between makes it fail, never land beside it. Whether the last holder still lives is
not asked here (the caller watches its heartbeat first).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crawl.errors import FenceLost, LakeBusy, LakeError
from lake import delta
from lake.store import Store

__all__ = ["FENCE", "ROUNDS", "Fence", "Holder", "check_fence", "holder", "require", "take_fence"]

ROUNDS = "rounds"
#: app id
FENCE = "fence"
_PREFIX = "who."


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The last fence taken: number 0 and nobody before the first."""

    number: int = 0
    who: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.number:
            return "nobody"
        told = ", ".join(f"{key} {self.who[key]}" for key in ("host", "pid", "since") if key in self.who)
        return f"driver {self.number} ({told})" if told else f"driver {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """The right to seal, until somebody takes a higher number."""

    number: int
    version: int  # Delta version of `rounds` that took it
    who: Mapping[str, str]


def holder(store: Store) -> Holder:
    """Who took the last fence. Raises LakeError."""
    number = delta.app_version(store, ROUNDS, FENCE)
    if not number:
        return Holder()
    for found in delta.search(store, ROUNDS, lambda tagged: tagged.metadata.get("purpose") == FENCE):
        who = {k.removeprefix(_PREFIX): str(v) for k, v in found.metadata.items() if k.startswith(_PREFIX)}
        return Holder(number=found.apps.get(FENCE, number), who=who)
    return Holder(number=number)


def take_fence(store: Store, who: Mapping[str, str], *, after: int | None = None) -> Fence:
    """Take the next fence. `who`: host, pid, since … of this driver, told to those who come too late.

    `after`: the number of the last fence when its holder was found gone; without it, whatever is last now is
    overtaken. Raises LakeBusy, naming the winner, when somebody took one since.
    """
    last = delta.app_version(store, ROUNDS, FENCE) if after is None else after

    def decide(head: delta.Head) -> delta.Intent:
        if head.app(FENCE) != last:
            raise LakeBusy(f"{store.root} was just taken by {holder(store)}: wait until it ends")
        told = {_PREFIX + key: value for key, value in who.items()}
        return delta.Intent(apps={FENCE: last + 1}, metadata={"purpose": FENCE, **told})

    version = delta.commit_if(store, ROUNDS, decide)
    if version is None:
        raise LakeError("a fence is always committed")
    return Fence(number=last + 1, version=version, who=dict(who))


def check_fence(store: Store, fence: Fence) -> None:
    """Raises FenceLost when a newer driver has taken over. For stopping early: a seal checks for itself."""
    newest = delta.app_version(store, ROUNDS, FENCE)
    if newest != fence.number:
        raise FenceLost(f"we are driver {fence.number} of {store.root}; {holder(store)} has taken over")


def require(store: Store, head: delta.Head, fence: Fence) -> None:
    """The same on the handle that is about to commit."""
    if head.app(FENCE) != fence.number:
        raise FenceLost(f"we are driver {fence.number} of {store.root}; {holder(store)} has taken over")
