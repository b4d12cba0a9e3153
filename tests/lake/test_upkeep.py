import json
import os
import subprocess
import sys
from datetime import timedelta

import pyarrow as pa
import pytest

from crawl.errors import FenceLost
from crawl.policy import Retention
from lake import delta, files, runs, seal, snapshot, upkeep, vacuum
from tests.lake import lakes, rows
from tests.lake.keeping import asked, seen_rounds, take, upkept
from tests.lake.rows import DAY, NOW

DAYS = timedelta(days=1)


@pytest.fixture
def lake(tmp_path):
    return lakes.new(tmp_path / "lake")


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


def test_upkeep_on_s3_merges_vacuums_and_leaves_kept_rounds_whole(s3_lake):
    store = lakes.new(s3_lake)
    for number in range(1, 6):
        lakes.commit_round(store, number, seen=rows.seen([0, number], number))
        upkept(store, keep=Retention(keep_versions=2))
    for kept in (4, 5):
        assert [(kept + 1,)] == asked(store, "SELECT count(*) FROM urls", at=kept)
    assert len([stat for stat in store.list("seen") if stat.path.endswith(".parquet")]) < 5
