"""The round at hand: what is pinned when it is opened stays, whoever finishes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crawl.errors import UsageError
from crawl.policy import Round, Settings
from cycles.session import opening
from cycles.session.setup import Lake
from cycles.settings.config import policy_version
from cycles.settings.options import RunOptions
from lake import snapshot
from tests.lake import lakes, rows

NOW = rows.NOW
AT_NOW = RunOptions(now=NOW)


def settings(**changes: Any) -> Settings:
    return replace(Settings(), round=replace(Round(), **changes))


def opened(
    lake: Lake,
    options: RunOptions = AT_NOW,
    given: Settings | None = None,
    *,
    groups: int = 2,
    fence: int = 1,
    told: list[str] | None = None,
) -> opening.Opened:
    return opening.open_round(
        lake.store,
        given or Settings(),
        options,
        fence=fence,
        token=f"token {fence}",
        groups=groups,
        tell=(told if told is not None else []).append,
    )


def commit(lake: Lake, number: int, merged_through: int | None = None) -> None:
    counts = {"links_merged_through": number if merged_through is None else merged_through}
    lakes.commit_round(lake.store, number, counts=counts, seen=rows.seen([number], number))


def test_the_first_round_of_a_new_lake_reads_its_empty_tables(lake: Lake) -> None:
    context, pinned = opened(lake)
    assert (1, NOW, 600.0, 2) == (context.round, context.now, context.window_s, context.groups)
    assert snapshot.heads(lake.store) == context.versions
    assert (True, 0) == (pinned["merge_links"], pinned["links_merged_through"])
    assert 1 == opening.is_open(lake.store)


def test_a_round_reads_the_lake_as_it_was_when_it_was_opened(lake: Lake) -> None:
    commit(lake, 1)
    before, _ = opened(lake)
    lakes.put(lake.store, "seeds", rows.table("seeds", url_key=[1]))
    again, _ = opened(lake, fence=2)
    assert 2 == again.round
    assert before.versions == again.versions
    assert again.versions["seeds"] < snapshot.heads(lake.store)["seeds"]


def test_who_finishes_a_round_takes_everything_from_its_opening_but_fence_and_token(lake: Lake) -> None:
    first, pinned = opened(lake, replace(AT_NOW, window=timedelta(seconds=90)), settings(merge_every=3))
    told: list[str] = []
    later = RunOptions(now=NOW + timedelta(days=1), window=timedelta(seconds=5), until_idle=True)
    second, same = opened(lake, later, settings(window=timedelta(seconds=7)), groups=9, fence=2, told=told)
    assert (2, "token 2") == (second.fence, second.token)
    assert first == replace(second, fence=1, token="token 1")
    assert pinned == same
    assert policy_version(settings(merge_every=3)) == second.policy_version
    assert 1 == len(told)
    assert NOW.isoformat() in told[0]


@pytest.mark.parametrize("options", [RunOptions(), AT_NOW])
def test_an_open_round_is_told_its_time_only_when_another_was_asked_for(
    lake: Lake, options: RunOptions
) -> None:
    told: list[str] = []
    opened(lake, told=told)
    assert [] == told
    assert NOW == opened(lake, options, told=told)[0].now
    assert ["round 1 is open: finishing it, with the settings it was opened with"] == told


def test_a_committed_round_is_open_no_more(lake: Lake) -> None:
    assert None is opening.is_open(lake.store)
    opened(lake)
    commit(lake, 1)
    assert None is opening.is_open(lake.store)
    assert 2 == opened(lake)[0].round


def test_planning_time_never_runs_backwards(lake: Lake) -> None:
    commit(lake, 1)
    early = RunOptions(now=NOW - timedelta(seconds=1))
    with pytest.raises(UsageError, match=r"before that of round 1, 2026-03-01T12:00:00\+00:00.*--now"):
        opened(lake, early)
    with pytest.raises(UsageError, match="before that of round 1"):
        opening.preview(lake.store, Settings(), early, groups=1)
    assert None is opening.is_open(lake.store)
    assert NOW == opened(lake)[0].now  # the same time again is no step back


def test_the_window_is_the_flags_else_the_settings(lake: Lake) -> None:
    given = settings(window=timedelta(seconds=7))
    assert 7.0 == opening.preview(lake.store, given, AT_NOW, groups=1)[0].window_s
    longer = replace(AT_NOW, window=timedelta(seconds=90))
    assert 90.0 == opening.preview(lake.store, given, longer, groups=1)[0].window_s


@pytest.mark.parametrize(
    ("rounds", "merged_through", "every", "until_idle", "merges"),
    [
        (1, 1, 1, False, True),
        (1, 1, 2, False, False),
        (1, 0, 2, False, True),  # round 1 left its links: round 2 is the second since
        (2, 0, 4, False, False),
        (3, 0, 4, False, True),
        (1, 1, 9, True, True),  # or it would never be idle
    ],
)
def test_links_are_merged_every_so_many_rounds_and_always_until_idle(
    lake: Lake, rounds: int, merged_through: int, every: int, until_idle: bool, merges: bool
) -> None:
    for number in range(1, rounds + 1):
        commit(lake, number, merged_through)
    _, pinned = opened(lake, replace(AT_NOW, until_idle=until_idle), settings(merge_every=every))
    assert (merges, merged_through) == (pinned["merge_links"], pinned["links_merged_through"])
    assert merged_through == opening.merged_through(lake.store)


def test_a_preview_is_of_the_round_that_a_run_would_open_and_writes_nothing(lake: Lake) -> None:
    commit(lake, 1)
    before = lake.store.list("")
    context, is_open = opening.preview(lake.store, Settings(), AT_NOW, groups=2)
    assert not is_open
    assert before == lake.store.list("")
    real, _ = opened(lake, fence=0)
    assert replace(real, token="", opened_at=context.opened_at) == context


def test_a_preview_of_an_open_round_is_that_round(lake: Lake) -> None:
    real, _ = opened(lake, fence=0)
    later = RunOptions(now=NOW + timedelta(days=3))
    context, is_open = opening.preview(lake.store, settings(merge_every=5), later, groups=9)
    assert is_open
    assert replace(real, token="") == context
