"""House rules that an import graph cannot see, and the import contracts of .importlinter themselves.

Names are matched as written; ruff's banned names (TID251) see through renaming imports, so both stand.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(path for top in ("crawl", "lake", "cycles") for path in (ROOT / top).rglob("*.py"))
STAGES = [path for path in MODULES if path.parent.name == "stages" and path.name != "__init__.py"]
#: Programs of their own are tested through the module that starts them.
TESTED_WITH = {
    "cycles/tasks/child_main.py": "tests/cycles/tasks/test_child.py",
    "crawl/fetching/asking.py": "tests/crawl/stages/test_fetch.py",  # the stage's hands: over real sockets
}
#: The second is a list of columns with their meaning, not code; it grows with the tables only.
MAX_LINES, LONGER = 400, {"crawl/schema.py": 500}

#: What a stage must be given instead: time, chance, settings, files.
HIDDEN_INPUTS = re.compile(
    r"(datetime\.)*(datetime|date)\.(now|utcnow|today)|time\.(time|time_ns|monotonic|sleep)"
    r"|random\.\w+|np\.random\.\w+|secrets\.\w+|uuid\.uuid[14]|os\.(environ|getenv|urandom)|open"
)
#: What ends a Dask graph. `asyncio.gather` only shares the name.
GRAPH_ENDS = re.compile(r"(?!asyncio\.)(.*\.)?(compute|persist|gather)")

#: Traces of one machine or one package registry. In two parts each, so that this file is clean as well.
PLACES = re.compile(
    "|".join([r"(?<![\w.~/-])/" + "work/", "/tmp" + "/v/", "pypi" + r"\.org", "files" + r"\.pythonhosted"])
)


def names(path: Path) -> Iterator[str]:
    """Every dotted name and bare call in a module, as written."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def named(path: Path, pattern: re.Pattern[str]) -> set[str]:
    return {name for name in names(path) if pattern.fullmatch(name)}


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked() -> list[Path]:
    """The files under version control; in an unpacked archive, every file."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in str(path)]


def test_imports_point_inward_and_through_one_door_each() -> None:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    run = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("path", STAGES, ids=label)
def test_a_stage_takes_time_chance_and_settings_as_arguments(path: Path) -> None:
    assert named(path, HIDDEN_INPUTS) == set()


@pytest.mark.parametrize("path", STAGES, ids=label)
def test_a_stage_has_one_public_function(path: Path) -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    public = [
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, functions) and not node.name.startswith("_")
    ]
    assert len(public) == 1, public


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_only_the_graph_module_ends_a_dask_graph(path: Path) -> None:
    assert path == ROOT / "cycles" / "graph.py" or named(path, GRAPH_ENDS) == set()


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_a_module_says_what_it_is_for_and_stays_small(path: Path) -> None:
    source = path.read_text()
    assert ast.get_docstring(ast.parse(source))
    assert source.count("\n") <= LONGER.get(label(path), MAX_LINES)


@pytest.mark.parametrize("path", [path for path in MODULES if path.name[0] != "_"], ids=label)
def test_a_module_has_its_test(path: Path) -> None:
    mirror = f"tests/{path.relative_to(ROOT).with_name('test_' + path.name).as_posix()}"
    assert (ROOT / TESTED_WITH.get(label(path), mirror)).is_file()


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    found = {
        f"{label(path)}: {match.group()}"
        for path in tracked()
        if b"\0" not in (data := path.read_bytes())
        for match in PLACES.finditer(data.decode("utf-8", "replace"))
    }
    assert found == set()


@pytest.mark.parametrize(
    ("source", "pattern", "caught"),
    [
        ("def f():\n    return datetime.now(UTC)", HIDDEN_INPUTS, {"datetime.now"}),
        ("import os\nx = os.environ['A']", HIDDEN_INPUTS, {"os.environ"}),
        ("with open('x') as f: pass", HIDDEN_INPUTS, {"open"}),
        ("y = now + timedelta(seconds=1)", HIDDEN_INPUTS, set()),
        ("client.gather(futures)", GRAPH_ENDS, {"client.gather"}),
        ("dask.compute(a)", GRAPH_ENDS, {"dask.compute"}),
        ("await asyncio.gather(a, b)", GRAPH_ENDS, set()),
    ],
)
def test_these_rules_catch_what_they_are_for(
    source: str, pattern: re.Pattern[str], caught: set[str], tmp_path: Path
) -> None:
    (tmp_path / "planted.py").write_text(source)
    assert named(tmp_path / "planted.py", pattern) == caught
