"""What tasks know of their round travels small and holds no secret."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from datetime import UTC, date, datetime

from crawl.policy import Settings
from cycles.session.context import Context

CONTEXT = Context(
    root="/lake",
    round=4,
    fence=9,
    token="ab12",
    opened_at=datetime(2026, 1, 2, 3, tzinfo=UTC),
    now=datetime(2026, 3, 1, 23, 59, tzinfo=UTC),
    window_s=600.0,
    settings=Settings(),
    policy_version="0123456789ab",
    versions={"seen": 3},
    groups=2,
)


def test_a_round_belongs_to_the_day_of_its_planning_time() -> None:
    assert date(2026, 3, 1) == CONTEXT.day


def test_its_work_area_is_that_of_its_round() -> None:
    assert "_work/round-00000004/plan.json" == CONTEXT.work.path("plan.json")


def test_it_pickles_equal() -> None:
    assert CONTEXT == pickle.loads(pickle.dumps(CONTEXT))
    assert replace(CONTEXT, fence=10) != CONTEXT


def test_nothing_in_it_is_a_secret() -> None:
    assert not {"secret", "key", "password", "credentials"} & {f.name for f in fields(Context)}
