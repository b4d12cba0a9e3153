"""What holds a host back is told, and nothing of a host that nothing holds back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from crawl.policy import Politeness
from crawl.politeness.clock import HostState
from cycles.words.hostwords import held_back


def told(**columns: Any) -> str:
    state = replace(HostState.new("a.test", "a.test", 1), **columns)
    return "\n".join(held_back(state.to_row(1), Politeness()))


def test_of_a_host_that_is_asked_as_any_other_nothing_is_told() -> None:
    assert told() == told(robots_delay_ms=60_000.0) == ""
    assert list(held_back(None, Politeness())) == []


def test_everything_that_holds_a_host_back_is_told() -> None:
    assert "the others of group news" in told(politeness_group="news")
    assert "asks for 120 s between requests" in told(robots_delay_ms=120_000.0)
    assert "429 or 503: at least 4.0 s between requests" in told(slowed_ms=4_000.0)
    assert told(max_in_flight=4).endswith("4 requests open at once (politeness.in_flight)")
    assert "4 requests open at once (politeness.in_flight): one while" in told(
        max_in_flight=4, robots_delay_ms=1_000.0
    )
    until = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert "left alone until 2026-03-01 12:00" in told(backoff_until=until)
    shut = told(circuit="open", consecutive_errors=3)
    assert "shut off (open) after 3 errors in a row" in shut
    assert "one request a round" in shut
