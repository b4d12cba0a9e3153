"""Commits: decided and made on one handle, once, even when the answer is lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crawl.errors import Conflict, LakeError
from lake import delta, files, tables
from lake.entries import FileEntry
from lake.store import Store, connect
from tests import proxy, s3
from tests.lake import rows


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made = connect(request.getfixturevalue("s3_lake") if request.param == "s3" else tmp_path / "lake")
    _seen(made)
    return made


def _seen(store: Store) -> None:
    table = tables.spec("seen")
    delta.create(store, "seen", table.schema, stats=table.stats)


def _file(store: Store, *keys: int) -> FileEntry:
    return files.write(store, "seen", rows.seen(sorted(keys), 1))


def test_a_commit_adds_files_and_tells_its_version(store: Store) -> None:
    entry = _file(store, 1, 2)
    assert delta.commit(store, "seen", app="round", app_version=1, adds=[entry]) == 1
    assert delta.files(store, "seen") == [entry]
    assert delta.files(store, "seen", 0) == []
    assert delta.app_version(store, "seen", "round") == 1


def test_a_commit_with_a_number_happens_once(store: Store) -> None:
    first = delta.commit(store, "seen", app="round", app_version=5, adds=[_file(store, 1)])
    delta.commit(store, "seen", app="other", adds=[_file(store, 2)])
    again = delta.commit(store, "seen", app="round", app_version=5, adds=[_file(store, 3)])
    assert again == first == 1
    assert sum(e.rows for e in delta.files(store, "seen")) == 2


def test_without_a_number_every_commit_counts(store: Store) -> None:
    assert [delta.commit(store, "seen", app="seeds") for _ in range(3)] == [1, 2, 3]
    assert delta.app_version(store, "seen", "seeds") == 3


def test_rivals_all_commit_and_none_is_lost(store: Store) -> None:
    entries = [_file(store, i) for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda e: delta.commit(store, "seen", app="x", adds=[e]), entries))
    assert sorted(made) == [1, 2, 3, 4, 5, 6]
    assert len(delta.files(store, "seen")) == 6


def test_what_was_decided_holds_for_the_version_it_lands_on(store: Store) -> None:
    """A rival commits between decision and commit: we are asked again, on its handle."""
    saw = []

    def decide(head: delta.Head) -> delta.Intent | None:
        saw.append(head.version)
        if len(saw) == 1:
            delta.commit(store, "seen", app="rival")
        return delta.Intent(apps={"ours": 1})

    assert delta.commit_if(store, "seen", decide) == 2
    assert saw == [0, 1]


def test_a_rewrite_replaces_live_files_and_is_refused_when_they_are_gone(store: Store) -> None:
    one, two = _file(store, 1), _file(store, 2)
    delta.commit(store, "seen", app="round", app_version=1, adds=[one, two])
    both = _file(store, 1, 2)
    delta.commit(store, "seen", app="rewrite", adds=[both], removes=[one, two], rewrite=True)
    assert delta.files(store, "seen") == [both]
    with pytest.raises(Conflict, match="rewritten"):
        delta.commit(store, "seen", app="rewrite", adds=[_file(store, 1, 2)], removes=[one], rewrite=True)
    assert delta.files(store, "seen") == [both]
    assert len(delta.files(store, "seen", 1)) == 2


def test_two_rewrites_of_the_same_files_never_double_a_row(store: Store) -> None:
    one, two = _file(store, 1), _file(store, 2)
    delta.commit(store, "seen", app="round", app_version=1, adds=[one, two])

    def rewrite(_: int) -> bool:
        try:
            delta.commit(
                store, "seen", app="rewrite", adds=[_file(store, 1, 2)], removes=[one, two], rewrite=True
            )
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(rewrite, range(3))).count(True) == 1
    assert sum(e.rows for e in delta.files(store, "seen")) == 2


def test_a_tagged_commit_is_found_with_its_metadata(store: Store) -> None:
    delta.commit(store, "seen", app="a", app_version=1, metadata={"told": "one"})
    delta.commit(store, "seen", app="a", app_version=2, metadata={"told": "two"})
    delta.commit(store, "seen", app="b")
    newest = delta.tagged(store, "seen", "a")
    assert newest is not None
    assert (newest.version, newest.apps, newest.metadata["told"]) == (2, {"a": 2}, "two")
    older = delta.tagged(store, "seen", "a", 1)
    assert older is not None
    assert older.metadata["told"] == "one"
    assert delta.tagged(store, "seen", "never") is None


def test_a_table_that_is_not_there_is_told(store: Store) -> None:
    assert not delta.exists(store, "links")
    with pytest.raises(LakeError, match="no table links"):
        delta.version(store, "links")
    with pytest.raises(LakeError, match="version 9"):
        delta.files(store, "seen", 9)


def test_creating_a_table_twice_leaves_it_as_it_is(store: Store) -> None:
    delta.commit(store, "seen", app="x", adds=[_file(store, 1)])
    _seen(store)
    assert len(delta.files(store, "seen")) == 1


@pytest.fixture
def deaf(s3_lake: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A lake on S3 where the answer to the first PUT of every log entry is lost."""
    with proxy.swallowing(s3_endpoint) as endpoint:
        for name, setting in s3.environment(endpoint).items():
            monkeypatch.setenv(name, setting)
        yield connect(s3_lake)


def test_a_commit_whose_answer_was_lost_is_recognised_as_ours(deaf: Store) -> None:
    _seen(deaf)
    one, two = _file(deaf, 1), _file(deaf, 2)
    assert delta.commit(deaf, "seen", app="round", app_version=1, adds=[one]) == 1
    assert delta.commit(deaf, "seen", app="free", adds=[two]) == 2
    assert delta.commit(deaf, "seen", app="free") == 3
    assert delta.version(deaf, "seen") == 3
    assert {e.path for e in delta.files(deaf, "seen")} == {one.path, two.path}


def test_the_secret_is_in_no_file_of_the_lake(s3_lake: str) -> None:
    store = connect(s3_lake)
    _seen(store)
    delta.commit(store, "seen", app="round", app_version=1, adds=[_file(store, 1)], metadata={"who": "me"})
    for stat in store.list(""):
        assert s3.CANARY.encode() not in store.read(stat.path), stat.path
