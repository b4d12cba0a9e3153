"""Inputs that once broke a reader, and those that fuzzing begins with."""

from pathlib import Path

import pytest

from tests.fuzz.targets import SEEDS, TARGETS

KEPT = sorted(path for path in (Path(__file__).parent / "kept").iterdir() if path.name != ".gitkeep")


@pytest.mark.parametrize("target", TARGETS)
def test_ordinary_inputs_are_read(target: str) -> None:
    for seed in SEEDS[target]:
        TARGETS[target](seed)
        TARGETS[target](seed[: len(seed) // 2])
    TARGETS[target](b"")


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_an_input_that_broke_a_reader_no_longer_does(path: Path) -> None:
    TARGETS[path.name.split("-")[0]](path.read_bytes())
