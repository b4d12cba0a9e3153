"""Texts that are withheld: from when on, until when, and what an indexer is told meanwhile."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from crawl.merging import withholding
from crawl.merging.visited import after
from crawl.schema import SEEN, VISITS
from crawl.stages import publish
from tests.crawl.urlrows import NOW, ROUND, SETTINGS, fetched, ok, visit

DAY = timedelta(days=1)
KEEPING = replace(SETTINGS, parsing=replace(SETTINGS.parsing, keep_noindex=True))


def became(before: dict[str, Any], came: dict[str, Any], **options: Any) -> tuple[dict[str, Any], list[str]]:
    """The row after a visit, and the events that tell of it."""
    made = after(
        pa.Table.from_pylist([before], SEEN),
        pa.Table.from_pylist([came], VISITS),
        **{"settings": SETTINGS, "policy_version": "p1", "now": NOW, "round": ROUND, **options},
    )
    shown = withholding.published(
        pa.array([before["document_key"]], pa.int64()), pa.array([before["withheld"]], pa.string())
    )
    known = pa.table({"url_key": made["url_key"], "document_key": shown})
    told = publish.events(known, made, round=ROUND, day=NOW.date(), now=NOW)
    return made.to_pylist()[0], told["kind"].to_pylist()


def same(key: int, status: int = 200, **columns: Any) -> dict[str, Any]:
    """An answer with the content that is known."""
    return visit(key, "OK" if status == 200 else "NOT_MODIFIED", http_status=status, **columns)


def test_a_page_that_asks_not_to_be_indexed_has_a_document_that_nobody_is_told_of() -> None:
    row, told = became(fetched(1), ok(1, withheld="noindex"))
    assert (row["document_key"], row["withheld"], row["reason"], row["state"]) == (
        901,
        "noindex",
        "noindex",
        "FETCHED",
    )
    assert told == ["deleted"]
    row, told = became(row, same(1, 304))
    assert (row["document_key"], row["withheld"], row["reason"], told) == (901, "noindex", "noindex", [])


def test_one_that_never_was_told_of_needs_no_word_and_one_set_free_is_new() -> None:
    never = fetched(1, document_key=None, index_ready_at=None)
    row, told = became(never, ok(1, withheld="noindex"))
    assert (told, row["index_ready_at"]) == ([], None)
    row, told = became(row, ok(1, document_key=77, content_hash="h3"))
    assert (row["document_key"], row["withheld"], row["reason"], told) == (77, None, None, ["new"])
    assert row["index_ready_at"] == NOW


@pytest.mark.parametrize("status", [200, 304])
def test_a_header_alone_takes_a_text_back_until_the_page_is_read_anew(status: int) -> None:
    row, told = became(fetched(1), same(1, status, withheld="noindex", header_robots="noindex"))
    assert (row["document_key"], row["withheld"], row["header_robots"], told) == (
        None,
        "noindex",
        "noindex",
        ["deleted"],
    )
    row, told = became(row, ok(1, content_hash="h1"))
    assert (row["document_key"], row["withheld"], row["header_robots"], told) == (901, None, None, ["new"])
    assert row["change_count"] == 0  # the content is what it was


def test_what_a_304_does_not_say_stands() -> None:
    row, _ = became(fetched(1, header_robots="nofollow"), same(1, 304))
    assert row["header_robots"] == "nofollow"
    row, _ = became(row, same(1, 200))
    assert row["header_robots"] is None


def test_a_page_is_asked_again_on_the_day_it_names_and_withheld_from_then_on() -> None:
    until = NOW + DAY
    row, told = became(fetched(1), ok(1, unavailable_after=until))
    assert (row["unavailable_after"], row["next_fetch_at"], row["withheld"]) == (until, until, None)
    assert told == ["changed"]
    row, told = became(row, same(1, 304), now=until)
    assert (row["document_key"], row["withheld"], row["reason"]) == (
        None,
        "unavailable_after",
        "unavailable_after",
    )
    assert told == ["deleted"]
    assert row["next_fetch_at"] > until + DAY


def test_a_page_takes_its_date_back_by_its_text_and_not_by_silence() -> None:
    until = NOW + DAY
    row, _ = became(fetched(1, unavailable_after=until), same(1, 304))
    assert row["unavailable_after"] == until
    row, _ = became(row, ok(1))
    assert row["unavailable_after"] is None


def test_a_failure_moves_nothing_and_a_page_that_is_gone_asks_for_nothing() -> None:
    hidden = fetched(
        1, withheld="noindex", unavailable_after=NOW - DAY, header_robots="noindex", reason="noindex"
    )
    row, told = became(hidden, visit(1, "SERVER_ERROR", http_status=500))
    assert (row["withheld"], row["header_robots"], told) == ("noindex", "noindex", [])
    gone = hidden | {"gone_sightings": 5, "gone_since": NOW - 9 * DAY}
    row, told = became(gone, visit(1, "NOT_FOUND", http_status=404))
    assert (row["state"], row["withheld"], row["unavailable_after"], row["header_robots"], told) == (
        "GONE",
        None,
        None,
        None,
        [],
    )


def test_who_keeps_them_anyway_is_not_bound_by_dates() -> None:
    row, told = became(fetched(1, unavailable_after=NOW - DAY), same(1, 304), settings=KEEPING)
    assert (row["withheld"], told) == (None, [])
    hidden = fetched(
        1, withheld="noindex"
    )  # its text was not stored: that it is wanted now does not bring it
    row, told = became(hidden, same(1, 304), settings=KEEPING)
    assert (row["withheld"], told) == ("noindex", [])


def test_only_a_date_to_come_brings_a_visit_forward() -> None:
    at = np.array([50, 50, 50, 50, 22], dtype=np.int64)
    until = pa.array([None, 10, 30, 21, 30], pa.timestamp("us", tz="UTC"))
    assert withholding.due(at, until, 20, timedelta(microseconds=5)).tolist() == [50, 50, 30, 25, 22]
