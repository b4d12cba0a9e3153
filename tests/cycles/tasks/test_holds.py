"""What an operator holds back is known to a running fetch as soon as it looks."""

from datetime import UTC, datetime
from pathlib import Path

from cycles.commands.pausing import pause, resume
from cycles.session.setup import init, open_lake
from cycles.tasks.holds import Holds

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


def test_a_pause_holds_a_host_or_a_domain_until_it_is_taken_back(tmp_path: Path) -> None:
    init(str(tmp_path / "lake"))
    lake = open_lake(str(tmp_path / "lake"))
    holds = Holds(lake.store, NOW)
    holds.refresh()
    assert not holds.held("www.a.test", "a.test")

    pause(lake, "a.test", reason="asked to", who="me", now=NOW)
    assert not holds.held("www.a.test", "a.test"), "nothing is known before a look"
    holds.refresh()
    assert holds.held("www.a.test", "a.test")
    assert not holds.held("www.b.test", "b.test")

    resume(lake, "a.test", who="me", now=LATER)
    holds.refresh()
    assert not holds.held("www.a.test", "a.test")
