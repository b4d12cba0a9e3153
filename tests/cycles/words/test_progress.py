"""What a person sees of a running round."""

from __future__ import annotations

import io

import pytest

from cycles.words import progress
from cycles.words.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_tells_stage_pages_waiting_hosts_and_time_left() -> None:
    shown = Progress(io.StringIO())
    shown.stage(3, "fetch", planned=1000, expected_s=60)
    shown.group(0, {"asked": 40, "waiting": {"floor": 3, "backoff": 1}})
    shown.group(1, {"asked": 2, "waiting": {"factor": 2}})
    shown.parsed(17)
    line = shown.line()
    assert "round 3: fetch" in line
    assert "42 of 1,000 pages" in line
    assert "pages/s" in line
    assert "17 parsed" in line
    assert "6 hosts waiting (5 for their gap, 1 for the end of a back-off)" in line
    assert "s left" in line


def test_pages_beyond_the_plan_are_those_that_redirects_led_to() -> None:
    shown = Progress(io.StringIO())
    shown.stage(1, "fetch", planned=39)
    shown.group(0, {"asked": 42, "waiting": {"floor": 1}})
    line = shown.line()
    assert "39 of 39 pages and 3 that redirects led to" in line
    assert "1 host waiting (1 for their gap)" in line


def test_a_round_that_outlasts_its_prediction_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    shown = Progress(io.StringIO())
    shown.stage(1, "fetch", planned=39, expected_s=22)
    clock[0] += 21.8
    assert "about 1 s left" in shown.line()
    clock[0] += 20
    assert shown.line().endswith("longer than the 22 s predicted")


def test_a_group_that_speaks_twice_counts_once() -> None:
    shown = Progress(io.StringIO())
    shown.stage(1, "fetch", planned=10)
    shown.group(0, {"asked": 1})
    shown.group(0, {"asked": 5})
    assert "5 of 10 pages" in shown.line()


def test_countable_steps_are_counted() -> None:
    shown = Progress(io.StringIO())
    shown.stage(1, "merge")
    shown.steps(2, 5)
    assert shown.line().endswith("2 of 5")


def test_without_a_terminal_stages_are_lines_and_the_rest_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    shown = Progress(out)
    shown.stage(1, "plan")
    shown.stage(1, "fetch", planned=1200)
    for _ in range(50):
        shown.tick()
    assert out.getvalue().splitlines() == ["round 1: plan", "round 1: fetch (1,200 URLs)"]
    monkeypatch.setattr(progress, "QUIET", -1.0)
    shown.tick()
    assert len(out.getvalue().splitlines()) == 3


def test_on_a_terminal_one_line_is_redrawn_and_notes_stay() -> None:
    out = Terminal()
    shown = Progress(out)
    shown.stage(1, "fetch", planned=5)
    shown.note("host a.test is paused")
    shown.close()
    assert "\n" not in out.getvalue().replace("host a.test is paused\n", "")
    assert out.getvalue().endswith("\r\x1b[K")
    assert "\r\x1b[Khost a.test is paused\n" in out.getvalue()
