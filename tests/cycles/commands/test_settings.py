"""`crawl config`: shown, explained, set, and noted who set it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crawl.errors import NoSuchLake, SettingsError
from cycles.commands import settings
from cycles.session.setup import open_lake
from lake import delta, files
from tests.crawl.certificates import ca_file

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_all_settings_are_shown_with_where_they_come_from(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAWL_ROUND__WINDOW", "3m")
    settings.change(str(place), "politeness.min_delay", "20ms", NOW)
    found = json.loads(settings.shown(str(place), "json"))
    assert {"value": "20ms", "from": "file"} == found["politeness.min_delay"]
    assert {"value": "3m", "from": "environment"} == found["round.window"]
    assert {"value": "default", "from": "default"}.keys() == found["politeness.factor"].keys()
    assert "politeness.min_delay" in settings.shown(str(place), "text")


def test_a_key_is_set_and_says_what_it_is_now(place: Path) -> None:
    told = settings.change(str(place), "politeness.min_delay", "20ms", NOW)
    assert told.startswith('politeness.min_delay = "20ms"')
    assert 0.02 == open_lake(str(place), {}).settings.politeness.min_delay.total_seconds()
    assert "# required before any public host is asked" in (place / "crawl.toml").read_text()


def test_a_key_that_the_environment_overrides_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWL_ROUND__WINDOW", "3m")
    assert "from the environment" in settings.change(str(place), "round.window", "1m", NOW)


def test_what_does_not_fit_changes_nothing(place: Path) -> None:
    before = (place / "crawl.toml").read_bytes()
    with pytest.raises(SettingsError):
        settings.change(str(place), "round.window", "soon", NOW)
    assert before == (place / "crawl.toml").read_bytes()
    assert [] == delta.files(open_lake(str(place), {}).store, "audit")


def test_who_set_what_is_noted(place: Path) -> None:
    settings.change(str(place), "agent.name", "bot", NOW)
    store = open_lake(str(place), {}).store
    row = files.read(store, delta.files(store, "audit")[0]).to_pylist()[0]
    assert (NOW, "config set", "agent.name", "bot") == (
        row["at"],
        row["action"],
        row["subject"],
        row["detail"],
    )


def test_a_mistake_in_the_file_can_be_seen_and_one_key_explained(place: Path) -> None:
    (place / "crawl.toml").write_text("[rund]\n")
    with pytest.raises(SettingsError, match="round"):
        settings.shown(str(place), "text")
    assert "how long a round may fetch" in settings.explained(str(place), "round.window")


def test_one_key_or_one_section_is_shown(place: Path) -> None:
    assert {"round.window"} == set(json.loads(settings.shown(str(place), "json", "round.window")))
    assert {"round.window", "round.merge_every"} == set(
        json.loads(settings.shown(str(place), "json", "round"))
    )
    with pytest.raises(SettingsError, match=r"politeness\.min_delay"):
        settings.shown(str(place), "text", "min_delay")


def test_an_explanation_says_what_is_in_force_and_why(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWL_ROUND__WINDOW", "3m")
    settings.change(str(place), "round.merge_every", "7", NOW)
    told = settings.explained(str(place), "round")
    assert 'in force: "3m" (from the environment)' in told
    assert "in force: 7 (from crawl.toml)" in told
    assert 'in force: "1s" (the default)' not in told
    assert "in force: 10.0 (the default)" in settings.explained(str(place), "politeness.factor")


def test_a_gap_below_the_floor_of_public_hosts_is_set_with_a_word_on_it(place: Path) -> None:
    told = settings.change(str(place), "politeness.min_delay", "20ms", NOW)
    assert "public hosts are never asked faster than every 0.2 s" in told
    assert "public" not in settings.change(str(place), "politeness.min_delay", "200ms", NOW)


def test_without_a_key_all_are_explained(place: Path) -> None:
    text = settings.explained(str(place), None)
    assert "agent.name: " in text
    assert "storage.target_bytes: " in text


def test_there_must_be_a_lake(tmp_path: Path) -> None:
    with pytest.raises(NoSuchLake):
        settings.shown(str(tmp_path), "text")
    with pytest.raises(NoSuchLake):
        settings.change(str(tmp_path), "agent.name", "x", NOW)
    assert [] == list(tmp_path.iterdir())


def test_a_file_of_authorities_must_hold_some_when_it_is_set(place: Path) -> None:
    before = (place / "crawl.toml").read_bytes()
    for path, wrong in (
        (place / "none.pem", "cannot be read"),
        (place / "crawl.toml", "holds no certificates"),
    ):
        with pytest.raises(SettingsError, match=rf"tls\.ca_file = .*{wrong}"):
            settings.change(str(place), "tls.ca_file", str(path), NOW)
    with pytest.raises(SettingsError, match="absolute path"):
        settings.change(str(place), "tls.ca_file", "ca.pem", NOW)
    assert before == (place / "crawl.toml").read_bytes()
    own = ca_file(place)
    assert str(own) in settings.change(str(place), "tls.ca_file", str(own), NOW)


def test_what_a_setting_gives_up_is_said(place: Path) -> None:
    assert "gaps no longer grow" in settings.change(str(place), "politeness.factor", "0.0", NOW)
    assert "gaps" not in settings.change(str(place), "politeness.factor", "2.0", NOW)


def test_a_broken_file_is_named_where_nothing_can_be_set(place: Path) -> None:
    (place / "crawl.toml").write_text("[x")
    with pytest.raises(SettingsError, match=f"{place}/crawl.toml is not valid TOML: .*; mend it"):
        settings.change(str(place), "round.window", "1m", NOW)
