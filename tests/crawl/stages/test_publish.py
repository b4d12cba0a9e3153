from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from crawl.schema import OUTBOX
from crawl.stages import publish

NOW = datetime(2025, 5, 1, 12, tzinfo=UTC)


def documents(keys: list[int], found: list[int | None]) -> pa.Table:
    return pa.table({"url_key": pa.array(keys, pa.int64()), "document_key": pa.array(found, pa.int64())})


def events(before: pa.Table, after: pa.Table, round: int = 3) -> pa.Table:
    return publish.events(before, after, round=round, day=date(2025, 5, 1), now=NOW)


def test_an_event_tells_what_became_of_a_document() -> None:
    keys = [1, 2, 3, 4, 5]
    told = events(documents(keys, [None, 7, 7, 7, None]), documents(keys, [8, 9, None, 7, None]))
    assert OUTBOX == told.schema
    assert [(1, "new", 8), (2, "changed", 9), (3, "deleted", None)] == [
        (row["url_key"], row["kind"], row["document_key"]) for row in told.to_pylist()
    ]
    assert {(3, NOW)} == {(row["round"], row["created_at"]) for row in told.to_pylist()}


def test_the_same_event_of_another_round_has_another_id_and_told_again_the_same() -> None:
    before, after = documents([1, 2], [None, 7]), documents([1, 2], [8, 9])
    first = events(before, after)["event_id"].to_pylist()
    assert first == events(before, after)["event_id"].to_pylist()
    other = events(before, after, round=4)["event_id"].to_pylist()
    assert 4 == len({*first, *other})


def test_tables_of_different_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="same keys"):
        events(documents([1], [None]), documents([2], [None]))


def test_nothing_changed_is_no_event() -> None:
    assert 0 == len(events(documents([], []), documents([], [])))
