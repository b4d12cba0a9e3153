"""A pause holds from the next plan on, until it is taken back; both stay on record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cycles.commands import pausing
from cycles.session import reading
from cycles.session.setup import Lake
from tests.lake import lakes, rows

NOW = rows.NOW
HOUR = timedelta(hours=1)


def paused(lake: Lake, now: datetime = NOW) -> list[str]:
    with reading.reader(lake.store, now) as reader:
        return [
            row["url"]
            for row in reader.ask("SELECT url FROM urls WHERE paused ORDER BY 1").table().to_pylist()
        ]


def test_a_paused_host_is_held_back_and_goes_on(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, seen=rows.seen([1, 2], 1))
    assert pausing.pause(lake, "d1.test", reason="asked by its owner", who="me", now=NOW)
    assert ["http://d1.test/"] == paused(lake)
    assert pausing.resume(lake, "d1.test", who="me", now=NOW + HOUR)
    assert [] == paused(lake)
    assert pausing.pause(lake, "d1.test", reason=None, who="me", now=NOW + 2 * HOUR)
    assert ["http://d1.test/"] == paused(lake)


def test_saying_it_twice_changes_nothing(lake: Lake) -> None:
    assert not pausing.resume(lake, "d1.test", who="me", now=NOW)
    assert pausing.pause(lake, "d1.test", reason=None, who="me", now=NOW)
    assert not pausing.pause(lake, "d1.test", reason="again", who="me", now=NOW + HOUR)
    with reading.reader(lake.store, NOW) as reader:
        assert 1 == reader.ask("FROM suppressions").table().num_rows


def test_the_name_of_a_domain_pauses_all_its_hosts(lake: Lake) -> None:
    both = rows.seen(
        [1, 2, 3], 1, host=["a.d.test", "b.d.test", "e.test"], domain=["d.test", "d.test", "e.test"]
    )
    lakes.commit_round(lake.store, 1, seen=both)
    pausing.pause(lake, "d.test", reason=None, who="me", now=NOW)
    assert ["http://d1.test/", "http://d2.test/"] == paused(lake)


def test_who_held_what_back_and_why_stays_on_record(lake: Lake) -> None:
    pausing.pause(lake, "d1.test", reason="asked", who="me", now=NOW)
    pausing.resume(lake, "d1.test", who="you", now=NOW + HOUR)
    with reading.reader(lake.store, NOW) as reader:
        words = reader.ask("FROM suppressions ORDER BY withdrawn_at NULLS FIRST").table().to_pylist()
        deeds = reader.ask("SELECT * FROM audit ORDER BY action").table().to_pylist()
    assert [("me", None), ("you", NOW + HOUR)] == [(w["requested_by"], w["withdrawn_at"]) for w in words]
    assert ["asked", "asked"] == [w["reason"] for w in words]
    assert [
        (NOW, "me", "pause", "d1.test", "asked"),
        (NOW + HOUR, "you", "resume", "d1.test", None),
    ] == [tuple(deed.values()) for deed in deeds]


def test_a_name_that_nothing_known_is_of_can_be_paused_and_that_is_told(lake: Lake) -> None:
    assert "no known URL is of it" in pausing.known(lake, "d.test", NOW)
    assert pausing.pause(lake, "d.test", reason=None, who="me", now=NOW)
    seeds = rows.table("seeds", url=["http://B.d.test/", "http://e.test/"], url_key=[1, 2])
    seeds = seeds.set_column(seeds.column_names.index("verdict"), "verdict", [["accepted"] * 2])
    lakes.put(lake.store, "seeds", seeds)
    assert "no known URL yet, 1 seed waiting" == pausing.known(lake, "d.test", NOW)
    known = rows.seen([1, 3], 1, host=["b.d.test", "d.test"], domain=["d.test"] * 2)
    lakes.commit_round(lake.store, 1, seen=known)
    assert "2 known URLs" == pausing.known(lake, "d.test", NOW)
    assert "1 known URL" == pausing.known(lake, "b.d.test", NOW)
    assert "no known URL is of it" in pausing.known(lake, "f.test", NOW)


def test_times_are_utc(lake: Lake) -> None:
    pausing.pause(lake, "d1.test", reason=None, who="me", now=NOW)
    with reading.reader(lake.store, NOW) as reader:
        found = reader.query("suppressed").to_pylist()[0]["requested_at"]
    assert found.astimezone(UTC) == NOW
