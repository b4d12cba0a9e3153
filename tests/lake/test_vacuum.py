import json
from pathlib import Path

import pytest

from crawl.errors import Conflict, FenceLost, LakeError
from crawl.policy import Retention
from lake import delta, files, runs, snapshot, sql, vacuum
from tests.lake import lakes, rows
from tests.lake.keeping import ROOMY, asked, seen_rounds, take, upkept
from tests.lake.rows import NOW


@pytest.fixture
def lake(tmp_path):
    return lakes.new(tmp_path / "lake")


def test_kept_rounds_read_whole_after_upkeep_with_vacuum_and_older_ones_are_gone(lake):
    for number in range(1, 9):
        seen_rounds(lake, 1, first=number)
        upkept(lake, keep=Retention(keep_versions=3))
    for kept in (6, 7, 8):
        found = asked(lake, "SELECT url_key FROM urls ORDER BY 1", at=kept)
        assert [(key,) for key in range(kept + 1)] == found
    with pytest.raises(LakeError, match=r"round 1 .* cannot be read as it was any more: .*keep_versions"):
        asked(lake, "SELECT url_key FROM urls", at=1)
    there = {stat.path for stat in lake.list("seen") if stat.path.endswith(".parquet")}
    assert len(there) < 8


def test_the_entry_of_a_round_before_its_upkeep_reads_whole_too(lake):
    seen_rounds(lake, 3)
    before = snapshot.latest(lake)
    upkept(lake, keep=Retention(keep_versions=1))
    with sql.connect(lake, before, NOW) as reader:
        assert 6 == reader.ask("FROM seen").table().num_rows


def test_what_an_open_round_has_pinned_stays(lake):
    seen_rounds(lake, 3)
    pinned = snapshot.latest(lake)
    lake.create("_work/round-00000004/open.json", json.dumps({"versions": pinned.versions}).encode())
    orphan = files.write(lake, "fetches", rows.table("fetches", url_key=[1]))
    for _ in range(3):
        upkept(lake, keep=Retention(keep_versions=1))

    assert 6 == sum(files.read(lake, entry).num_rows for entry in pinned.files("seen"))
    assert lake.exists(orphan.location)


def test_orphans_of_dead_rounds_are_swept_and_files_of_others_are_not(lake):
    seen_rounds(lake, 1)
    orphans = [
        files.write(lake, "fetches", rows.table("fetches", url_key=[1])),
        files.write(lake, "seen", rows.seen([7], 1), name=runs.name(0, 1, 1)),
    ]
    foreign = files.write(lake, "seen", rows.seen([8], 1), name="part-00000-c0ffee.snappy.parquet")
    seeds = files.write(lake, "seeds", rows.table("seeds", url=["http://a.test/"]))

    assert 2 == upkept(lake).deleted

    assert [False, False] == [lake.exists(entry.location) for entry in orphans]
    assert lake.exists(foreign.location)
    assert lake.exists(seeds.location)


def test_a_late_commit_of_a_swept_file_is_refused(lake):
    """A driver that wrote its outputs, slept, lost the lake, and wakes after the sweep."""
    seen_rounds(lake, 3)
    old = take(lake)
    inputs = delta.files(lake, "seen")
    output = files.write(lake, "seen", rows.seen([0, 1, 2, 3], 3), name=runs.name(1, 1, 3))

    assert upkept(lake, storage=ROOMY).deleted >= 1
    with pytest.raises(FenceLost):
        vacuum.rewrite(lake, old, "seen", adds=[output], removes=inputs)

    assert inputs == delta.files(lake, "seen")


def test_a_sweep_between_the_fence_check_and_the_commit_makes_the_commit_fail(lake, monkeypatch):
    """The narrowest gap: the old driver has just seen that its fence is the newest."""
    seen_rounds(lake, 3)
    old = take(lake)
    inputs = delta.files(lake, "seen")
    output = files.write(lake, "seen", rows.seen([0, 1, 2, 3], 3), name=runs.name(1, 1, 3))
    check, rivals = vacuum.check_fence, []

    def checked(store, held):
        check(store, held)
        if held == old and not rivals:
            rivals.append(upkept(lake, storage=ROOMY))

    monkeypatch.setattr(vacuum, "check_fence", checked)
    with pytest.raises(FenceLost):
        vacuum.rewrite(lake, old, "seen", adds=[output], removes=inputs)

    assert not lake.exists(output.location)
    assert inputs == delta.files(lake, "seen")
    assert [(4,)] == asked(lake, "SELECT count(*) FROM urls")


def test_work_areas_of_committed_rounds_go_but_for_the_last_two(lake):
    seen_rounds(lake, 4)
    for number in range(1, 6):
        lake.write(f"_work/round-{number:08d}/plan.json", b"{}")
    upkept(lake)
    assert [3, 4, 5] == [
        int(stat.path.split("/")[1][-8:]) for stat in lake.list("_work") if "round-" in stat.path
    ]
    folders = [path.name for path in Path(lake.root, "_work").iterdir()]
    assert {"round-00000001", "round-00000002"}.isdisjoint(folders)


def test_heartbeats_of_drivers_that_said_goodbye_go_and_others_stay(lake):
    seen_rounds(lake, 1)
    for name, content in [
        ("done", b'{"state": "released"}'),
        ("alive", b'{"state": "running"}'),
        ("cut", b"{"),
    ]:
        lake.write(f"_work/drivers/{name}.json", content)
    upkept(lake)
    left = {stat.path.rpartition("/")[2] for stat in lake.list("_work/drivers")}
    assert {"alive.json", "cut.json"} <= left
    assert "done.json" not in left


def test_seeds_lose_only_files_that_their_own_log_has_removed(lake, monkeypatch):
    monkeypatch.setattr("lake.compaction._SOME", 3)
    for number in range(3):
        lakes.put(lake, "seeds", rows.table("seeds", url=[f"http://a.test/{number}"]))
    for number in range(1, 5):
        seen_rounds(lake, 1, first=number)
        upkept(lake, storage=ROOMY, keep=Retention(keep_versions=1))
    assert 1 == len([stat for stat in lake.list("seeds") if stat.path.endswith(".parquet")])
    assert [(3,)] == asked(lake, "SELECT count(*) FROM seeds")


def test_a_rewrite_without_its_inputs_is_a_conflict(lake):
    seen_rounds(lake, 1)
    gone = files.FileEntry(table="seen", path="gone.parquet", size=1, rows=1)
    with pytest.raises(Conflict):
        vacuum.rewrite(lake, take(lake), "seen", removes=[gone])
