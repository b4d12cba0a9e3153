"""What a person types becomes a value, or is refused with a word on how to write it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycles.commands.arguments import DURATION, HOST, ROUND, TIME


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T12:30", datetime(2026, 1, 31, 12, 30, tzinfo=UTC)),
        ("2026-01-31 12:30:01.5Z", datetime(2026, 1, 31, 12, 30, 1, 500_000, tzinfo=UTC)),
        ("2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_time_is_utc_unless_it_says_otherwise(text: str, time: datetime) -> None:
    found = TIME.convert(text, None, None)
    assert time == found
    assert UTC is found.tzinfo


@pytest.mark.parametrize("text", ["", "now", "31.1.2026", "2026-13-01", "0001-01-01T00:00+14:00"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match="2026-01-31"):
        TIME.convert(text, None, None)


def test_a_duration_has_a_unit() -> None:
    assert timedelta(seconds=90) == DURATION.convert("90s", None, None)
    assert timedelta(hours=1) == DURATION.convert(timedelta(hours=1), None, None)


@pytest.mark.parametrize("text", ["90", "0s", "-1s", "soon", ""])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        DURATION.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("WWW.Example.org", "www.example.org"),
        (" bücher.example ", "xn--bcher-kva.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
    ],
)
def test_a_host_is_named_as_the_lake_has_it(text: str, host: str) -> None:
    assert host == HOST.convert(text, None, None)


@pytest.mark.parametrize(
    "text", ["", "https://a.test/", "a.test/x", "a b", "me@a.test", "%", "a.test:80", "a,b", "*.a"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="no host"):
        HOST.convert(text, None, None)


def test_a_round_is_a_number() -> None:
    assert 12 == ROUND.convert("12", None, None)
    for text in ("x", "0", "-1", "1.5", "", "9" * 30):
        with pytest.raises(click.BadParameter, match=r"is no round: write its number, like 3"):
            ROUND.convert(text, None, None)


@given(text=st.text(max_size=30))
def test_no_text_raises_anything_else(text: str) -> None:
    for kind in (TIME, DURATION, HOST, ROUND):
        try:
            assert kind.convert(text, None, None) is not None
        except click.BadParameter:
            continue
