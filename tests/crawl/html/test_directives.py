"""Robots meta tags and X-Robots-Tag: whom a directive names, and what all of them come to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.html import directives
from crawl.html.directives import meant, of_headers, of_meta, written

LATE = datetime(2010, 6, 25, 23, tzinfo=UTC)


def test_none_is_noindex_and_nofollow_and_nocache_is_noarchive() -> None:
    assert meant(["none"]) == meant(["noindex", "nofollow"])
    assert meant(["nocache"]) == meant(["noarchive"])
    assert meant([]) == meant(["all", "index", "max-snippet:-1"]) == directives.NOTHING


def test_directives_that_disagree_add_up_to_the_most_restrictive() -> None:
    said = meant(
        ["index", "noindex", "follow", "unavailable_after: 2030-01-01", "unavailable_after: 2029-01-01"]
    )
    assert (said.noindex, said.nofollow) == (True, False)
    assert said.unavailable_after == datetime(2029, 1, 1, tzinfo=UTC)


def test_a_line_holds_for_everybody_until_it_names_somebody() -> None:
    assert of_headers(["noarchive, otherbot: noindex, MYBOT: nofollow, none", "*: nocache"], "MyBot") == [
        "noarchive",
        "nofollow",
        "none",
        "nocache",
    ]
    assert of_headers(["otherbot: noindex", "nofollow"], "mybot") == ["nofollow"]


@pytest.mark.parametrize(
    "date",
    [
        "25 Jun 2010 15:00:00 PST",
        "Friday, 25 Jun 2010 15:00:00 PST",
        "Fri, 25-Jun-10 23:00:00 GMT",
        "2010-06-25T15:00:00-08:00",
    ],
)
def test_a_date_may_have_a_comma_and_colons_and_still_end_at_the_next_directive(date: str) -> None:
    for words in (
        of_meta(f"unavailable_after: {date}, noarchive"),
        of_headers([f"mybot: Unavailable_After:{date} ,noarchive"], "mybot"),
    ):
        assert len(words) == 2
        assert meant(words) == meant(["noarchive", "unavailable_after: 2010-06-25T23:00:00Z"])
        assert meant(words).unavailable_after == LATE


def test_a_date_that_is_none_asks_for_nothing_and_stays_to_be_read() -> None:
    words = of_meta("unavailable_after: soon, unavailable_after:")
    assert meant(words) == directives.NOTHING
    assert written(words) == "unavailable_after: soon, unavailable_after:"


def test_each_directive_is_written_once_and_nobody_writes_at_length() -> None:
    assert written(["noindex", "nofollow", "noindex"]) == "noindex, nofollow"
    assert written([]) is None
    assert len(written(f"x{n}" for n in range(5_000)) or "") == 1_000


@settings(max_examples=100)
@given(st.text(alphabet=st.sampled_from("abn:,; \t\r\n\0é") | st.characters(), max_size=60))
def test_no_text_makes_them_fail_and_every_word_is_squeezed(text: str) -> None:
    for words in (of_meta(text), of_headers([text, "unavailable_after:" + text], "a")):
        meant(words)
        assert all(word == " ".join(word.split()) for word in words)
