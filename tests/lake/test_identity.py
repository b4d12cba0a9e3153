"""identity.json: written once, told to nobody."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from crawl.errors import LakeError, NewerFormat, NoSuchLake
from lake import identity
from lake.store import connect


def test_the_first_creator_decides_and_the_second_reads_what_stands(tmp_path: Path) -> None:
    store = connect(tmp_path)
    first = identity.create(store, "psl-1", 1)
    second = identity.create(store, "psl-2", 2)
    assert second == first == identity.load(store)
    assert len(first.secret) == 32


def test_two_lakes_have_two_secrets(tmp_path: Path) -> None:
    made = {identity.create(connect(tmp_path / name), "p", 1).secret for name in "ab"}
    assert len(made) == 2


def test_a_lake_around_a_place_is_found_however_deep_and_nothing_else_is_taken_for_one(
    tmp_path: Path,
) -> None:
    assert identity.around(connect(tmp_path / "a")) is None
    (tmp_path / identity.PATH).write_text("somebody's own")
    identity.create(connect(tmp_path / "lake"), "p", 1)
    assert identity.around(connect(tmp_path / "lake/seen/_delta_log")) == str(tmp_path / "lake")
    assert identity.around(connect(tmp_path / "lake")) is None
    (tmp_path / identity.PATH).write_text(json.dumps({"format": identity.FORMAT + 1}))
    assert identity.around(connect(tmp_path / "elsewhere")) == str(tmp_path)


def test_on_s3_a_lake_around_a_place_is_found(s3_lake: str) -> None:
    identity.create(connect(s3_lake), "p", 1)
    assert identity.around(connect(f"{s3_lake}/seen")) == s3_lake
    assert identity.around(connect(s3_lake)) is None
    assert connect(s3_lake).names() == {identity.PATH}
    assert connect(f"{s3_lake}/none").names() == frozenset()


def test_the_secret_is_neither_shown_nor_pickled(tmp_path: Path) -> None:
    made = identity.create(connect(tmp_path), "p", 1, secret=b"canary-secret")
    assert "canary" not in repr(made)
    with pytest.raises(TypeError, match="does not travel"):
        pickle.dumps(made)


def test_no_lake_a_newer_one_and_a_damaged_one_are_told_apart(tmp_path: Path) -> None:
    store = connect(tmp_path)
    with pytest.raises(NoSuchLake, match="crawl init"):
        identity.load(store)
    store.write(identity.PATH, json.dumps({"format": identity.FORMAT + 1}).encode())
    with pytest.raises(NewerFormat, match="newer version"):
        identity.load(store)
    store.write(identity.PATH, b'{"format": 1, "secret": "not hex"')
    with pytest.raises(LakeError, match="damaged") as told:
        identity.load(store)
    assert told.value.__cause__ is None


@pytest.mark.parametrize("harm", [lambda text: text[:-2], lambda text: "00" + text[2:], lambda text: ""])
def test_a_secret_that_is_not_the_one_the_lake_was_made_with_is_told(
    tmp_path: Path, harm: Callable[[str], str]
) -> None:
    """With another secret every URL would get another key, and be met anew beside itself."""
    store = connect(tmp_path)
    identity.create(store, "p", 1)
    content = json.loads(store.read(identity.PATH))
    store.write(identity.PATH, json.dumps({**content, "secret": harm(content["secret"])}).encode())
    with pytest.raises(LakeError, match="damaged"):
        identity.load(store)


def test_a_lake_made_before_its_secret_was_proved_is_read(tmp_path: Path) -> None:
    store = connect(tmp_path)
    made = identity.create(store, "p", 1)
    content = json.loads(store.read(identity.PATH))
    del content["proof"]
    store.write(identity.PATH, json.dumps(content).encode())
    assert identity.load(store) == made
