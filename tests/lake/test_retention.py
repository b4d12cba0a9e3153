from datetime import timedelta

import pytest

from crawl.policy import Retention
from lake import delta, snapshot, sql, upkeep
from tests.lake import lakes, rows
from tests.lake.keeping import ROOMY, asked, upkept
from tests.lake.rows import DAY, NOW

DAYS = timedelta(days=1)


@pytest.fixture
def lake(tmp_path):
    return lakes.new(tmp_path / "lake")


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

    assert {"documents", "bodies", "links", "fetches", "robots"} == set(done.dropped)
    assert [(11,), (14,)] == asked(lake, "SELECT document_key FROM documents ORDER BY 1")
    assert [("b1",)] == asked(lake, "SELECT body_hash FROM bodies ORDER BY 1")
    assert [(1,)] == asked(lake, "SELECT source_key FROM links ORDER BY 1")
    assert [(2,)] == asked(lake, "SELECT round FROM fetches")
    assert [("a",)] == asked(lake, "SELECT event_id FROM outbox")
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


def test_events_wait_until_a_relay_has_delivered_them(lake):
    for number in (1, 2):
        events = rows.table("outbox", event_id=[str(number)], kind=["new"], url_key=[0], round=[number])
        lakes.commit_round(
            lake, number, day=DAY - (20 - number) * DAYS, seen=rows.seen([0], number), outbox=events
        )
    delta.commit(lake, "outbox", app=upkeep.RELAY, app_version=1)

    upkept(lake, storage=ROOMY)

    assert [("2",)] == asked(lake, "SELECT event_id FROM outbox")


def test_entries_of_rounds_go_after_a_year_but_never_those_that_stay_readable(lake):
    for number, age in ((1, 500), (2, 400), (3, 390), (4, 1)):
        lakes.commit_round(lake, number, now=NOW - age * DAYS, seen=rows.seen([number], number))
    upkept(lake, storage=ROOMY, keep=Retention(keep_versions=2))
    assert [(3,), (4,)] == asked(lake, "SELECT DISTINCT round FROM rounds ORDER BY 1")
    assert [(3,)] == asked(lake, "SELECT count(*) FROM urls", at=3)
