"""docs/map.md shows the way to every module, in the module's own words."""

from tests import mappage


def test_the_map_shows_every_module_by_its_first_words() -> None:
    assert mappage.PAGE.read_text(encoding="utf-8") == mappage.page(), "run python -m tests.mappage"
