import itertools
import json
import os
import subprocess
import sys
from datetime import timedelta

import pyarrow as pa
import pytest

from crawl.errors import Conflict, FenceLost, LakeError
from crawl.policy import Retention, Storage
from lake import delta, deltalog, fence, files, runs, seal, snapshot, sql, upkeep, vacuum
from tests.lake import lakes, rows
from tests.lake.rows import DAY, NOW

DAYS = timedelta(days=1)
#: real time goes on from upkeep to upkeep
TICKS = itertools.count(1)
ROOMY = Storage(tier_ratio=100)


@pytest.fixture
def lake(tmp_path):
    return lakes.new(tmp_path / "lake")


def take(store):
    return fence.take_fence(store, {"host": "test", "pid": "1"})


def upkept(store, *, keep=None, storage=None, held=None):
    return upkeep.run(
        store,
        held or take(store),
        retention_policy=keep or Retention(),
        storage=storage or Storage(tier_ratio=3),
        clock=lambda: NOW + next(TICKS) * timedelta(seconds=1),
    )


def seen_rounds(store, count, *, first=1, tables=None):
    """Rounds of one new URL each and one that all of them rewrite."""
    for number in range(first, first + count):
        more = tables(number) if tables else {}
        lakes.commit_round(store, number, seen=rows.seen([0, number], number), **more)


def asked(store, sql_text, *, at=None, now=NOW):
    pinned = snapshot.latest(store) if at is None else snapshot.at(store, at)
    with sql.connect(store, pinned, now) as reader:
        return [tuple(row.values()) for row in reader.ask(sql_text).table().to_pylist()]


def test_an_empty_lake_needs_no_upkeep(lake):
    assert upkeep.Upkept() == upkept(lake)


def test_runs_are_merged_and_the_round_then_names_the_new_versions(lake):
    seen_rounds(lake, 3)
    before = asked(lake, "SELECT url_key, round FROM urls ORDER BY 1")

    done = upkept(lake)

    assert {"seen": 3} == done.merged
    assert done.recorded
    [merged] = snapshot.latest(lake).files("seen")
    assert runs.Name(1, 1, 3) == runs.parse(merged.path)
    assert before == asked(lake, "SELECT url_key, round FROM urls ORDER BY 1")
    entry = snapshot.newest(lake)
    assert (3, "upkeep", NOW) == (entry["round"], entry["kind"], entry["now"])
    assert 3 == json.loads(entry["counts"])["merged"]["seen"]


def test_the_entry_carries_on_which_links_were_merged(lake):
    seen_rounds(lake, 2)
    lakes.commit_round(lake, 3, seen=rows.seen([0, 3], 3), counts={"links_merged_through": 2})
    upkept(lake)
    assert 2 == json.loads(snapshot.newest(lake)["counts"])["links_merged_through"]


def test_a_second_upkeep_has_nothing_to_do(lake):
    seen_rounds(lake, 3)
    upkept(lake)
    versions = snapshot.heads(lake, ("seen", "hosts", "fetches"))
    again = upkept(lake)
    assert upkeep.Upkept() == again
    assert versions == snapshot.heads(lake, ("seen", "hosts", "fetches"))


def test_kept_rounds_read_whole_after_upkeep_with_vacuum_and_older_ones_are_gone(lake):
    for number in range(1, 9):
        seen_rounds(lake, 1, first=number)
        upkept(lake, keep=Retention(keep_versions=3))
    for kept in (6, 7, 8):
        found = asked(lake, "SELECT url_key FROM urls ORDER BY 1", at=kept)
        assert [(key,) for key in range(kept + 1)] == found
    with pytest.raises(LakeError):
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


def test_a_rewrite_whose_input_is_gone_is_planned_again(lake, monkeypatch):
    seen_rounds(lake, 3)
    rewrite, foreign = vacuum.rewrite, []

    def rivalled(store, held, table, **given):
        if table == "seen" and not foreign:
            inputs = delta.files(store, "seen")
            together = pa.concat_tables([files.read(store, e) for e in inputs]).sort_by("url_key")
            foreign.append(files.write(store, "seen", together, name="part-0.parquet"))
            delta.commit(store, "seen", app="optimize", adds=foreign, removes=inputs, rewrite=True)
        return rewrite(store, held, table, **given)

    monkeypatch.setattr(vacuum, "rewrite", rivalled)
    done = upkept(lake)

    assert {"seen": 1} == done.merged
    assert [(4,)] == asked(lake, "SELECT count(*) FROM urls")
    assert [(4,)] == asked(lake, "SELECT count(*) FROM seen")


@pytest.mark.parametrize("same_fence", [False, True], ids=["a driver each", "one driver twice"])
@pytest.mark.parametrize("turns", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_two_upkeeps_at_once_never_double_a_row(lake, same_fence, turns):
    def hosts(number):
        return {"hosts": rows.table("hosts", host_key=[number], round=[number])}

    for turn in range(turns):
        seen_rounds(lake, 2, first=2 * turn + 1, tables=hosts)
        held = [str(take(lake).number)] if same_fence else []

        said = at_once([sys.executable, "-m", "tests.lake.upkeep_process", lake.root, *held], 2)

        assert {"FenceLost", "LakeBusy", "done", "nothing"} >= set(said)
        assert "done" in said
        last = 2 * turn + 2
        for kept in (last - 1, last):
            found = asked(lake, "SELECT url_key, round FROM urls ORDER BY 1", at=kept)
            assert [(0, kept), *((n, n) for n in range(1, kept + 1))] == found
        assert [] == asked(lake, "SELECT url_key, round FROM seen GROUP BY ALL HAVING count(*) > 1")
        assert [(last, last)] == asked(lake, "SELECT count(*), count(DISTINCT host_key) FROM hosts")
        there = {stat.path for stat in lake.list("") if stat.path.endswith(".parquet")}
        for table in ("seen", "hosts", "rounds"):
            assert {entry.location for entry in delta.files(lake, table)} <= there


def at_once(command, count):
    """Start processes, let them go at the same moment; the last word of each."""
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    started = [subprocess.Popen(command, **pipes) for _ in range(count)]
    for process in started:
        assert "ready\n" == process.stdout.readline()
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0].split()[-1] for process in started]


def test_small_files_of_past_days_become_one(lake):
    for number in (1, 2):
        lakes.commit_round(
            lake,
            number,
            day=DAY - DAYS,
            fetches=rows.table("fetches", url_key=[number], round=[number]),
            links=rows.table("links", target_key=[number], round=[number]),
        )
    lakes.commit_round(lake, 3, fetches=rows.table("fetches", url_key=[3], round=[3]))

    done = upkept(lake)

    assert {"fetches": 2} == done.merged  # links that were not merged yet stay as they are
    assert 2 == len(snapshot.latest(lake).files("fetches"))
    assert [(1, DAY - DAYS), (2, DAY - DAYS), (3, DAY)] == asked(
        lake, "SELECT url_key, day FROM fetches ORDER BY url_key"
    )


def old_rounds(lake):
    """Round 1, sixty days before round 2: a live URL, one that went, one parsed anew."""
    fetched = [NOW - 60 * DAYS] * 3
    lakes.commit_round(
        lake,
        1,
        now=NOW - 60 * DAYS,
        day=DAY - 60 * DAYS,
        seen=rows.seen(
            [1, 2, 3],
            1,
            state=["FETCHED"] * 3,
            document_key=[11, 12, 13],
            content_hash=["b1", "b2", "b3"],
            last_checked_at=fetched,
            parsed_at=fetched,
        ),
        documents=rows.table("documents", document_key=[11, 12, 13], round=[1] * 3),
        bodies=rows.table("bodies", body_hash=["b1", "b2", "b3"], round=[1] * 3),
        links=rows.table("links", source_key=[1, 2, 3], target_key=[1, 2, 3], round=[1] * 3),
        fetches=rows.table("fetches", url_key=[1, 2, 3], round=[1] * 3),
        outbox=rows.table("outbox", event_id=["a"], kind=["new"], url_key=[1], round=[1]),
        robots=rows.table("robots", origin=["o1", "o2"], round=[1, 1], fetched_at=[NOW - 400 * DAYS] * 2),
    )
    lakes.commit_round(
        lake,
        2,
        counts={"links_merged_through": 2},
        seen=rows.seen(
            [1, 2, 3],
            2,
            state=["FETCHED", "GONE", "FETCHED"],
            document_key=[11, 12, 14],
            content_hash=["b1", "b2", "b4"],
            last_checked_at=[NOW, NOW - 60 * DAYS, NOW],
            parsed_at=[NOW - 60 * DAYS, NOW - 60 * DAYS, NOW],
        ),
        documents=rows.table("documents", document_key=[14], round=[2]),
        robots=rows.table("robots", origin=["o1"], round=[2], fetched_at=[NOW]),
        fetches=rows.table("fetches", url_key=[1], round=[2]),
    )


def test_retention_keeps_what_was_confirmed_or_a_live_url_needs(lake):
    old_rounds(lake)

    done = upkept(lake, storage=ROOMY, keep=Retention(fetches=timedelta(days=30)))

    assert {"documents", "bodies", "links", "fetches", "outbox", "robots"} == set(done.dropped)
    assert [(11,), (14,)] == asked(lake, "SELECT document_key FROM documents ORDER BY 1")
    assert [("b1",)] == asked(lake, "SELECT body_hash FROM bodies ORDER BY 1")
    assert [(1,)] == asked(lake, "SELECT source_key FROM links ORDER BY 1")
    assert [(2,)] == asked(lake, "SELECT round FROM fetches")
    assert [] == asked(lake, "SELECT * FROM outbox")
    assert [("o1", 2), ("o2", 1)] == asked(lake, "SELECT origin, round FROM robots ORDER BY 1")
    with sql.connect(lake, snapshot.latest(lake), NOW) as reader:
        assert 0 == reader.query("check-document-kept").num_rows


def test_the_round_before_retention_still_reads_as_it_was(lake):
    old_rounds(lake)
    upkept(lake, storage=ROOMY)
    assert [(11,), (12,), (13,)] == asked(lake, "SELECT document_key FROM documents ORDER BY 1", at=1)


def test_retention_runs_once_a_planning_day(lake):
    old_rounds(lake)
    upkept(lake, storage=ROOMY, keep=Retention(documents=timedelta(days=90)))
    again = upkept(lake, storage=ROOMY)
    assert {} == again.dropped


def test_links_that_were_not_merged_yet_outlive_their_time(lake):
    lakes.commit_round(
        lake,
        1,
        day=DAY - 60 * DAYS,
        links=rows.table("links", source_key=[1], target_key=[1], round=[1]),
        seen=rows.seen([5], 1),
    )
    assert {} == upkept(lake, storage=ROOMY).dropped
    assert [(1,)] == asked(lake, "SELECT source_key FROM links")


def test_events_wait_for_a_relay_once_there_is_one(lake):
    for number in (1, 2):
        events = rows.table("outbox", event_id=[str(number)], kind=["new"], url_key=[0], round=[number])
        lakes.commit_round(
            lake, number, day=DAY - (20 - number) * DAYS, seen=rows.seen([0], number), outbox=events
        )
    delta.commit(lake, "outbox", app=upkeep.RELAY, app_version=1)

    upkept(lake, storage=ROOMY)

    assert [("2",)] == asked(lake, "SELECT event_id FROM outbox")


def test_a_sealed_round_is_finished_first(lake):
    seen_rounds(lake, 1)
    held = take(lake)
    added = files.write(lake, "seen", rows.seen([9], 2), name=runs.name(0, 2, 2))
    entry = snapshot.newest(lake)
    row = {
        name: entry[name] for name in ("opened_at", "driver", "now", "window_s", "settings", "policy_version")
    }
    seal.seal(lake, held, 2, [added], [], {**row, "versions": snapshot.latest(lake).versions})

    upkept(lake)

    assert seal.open_seal(lake) is None
    assert [(3,)] == asked(lake, "SELECT count(*) FROM urls")


def test_an_older_driver_does_no_upkeep(lake):
    seen_rounds(lake, 3)
    old = take(lake)
    take(lake)
    versions = snapshot.heads(lake)
    with pytest.raises(FenceLost):
        upkept(lake, held=old)
    assert versions == snapshot.heads(lake)


def test_work_areas_of_committed_rounds_go_but_for_the_last_two(lake):
    seen_rounds(lake, 4)
    for number in range(1, 6):
        lake.write(f"_work/round-{number:08d}/plan.json", b"{}")
    upkept(lake)
    assert [3, 4, 5] == [
        int(stat.path.split("/")[1][-8:]) for stat in lake.list("_work") if "round-" in stat.path
    ]


def test_seeds_lose_only_files_that_their_own_log_has_removed(lake, monkeypatch):
    monkeypatch.setattr("lake.compaction._SOME", 3)
    for number in range(3):
        lakes.put(lake, "seeds", rows.table("seeds", url=[f"http://a.test/{number}"]))
    for number in range(1, 5):
        seen_rounds(lake, 1, first=number)
        upkept(lake, storage=ROOMY, keep=Retention(keep_versions=1))
    assert 1 == len([stat for stat in lake.list("seeds") if stat.path.endswith(".parquet")])
    assert [(3,)] == asked(lake, "SELECT count(*) FROM seeds")


def test_logs_are_cut_below_the_checkpoint_that_kept_versions_need(lake):
    seen_rounds(lake, 8)
    handle = delta.handle(lake, "seen", 4)
    handle.create_checkpoint()
    assert 4 == deltalog.trim(lake, "seen", 6)
    assert 0 == deltalog.trim(lake, "seen", 3)
    for version in (4, 6, 8):
        assert version == len(delta.files(lake, "seen", version))
    with pytest.raises(LakeError):
        delta.files(lake, "seen", 3)


def test_a_rewrite_without_its_inputs_is_a_conflict(lake):
    seen_rounds(lake, 1)
    gone = files.FileEntry(table="seen", path="gone.parquet", size=1, rows=1)
    with pytest.raises(Conflict):
        vacuum.rewrite(lake, take(lake), "seen", removes=[gone])


def test_upkeep_on_s3_merges_vacuums_and_leaves_kept_rounds_whole(s3_lake):
    store = lakes.new(s3_lake)
    for number in range(1, 6):
        lakes.commit_round(store, number, seen=rows.seen([0, number], number))
        upkept(store, keep=Retention(keep_versions=2))
    for kept in (4, 5):
        assert [(kept + 1,)] == asked(store, "SELECT count(*) FROM urls", at=kept)
    assert len([stat for stat in store.list("seen") if stat.path.endswith(".parquet")]) < 5
