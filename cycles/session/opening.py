"""Which round is at hand: the open one if there is one, else the next, pinned in one object.

`open.json` is created only if absent and names everything that decides the round's results: planning time,
window, settings, the Delta versions it reads, how many host groups, and whether waiting links are merged. A
driver that resumes takes all of it from there; its own flags then count for later rounds only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from crawl.errors import UsageError
from crawl.policy import Settings
from cycles.session.clock import utcnow
from cycles.session.context import Context
from cycles.session.safety import forward
from cycles.session.workspace import Workspace
from cycles.settings.config import from_json, policy_version, to_json
from cycles.settings.options import RunOptions
from lake import snapshot
from lake.store import Store

__all__ = ["Opened", "is_open", "merged_through", "moment", "open_round", "preview"]

Opened = tuple[Context, Mapping[str, Any]]


def is_open(store: Store) -> int | None:
    """Number of the round that was begun and not committed; None when there is none."""
    number = _next(store)
    return number if Workspace(store.root, number).read("open.json") is not None else None


def _next(store: Store) -> int:
    row = snapshot.newest(store)
    return (int(row["round"]) if row else 0) + 1


def merged_through(store: Store) -> int:
    """Last round whose links have been merged; 0 when none were."""
    row = snapshot.newest(store)
    return int(json.loads(row["counts"]).get("links_merged_through", 0)) if row else 0


def moment(store: Store, clock: datetime) -> tuple[datetime, str]:
    """(time to judge by where none is given, a word on it): a rehearsed lake may be ahead of the clock.

    The time is the planning time of the open or last round then, as the next round's cannot be earlier.
    """
    row, pinned = snapshot.newest(store), Workspace(store.root, _next(store)).read("open.json")
    times = ([row["now"]] if row else []) + ([datetime.fromisoformat(pinned["now"])] if pinned else [])
    if not times or max(times) <= clock:
        return clock, ""
    return max(
        times
    ), "the planning time of its last round, which lies ahead of the clock; --now gives another"


def open_round(
    store: Store,
    settings: Settings,
    options: RunOptions,
    *,
    fence: int,
    token: str,
    groups: int,
    tell: Callable[[str], None],
) -> Opened:
    """The open round's context and its `open.json`; opens the next round when there is none.

    Raises UsageError when a planning time lies before that of the last round, SafetyStop when it lies far
    ahead.
    """
    number = _next(store)
    work = Workspace(store.root, number)
    pinned = work.read("open.json")
    if pinned is None:
        now = options.now or utcnow()
        _sound_time(store, now)
        window = options.window or settings.round.window
        pinned = work.once(
            {
                "round": number,
                "opened_at": utcnow().isoformat(),
                "now": now.isoformat(),
                "window_s": window.total_seconds(),
                "settings": to_json(settings),
                "policy_version": policy_version(settings),
                "versions": snapshot.latest(store).versions,
                "groups": groups,
                "merge_links": _merges(store, settings, options, number),
                "links_merged_through": merged_through(store),
            },
            "open.json",
        )
    else:
        same = options.now is None or datetime.fromisoformat(pinned["now"]) == options.now
        own = "" if same else f" at its own planning time {pinned['now']}"
        tell(f"round {number} is open: finishing it{own}, with the settings it was opened with")
    return _context(store, pinned, fence=fence, token=token), pinned


def preview(store: Store, settings: Settings, options: RunOptions, *, groups: int) -> tuple[Context, bool]:
    """The context that the next run would have, and whether its round is open; nothing is written.

    Raises UsageError as `open_round` does.
    """
    number = _next(store)
    pinned = Workspace(store.root, number).read("open.json")
    if pinned is not None:
        return _context(store, pinned, fence=0, token=""), True
    now = options.now or utcnow()
    _sound_time(store, now)
    window = options.window or settings.round.window
    context = Context(
        root=store.root,
        round=number,
        fence=0,
        token="",
        opened_at=utcnow(),
        now=now,
        window_s=window.total_seconds(),
        settings=settings,
        policy_version=policy_version(settings),
        versions=snapshot.latest(store).versions,
        groups=groups,
    )
    return context, False


def _context(store: Store, pinned: Mapping[str, Any], *, fence: int, token: str) -> Context:
    return Context(
        root=store.root,
        round=int(pinned["round"]),
        fence=fence,
        token=token,
        opened_at=datetime.fromisoformat(pinned["opened_at"]),
        now=datetime.fromisoformat(pinned["now"]),
        window_s=float(pinned["window_s"]),
        settings=from_json(pinned["settings"]),
        policy_version=pinned["policy_version"],
        versions=pinned["versions"],
        groups=int(pinned["groups"]),
    )


def _merges(store: Store, settings: Settings, options: RunOptions, number: int) -> bool:
    """Whether this round merges waiting links; one that runs until idle always does, or it never ends."""
    return options.until_idle or number - merged_through(store) >= settings.round.merge_every


def _sound_time(store: Store, now: datetime) -> None:
    row = snapshot.newest(store)
    forward(now, row["now"] if row is not None else None, utcnow())
    if row is not None and now < row["now"]:
        raise UsageError(
            f"planning time {now.isoformat()} lies before that of round {row['round']}, "
            f"{row['now'].isoformat()}: a lake only goes forward in time; "
            "give that time or a later one as --now"
        )
