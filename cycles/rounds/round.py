"""Rounds, one after another: hold the lake, finish what is open, else run the next.

    hold (fence) ─► roll a sealed round forward ─► open ─► plan ─► fetch, parse ─► dedup ─► merge ─► seal ─►
    commit

What happens when a driver is killed: before the fence, nothing; between opening and seal, the next driver
takes the open round up at the first step (and task) whose object is missing; after the seal, it only commits
what the seal lists. A round is visible to pinned readers from the moment its row in `rounds` is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from crawl.errors import LakeBusy, UsageError
from crawl.policy import Settings
from cycles.dask.lazycluster import LazyCluster
from cycles.rounds import closing, steps
from cycles.rounds.upkeep import NOTHING, upkeep
from cycles.session import opening
from cycles.session.clock import utcnow
from cycles.session.context import Context
from cycles.session.holding import hold
from cycles.session.setup import SETTINGS, open_lake, require_agent, unasked
from cycles.settings import soundness
from cycles.settings.options import RunOptions
from cycles.words.progress import Progress
from lake import rounds

__all__ = ["Done", "preview", "run"]

#: rounds of one run after which upkeep has its turn, besides at the end: a tier of runs
_TIDY: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a round came to."""

    round: int
    planned: int
    idle: bool  # nothing was due, and everything that waited to be merged was
    counts: Mapping[str, Any]


def run(root: str, options: RunOptions, progress: Progress) -> list[Done]:
    """What `crawl run` does. Raises any CrawlError; whatever it raises, the round at hand can be resumed."""
    done: list[Done] = []
    worked = 0  # rounds since the last upkeep that had something to do
    # a lake that is none, a mistyped key or a missing reader is told before workers are started
    soundness.check_files(open_lake(root).settings, SETTINGS)
    with LazyCluster(options.scheduler, options.workers) as cluster:
        while True:
            began = time.monotonic()
            done.append(_one(root, options, cluster, progress))
            over = options.every is None and (
                done[-1].idle if options.until_idle else len(done) >= (options.rounds or 1)
            )
            worked += not done[-1].idle
            # a run that found nothing to do leaves nothing to tidy: it shall stay as quick as it is
            if worked and (over or options.every is not None or worked >= _TIDY):
                _tidy(root, progress)
                worked = 0
            if over:
                return done
            if options.every is not None:
                rest = options.every.total_seconds() - (time.monotonic() - began)
                if rest > 0:
                    progress.note(f"next round in {rest:,.0f} s")
                    time.sleep(rest)


def _tidy(root: str, progress: Progress) -> None:
    """Upkeep after rounds, where the settings want it: what nobody calls for is forgotten until it hurts."""
    if open_lake(root).settings.storage.upkeep:
        try:
            told = upkeep(root, progress.note)
        except LakeBusy as exc:  # the rounds are done; whoever took the lake since will tidy up in turn
            progress.note(f"upkeep is left to others: {exc}")
            return
        if told != NOTHING:
            progress.note(f"upkeep: {told}")


def preview(root: str, options: RunOptions) -> dict[str, Any]:
    """What the next round would fetch, how long it would take and what caps it; writes nothing."""
    from cycles.tasks import plan_task

    lake = open_lake(root)
    with LazyCluster(options.scheduler, options.workers) as cluster:
        context, is_open = opening.preview(lake.store, lake.settings, options, groups=cluster.slots)
    proposal = plan_task.propose(context)
    hosts, urls = plan_task.targets(proposal)
    return {
        **plan_task.told(proposal),
        "unasked": unasked(context.settings, urls),
        "refused": _refused(context.settings, hosts),
        "round": context.round,
        "now": context.now,
        "window_s": context.window_s,
        "open": is_open,
    }


def _refused(settings: Settings, hosts: Sequence[str]) -> str | None:
    """Why a run would refuse to ask these hosts; None where it would not."""
    try:
        require_agent(settings, hosts)
        soundness.check_files(settings, SETTINGS)
    except UsageError as error:
        return str(error)
    return None


def _one(root: str, options: RunOptions, cluster: LazyCluster, progress: Progress) -> Done:
    lake = open_lake(root)
    store, settings = lake.store, lake.settings
    with hold(store, settings.fetching.lease, progress.note) as (fence, who):
        sealed = rounds.open_seal(store)
        if sealed is not None:
            progress.note(f"round {sealed.round} is sealed: committing it")
            rounds.roll_forward(store, sealed)
            counts = _counts(sealed)
            return Done(round=sealed.round, planned=int(counts["planned"]), idle=False, counts=counts)
        lake.keyer()  # raises SafetyStop where keys would come out otherwise than those in the lake
        context, pinned = opening.open_round(
            store,
            settings,
            options,
            fence=fence.number,
            token=who.token,
            groups=cluster.slots,
            tell=progress.note,
        )
        return _round(steps.Desk(context, pinned, cluster, progress), fence, str(who))


def _round(desk: steps.Desk, fence: rounds.Fence, driver: str) -> Done:
    number, tell = desk.context.round, desk.progress
    tell.stage(number, "plan")
    planned = steps.timed(desk, "plan", lambda: steps.plan(desk))
    _may_ask(desk, planned["hosts"])
    expected = min(float(planned["predicted"]["seconds"]), desk.context.window_s)
    tell.stage(number, "fetch", planned=int(planned["planned"]), expected_s=expected)
    fetched = steps.timed(desk, "fetch", lambda: steps.fetch(desk, planned))
    tell.stage(number, "dedup")
    stored = steps.timed(desk, "dedup", lambda: steps.dedup(desk, fetched))
    tell.stage(number, "merge")
    merged = steps.timed(desk, "merge", lambda: steps.merge(desk, planned, fetched))
    tell.stage(number, "seal")
    listing, row = closing.conclude(desk, planned, fetched, stored, merged, driver)
    sealed = rounds.seal(desk.context.work.store, fence, number, listing, (), row)
    tell.stage(number, "commit")
    rounds.roll_forward(desk.context.work.store, sealed, utcnow())
    counts = _counts(sealed)
    tell.note(closing.summary(number, counts, desk.stage_ms))
    if counts["planned"] and not counts["fetched"]:
        tell.note(_why_nothing(desk.context))
    # links of earlier rounds may wait as well, so a round that merges none is never the last
    idle = desk.pinned["merge_links"] and int(counts["planned"]) == 0 and int(counts["discovered"]) == 0
    return Done(round=number, planned=int(counts["planned"]), idle=idle, counts=counts)


def _why_nothing(context: Context) -> str:
    """Why a round that had a plan fetched nothing."""
    from cycles.session import reading  # brings SQL along, which a round that went well needs no more

    with reading.reader(context.work.store, context.now, context.round) as reader:
        fates = reading.query(reader, "report-fates", round=context.round)
    return closing.nothing_fetched(context.round, fates, context.root)


def _may_ask(desk: steps.Desk, hosts: Sequence[str]) -> None:
    """Raises UsageError where the settings may not ask these hosts.

    A round of which nothing was asked yet is given up then, so that the next run plans anew with settings
    that were mended; else its pinned ones would refuse for ever.
    """
    try:
        require_agent(desk.context.settings, hosts)
        soundness.check_files(desk.context.settings, SETTINGS)
        if hosts and soundness.plugged(desk.context.settings):
            steps.check_workers(desk)
    except UsageError:
        desk.context.work.give_up()
        raise


def _counts(sealed: rounds.Seal) -> Mapping[str, Any]:
    """What a sealed round came to; JSON columns of its row are values or text."""
    counts = sealed.row["counts"]
    found: Mapping[str, Any] = json.loads(counts) if isinstance(counts, str) else counts
    return found
