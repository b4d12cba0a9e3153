"""docs/map.md shows the way to every module, in the module's own words."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = re.compile(r"- \[(\S+)\]\(\.\./(\S+)\.py\): (.+)")


def test_the_map_knows_every_module_by_its_first_words() -> None:
    told = {}
    for line in (ROOT / "docs" / "map.md").read_text().splitlines():
        if line.startswith("- "):
            match = LINE.fullmatch(line)
            assert match is not None, line
            name, target, words = match.groups()
            assert (name, name in told) == (target, False)
            told[name] = words
    there = {
        path.relative_to(ROOT).with_suffix("").as_posix(): path
        for top in ("crawl", "lake", "cycles")
        for path in (ROOT / top).rglob("*.py")
        if not path.name.startswith("_")
    }
    assert set(told) == set(there)
    for name, path in there.items():
        first = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]
        assert told[name] == first.replace("\n", " "), name
