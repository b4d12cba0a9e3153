"""What answers say of their freshness."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.net.freshness import seconds

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def of(**headers: str) -> float | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return seconds(named.get, NOW)


@pytest.mark.parametrize(
    ("headers", "fresh"),
    [
        ({}, None),
        ({"cache_control": "public, max-age=3600"}, 3600.0),
        ({"cache_control": "max-age=3600", "age": "600"}, 3000.0),
        ({"cache_control": "max-age=60", "age": "600"}, 0.0),
        ({"cache_control": "max-age=0"}, 0.0),
        ({"cache_control": "no-store, max-age=3600"}, 0.0),
        ({"cache_control": 'no-cache="set-cookie"'}, 0.0),
        ({"cache_control": "s-maxage=9"}, None),
        ({"cache_control": "private"}, None),
        ({"expires": "Sun, 01 Mar 2026 01:00:00 GMT"}, 3600.0),
        ({"expires": "Sun, 01 Mar 2026 01:00:00 GMT", "date": "Sun, 01 Mar 2026 00:50:00 GMT"}, 600.0),
        ({"expires": "Sun, 01 Mar 2026 01:00:00 GMT", "date": "soon"}, 3600.0),
        ({"expires": "Sat, 28 Feb 2026 01:00:00 GMT"}, 0.0),
        ({"expires": "0"}, 0.0),
        ({"expires": "0", "cache_control": "max-age=5"}, 5.0),
    ],
)
def test_an_answer_says_how_long_it_is_fresh(headers: dict[str, str], fresh: float | None) -> None:
    assert of(**headers) == fresh


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(["cache-control", "expires", "date", "age"]), st.text(max_size=30)))
def test_whatever_stands_there_gives_a_time_or_none(headers: dict[str, str]) -> None:
    fresh = seconds(headers.get, NOW)
    assert fresh is None or fresh >= 0
