"""A crawl stops, and says what lets it go on, where going on would harm the lake."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawl import policy, url
from crawl.errors import SafetyStop
from cycles import cli
from cycles.session import safety
from cycles.session.setup import Lake
from lake import identity


def crawl(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command line; its exit code."""
    monkeypatch.setattr("sys.argv", ["crawl", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


REAL = datetime(2026, 3, 1, tzinfo=UTC)


def of_another_list(root: str) -> None:
    """The lake was made when the Public Suffix List was another one."""
    path = Path(root) / identity.PATH
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"psl_hash": "0" * 64}))


def test_keys_are_made_with_the_list_that_the_lake_was_made_with(lake: Lake) -> None:
    assert safety.keyer(lake.store, lake.settings.identity).url_key("http://a.test/") is not None


def test_another_suffix_list_is_refused_until_it_is_accepted(lake: Lake) -> None:
    of_another_list(lake.root)
    with pytest.raises(SafetyStop, match=r"publicsuffixlist.*accept_suffixes"):
        lake.keyer()
    accepted = replace(policy.Identity(), accept_suffixes=(url.psl_hash(),))
    assert safety.keyer(lake.store, accepted).url_key("http://a.test/") is not None


def test_a_planning_time_goes_forward_in_bounded_steps() -> None:
    safety.forward(REAL + safety.FORWARD, None, REAL)
    with pytest.raises(SafetyStop, match="401 days ahead"):
        safety.forward(REAL + timedelta(days=401), None, REAL)
    rehearsed = REAL + timedelta(days=300)
    safety.forward(rehearsed + safety.FORWARD, rehearsed, REAL)
    safety.forward(REAL - timedelta(days=5000), None, REAL)  # an old time is a rehearsal too


def test_the_command_line_ends_with_code_6_and_nothing_was_done(
    lake: Lake, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(path for path in Path(lake.root).rglob("*") if path.is_file())
    far = (datetime.now(UTC) + timedelta(days=4000)).date().isoformat()
    assert crawl(monkeypatch, "run", lake.root, "--now", far) == 6
    assert "steps of at most 400 days" in capfd.readouterr().err
    of_another_list(lake.root)
    assert crawl(monkeypatch, "seed", lake.root, "http://a.test/") == 6
    assert crawl(monkeypatch, "run", lake.root) == 6
    told = capfd.readouterr().err
    assert "accept_suffixes" in told
    command = told.split("`")[1].split()
    assert command[:2] == ["crawl", "config"]
    now = sorted(path for path in Path(lake.root).rglob("*") if path.is_file())
    assert [p for p in now if p.suffix == ".parquet"] == [p for p in before if p.suffix == ".parquet"]
    value = told.split("accept_suffixes '")[1].split("'")[0]
    assert crawl(monkeypatch, "config", lake.root, "set", "identity.accept_suffixes", value) == 0
    assert crawl(monkeypatch, "seed", lake.root, "http://a.test/") == 0
