"""How many workers a run starts by itself."""

from __future__ import annotations

import os

import pytest

from cycles.settings.options import default_workers


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (3, 3), (4, 4), (64, 4)])
def test_a_run_starts_a_worker_a_core_and_four_at_most(
    cores: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    assert workers == default_workers()
