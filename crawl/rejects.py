"""Counts of what was left out, refused or dropped, by reason: the rows of the table `rejects`.

What always holds: counts add up in any order and grouping, and the example is the smallest text, so that how
work was spread over tasks leaves no trace. It decides nothing; who drops something gives the reason code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

import pyarrow as pa

from crawl.schema import REJECTS

__all__ = ["Rejects", "total"]


class Rejects:
    """A tally by (reason, host, template); iterating adds count and example to these, sorted."""

    __slots__ = ("_tally",)

    def __init__(self, rows: Iterable[tuple[str, str, str, int, str]] = ()) -> None:
        self._tally: dict[tuple[str, str, str], tuple[int, str]] = {}
        self.update(rows)

    def add(self, reason: str, host: str, example: str, count: int = 1, template: str = "") -> None:
        """Count something left out."""
        key = (reason, host, template)
        before = self._tally.get(key)
        self._tally[key] = (before[0] + count, min(before[1], example)) if before else (count, example)

    def update(self, rows: Iterable[tuple[str, str, str, int, str]]) -> None:
        """Add another tally, or what iterating one gave."""
        for reason, host, template, count, example in rows:
            self.add(reason, host, example, count, template)

    def __iter__(self) -> Iterator[tuple[str, str, str, int, str]]:
        for key in sorted(self._tally):
            yield (*key, *self._tally[key])

    def __len__(self) -> int:
        return len(self._tally)

    def rows(self, stage: str, *, day: date, round_: int, policy_version: str) -> pa.Table:
        """Rows of `rejects`, sorted by reason, host and template."""
        columns: tuple[list[Any], ...] = (
            tuple(map(list, zip(*self, strict=True))) if self._tally else ([],) * 5
        )
        count = len(self._tally)
        given: dict[str, list[Any]] = {
            "day": [day] * count,
            "round": [round_] * count,
            "stage": [stage] * count,
            "policy_version": [policy_version] * count,
            **dict(zip(("reason", "host", "template", "count", "example"), columns, strict=True)),
        }
        return pa.table([pa.array(given[field.name], field.type) for field in REJECTS], schema=REJECTS)


def total(tables: Iterable[pa.Table]) -> pa.Table:
    """Rows of `rejects` added up: those that differ in count and example alone become one. Sorted."""
    whole = pa.concat_tables([REJECTS.empty_table(), *tables])
    keys = [name for name in REJECTS.names if name not in {"count", "example"}]
    summed = whole.group_by(keys).aggregate([("count", "sum"), ("example", "min")])
    renamed = summed.rename_columns({"count_sum": "count", "example_min": "example"})
    return renamed.select(REJECTS.names).cast(REJECTS).sort_by([(name, "ascending") for name in keys])
