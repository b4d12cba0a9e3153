"""A lake is made once, whole or not at all, and opened with its settings; public hosts want a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawl.errors import LakeError, NewerFormat, NoSuchLake, SettingsError, UsageError
from crawl.policy import Agent, Dns, Egress, Settings
from cycles.session import setup
from cycles.session.setup import Lake, open_lake, require_agent
from cycles.settings import config
from lake import identity, snapshot
from lake.store import connect
from lake.tables import SPECS
from tests.lake import lakes, rows

NAMED = Agent(name="bot", contact="mailto:a@b.test")


def test_init_makes_settings_tables_and_identity(tmp_path: Path) -> None:
    store = setup.init(str(tmp_path / "new" / "lake"))
    assert config.DEFAULT_TOML == setup.settings_text(store)
    assert set(SPECS) == set(snapshot.heads(store))
    assert identity.FORMAT == identity.load(store).format


def test_init_leaves_a_lake_that_is_there_as_it_is(place: Path) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="nothing was changed"):
        setup.init(str(place))
    assert before == {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_init_keeps_settings_that_lay_there_before(tmp_path: Path) -> None:
    (tmp_path / "crawl.toml").write_text('[agent]\nname = "mine"\n')
    setup.init(str(tmp_path))
    assert "mine" == open_lake(str(tmp_path), {}).settings.agent.name


def test_init_refuses_settings_that_are_wrong_before_it_makes_a_lake(tmp_path: Path) -> None:
    (tmp_path / "crawl.toml").write_text("[agnt]\n")
    with pytest.raises(SettingsError, match="agent"):
        setup.init(str(tmp_path))
    assert not (tmp_path / identity.PATH).exists()


def test_init_finishes_one_that_was_interrupted(place: Path) -> None:
    (place / identity.PATH).unlink()
    with pytest.raises(NoSuchLake):
        open_lake(str(place), {})
    setup.init(str(place))
    assert open_lake(str(place), {}).root == str(place)


def tree(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["notes.txt", ".git/config", "seen.csv", "_delta_log/0.json"])
def test_init_refuses_a_folder_that_holds_something_else(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    (tmp_path / "crawl.toml").write_text("")
    before = tree(tmp_path)
    with pytest.raises(UsageError, match=r"holds something else .*empty folder, like .*/lake; nothing was"):
        setup.init(str(tmp_path))
    assert before == tree(tmp_path)


@pytest.mark.parametrize("inside", ["seen", "seen/_delta_log", "fetches/day=2026-01-01/x", "new"])
def test_init_refuses_a_place_inside_a_lake_and_names_it(place: Path, inside: str) -> None:
    before = tree(place)
    with pytest.raises(UsageError, match=f"inside the lake at {place}: choose a folder outside"):
        setup.init(str(place / inside))
    assert before == tree(place)


def test_init_refuses_tables_with_rows_whose_identity_is_lost(lake: Lake, place: Path) -> None:
    lakes.commit_round(lake.store, 1, seen=rows.seen([1], 1))
    (place / identity.PATH).unlink()
    before = tree(place)
    with pytest.raises(UsageError, match=r"no identity\.json.*restore it"):
        setup.init(str(place))
    assert before == tree(place)


@pytest.mark.parametrize("inside", ["seen", "seen/_delta_log", "seen/none"])
def test_a_place_inside_a_lake_is_told_with_the_lake_and_no_init(place: Path, inside: str) -> None:
    with pytest.raises(NoSuchLake, match=f"inside one: name that, {place}$"):
        open_lake(str(place / inside), {})


def test_a_folder_of_something_else_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NoSuchLake, match="but something else: name the lake's own folder"):
        open_lake(str(tmp_path), {})
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(NoSuchLake, match="but a Delta table"):
        open_lake(str(tmp_path), {})


def test_a_place_without_a_lake_is_told_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(NoSuchLake, match=r"crawl init"):
        open_lake(str(tmp_path), {})
    assert [] == list(tmp_path.iterdir())


def test_a_lake_of_a_newer_format_is_refused_by_every_opening(place: Path) -> None:
    text = (place / identity.PATH).read_text()
    (place / identity.PATH).write_text(text.replace(f'"format": {identity.FORMAT}', '"format": 99'))
    with pytest.raises(NewerFormat, match="99"):
        open_lake(str(place), {})
    with pytest.raises(NewerFormat, match="99"):
        setup.init(str(place))


def test_settings_come_from_file_and_environment(place: Path) -> None:
    (place / "crawl.toml").write_text('[round]\nwindow = "1m"\nmerge_every = 3\n')
    opened = open_lake(str(place), {"CRAWL_ROUND__WINDOW": "2m"})
    assert (120.0, 3) == (opened.settings.round.window.total_seconds(), opened.settings.round.merge_every)


def test_a_wrong_key_is_told_with_the_file_it_stands_in(place: Path) -> None:
    (place / "crawl.toml").write_text("[round]\nwindoe = '1m'\n")
    with pytest.raises(SettingsError, match=rf"{place}/crawl\.toml.*round\.window"):
        open_lake(str(place), {})


def test_a_lake_without_settings_has_the_defaults(place: Path) -> None:
    (place / "crawl.toml").unlink()
    assert Settings() == open_lake(str(place), {}).settings


def test_an_opened_lake_shows_no_secret(lake: Lake) -> None:
    secret = identity.load(lake.store).secret.hex()
    assert secret not in repr(lake)
    assert secret not in repr(lake.keyer())


def test_storage_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeError, match="a file lies where a folder should be"):
        setup.init(str(tmp_path / "file" / "lake"))


def test_somebody_runs_the_command() -> None:
    assert "@" in setup.who()


@pytest.mark.parametrize("host", ["www.example.org", "93.184.216.34", "[2606:2800:220:1::1]"])
def test_a_public_host_wants_name_and_contact(host: str) -> None:
    with pytest.raises(UsageError, match=r"agent\.name.*and agent\.contact"):
        require_agent(Settings(), [host])
    with pytest.raises(UsageError, match=r"set agent\.contact \("):
        require_agent(Settings(agent=Agent(name="bot")), [host])
    require_agent(Settings(agent=NAMED), [host])


def test_hosts_of_a_rehearsal_want_none() -> None:
    inside = Settings(
        egress=Egress(allow=("127.0.0.0/8",)),
        dns=Dns(hosts={"*.test": "127.1.0.0/16", "one.example": "127.0.0.1"}),
    )
    require_agent(inside, ["www.a.test", "one.example", "127.0.0.3"])
    with pytest.raises(UsageError, match=r"two\.example may be a public host"):
        require_agent(inside, ["www.a.test", "two.example"])


def test_a_listed_name_that_leads_to_the_public_internet_is_public() -> None:
    with pytest.raises(UsageError, match=r"a\.test"):
        require_agent(Settings(dns=Dns(hosts={"a.test": "93.184.216.34"})), ["a.test"])


def test_a_private_address_is_not_asked_and_wants_no_name() -> None:
    require_agent(Settings(), ["10.0.0.1"])  # refused later, by the egress rules


def test_no_host_wants_nothing() -> None:
    require_agent(Settings(), [])


def test_a_store_is_shared_by_all_who_open_its_lake(place: Path) -> None:
    assert open_lake(str(place), {}).store is open_lake(str(place), {}).store
    assert connect(str(place)) == open_lake(str(place), {}).store
