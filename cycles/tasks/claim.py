"""Who fetches a host group: one attempt at a time, proven again and again while it works.

Theory. An attempt writes a claim object, `claim-<fence>.<attempt>`, only if absent; the newest claim owns
the group. If an older attempt may still live (its driver does, and its lock on this machine is not free),
the new one first waits 2L: in that time the older one must notice, because it dispatches a request only if
within the last L seconds of its own clock (sleep included) one listing showed that its claim is the newest
and that the driver's heartbeat moved. Then the new attempt writes which bytes of which journal parts of
earlier attempts it takes over; whatever a woken zombie appends later lies beyond them and is ignored.

What always holds: two attempts never dispatch at once; finished work that was journalled is taken over.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from crawl.errors import FenceLost, LakeError
from cycles.session.clock import boot_id, boottime
from cycles.session.holder import Lock, Who, heartbeat_path, lock_is_free, read_beat
from cycles.session.workspace import Workspace

__all__ = ["Claim", "Lease", "Part", "adopt", "claim", "folder", "own_parts", "parts_folder", "release"]

_NAME = re.compile(r"claim-(\d{6})\.(\d{4})\.json$")


@dataclass(frozen=True, slots=True)
class Part:
    """A journal part, or its first `length` bytes where it was cut short by the end of its attempt."""

    path: str
    length: int


@dataclass(frozen=True, slots=True)
class Claim:
    """An attempt's hold on a group."""

    group: int
    fence: int
    attempt: int

    @property
    def name(self) -> str:
        """Object name within the group's folder."""
        return f"claim-{self.fence:06d}.{self.attempt:04d}.json"


def folder(work: Workspace, group: int, *names: str) -> str:
    """The group's folder in the round's work area."""
    return work.path(f"group-{group:05d}", *names)


def _claims(work: Workspace, group: int) -> list[Claim]:
    """All claims on the group, oldest first."""
    found = (_NAME.search(stat.path) for stat in work.store.list(folder(work, group)))
    claims = [Claim(group, int(m[1]), int(m[2])) for m in found if m]
    return sorted(claims, key=lambda c: (c.fence, c.attempt))


def claim(
    work: Workspace, group: int, fence: int, lock: Lock, lease: timedelta, sleep: Callable[[float], None]
) -> Claim:
    """Own the group from now on; returns when no older attempt can dispatch any more. Raises FenceLost."""
    while True:
        older = _claims(work, group)
        if older and older[-1].fence > fence:
            raise FenceLost(f"group {group} belongs to a newer driver (fence {older[-1].fence} > {fence})")
        mine = Claim(group, fence, older[-1].attempt + 1 if older else 1)
        who = json.dumps(Who.me(lock).plain()).encode()
        if work.store.create(folder(work, group, mine.name), who):
            break
    patience = boottime() + 2 * lease.total_seconds()
    while older and boottime() < patience and not _surely_gone(work, older[-1]):
        sleep(lease.total_seconds() / 15)
    return mine


def _surely_gone(work: Workspace, old: Claim) -> bool:
    """Whether the old attempt ended or can be seen to be dead on this machine."""
    if work.store.exists(folder(work, old.group, old.name + ".released")):
        return True
    try:
        who = Who.from_plain(json.loads(work.store.read(folder(work, old.group, old.name))))
    except (ValueError, KeyError, TypeError):
        return False  # a damaged claim tells of nobody
    return lock_is_free(who)


def release(work: Workspace, mine: Claim) -> bool:
    """Say that this attempt dispatches no more; whether storage took it (an earlier error tells more)."""
    try:
        work.store.write(folder(work, mine.group, mine.name + ".released"), b"{}")
    except LakeError:
        return False
    return True


def adopt(work: Workspace, mine: Claim, measure: Callable[[str], int]) -> Sequence[Part]:
    """What earlier attempts finished: their parts, each up to its last whole record (`measure` path → bytes).

    Written once beside the claim, so that everybody who reads this attempt's results means the same bytes.
    """
    before = [c for c in _claims(work, mine.group) if (c.fence, c.attempt) < (mine.fence, mine.attempt)]
    parts: list[Part] = []
    for old in reversed(before):
        taken = work.read(f"group-{mine.group:05d}", _adoption(old))
        if taken is None:
            continue  # it died before it began: it has no parts of its own
        parts = [Part(p, n) for p, n in taken["parts"]]
        parts += [Part(path, measure(path)) for path in own_parts(work, old)]
        break
    value = {"parts": [[p.path, p.length] for p in parts if p.length]}
    stands = work.once(value, f"group-{mine.group:05d}", _adoption(mine))
    return [Part(p, n) for p, n in stands["parts"]]


def _adoption(claim_: Claim) -> str:
    return f"adopted-{claim_.fence:06d}.{claim_.attempt:04d}.json"


def parts_folder(work: Workspace, claim_: Claim) -> str:
    """Where an attempt writes its journal."""
    return folder(work, claim_.group, f"{claim_.fence:06d}.{claim_.attempt:04d}")


def own_parts(work: Workspace, claim_: Claim) -> list[str]:
    """Paths of the parts an attempt wrote, in order."""
    return sorted(s.path for s in work.store.list(parts_folder(work, claim_)) if s.path.endswith(".jrnl"))


class Lease:
    """The running proof that this attempt may dispatch; `permit()` is cheap, asked before every request."""

    def __init__(
        self,
        work: Workspace,
        mine: Claim,
        driver_token: str,
        lease: timedelta,
        beside: Callable[[], None] = lambda: None,
    ) -> None:
        """`beside`: called after every look, for what else must be watched while requests are made."""
        self._work, self._mine, self._token = work, mine, driver_token
        self._length = lease.total_seconds()
        self._beside = beside
        self._proved_at = float("-inf")
        self._last_beat: int | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        #: why it lapsed for good, once it has
        self.lost: str | None = None

    def start(self, sleep: Callable[[float], None]) -> None:
        """Return with a first proof. Raises FenceLost when the driver is dead or the group is another's."""
        deadline = boottime() + 2 * self._length
        while not self._prove():
            if self.lost or boottime() > deadline:
                raise FenceLost(
                    self.lost or f"the driver's heartbeat {heartbeat_path(self._token)} stands still"
                )
            sleep(self._length / 15)
        self._thread.start()

    def permit(self) -> bool:
        """Whether a request may be dispatched now."""
        return self.lost is None and boottime() - self._proved_at < self._length

    def confirm(self) -> None:
        """Look once more. Raises FenceLost when the group is another's, or the round is over."""
        self._prove()
        if self.lost:
            raise FenceLost(self.lost)

    def stop(self) -> None:
        """End the watching."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self._length / 5):
            try:
                self._prove()
                self._beside()
            except Exception:  # noqa: BLE001  # any storage fault is no proof; the lease lapses if they go on
                continue

    def _prove(self) -> bool:
        """One look. True when it proved both: our claim is the newest, and the driver lives."""
        at = boottime()
        claims = _claims(self._work, self._mine.group)
        if not claims:
            self.lost = f"the work area of round {self._work.round} was swept: the round is over"
            return False
        if claims[-1] != self._mine:
            self.lost = f"attempt {claims[-1].fence}.{claims[-1].attempt} owns group {self._mine.group} now"
            return False
        beat = read_beat(self._work.store, self._token)
        if beat is None or beat["state"] != "running":
            return False
        moved = self._last_beat is not None and beat["beat"] != self._last_beat
        self._last_beat = beat["beat"]
        # on the driver's own machine one clock serves both; elsewhere only a move proves that it lives
        fresh = beat["who"]["boot"] == boot_id() != "" and at - float(beat["boottime"]) < self._length
        if moved or fresh:
            self._proved_at = float(beat["boottime"]) if fresh else at
            return True
        return False
