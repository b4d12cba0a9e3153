"""environment.yml, constraints.txt and pyproject.toml ask for the same things."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES: dict[str, str] = tomllib.loads((ROOT / "tests/data/conda-names.toml").read_text())
PINS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def requirements() -> list[Requirement]:
    """Everything pyproject.toml asks for, extras included."""
    extras = PROJECT["optional-dependencies"].values()
    return [Requirement(line) for group in (PROJECT["dependencies"], *extras) for line in group]


def wanted_of_conda() -> tuple[set[str], set[str]]:
    """What environment.yml has to list: (for conda, for pip)."""
    conda, pip = {f"python{PROJECT['requires-python']}", "pip"}, set()
    for need in requirements():
        name = CONDA_NAMES[canonicalize_name(need.name)]
        (conda if name else pip).add(f"{name or need.name}{need.specifier}")
    return conda, pip


def test_the_name_map_knows_exactly_our_requirements() -> None:
    assert {canonicalize_name(need.name) for need in requirements()} == set(CONDA_NAMES)


def test_environment_yml_asks_for_what_pyproject_asks_for() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    listed = environment["dependencies"]
    conda = [entry for entry in listed if isinstance(entry, str)]
    pip = [line for entry in listed if isinstance(entry, dict) for line in entry["pip"]]

    assert environment["channels"] == ["conda-forge", "nodefaults"]
    assert (set(conda), set(pip)) == wanted_of_conda()
    assert len(conda) == len(set(conda))


def test_every_requirement_has_a_lower_bound_that_its_pin_satisfies() -> None:
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in PINS)}
    for need in requirements():
        assert [bound.operator for bound in need.specifier] == [">="], need
        assert need.specifier.contains(pins[canonicalize_name(need.name)]), need


def test_constraints_are_sorted_exact_and_name_no_place() -> None:
    assert PINS == sorted(PINS, key=str.upper)  # as `LC_ALL=C sort --ignore-case` does
    assert [line for line in PINS if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_]+", line)] == []
