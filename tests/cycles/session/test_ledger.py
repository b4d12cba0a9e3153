"""Rows that commands write appear in one commit, beside whatever rounds do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from crawl.errors import LakeError
from cycles.session import ledger
from cycles.session.setup import Lake
from lake import delta, files
from tests.lake import rows

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def seeds(*urls: str) -> pa.Table:
    return rows.table("seeds", url=list(urls))


def stored(lake: Lake, table: str) -> pa.Table:
    return pa.concat_tables([files.read(lake.store, entry) for entry in delta.files(lake.store, table)])


def test_batches_become_one_file_in_one_commit(lake: Lake) -> None:
    before = delta.version(lake.store, "seeds")
    assert 3 == ledger.append(lake.store, "seeds", [seeds("a"), seeds(), seeds("b", "c")])
    assert before + 1 == delta.version(lake.store, "seeds")
    assert 1 == len(delta.files(lake.store, "seeds"))
    assert ["a", "b", "c"] == stored(lake, "seeds")["url"].to_pylist()


def test_no_rows_make_no_commit(lake: Lake) -> None:
    before = delta.version(lake.store, "seeds")
    assert 0 == ledger.append(lake.store, "seeds", iter([seeds(), seeds()]))
    assert before == delta.version(lake.store, "seeds")


def test_batches_that_fail_half_way_leave_nothing(lake: Lake) -> None:
    def batches():  # type: ignore[no-untyped-def]
        yield seeds("a")
        raise LakeError("the source broke")

    with pytest.raises(LakeError, match="broke"):
        ledger.append(lake.store, "seeds", batches())
    assert [] == delta.files(lake.store, "seeds")
    assert [] == [stat.path for stat in lake.store.list("seeds") if stat.path.endswith(".parquet")]


def test_writers_at_once_lose_nothing(lake: Lake) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: ledger.append(lake.store, "seeds", [seeds(str(n))]), range(8)))
    assert [str(n) for n in range(8)] == sorted(stored(lake, "seeds")["url"].to_pylist())


def test_the_audit_says_who_did_what_when(lake: Lake) -> None:
    ledger.audit(lake.store, at=NOW, who="me@here", action="pause", subject="a.test", detail="why")
    row = {"at": NOW, "who": "me@here", "action": "pause", "subject": "a.test", "detail": "why"}
    assert [row] == stored(lake, "audit").to_pylist()
