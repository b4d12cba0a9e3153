"""Holding a lake over its real fence (who lives, seen from outside: test_holder)."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from crawl.errors import FenceLost, LakeBusy
from cycles.session import holding
from cycles.session.holder import read_beat
from cycles.session.holding import hold
from cycles.session.setup import Lake
from lake import rounds
from lake.store import Store

LEASE = timedelta(seconds=30)


def test_whoever_holds_a_lake_is_named_to_the_next_and_keeps_it(lake: Lake) -> None:
    told: list[str] = []
    with hold(lake.store, LEASE, told.append) as (fence, who):
        assert (1, os.getpid()) == (fence.number, who.pid)
        assert who.plain() == rounds.holder(lake.store).who
        with pytest.raises(LakeBusy, match=rf"in use by process {os.getpid()} on "):
            hold(lake.store, LEASE, told.append).__enter__()
        rounds.check_fence(lake.store, fence)
    assert [] == told


def test_the_next_takes_a_newer_number_without_a_wait(lake: Lake) -> None:
    numbers = []
    for _ in range(3):
        with hold(lake.store, LEASE, print) as (fence, _who):
            numbers.append(fence.number)
    assert [1, 2, 3] == numbers
    with pytest.raises(FenceLost):
        rounds.check_fence(lake.store, rounds.Fence(number=2, version=0, who={}))


def test_of_two_that_found_the_last_driver_gone_the_slower_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rounds.holder

    def overtaken(store: Store) -> rounds.Holder:
        found = real(store)
        rounds.take_fence(store, {"host": "quick"}, after=found.number)
        return found

    monkeypatch.setattr(holding.rounds, "holder", overtaken)
    with pytest.raises(LakeBusy, match="quick"):
        hold(lake.store, LEASE, print).__enter__()
    assert 1 == real(lake.store).number


def test_an_error_of_the_work_lets_go_of_the_lake(lake: Lake) -> None:
    def work() -> None:
        with hold(lake.store, LEASE, print):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    beat = read_beat(lake.store, rounds.holder(lake.store).who["token"])
    assert beat is not None
    assert "released" == beat["state"]
