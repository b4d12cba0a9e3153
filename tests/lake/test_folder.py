"""A lake in a folder: whole files or none, whatever interrupts a write (both kinds of stores: test_store)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crawl.errors import LakeError
from lake import folder
from lake.folder import LocalStore
from lake.places import TEMPORARY


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def files(store: LocalStore) -> list[str]:
    return [stat.path for stat in store.list("")]


def full_after(limit: int) -> Callable[[int, memoryview], int]:
    """`os.write` of a disk with room for so many bytes, which takes what fits first."""
    real, left = os.write, limit

    def write(descriptor: int, data: memoryview) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = real(descriptor, data[:left])
        left -= taken
        return taken

    return write


@pytest.mark.parametrize("room", [0, 5])
@pytest.mark.parametrize("how", ["write", "create"])
def test_a_disk_that_fills_up_in_the_middle_leaves_what_was_there(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, how: str, room: int
) -> None:
    store.write("there", b"before")
    monkeypatch.setattr(folder.os, "write", full_after(room))
    with pytest.raises(LakeError, match="disk is full"):
        getattr(store, how)("new/file", b"0123456789")
    with pytest.raises(LakeError, match="disk is full"):
        store.write("there", b"0123456789")
    monkeypatch.undo()
    assert ["there"] == files(store)
    assert b"before" == store.read("there")


def test_a_write_that_takes_part_of_the_bytes_goes_on(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(folder.os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    store.write("file", bytes(range(100)))
    assert store.create("other", memoryview(b"0123456789"))
    monkeypatch.undo()
    assert bytes(range(100)) == store.read("file")
    assert b"0123456789" == store.read("other")


def test_whoever_has_a_file_open_reads_it_whole_while_it_is_replaced(store: LocalStore) -> None:
    store.write("file", b"old " * 1000)
    with store.open_read("file") as reader:
        head = reader.read(4)
        store.write("file", b"new")
        assert b"old " * 1000 == head + reader.read()
    assert b"new" == store.read("file")


def test_a_creator_that_comes_second_changes_and_leaves_nothing(store: LocalStore) -> None:
    assert store.create("claim", b"first")
    assert not store.create("claim", b"first")  # here, unlike on S3, one link tells for sure who was first
    assert not store.create("claim", b"second")
    assert ["claim"] == files(store)
    assert b"first" == store.read("claim")


def test_folders_are_made_when_needed_by_many_at_once(store: LocalStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.write(f"a/b/c{n % 4}/f{n}", b"%d" % n), range(64)))
    assert 64 == len(store.list("a"))
    assert [b"%d" % n for n in range(64)] == [store.read(f"a/b/c{n % 4}/f{n}") for n in range(64)]


def test_a_streamed_file_that_is_given_up_leaves_nothing(store: LocalStore) -> None:
    output = store.open_write("t/file")
    output.sink.write(b"half")
    assert [True] == [path.startswith(TEMPORARY) for path in files(store)]
    output.abort()
    output.abort()  # as often as one likes
    assert [] == files(store)


def test_a_streamed_file_that_cannot_take_its_name_leaves_nothing(store: LocalStore) -> None:
    output = store.open_write("t/file")
    store.write("t", b"in the way")
    with pytest.raises(LakeError, match="a file lies where a folder should be"):
        output.commit()
    assert ["t"] == files(store)


def test_a_listing_is_of_one_folder_not_of_names_that_begin_alike(store: LocalStore) -> None:
    for path in ("a/1", "a/b/2", "ab/3", "a.json"):
        store.write(path, b"x")
    assert ["a/1", "a/b/2"] == [stat.path for stat in store.list("a")]
    assert ["a.json", "a/1", "a/b/2", "ab/3"] == files(store)
    assert [] == store.list("a/1")  # a file


def test_a_file_that_vanishes_while_it_is_listed_is_not_there(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("a/1", "a/2"):
        store.write(path, b"x")
    real = folder._size

    def late(entry: os.DirEntry[str]) -> int | None:
        if entry.name == "1":
            os.unlink(entry.path)
        return real(entry)

    monkeypatch.setattr(folder, "_size", late)
    assert ["a/2"] == [stat.path for stat in store.list("a")]


def test_a_folder_is_not_deleted_as_a_file(store: LocalStore) -> None:
    store.write("a/1", b"x")
    with pytest.raises(LakeError, match="cannot delete a in "):
        store.delete(["a"])
    assert ["a/1"] == files(store)


def test_what_must_not_be_read_is_told(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(LakeError, match="cannot read loop in "):
        store.get("loop")


@pytest.mark.parametrize(("root", "place"), [("/", "/x/y"), ("/lake/", "/lake/x/y")])
def test_paths_are_joined_by_one_slash(root: str, place: str) -> None:
    assert place == LocalStore(root).url("x/y")
    assert LocalStore(root).root == LocalStore(root).url()
