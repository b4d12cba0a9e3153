"""A round's work area: what is written once stays, whoever writes."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crawl.errors import LakeError
from cycles.session.workspace import Workspace, store_at


def test_what_was_never_written_reads_as_none(tmp_path: Path) -> None:
    assert None is Workspace(str(tmp_path), 1).read("plan.json")


def test_the_first_writer_wins_and_all_read_what_it_wrote(tmp_path: Path) -> None:
    work = Workspace(str(tmp_path), 7)
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda n: work.once({"n": n}, "plan.json"), range(32)))
    assert [told[0]] * 32 == told
    assert told[0] == work.read("plan.json")


def test_rounds_do_not_share_a_work_area(tmp_path: Path) -> None:
    Workspace(str(tmp_path), 1).once({"n": 1}, "plan.json")
    assert None is Workspace(str(tmp_path), 2).read("plan.json")


def test_a_damaged_object_is_named(tmp_path: Path) -> None:
    work = Workspace(str(tmp_path), 1)
    work.store.write(work.path("plan.json"), b"{")
    with pytest.raises(LakeError, match=r"round-00000001/plan\.json is damaged"):
        work.read("plan.json")


def test_it_travels_as_two_plain_values(tmp_path: Path) -> None:
    work = Workspace(str(tmp_path), 3)
    assert work == pickle.loads(pickle.dumps(work))
    assert len(pickle.dumps(work)) < 200 + len(str(tmp_path))


def test_a_process_keeps_one_store_a_lake(tmp_path: Path) -> None:
    assert store_at(str(tmp_path)) is store_at(str(tmp_path))


def test_a_round_of_which_nothing_was_claimed_can_be_given_up(tmp_path: Path) -> None:
    work = Workspace(str(tmp_path), 3)
    work.once({"a": 1}, "open.json")
    work.once({"b": 1}, "plan.json")

    assert work.give_up()
    assert work.read("open.json") is None
    assert [] == work.store.list(work.path())


def test_a_round_with_a_claimed_group_is_kept(tmp_path: Path) -> None:
    work = Workspace(str(tmp_path), 3)
    work.once({"a": 1}, "open.json")
    work.once({}, "group-00000", "claim-000001.0001.json")

    assert not work.give_up()
    assert {"a": 1} == work.read("open.json")
