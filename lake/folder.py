"""A lake in a folder.

What always holds: a file is written under `TEMPORARY`, then renamed or linked to its name, so that nothing
half-written is ever seen under it, whatever kills the process; a full or read-only disk is a LakeError.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa

from lake.places import TEMPORARY, Output, Stat, advice

__all__ = ["LocalStore"]

T = TypeVar("T")


class LocalStore:
    """A folder. Built by `connect`."""

    __slots__ = ("_root",)
    is_local: Final = True

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/") or "/"

    @property
    def root(self) -> str:
        """Absolute, without a trailing slash."""
        return self._root

    def __repr__(self) -> str:
        return f"connect({self._root!r})"

    def __reduce__(self) -> tuple[type[LocalStore], tuple[str]]:
        return LocalStore, (self._root,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and other._root == self._root

    def __hash__(self) -> int:
        return hash(self._root)

    def _at(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}" if path else self._root

    @contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise advice(self._root, doing, error) from error

    def read(self, path: str) -> bytes:
        """Whole content. Raises LakeError where there is no such file."""
        with self._told(f"read {path}"), open(self._at(path), "rb") as file:
            return file.read()

    def get(self, path: str) -> bytes | None:
        """Whole content, or None where there is no such file."""
        with self._told(f"read {path}"):
            try:
                with open(self._at(path), "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write or replace a file in one step."""
        with self._told(f"write {path}"):
            temporary = self._temporary(data)
            self._replace(temporary, path)

    def create(self, path: str, data: bytes) -> bool:
        """Write only if there is no such file; True for the one winner (see `Store.create`)."""
        with self._told(f"create {path}"):
            temporary = self._temporary(data)
            try:
                _in_folder(self._at(path), lambda target: os.link(temporary, target))
            except FileExistsError:
                return False
            finally:
                _forget(temporary)
            return True

    def exists(self, path: str) -> bool:
        """Is there a file of this name?"""
        with self._told(f"look for {path}"):
            return os.path.isfile(self._at(path))

    def list(self, prefix: str) -> list[Stat]:
        """All files below a folder, sorted by path."""
        top = self._at(prefix.rstrip("/"))
        skip = len(self._root.rstrip("/")) + 1
        found: list[Stat] = []
        folders = [top]
        with self._told(f"list {prefix}"):
            while folders:
                try:
                    with os.scandir(folders.pop()) as entries:
                        for entry in entries:
                            if entry.is_dir(follow_symlinks=False):
                                folders.append(entry.path)
                            elif (size := _size(entry)) is not None:
                                found.append(Stat(entry.path[skip:], size))
                except (FileNotFoundError, NotADirectoryError):
                    continue
        return sorted(found, key=lambda stat: stat.path)

    def names(self) -> frozenset[str]:
        """Names directly below the root; none where there is no such folder."""
        with self._told("look around"):
            try:
                return frozenset(os.listdir(self._root))
            except FileNotFoundError:
                return frozenset()

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; those not there are no error."""
        for path in paths:
            with self._told(f"delete {path}"):
                Path(self._at(path)).unlink(missing_ok=True)

    def drop_folder(self, path: str) -> None:
        """Remove a folder in which nothing but folders is left."""
        for folder, _, _ in os.walk(self._at(path), topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                return  # somebody put something there, or it is gone: either way not ours to remove

    def open_read(self, path: str) -> pa.NativeFile:
        """Random access, for Parquet. Raises LakeError where there is no such file."""
        with self._told(f"read {path}"):
            return pa.OSFile(self._at(path), "rb")

    def open_write(self, path: str) -> Output:
        """Stream a large file."""
        return _LocalOutput(self, path)

    def url(self, path: str = "") -> str:
        """What DuckDB, Polars or deltalake call this file."""
        return self._at(path)

    def filesystem(self) -> Any:
        """None: a folder's `url`s are plain paths."""
        return None

    def _temporary_name(self) -> str:
        return self._at(f"{TEMPORARY}/{secrets.token_hex(12)}")

    def _temporary(self, data: bytes | memoryview) -> str:
        name = self._temporary_name()
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            descriptor = _in_folder(name, lambda target: os.open(target, flags, 0o666))
            with open(descriptor, "wb", buffering=0) as file:
                _write_all(file.fileno(), data)
        except OSError:
            _forget(name)
            raise
        return name

    def _replace(self, temporary: str, path: str) -> None:
        try:
            _in_folder(self._at(path), lambda target: os.replace(temporary, target))
        except OSError:
            _forget(temporary)
            raise


class _LocalOutput:
    """A temporary file that is renamed when whole."""

    __slots__ = ("_name", "_path", "_store", "sink")

    def __init__(self, store: LocalStore, path: str) -> None:
        self._store = store
        self._path = path
        self._name = store._temporary_name()
        with store._told(f"write {path}"):
            self.sink: pa.NativeFile = _in_folder(self._name, lambda target: pa.OSFile(target, "wb"))

    def commit(self) -> None:
        with self._store._told(f"write {self._path}"):
            self.sink.close()
            self._store._replace(self._name, self._path)

    def abort(self) -> None:
        try:
            self.sink.close()
        except OSError:
            pass  # the disk is full, say: what was written goes away in any case
        _forget(self._name)


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return None


def _in_folder(target: str, work: Callable[[str], T]) -> T:
    """`work(target)`; where the folder is missing, it is made first."""
    try:
        return work(target)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        return work(target)


def _forget(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # gone already, or the disk refuses everything: what lies in TEMPORARY is swept later


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(descriptor, view) :]
