"""The field Retry-After (RFC 9110 10.2.3) through `crawl.politeness.retry_after`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from crawl.policy import Politeness
from crawl.politeness import retry_after
from tests.conformance.report import Row, Scores


def waits(row: Row) -> str | None:
    """None where the wait is the row's; `cap` means longer than any that is honoured."""
    got = retry_after(row["header"], datetime.fromisoformat(row["now"]))
    if row["delay_s"] == "cap":
        most = Politeness().retry_after_max.total_seconds()
        return None if got is not None and got > most else f"{got} is within the {most} s that are honoured"
    return None if got == row["delay_s"] else f"{got} instead of {row['delay_s']}"


def test_retry_after(cases: Path, scores: Scores) -> None:
    scores.run(cases, "http/retry_after.jsonl", waits, through="crawl.politeness.retry_after")
