"""Settings are values: frozen, comparable, explained, and with manners that no setting takes away."""

import dataclasses
import inspect
import pickle
import re
from datetime import timedelta

import pytest

from crawl import policy

DEFAULTS = policy.Settings()
SECTIONS = {field.name: type(getattr(DEFAULTS, field.name)) for field in dataclasses.fields(DEFAULTS)}
FIELDS = [(name, field) for name, kind in SECTIONS.items() for field in dataclasses.fields(kind)]


def test_settings_survive_the_way_to_another_process() -> None:
    changed = dataclasses.replace(policy.Settings(), dns=policy.Dns(hosts={"*.test": "127.0.0.1"}))
    assert pickle.loads(pickle.dumps(changed)) == changed
    assert changed != policy.Settings()


@pytest.mark.parametrize("kind", SECTIONS.values())
def test_a_section_cannot_be_changed_or_grow(kind: type) -> None:
    section = kind()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(section, dataclasses.fields(kind)[0].name, None)
    assert not hasattr(section, "__dict__")


@pytest.mark.parametrize(("section", "field"), FIELDS, ids=lambda value: getattr(value, "name", value))
def test_a_setting_is_explained_beside_its_default(section: str, field: "dataclasses.Field[object]") -> None:
    source = inspect.getsource(SECTIONS[section])
    explained = rf"(#: .+\n\s+{field.name}: .+)|(\n\s+{field.name}: .+  # \S.+)"
    assert re.search(explained, source)


def test_every_default_is_a_value_of_its_kind() -> None:
    for section, field in FIELDS:
        value = getattr(SECTIONS[section](), field.name)
        if isinstance(value, timedelta | int | float):
            assert value >= type(value)(0), (section, field.name)


def test_robots_has_no_switch_and_a_floor_stands_in_code() -> None:
    assert policy.PUBLIC_FLOOR > timedelta(0)
    names = {f"{section}.{field.name}" for section, field in FIELDS}
    assert {name for name in names if re.search(r"(ignore|obey|respect|enable|disable)", name)} == set()
    assert {f.name for f in dataclasses.fields(policy.Robots)} == {"bytes", "redirects", "valid", "last_good"}


def test_the_agent_line_names_product_version_and_contact() -> None:
    agent = policy.Agent(name="ours", contact="mailto:ops@a.test")
    assert agent.header() == "ours/1.0 (+mailto:ops@a.test)"
    assert policy.Agent().header() == "crawl-cycles/1.0"
