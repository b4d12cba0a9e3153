"""Commands that README and docs show are commands, and their queries are answered."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from cycles.cli import command
from cycles.session import setup
from cycles.settings import config
from lake.browse import Browsed, browse

_ROOT: Final = Path(__file__).parent.parent
_SHOWN: Final = [
    pytest.param(line.strip(), id=f"{page.name}:{number}")
    for page in (_ROOT / "README.md", *sorted((_ROOT / "docs").glob("*.md")))
    for number, line in enumerate(page.read_text().splitlines(), 1)
    if re.match(r" {4}(crawl|SELECT) ", line)
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Browsed:
    """An empty lake."""
    place = str(tmp_path_factory.mktemp("docs") / "lake")
    setup.init(place)
    return browse(place)


@pytest.mark.parametrize("shown", _SHOWN)
def test_what_is_shown_can_be_typed(shown: str, lake: Browsed) -> None:
    _, name, *arguments = shlex.split(shown, comments=True)  # a bare query would fail here, as in a shell
    given = ["LAKE" if word in ("LAKE", "my-lake") else word for word in arguments]
    commands = command.commands
    assert name in commands
    commands[name].make_context(name, list(given))  # raises click.UsageError
    if name == "sql":
        assert given[0] == "LAKE"
        lake.sql(given[1])
    if name == "config":
        assert ["LAKE", "set"] == given[:2]
        config.set_key("", given[2], given[3])
