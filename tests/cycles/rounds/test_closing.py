"""The end of a round: what it adds and tells follows from the objects its steps left."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crawl.rejects import Rejects
from crawl.schema import HOSTS, ROBOTS
from cycles.dask.lazycluster import LazyCluster
from cycles.rounds import closing
from cycles.rounds.steps import Desk
from cycles.settings.config import to_json
from cycles.tasks import claim
from cycles.words.progress import Progress
from lake import files, rounds, snapshot
from lake.entries import FileEntry
from lake.store import Store
from tests.cycles import smallround
from tests.lake import rows

DAY = smallround.NOW.date()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    context = smallround.new(tmp_path).context()
    pinned = {"merge_links": True, "links_merged_through": 0}
    made = Desk(context, pinned, LazyCluster("no address", None), Progress(io.StringIO()))
    made.stage_ms.update(plan=12.5, fetch=2500.0)
    return made


def written(store: Store, table: str, **columns: Any) -> dict[str, Any]:
    return files.write(store, table, rows.table(table, **columns), day=DAY).to_dict()


def rejected(desk: Desk, name: str, stage: str, *told: tuple[str, str, int]) -> str:
    """A work file of rejects: (reason, host, count)."""
    path = desk.context.work.path(f"{name}.parquet")
    tally = Rejects((reason, host, "", count, f"{name} of {host}") for reason, host, count in told)
    table = tally.rows(stage, day=DAY, round_=1, policy_version="p")
    files.write_work(desk.context.work.store, path, table)
    return path


def steps_of(desk: Desk) -> tuple[dict[str, Any], ...]:
    """Objects of a round of two parse tasks: planned, fetched, stored, merged."""
    store, work = desk.context.work.store, desk.context.work
    clock = rows.table("hosts", host_key=[1], host=["a.test"], circuit=["closed"], round=[1])
    files.write_work(store, claim.folder(work, 3, "hosts.parquet"), clock.cast(HOSTS))
    files.write_work(store, claim.folder(work, 3, "robots.parquet"), ROBOTS.empty_table())
    one = {
        "fetches": [written(store, "fetches", round=[1, 1], url=["x", "y"])],
        "links": [written(store, "links", target_key=[1, 2, 3], round=[1] * 3)],
        "rejects": rejected(desk, "one", "parse", ("url_scheme", "a.test", 2), ("depth", "a.test", 1)),
        "counts": {"requests": 2, "parsed": 2, "failed": 0},
    }
    two = {
        "fetches": [written(store, "fetches", round=[1], url=["z"])],
        "links": [],
        "rejects": rejected(desk, "two", "parse", ("url_scheme", "a.test", 5), ("url_scheme", "b.test", 1)),
        "counts": {"requests": 1, "parsed": 0, "failed": 1},
    }
    planned = {
        "planned": 3,
        "files": [written(store, "frontier", group=[0], position=[0])],
        "predicted": {"seconds": 8.0},
        "rejects": [],
    }
    fetched = {
        "groups": [3],
        "carried": [["a.test", "window", 4], ["b.test", "window", 6]],
        "parsed": [one, two],
    }
    stored = {
        "files": [
            written(store, "documents", document_key=[1, 2]),
            written(store, "bodies", body_hash=["a"]),
        ]
    }
    merged = {
        "files": [
            files.write(store, "seen", rows.seen([1, 2], 1)).to_dict(),
            written(store, "outbox", url_key=[1]),
        ],
        "counts": {"attempted": 3, "fetched": 2, "discovered": 2, "linked": 1},
        "rejects": [rejected(desk, "guard", "merge", ("retire_guard", "a.test", 7))],
    }
    return planned, fetched, stored, merged


def test_every_file_of_every_step_is_listed_once(desk: Desk) -> None:
    listing, _ = closing.conclude(desk, *steps_of(desk), driver="me")
    store = desk.context.work.store
    lie_there = {stat.path for stat in store.list("") if stat.path.endswith(".parquet")}
    listed = [entry.location for entry in listing]
    assert sorted(listed) == sorted(path for path in lie_there if not path.startswith("_work/"))
    tables = ["bodies", "documents", "fetches", "fetches", "frontier", "hosts", "links", "outbox", "rejects"]
    assert [*tables, "seen"] == sorted(entry.table for entry in listing)


def test_rejects_of_all_steps_are_added_up(desk: Desk) -> None:
    listing, _ = closing.conclude(desk, *steps_of(desk), driver="me")
    (entry,) = (entry for entry in listing if entry.table == "rejects")
    told = files.read(desk.context.work.store, entry).to_pylist()
    assert [
        ("fetch", "window", "a.test", 4, "a.test"),
        ("fetch", "window", "b.test", 6, "b.test"),
        ("merge", "retire_guard", "a.test", 7, "guard of a.test"),
        ("parse", "depth", "a.test", 1, "one of a.test"),
        ("parse", "url_scheme", "a.test", 7, "one of a.test"),
        ("parse", "url_scheme", "b.test", 1, "two of b.test"),
    ] == [(row["stage"], row["reason"], row["host"], row["count"], row["example"]) for row in told]


def test_the_row_counts_what_the_steps_did(desk: Desk) -> None:
    listing, row = closing.conclude(desk, *steps_of(desk), driver="me")
    assert {
        "planned": 3,
        "carried": 10,
        "requests": 3,
        "parsed": 2,
        "failed": 1,
        "links": 3,
        "documents": 2,
        "bodies": 1,
        "events": 1,
        "attempted": 3,
        "fetched": 2,
        "discovered": 2,
        "linked": 1,
        "links_merged_through": 1,
    } == row["counts"]
    assert sum(entry.size for entry in listing) == sum(row["bytes_written"].values())
    assert {entry.table for entry in listing} == set(row["bytes_written"])
    assert (2.5, 3, 2) == tuple(row["actual"][name] for name in ("fetch_seconds", "asked", "fetched"))
    assert {"seconds": 8.0} == row["plan"]


def test_links_that_were_not_merged_go_on_waiting(desk: Desk) -> None:
    desk.pinned = {"merge_links": False, "links_merged_through": 0}
    _, row = closing.conclude(desk, *steps_of(desk), driver="me")
    assert 0 == row["counts"]["links_merged_through"]


def test_the_same_objects_give_the_same_whoever_concludes(desk: Desk) -> None:
    """Names and sizes of the last files aside: those are written anew."""
    objects = json.loads(json.dumps(steps_of(desk)))
    (first, one), (second, two) = (closing.conclude(desk, *objects, driver="me") for _ in range(2))
    assert one["counts"] == two["counts"]

    def content(listing: list[FileEntry]) -> list[tuple[str, str]]:
        return sorted((entry.table, entry.stats) for entry in listing)

    assert content(first) == content(second)


def test_a_round_that_left_nothing_out_has_no_rejects(desk: Desk) -> None:
    planned, fetched, stored, merged = steps_of(desk)
    fetched = {"groups": [], "carried": [], "parsed": []}
    listing, row = closing.conclude(desk, planned, fetched, stored, {**merged, "rejects": []}, "me")
    assert {"frontier", "documents", "bodies", "seen", "outbox"} == {entry.table for entry in listing}
    assert (0, 0) == (row["counts"]["requests"], row["counts"]["carried"])


def test_what_is_concluded_can_be_sealed_and_is_what_readers_see(desk: Desk) -> None:
    store = desk.context.work.store
    listing, row = closing.conclude(desk, *steps_of(desk), driver="process 7 on here")
    fence = rounds.take_fence(store, {})
    rounds.roll_forward(store, rounds.seal(store, fence, 1, listing, (), row))
    newest = snapshot.newest(store)
    assert newest is not None
    assert row["counts"] == json.loads(newest["counts"])
    assert to_json(desk.context.settings) == newest["settings"]
    assert ("process 7 on here", smallround.NOW) == (newest["driver"], newest["now"])
    fetched = pa.concat_tables(files.read(store, entry) for entry in snapshot.latest(store).files("fetches"))
    assert ["x", "y", "z"] == sorted(fetched["url"].to_pylist())


def test_a_round_is_summed_up_in_one_line() -> None:
    counts = {"planned": 1200, "attempted": 1100, "fetched": 1000, "parsed": 900, "documents": 1}
    counts["discovered"] = 4000
    line = closing.summary(7, counts, {"plan": 500.0, "fetch": 60_000.0})
    assert line.startswith(
        "round 7: 1,200 planned, 1,100 asked, 1,000 fetched, 900 parsed, 1 new document, 4,000 new URLs"
    )
    assert line.endswith("60.5 s")


def test_of_a_round_that_fetched_nothing_the_reasons_are_told_and_where_more_is() -> None:
    fates = [
        {"fate": "failed", "reason": "NOT_FOUND", "urls": 1, "hops": 0},
        {"fate": "skipped", "reason": "ROBOTS_UNREACHABLE", "urls": 3, "hops": 0},
        {"fate": "carried", "reason": "window", "urls": 2, "hops": 0},
    ]
    assert closing.nothing_fetched(7, fates, "my-lake") == (
        "round 7: nothing was fetched"
        " (robots.txt could not be read: 3, the window closed first: 2, NOT_FOUND: 1"
        "); `crawl report my-lake 7` and `crawl explain my-lake URL` tell more"
    )
