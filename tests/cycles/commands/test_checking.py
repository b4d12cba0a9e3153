"""`crawl check` finds what is wrong, shows it, and finds nothing wrong where nothing is."""

from __future__ import annotations

from pathlib import Path

from crawl.policy import Egress, Settings, Storage
from cycles.commands import checking
from cycles.commands.checking import Finding
from cycles.session.setup import Lake
from lake import delta, snapshot, sql
from tests.lake import lakes, rows

NOW = rows.NOW


def findings(lake: Lake, round_: int | None = None) -> dict[str, Finding]:
    return {finding.name: finding for finding in checking.check(lake, NOW, round_)}


def failed(lake: Lake) -> list[str]:
    return [name for name, finding in findings(lake).items() if finding.count]


def test_an_empty_lake_holds_every_check(lake: Lake) -> None:
    found = findings(lake)
    assert len(sql.names("check-")) + 5 == len(found)
    assert all("?" in finding.question for finding in found.values())
    assert [] == failed(lake)


def test_a_row_that_breaks_a_rule_is_shown(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=rows.seen([1, 2], 1, state=["FETCHED", "NONSENSE"]))
    found = findings(lake)["states"]
    assert 1 == found.count
    assert {"url_key": 2, "state": "NONSENSE"}.items() <= found.rows[0].items()


def test_the_first_rows_stand_for_many(lake: Lake) -> None:
    keys = list(range(1, 41))
    lakes.commit_round(lake.store, 1, seen=rows.seen(keys, 1, state=["NONSENSE"] * 40))
    found = findings(lake)["states"]
    assert (40, checking.KEPT) == (found.count, len(found.rows))


def test_ranges_of_keys_are_asked_one_by_one(lake: Lake) -> None:
    doubled = rows.seen([1, 2, 2, 3, 3], 1)
    lakes.commit_round(lake.store, 1, seen=doubled)
    small = Lake(lake.store, Settings(storage=Storage(merge_rows=1)))
    assert 2 == findings(small)["one-row-per-round"].count == findings(lake)["one-row-per-round"].count


def test_a_request_to_a_forbidden_address_is_found_by_todays_settings(lake: Lake) -> None:
    lakes.commit_round(
        lake.store, 1, fetches=rows.table("fetches", round=[1, 1], address=["127.0.0.1", "93.184.216.34"])
    )
    assert 1 == findings(lake)["egress"].count
    allowed = Lake(lake.store, Settings(egress=Egress(allow=("127.0.0.0/8",))))
    assert 0 == findings(allowed)["egress"].count


def only_file(lake: Lake, place: Path, table: str) -> Path:
    return place / delta.files(lake.store, table)[0].location


def test_a_missing_file_is_named(lake: Lake, place: Path) -> None:
    lakes.commit_round(lake.store, 1, links=rows.table("links", target_key=[1], round=[1]))
    path = only_file(lake, place, "links")
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    found = list(checking._present(lake, snapshot.latest(lake.store)))
    assert [(len(data) - 1, len(data))] == [(row["bytes"], row["bytes_in_log"]) for row in found]
    path.unlink()
    found = list(checking._present(lake, snapshot.latest(lake.store)))
    assert path.name in found[0]["file"]
    assert found[0]["bytes"] is None


def test_a_missing_file_fails_its_check_and_those_that_cannot_be_asked_and_no_other(
    lake: Lake, place: Path
) -> None:
    lakes.commit_round(
        lake.store, 1, seen=rows.seen([1], 1), rejects=rows.table("rejects", round=[1], reason=["depth"])
    )
    path = only_file(lake, place, "seen")
    path.unlink()
    found = findings(lake)
    assert "file-present" == next(iter(found))
    assert f"seen/{path.name}" == found["file-present"].rows[0]["file"]
    unasked = {name: finding.unasked or "" for name, finding in found.items() if finding.unasked}
    assert "states" in unasked
    assert all(why.endswith(f"the data file seen/{path.name} is missing") for why in unasked.values())
    assert len(sql.names("check-")) + 5 == len(found)
    assert not found["states"].holds
    told = checking.told(found["states"])
    assert told.startswith("FAIL  states: ")
    assert "It could not be asked" in told


def test_a_check_that_holds_is_told_with_what_it_asks(lake: Lake) -> None:
    for finding in checking.check(lake, NOW):
        told = checking.told(finding)
        assert told.startswith(f"ok    {finding.name} ")
        assert told.endswith(" (none)")
        assert "?" in told
        assert "$" not in told


def test_a_file_that_is_no_parquet_is_named(lake: Lake, place: Path) -> None:
    lakes.commit_round(lake.store, 1, links=rows.table("links", target_key=[1], round=[1]))
    path = only_file(lake, place, "links")
    path.write_bytes(b"x" * path.stat().st_size)
    found = list(checking._footers(lake, snapshot.latest(lake.store)))
    assert 1 == len(found)
    assert path.name in found[0]["file"]


def test_statistics_are_there_for_every_column_that_has_some(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=rows.seen([1, 2], 1))
    assert [] == list(checking._statistics(lake, snapshot.latest(lake.store)))
    entry = delta.files(lake.store, "seen")[0]
    assert entry.stats
    pinned = snapshot.latest(lake.store)
    bare = type(entry)(**{**entry.to_dict(), "stats": '{"numRecords": 2}'})
    pinned._files["seen"] = [bare]
    assert "url_key" in next(checking._statistics(lake, pinned))["without_statistics"]


def test_an_older_round_is_checked_as_it_was(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=rows.seen([1], 1))
    lakes.commit_round(lake.store, 2, seen=rows.seen([1], 2, state=["NONSENSE"]))
    assert 0 == findings(lake, 1)["states"].count
    assert 1 == findings(lake, 2)["states"].count


def test_every_check_is_named_by_its_file(lake: Lake) -> None:
    names = {name.removeprefix("check-") for name in sql.names("check-")}
    assert names | {"file-present", "file-footers", "file-statistics", "file-ordered", "file-apart"} == set(
        findings(lake)
    )
