"""Records travel between processes, and say the same as the tables."""

import dataclasses
import pickle
from datetime import UTC, datetime, timedelta

import pytest

from crawl import records, schema

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FETCH = records.Fetch(
    kind="page",
    url="http://a.test/",
    url_key=1,
    origin="http://a.test",
    host="a.test",
    domain="a.test",
    attempt=1,
    chain_id=2,
    hop=0,
    started_at=AT,
    finished_at=AT + timedelta(seconds=1),
    required_gap_ms=1000.0,
    gap_rule="floor",
    total_ms=1000.0,
    outcome="OK",
    policy_version="p",
)
PLANNED = records.Planned(
    url_key=1,
    url="http://a.test/",
    origin="http://a.test",
    host="a.test",
    domain="a.test",
    position=0,
    depth=0,
)
SKIP = records.Skip(
    url_key=1,
    url="http://a.test/",
    host="a.test",
    depth=0,
    outcome="ROBOTS_DENIED",
    reason="robots_denied",
    decided_at=AT,
)
Record = records.Fetch | records.Planned | records.Skip
ALL = pytest.mark.parametrize("record", [FETCH, PLANNED, SKIP], ids=lambda record: type(record).__name__)


@ALL
def test_a_record_survives_the_way_to_another_process(record: Record) -> None:
    assert pickle.loads(pickle.dumps(record)) == record


@ALL
def test_a_record_cannot_grow(record: Record) -> None:
    assert not hasattr(record, "__dict__")


def test_a_fetch_has_the_columns_of_its_table_but_those_its_task_knows() -> None:
    columns = set(schema.schema("fetches").names)
    fields = {field.name for field in dataclasses.fields(records.Fetch)}
    assert columns - fields == {"day", "round", "group", "fence"}
    beside = {"depth", "referrer_key", "planned", "parsed_before", "known_hash"}
    assert fields - columns <= beside
