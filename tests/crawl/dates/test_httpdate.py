from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawl.dates.httpdate import parse

WHEN = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "06 Nov 1994 10:49:37 +0200",
    ],
)
def test_the_forms_of_the_standard_and_a_zone_are_read(text: str) -> None:
    assert parse(text) == WHEN


@pytest.mark.parametrize(
    "text", ["", "0", "yesterday", "Sun, 31 Feb 2021 00:00:00 GMT", "Sun, 06 Nov 1994 08:49:60 GMT", "\xff"]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse(text) is None


@given(
    st.text(max_size=40)
    | st.from_regex(r"[A-Z][a-z]{2}, \d{1,3} [A-Z][a-z]{2} \d{1,6} \d\d:\d\d:\d\d .{0,6}")
)
def test_nothing_raises(text: str) -> None:
    found = parse(text)
    assert found is None or found.tzinfo is UTC
