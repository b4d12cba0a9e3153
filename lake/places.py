"""What `lake` asks of storage, and what it says when storage fails.

A store is its root: it pickles, compares and prints as that alone. Paths are relative to the root and
"/"-separated; a reader sees a file whole or not at all; `create` has one winner. `lake.store.connect` makes
one.
This module touches no storage itself.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from crawl.errors import LakeError

__all__ = ["TEMPORARY", "Output", "Stat", "Store", "advice"]

#: files being written lie here until they are whole; whatever a killed process left may be deleted any time
TEMPORARY: Final = "_work/tmp"


@dataclass(frozen=True, slots=True)
class Stat:
    """A file: path relative to the root, size in bytes."""

    path: str
    size: int


class Output(Protocol):
    """A file being written: nothing is visible before `commit`, nothing is left after `abort`."""

    sink: pa.NativeFile

    def commit(self) -> None:
        """Make the file visible under its name."""

    def abort(self) -> None:
        """Forget it. Never raises."""


class Store(Protocol):
    """What `lake` needs of storage. All `path`s are relative to `root`."""

    @property
    def root(self) -> str:
        """Absolute folder, or s3://bucket/prefix, without a trailing slash."""

    @property
    def is_local(self) -> bool:
        """A folder: files can be appended to and locked."""

    def read(self, path: str) -> bytes:
        """Whole content. Raises LakeError where there is no such file."""

    def get(self, path: str) -> bytes | None:
        """Whole content, or None where there is no such file."""

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write or replace a file in one step."""

    def create(self, path: str, data: bytes) -> bool:
        """Write only if there is no such file; True for the one winner.

        On S3 an answer can be lost and the retry refused by our own object: an object that holds exactly
        `data` counts as ours. Data that decides between rivals must therefore carry something of its writer.
        """

    def exists(self, path: str) -> bool:
        """Is there a file of this name?"""

    def list(self, prefix: str) -> list[Stat]:
        """All files below a folder, sorted by path; none for a folder that is not there."""

    def names(self) -> frozenset[str]:
        """Names directly below the root, of files and folders; none where there is no such folder."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; those not there are no error."""

    def drop_folder(self, path: str) -> None:
        """Remove a folder in which nothing but folders is left; nothing to do where storage has none."""

    def open_read(self, path: str) -> pa.NativeFile:
        """Random access, for Parquet. Raises LakeError where there is no such file."""

    def open_write(self, path: str) -> Output:
        """Stream a large file."""

    def url(self, path: str = "") -> str:
        """What DuckDB, Polars or deltalake call this file."""

    def filesystem(self) -> Any:
        """The fsspec filesystem on which `url` means something; None for a folder."""


#: work area of a round that is not sealed yet
_ROUND: Final = re.compile(r"_work/round-\d+")


def advice(root: str, doing: str, error: BaseException) -> LakeError:
    """The LakeError for what storage raised: what failed, where, why, what to do."""
    text = _plain(str(error)) or type(error).__name__
    number = error.errno if isinstance(error, OSError) else None
    low = text.lower()
    if isinstance(error, pa.ArrowInvalid):
        todo = "it is damaged: restore it from a copy"
        if folder := _ROUND.search(doing):
            todo += f", or move {folder[0]} away: what that round has fetched so far is then fetched again"
    elif number in {errno.ENOSPC, errno.EDQUOT} or "no space left" in low or "quota exceeded" in low:
        todo = "the disk is full: free space there and run again, the round resumes where it stopped"
    elif number == errno.EROFS or "read-only file system" in low:
        todo = "it is mounted read-only: mount it writable, or copy the lake to a place that is"
    elif number in {errno.EACCES, errno.EPERM} or isinstance(error, PermissionError) or "denied" in low:
        todo = "permission denied: give this user read and write access there"
    elif number == errno.ENOENT or isinstance(error, FileNotFoundError):
        makes = doing.startswith(("create ", "write "))
        what = "bucket" if root.startswith("s3://") else "folder"
        todo = (
            f"no {what} is or can be made there: choose another place"
            if makes
            else "it is not there: is this the right lake, and has nobody deleted files from it?"
        )
    elif number in {errno.ENOTDIR, errno.EISDIR}:
        todo = "a file lies where a folder should be, or the other way round: choose another place"
    elif root.startswith("s3://"):
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "AWS"
        todo = f"check that endpoint ({endpoint}), bucket and credentials are right and reachable; run again"
    else:
        todo = "check the disk and run again"
    return LakeError(f"cannot {doing} in {root}: {todo} ({type(error).__name__}: {text[:300]})")


def _plain(text: str) -> str:
    """A message of a library on one line, without its colours."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())
