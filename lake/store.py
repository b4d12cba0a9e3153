"""Where a lake lies: one folder or one bucket prefix. `connect` tells which from the text of its root.

What always holds: what storage does wrong is a `LakeError` that says what to do, told within 15 s when an
endpoint cannot be reached. Credentials are looked up by the S3 libraries in the environment of each process;
they never pass through here, so no object, repr or pickle holds them.
It knows no table and no Delta log; it is the only importer of fsspec and s3fs. Folders: lake.folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyarrow import fs as pafs

from crawl.errors import LakeError, UsageError
from lake.folder import LocalStore
from lake.places import Output, Stat, Store, advice

__all__ = ["LocalStore", "Output", "S3Store", "Stat", "Store", "advice", "connect", "s3_options"]

T = TypeVar("T")

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


def s3_options() -> dict[str, str]:
    """Options for deltalake on S3, made on the spot: endpoint and manners; credentials it looks up itself."""
    endpoint = _endpoint()
    options = {
        "connect_timeout": f"{_CONNECT_TIMEOUT}s",
        "timeout": f"{_READ_TIMEOUT}s",
        "max_retries": "3",
        "retry_timeout": "10s",
    }
    if endpoint:
        options["AWS_ENDPOINT_URL"] = endpoint
        if not _has_region():
            options["AWS_REGION"] = "us-east-1"
    if endpoint.startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


class S3Store:
    """A bucket, with or without a prefix. Built by `connect`; `place` is bucket/prefix."""

    __slots__ = ("_place",)
    is_local: Final = False

    def __init__(self, place: str) -> None:
        self._place = place
        if not any(os.environ.get(name) for name in _CREDENTIALS):
            raise LakeError(
                f"no credentials for s3://{place}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and, for"
                " a server of your own, AWS_ENDPOINT_URL) in the environment of this process"
            )

    @property
    def root(self) -> str:
        """Absolute, without a trailing slash."""
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
        """The fsspec filesystem on which `url` means something."""
        import s3fs

        # One filesystem a process and endpoint, kept by fsspec under arguments that hold no credentials. No
        # listings are cached: leases and claims are decided by what a listing says now.
        fs = s3fs.S3FileSystem(
            use_listings_cache=False,
            default_block_size=1 << 20,
            endpoint_url=_endpoint() or None,  # names the instance that fsspec keeps
            client_kwargs={} if _has_region() else {"region_name": "us-east-1"},
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
        except (
            OSError,
            TimeoutError,
            botocore.exceptions.BotoCoreError,
            botocore.exceptions.ClientError,
        ) as error:
            raise advice(self.root, doing, error) from error

    def read(self, path: str) -> bytes:
        """Whole content. Raises LakeError where there is no such file."""
        data: bytes = self._call(f"read {path}", lambda fs: fs.cat_file(self._at(path)))
        return data

    def get(self, path: str) -> bytes | None:
        """Whole content, or None where there is no such file."""
        try:
            return self.read(path)
        except LakeError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write or replace a file in one step."""
        self._call(f"write {path}", lambda fs: fs.pipe_file(self._at(path), bytes(data)))

    def create(self, path: str, data: bytes) -> bool:
        """Write only if there is no such file; True for the one winner (see `Store.create`)."""
        try:
            self._call(f"create {path}", lambda fs: fs.pipe_file(self._at(path), data, mode="create"))
        except FileExistsError:
            return self.get(path) == data
        except LakeError as error:
            # Two writers at once: S3 may answer the loser 409 instead of 412; then there is an object to see.
            if "Conditional" in str(error) and (there := self.get(path)) is not None:
                return there == data
            raise
        return True

    def exists(self, path: str) -> bool:
        """Is there a file of this name?"""
        found: bool = self._call(f"look for {path}", lambda fs: fs.isfile(self._at(path)))
        return found

    def list(self, prefix: str) -> list[Stat]:
        """All files below a folder, sorted by path."""
        top = self._at(prefix.rstrip("/")) + "/"
        found = self._call(f"list {prefix}", lambda fs: fs.find(top, detail=True))
        skip = len(self._place) + 1
        return sorted(
            (Stat(name[skip:], int(info["size"])) for name, info in found.items() if name.startswith(top)),
            key=lambda stat: stat.path,
        )

    def names(self) -> frozenset[str]:
        """Names directly below the root; none where nothing lies."""

        def listed(fs: Any) -> frozenset[str]:
            try:
                found = fs.ls(self._place, detail=False)
            except FileNotFoundError:
                return frozenset()
            return frozenset(name.rstrip("/").rpartition("/")[2] for name in found if name != self._place)

        return self._call("look around", listed)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; those not there are no error."""
        names = [self._at(path) for path in paths]
        if names:
            self._call("delete files", lambda fs: fs.rm(names))  # a thousand a request

    def drop_folder(self, path: str) -> None:
        """Nothing: a bucket has no folders."""

    def open_read(self, path: str) -> pa.NativeFile:
        """Random access, for Parquet. Raises LakeError where there is no such file."""

        def opened(fs: Any) -> pa.NativeFile:
            handler = pafs.FSSpecHandler(fs)  # type: ignore[abstract]  # not abstract: its stub is
            return pafs.PyFileSystem(handler).open_input_file(self._at(path))

        return self._call(f"read {path}", opened)

    def open_write(self, path: str) -> Output:
        """Stream a large file."""
        return _S3Output(self, path)

    def url(self, path: str = "") -> str:
        """What DuckDB, Polars or deltalake call this file."""
        return f"s3://{self._at(path)}"


class _S3Output:
    """A multipart upload: the object appears when it is completed."""

    __slots__ = ("_file", "_path", "_store", "sink")

    def __init__(self, store: S3Store, path: str) -> None:
        self._store = store
        self._path = path
        place = store._at(path)
        self._file: Any = store._call(f"write {path}", lambda fs: fs.open(place, "wb", block_size=16 << 20))
        self.sink: pa.NativeFile = pa.PythonFile(self._file, mode="w")

    def commit(self) -> None:
        self._store._call(f"write {self._path}", lambda _: self._file.close())

    def abort(self) -> None:
        try:
            self._store._call(f"drop {self._path}", lambda _: self._file.discard())
        except LakeError:
            pass  # an upload never completed shows no object; the bucket's life-cycle rule ends it
        self._file.closed = True


def _endpoint() -> str:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def _has_region() -> bool:
    return bool(os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"))
