"""Where a lake lies: one folder or one bucket prefix, and the few verbs the rest of `lake` needs of it.

What always holds: paths are relative to the root and "/"-separated; a reader sees a file whole or not at all
(written beside, then renamed; on S3 an object appears when its upload ends); `create` has one winner; what storage
does wrong is a `LakeError` that says what to do. A store is its root: it pickles, compares and prints as that alone.
Credentials are looked up by the S3 libraries in the environment of each process and never pass through here.
It knows no table and no Delta log; it is the only importer of fsspec and s3fs.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa
from pyarrow import fs as pafs

from crawl.errors import LakeError, UsageError

__all__ = ["LocalStore", "Output", "S3Store", "Stat", "Store", "advice", "connect", "s3_options"]

T = TypeVar("T")

#: files being written lie here until they are whole; whatever a killed process left may be deleted any time
TEMPORARY: Final = "_work/tmp"

#: where the S3 libraries find credentials in the environment; without one they would ask a metadata service
_CREDENTIALS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
#: seconds; an unreachable endpoint must be told within 15 s, retries included
_CONNECT_TIMEOUT: Final = 3
_READ_TIMEOUT: Final = 30


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

        On S3 an answer can be lost and the retry refused by our own object: an object that holds exactly `data`
        counts as ours. Data that decides between rivals must therefore carry something of its writer.
        """

    def exists(self, path: str) -> bool:
        """Is there a file of this name?"""

    def list(self, prefix: str) -> list[Stat]:
        """All files below a folder, sorted by path; none for a folder that is not there."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; those not there are no error."""

    def open_read(self, path: str) -> pa.NativeFile:
        """Random access, for Parquet. Raises LakeError where there is no such file."""

    def open_write(self, path: str) -> Output:
        """Stream a large file."""

    def url(self, path: str = "") -> str:
        """What DuckDB, Polars or deltalake call this file."""

    def filesystem(self) -> Any:
        """The fsspec filesystem on which `url` means something."""


def connect(root: str | os.PathLike[str]) -> Store:
    """A store for a folder or `s3://bucket/prefix`. Nothing is read or made yet.

    Raises UsageError for another scheme, LakeError for S3 without credentials in the environment.
    """
    text = os.fspath(root)
    if text.startswith("s3://"):
        bucket = text[5:].strip("/")
        if not bucket:
            raise UsageError(f"{text!r} names no bucket: write s3://bucket/prefix")
        return S3Store(bucket)
    text = text.removeprefix("file://")
    if "://" in text:
        raise UsageError(f"{text!r}: a lake is a folder or s3://bucket/prefix")
    return LocalStore(str(Path(text).expanduser().absolute()))


def advice(root: str, doing: str, error: BaseException) -> LakeError:
    """The LakeError for what storage raised: what failed, where, why, what to do."""
    text = str(error) or type(error).__name__
    number = error.errno if isinstance(error, OSError) else None
    low = text.lower()
    if number in {errno.ENOSPC, errno.EDQUOT} or "no space left" in low or "quota exceeded" in low:
        todo = "the disk is full: free space there and run again, the round resumes where it stopped"
    elif number == errno.EROFS or "read-only file system" in low:
        todo = "it is mounted read-only: mount it writable, or copy the lake to a place that is"
    elif number in {errno.EACCES, errno.EPERM} or isinstance(error, PermissionError) or "denied" in low:
        todo = "permission denied: give this user read and write access there"
    elif number == errno.ENOENT or isinstance(error, FileNotFoundError):
        todo = "it is not there: is this the right lake, and has nobody deleted files from it?"
    elif number in {errno.ENOTDIR, errno.EISDIR}:
        todo = "a file lies where a folder should be, or the other way round: choose another place"
    elif root.startswith("s3://"):
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "AWS"
        todo = f"check that the endpoint ({endpoint}), bucket and credentials are right and reachable, and run again"
    else:
        todo = "check the disk and run again"
    return LakeError(f"cannot {doing} in {root}: {todo} ({type(error).__name__}: {text[:300]})")


def s3_options() -> dict[str, str]:
    """Options for deltalake on S3, made on the spot from the environment: endpoint manners, no credentials."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options = {
        "connect_timeout": f"{_CONNECT_TIMEOUT}s",
        "timeout": f"{_READ_TIMEOUT}s",
        "max_retries": "3",
        "retry_timeout": "10s",
    }
    if endpoint:
        options["AWS_ENDPOINT_URL"] = endpoint
        if not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
            options["AWS_REGION"] = "us-east-1"
    if endpoint.startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


class LocalStore:
    """A folder. Built by `connect`."""

    __slots__ = ("_root",)
    is_local: Final = True

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/") or "/"

    @property
    def root(self) -> str:
        return self._root

    def __repr__(self) -> str:
        return f"connect({self._root!r})"

    def __reduce__(self) -> tuple[Callable[[str], Store], tuple[str]]:
        return connect, (self._root,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and other._root == self._root

    def __hash__(self) -> int:
        return hash(self._root)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    @contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise advice(self._root, doing, error) from error

    def read(self, path: str) -> bytes:
        with self._told(f"read {path}"), open(self._at(path), "rb") as file:
            return file.read()

    def get(self, path: str) -> bytes | None:
        with self._told(f"read {path}"):
            try:
                with open(self._at(path), "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def write(self, path: str, data: bytes | memoryview) -> None:
        with self._told(f"write {path}"):
            temporary = self._temporary(data)
            self._replace(temporary, path)

    def create(self, path: str, data: bytes) -> bool:
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
        with self._told(f"look for {path}"):
            return os.path.isfile(self._at(path))

    def list(self, prefix: str) -> list[Stat]:
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

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            with self._told(f"delete {path}"):
                Path(self._at(path)).unlink(missing_ok=True)

    def open_read(self, path: str) -> pa.NativeFile:
        with self._told(f"read {path}"):
            return pa.OSFile(self._at(path), "rb")

    def open_write(self, path: str) -> Output:
        return _LocalOutput(self, path)

    def url(self, path: str = "") -> str:
        return self._at(path)

    def filesystem(self) -> Any:
        import fsspec

        return fsspec.filesystem("file")

    def _temporary_name(self) -> str:
        return self._at(f"{TEMPORARY}/{secrets.token_hex(12)}")

    def _temporary(self, data: bytes | memoryview) -> str:
        name = self._temporary_name()
        try:
            descriptor = _in_folder(name, lambda target: os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
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


class S3Store:
    """A bucket, with or without a prefix. Built by `connect`; `place` is bucket/prefix."""

    __slots__ = ("_place",)
    is_local: Final = False

    def __init__(self, place: str) -> None:
        self._place = place
        if not any(os.environ.get(name) for name in _CREDENTIALS):
            raise LakeError(
                f"no credentials for s3://{place}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and, for a server"
                " of your own, AWS_ENDPOINT_URL) in the environment of this process"
            )

    @property
    def root(self) -> str:
        return f"s3://{self._place}"

    def __repr__(self) -> str:
        return f"connect({self.root!r})"

    def __reduce__(self) -> tuple[Callable[[str], Store], tuple[str]]:
        return connect, (self.root,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, S3Store) and other._place == self._place

    def __hash__(self) -> int:
        return hash(self._place)

    def _at(self, path: str) -> str:
        return f"{self._place}/{path}" if path else self._place

    def filesystem(self) -> Any:
        import s3fs

        # One filesystem a process, kept by fsspec under arguments that hold no credentials. No listings are cached:
        # leases and claims are decided by what a listing says now.
        fs = s3fs.S3FileSystem(
            use_listings_cache=False,
            default_block_size=1 << 20,
            client_kwargs={} if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") else _REGION,
            config_kwargs={
                "connect_timeout": _CONNECT_TIMEOUT,
                "read_timeout": _READ_TIMEOUT,
                "retries": {"max_attempts": 1},
                "max_pool_connections": 32,
            },
        )
        fs.retries = 2
        return fs

    def _call(self, doing: str, work: Callable[[Any], T]) -> T:
        import botocore.exceptions

        try:
            return work(self.filesystem())
        except FileExistsError:
            raise
        except (OSError, TimeoutError, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
            raise advice(self.root, doing, error) from error

    def read(self, path: str) -> bytes:
        data: bytes = self._call(f"read {path}", lambda fs: fs.cat_file(self._at(path)))
        return data

    def get(self, path: str) -> bytes | None:
        try:
            return self.read(path)
        except LakeError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def write(self, path: str, data: bytes | memoryview) -> None:
        self._call(f"write {path}", lambda fs: fs.pipe_file(self._at(path), bytes(data)))

    def create(self, path: str, data: bytes) -> bool:
        try:
            self._call(f"create {path}", lambda fs: fs.pipe_file(self._at(path), data, mode="create"))
        except FileExistsError:
            return self.get(path) == data
        except LakeError as error:
            # Two writers at once: S3 may answer the loser 409 instead of 412 (and then there is an object to look at).
            if "Conditional" in str(error) and (there := self.get(path)) is not None:
                return there == data
            raise
        return True

    def exists(self, path: str) -> bool:
        found: bool = self._call(f"look for {path}", lambda fs: fs.isfile(self._at(path)))
        return found

    def list(self, prefix: str) -> list[Stat]:
        top = self._at(prefix.rstrip("/")) + "/"
        found = self._call(f"list {prefix}", lambda fs: fs.find(top, detail=True))
        skip = len(self._place) + 1
        return sorted(
            (Stat(name[skip:], int(info["size"])) for name, info in found.items() if name.startswith(top)),
            key=lambda stat: stat.path,
        )

    def delete(self, paths: Iterable[str]) -> None:
        names = [self._at(path) for path in paths]
        if names:
            self._call("delete files", lambda fs: fs.rm(names))  # a thousand a request

    def open_read(self, path: str) -> pa.NativeFile:
        def opened(fs: Any) -> pa.NativeFile:
            return pafs.PyFileSystem(pafs.FSSpecHandler(fs)).open_input_file(self._at(path))

        return self._call(f"read {path}", opened)

    def open_write(self, path: str) -> Output:
        return _S3Output(self, path)

    def url(self, path: str = "") -> str:
        return f"s3://{self._at(path)}"


class _S3Output:
    """A multipart upload: the object appears when it is completed."""

    __slots__ = ("_file", "_path", "_store", "sink")

    def __init__(self, store: S3Store, path: str) -> None:
        self._store = store
        self._path = path
        self._file: Any = store._call(f"write {path}", lambda fs: fs.open(store._at(path), "wb", block_size=16 << 20))
        self.sink: pa.NativeFile = pa.PythonFile(self._file, mode="w")

    def commit(self) -> None:
        self._store._call(f"write {self._path}", lambda _: self._file.close())

    def abort(self) -> None:
        try:
            self._store._call(f"drop {self._path}", lambda _: self._file.discard())
        except LakeError:
            pass  # an upload never completed shows no object; the bucket's life-cycle rule ends it
        self._file.closed = True


_REGION: Final = {"region_name": "us-east-1"}


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return None


def _in_folder(target: str, work: Callable[[str], T]) -> T:
    """`work(target)`; where the folder is missing, it is made first (asking before each file would cost a call)."""
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
