"""Which state of the lake a command reads, and how far the open round is."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from crawl.errors import UsageError
from cycles.session import reading
from cycles.session.setup import Lake
from cycles.session.workspace import Workspace
from lake import files, rounds, snapshot
from tests.lake import lakes, rows

NOW = rows.NOW
WHO = {"host": "here", "pid": "1", "boot": "", "token": "t", "lock": "", "since": "then"}


def opened(lake: Lake, number: int) -> Workspace:
    work = Workspace(lake.root, number)
    work.once({"now": "2026-03-01T12:00:00+00:00", "opened_at": "2026-03-01T12:00:01+00:00"}, "open.json")
    return work


def test_the_newest_round_is_read_unless_another_is_asked_for(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=rows.seen([1], 1))
    lakes.commit_round(lake.store, 2, seen=rows.seen([2], 2))
    for number, known in ((None, 2), (2, 2), (1, 1)):
        with reading.reader(lake.store, NOW, number) as reader:
            assert known == len(reading.query(reader, "explain-url", url_key=1)) + len(
                reading.query(reader, "explain-url", url_key=2)
            )
    with pytest.raises(UsageError, match="no round 3"):
        reading.reader(lake.store, NOW, 3)


def test_keys_of_the_open_plan_are_leased(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=rows.seen([1, 2], 1))
    work = opened(lake, 2)
    files.write_work(lake.store, work.path("planned.parquet"), pa.table({"url_key": [2], "url": ["x"]}))
    with reading.reader(lake.store, NOW) as reader:
        states = [reading.query(reader, "explain-url", url_key=key)[0]["status"] for key in (1, 2)]
    assert ["ELIGIBLE", "LEASED"] == states


def test_a_question_is_given_the_parameters_it_has(lake: Lake) -> None:
    with reading.reader(lake.store, NOW) as reader:
        assert [] == reading.query(reader, "explain-url", url_key=1, host="a", round=3)


def test_no_round_is_open_in_a_new_lake(lake: Lake) -> None:
    assert reading.stage(lake.store) is None
    assert 0 == reading.merged_through(lake.store)


@pytest.mark.parametrize(
    ("left", "stage"),
    [
        ([], "plan"),
        (["plan.json"], "fetch"),
        (["plan.json", "fetched.json"], "dedup"),
        (["plan.json", "fetched.json", "dedup.json"], "merge"),
        (["plan.json", "fetched.json", "dedup.json", "merge.json"], "seal"),
    ],
)
def test_the_stage_of_the_open_round_is_told_by_what_it_left(lake: Lake, left: list[str], stage: str) -> None:
    work = opened(lake, 1)
    for name in left:
        work.once({}, name)
    work.once({}, "group-00000", "done.json")
    found = reading.stage(lake.store)
    assert found is not None
    assert (1, stage, 1) == (found["round"], found["stage"], found["groups_done"])
    assert "2026-03-01T12:00:00+00:00" == found["now"]


def test_a_sealed_round_is_being_committed(lake: Lake) -> None:
    opened(lake, 1)
    fence = rounds.take_fence(lake.store, WHO)
    row = {
        "opened_at": NOW,
        "now": NOW,
        "driver": "me",
        "window_s": 1.0,
        "policy_version": "p",
        "versions": snapshot.latest(lake.store).versions,
        "counts": {"links_merged_through": 1},
    }
    sealed = rounds.seal(lake.store, fence, 1, [], [], row)
    assert {"stage": "commit"}.items() <= (reading.stage(lake.store) or {}).items()
    rounds.roll_forward(lake.store, sealed, NOW)
    assert reading.stage(lake.store) is None
    assert 1 == reading.merged_through(lake.store) == reading.merged_through(lake.store, 1)
    assert {"links_merged_through": 1} == json.loads((snapshot.newest(lake.store) or {})["counts"])
