"""setup.py: what is compiled does what its source says."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

SOURCE = """
from __future__ import annotations
from dataclasses import dataclass, fields
from crawl.quickrecord import Record, State, quickrecord, quickstate

@quickrecord
class Point(Record):
    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        return self.x + self.y

@quickstate
class Place(State):
    x: int
    y: int = 2

@dataclass(frozen=True, slots=True)
class Plain:
    head: memoryview
"""


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def build() -> ModuleType:
    return loaded("crawl_cycles_setup", ROOT / "setup.py")


@pytest.fixture
def both(build: Any, tmp_path: Path) -> list[Any]:
    """The source as it is, and written out."""
    texts = {"as_it_is": SOURCE, "written_out": build.written_out(SOURCE)}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    return [loaded(name, tmp_path / f"{name}.py") for name in texts]


def test_what_is_written_out_does_the_same(both: list[Any]) -> None:
    for made in both:
        point = made.Point(x=1)
        assert (point.values(), point.sum) == ((1, 2), 3)
        assert [field.name for field in made.fields(made.Point)] == ["x", "y"]
        assert {made.Point(x=1), point} == {point}
        with pytest.raises(TypeError):
            made.Point(1)
        before = made.Place(x=1)
        assert (before.but(y=5), before) == (made.Place(x=1, y=5), made.Place(x=1))
        assert pickle.loads(pickle.dumps([point, before])) == [point, before]
        assert made.Plain(memoryview(b"a")).head == b"a"


def test_what_decorators_do_is_written_out(build: Any) -> None:
    text = build.written_out(SOURCE)
    assert "@quick" not in text
    assert "slots" not in text
    assert "self.y = y" in text


def test_a_default_made_anew_for_each_record_is_refused(build: Any) -> None:
    with pytest.raises(ValueError, match="Point: a default that is made anew"):
        build.written_out(SOURCE.replace("y: int = 2", "y: list[int] = field(default_factory=list)", 1))


def test_every_module_that_is_compiled_is_there(build: Any) -> None:
    assert [name for name in build.HOT if not (ROOT / f"{name}.py").is_file()] == []
