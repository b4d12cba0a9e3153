"""How a lake stands, in keys that outside programs may rely on."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any

import pytest

from cycles.commands import pausing, seeding, status
from cycles.session import opening
from cycles.session.holder import Heartbeat, Lock, Who
from cycles.session.setup import Lake
from cycles.words.output import to_json
from lake import rounds
from tests.lake import lakes, rows

NOW = rows.NOW
HOUR = timedelta(hours=1)


def grown(lake: Lake) -> None:
    lakes.commit_round(
        lake.store,
        1,
        seen=rows.seen(
            [1, 2, 3, 4],
            1,
            state=["DISCOVERED", "FETCHED", "GONE", "FETCHED"],
            next_fetch_at=[NOW - HOUR, NOW + HOUR, NOW + 2000 * HOUR, NOW],
            eligible_since=[NOW - HOUR, NOW, NOW, NOW],
        ),
        hosts=rows.table("hosts", host_key=[1, 2], host=["d1.test", "d2.test"], circuit=["closed", "open"]),
        links=rows.table("links", target_key=[1, 9], admitted=[True, False], round=[1, 1]),
    )


def test_the_keys_are_those_that_are_promised(lake: Lake) -> None:
    assert list(status.KEYS) == list(status.overview(lake, NOW))
    grown(lake)
    assert list(status.KEYS) == list(json.loads(to_json(status.overview(lake, NOW))))


def test_an_empty_lake_has_nothing_due_and_no_driver(lake: Lake) -> None:
    found = status.overview(lake, NOW)
    assert (0, None, None, {}) == (found["round"], found["open_round"], found["holder"], found["states"])
    assert 0 == found["urls"]["due"]
    assert "no round yet" in status.told(found)
    assert "next due  never" in status.told(found)


def test_urls_are_counted_by_state_and_by_what_is_due(lake: Lake) -> None:
    grown(lake)
    found = status.overview(lake, NOW)
    assert {"DISCOVERED": 1, "FETCHED": 2, "GONE": 1} == found["states"]
    urls = found["urls"]
    assert (4, 2, 2, 1) == (urls["known"], urls["due"], urls["due_hosts"], urls["never_fetched"])
    assert NOW - HOUR == urls["oldest_eligible"] == urls["next_due"]
    assert 1 == found["hosts"]["circuit_open"]
    told = status.told(found)
    assert "4 known · 1 DISCOVERED · 2 FETCHED · 1 GONE" in told
    assert "2 on 2 hosts, the oldest since 2026-03-01 11:00:00" in told


def test_due_is_judged_at_the_time_asked_for(lake: Lake) -> None:
    grown(lake)
    assert 3 == status.overview(lake, NOW + HOUR)["urls"]["due"]
    assert 0 == status.overview(lake, NOW - 2 * HOUR)["urls"]["due"]


def test_a_lake_ahead_of_the_clock_is_judged_at_its_last_planning_time_and_that_is_told(lake: Lake) -> None:
    assert (NOW, "") == opening.moment(lake.store, NOW)
    lakes.commit_round(lake.store, 1, now=NOW + HOUR)
    assert (NOW + 2 * HOUR, "") == opening.moment(lake.store, NOW + 2 * HOUR)
    at, remark = opening.moment(lake.store, NOW)
    assert NOW + HOUR == at
    head = status.told(status.overview(lake, at), remark)
    assert "as of 2026-03-01 13:00:00 UTC\n(the planning time of its last round, which lies ahead of" in head


def test_seeds_links_and_pauses_that_wait_are_told(lake: Lake) -> None:
    grown(lake)
    seeding.add(
        lake,
        ["https://new.test/", "https://new.test/", "nonsense"],
        None,
        priority="high",
        who="me",
        now=NOW,
        tell=lambda _: None,
    )
    pausing.pause(lake, "d1.test", reason="why", who="me", now=NOW)
    found = status.overview(lake, NOW)
    assert {"seeds": 1, "links": 1, "link_rounds": 1} == found["waiting"]
    assert ["d1.test"] == [row["pattern"] for row in found["paused"]]
    assert 1 == found["urls"]["paused"]
    assert "1 seed not yet known · 1 link to be merged" in status.told(found)
    assert "paused    d1.test" in status.told(found)


def test_the_last_rounds_are_listed_newest_first(lake: Lake) -> None:
    for number in (1, 2, 3):
        lakes.commit_round(lake.store, number, now=NOW + number * HOUR)
    found = status.overview(lake, NOW)
    assert [3, 2, 1] == [row["round"] for row in found["rounds"]]
    assert {} == found["rounds"][0]["counts"]
    assert 3 == found["round"]


def test_a_round_is_told_by_what_was_asked_and_fetched_and_an_upkeep_by_its_files(lake: Lake) -> None:
    counts = {"planned": 9, "attempted": 8, "fetched": 7, "discovered": 1}
    lakes.commit_round(lake.store, 1, counts=counts)
    merged = {"merged": {"seen": 2, "links": 3}, "dropped": {"bodies": 1}}
    lakes.commit_round(lake.store, 1, kind="upkeep", counts=merged, committed_at=NOW + HOUR)
    told = status.told(status.overview(lake, NOW))
    assert "9 planned · 8 asked · 7 fetched · 1 new URL\n" in told + "\n"
    assert "merged 5 files, dropped 1 file" in told
    assert "pages" not in told


def test_what_is_due_next_is_told_though_all_of_it_is_paused(lake: Lake) -> None:
    grown(lake)
    assert "next due  now" in status.told(status.overview(lake, NOW))
    assert "next due  2026-03-01 11:00:00" in status.told(status.overview(lake, NOW - 2 * HOUR))
    for number in (1, 2, 3, 4):
        pausing.pause(lake, f"d{number}.test", reason=None, who="me", now=NOW)
    assert "next due  never: 4 URLs paused, nothing else waits" in status.told(status.overview(lake, NOW))


def test_all_times_are_written_alike(lake: Lake) -> None:
    found = status.overview(lake, NOW)
    found["open_round"] = {"round": 2, "now": "2026-03-01T12:00:00+00:00", "stage": "fetch"}
    found["holder"] = {"state": "gone", "pid": 7, "host": "here", "since": "2026-03-01T12:00:00+00:00"}
    told = status.told(found)
    assert "open      round 2, planned for 2026-03-01 12:00:00: fetch" in told
    assert "driver    none now; the last one was killed: process 7 on here, since 2026-03-01 12:00:00" in told


def state(lake: Lake) -> Any:
    return (status.overview(lake, NOW)["holder"] or {}).get("state")


def test_the_driver_is_running_released_or_gone(lake: Lake) -> None:
    lock = Lock.take()
    heart = Heartbeat(lake.store, Who.me(lock), lake.settings.fetching.lease)
    heart.start()
    rounds.take_fence(lake.store, Who.me(lock).plain())
    found = status.overview(lake, NOW)["holder"]
    assert (1, os.getpid(), "running") == (found["fence"], found["pid"], found["state"])
    assert f"running: process {os.getpid()} on" in status.told(status.overview(lake, NOW))
    heart.release()
    assert "released" == state(lake)
    heart._write("running")  # as if it had died before it could say goodbye
    os.close(lock._file)
    assert "gone" == state(lake)
    lock.path.unlink()


def test_a_driver_that_stands_still_is_silent(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Lock.take()
    heart = Heartbeat(lake.store, Who.me(lock), lake.settings.fetching.lease)
    monkeypatch.setattr("cycles.session.holder.boottime", lambda: 1.0)
    heart._write("running")
    rounds.take_fence(lake.store, Who.me(lock).plain())
    assert "silent" == state(lake)
    lock.drop()
