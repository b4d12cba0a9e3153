"""What the next round would do, in words."""

from __future__ import annotations

from typing import Any

from cycles.commands import planview
from tests.lake.rows import NOW

FOUND: dict[str, Any] = {
    "round": 3,
    "now": NOW,
    "window_s": 600.0,
    "open": False,
    "seconds": 120.0,
    "pages": 1200,
    "robots": 7,
    "hosts": 9,
    "left_out": 33,
    "cap": "host",
    "caps": [{"host": "a.test", "requests": 100, "seconds": 120.04, "per_second": 0.833}],
    "groups": [{}, {}],
    "cuts": {"host_capacity": 30, "blocked": 3},
}


def test_it_tells_pages_hosts_time_cap_and_cuts() -> None:
    told = planview.told(FOUND)
    assert "round 3, planned for 2026-03-01 12:00:00, window 600 s" in told
    assert "1,200, and 7 robots.txt" in told
    assert "9 in 2 groups" in told
    assert "120.0 s of fetching, 10.0 pages/s" in told
    assert "the slowest host's clock" in told
    assert "33 due URLs" in told
    assert "       30  its host's clock allows no more requests in the window (host_capacity)" in told
    assert told.index("host_capacity") < told.index("blocked")
    assert "open" not in told


def test_nothing_due_is_told_as_such() -> None:
    empty = {"seconds": 0.0, "pages": 0, "hosts": 0, "robots": 0, "cap": "nothing", "caps": [], "groups": []}
    told = planview.told({**FOUND, **empty, "cuts": {}, "open": True})
    assert "no URL is due" in told
    assert "0 due URLs" in told
    assert "its plan is fixed" in told


def test_what_a_run_would_refuse_is_a_warning() -> None:
    told = planview.told({**FOUND, "unasked": 2, "refused": "a.test may be a public host"})
    assert "2 of the pages: egress refuses their address or port" in told
    assert told.endswith("warning: `crawl run` will refuse this: a.test may be a public host")
