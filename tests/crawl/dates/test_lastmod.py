"""Dates of sitemaps and feeds."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.dates.lastmod import micros, moment


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1997", at(1997, 1, 1)),
        ("1997-07", at(1997, 7, 1)),
        (" 2024-02-29 ", at(2024, 2, 29)),
        ("2024-1-5", at(2024, 1, 5)),
        ("2024.01.05", at(2024, 1, 5)),
        ("2024-01-05T10:00+01:00", at(2024, 1, 5, 9)),
        ("2024-01-05t10:00:00z", at(2024, 1, 5, 10)),
        ("2024-01-05 10:00:00 UTC", at(2024, 1, 5, 10)),
        ("2024-01-05T10:00:00,5+0530", at(2024, 1, 5, 4, 30, 0, 500_000)),
        ("20240105T100000Z", at(2024, 1, 5, 10)),
        ("2024-01-05T23:59:60Z", at(2024, 1, 5, 23, 59, 59)),
        ("Fri, 05 Jan 2024 10:00:00 EST", at(2024, 1, 5, 15)),
        ("5 January 2024 10:00 +0100", at(2024, 1, 5, 9)),
        ("05 Jan 70 10:00:00 GMT", at(1970, 1, 5, 10)),
        ("Fri Jan 05 2024 10:00:00 GMT+0100 (CET)", at(2024, 1, 5, 9)),
    ],
)
def test_every_spelling_means_its_time_in_utc(text: str, expected: datetime) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "today", "2023-02-29", "2024-13-01", "202401", "2024-01-05T", "2024-01-05T24:00:00Z",
        "05/01/2024",
        "2024-01/05", "05 Jan 2024 10:00:00", "05 Jan 2024 10:00:00 LOL", "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:59-12:00", "2024-01-05T10:00:00+99:00", "٢٠٢٤-01-05", "2" * 10_000,
    ],
)  # fmt: skip
def test_what_is_no_date_is_none(text: str) -> None:
    assert moment(text) is None


@settings(max_examples=100, deadline=None)
@given(st.datetimes(timezones=st.just(UTC)), st.sampled_from(["T", " "]))
def test_iso_dates_are_read_as_they_are_written(when: datetime, parting: str) -> None:
    assert moment(when.isoformat(sep=parting)) == when


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="0123456789-/.:+TZ ,JanFebGMT", max_size=40))
def test_no_text_raises(text: str) -> None:
    assert micros(text) is None or moment(text) is not None
