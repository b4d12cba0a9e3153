"""What a person is told when storage fails: what, where, and what to do about it."""

from __future__ import annotations

import errno
import os

import pytest

from crawl.errors import LakeError
from lake.places import advice


def told(error: BaseException, root: str = "/lake") -> str:
    return str(advice(root, "write seen/x.parquet", error))


def failed(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("error", "todo"),
    [
        (failed(errno.ENOSPC), "free space there and run again, the round resumes"),
        (failed(errno.EDQUOT), "free space"),
        (RuntimeError("Generic LocalFileSystem error: No space left on device"), "free space"),
        (failed(errno.EROFS), "mount it writable"),
        (failed(errno.EACCES), "give this user read and write access"),
        (failed(errno.EPERM), "give this user read and write access"),
        (RuntimeError("AccessDenied: Access Denied"), "give this user read and write access"),
        (failed(errno.ENOENT), "no folder is or can be made there"),
        (FileNotFoundError("lake/x"), "no folder is"),  # as fsspec raises it, without a number
        (failed(errno.ENOTDIR), "a file lies where a folder should be"),
        (failed(errno.EISDIR), "a file lies where a folder should be"),
        (failed(errno.EIO), "check the disk"),
    ],
)
def test_a_failure_is_told_with_its_place_its_reason_and_its_remedy(error: Exception, todo: str) -> None:
    text = told(error)
    assert text.startswith("cannot write seen/x.parquet in /lake: ")
    assert todo in text
    assert type(error).__name__ in text
    assert str(error) in text


def test_what_is_missing_is_told_by_what_was_tried() -> None:
    gone = failed(errno.ENOENT)
    assert "nobody deleted files" in str(advice("/lake", "read seen/x.parquet", gone))
    assert "no bucket is" in str(advice("s3://bucket/lake", "create crawl.toml", gone))


def test_it_is_a_lake_error_that_the_caller_chains() -> None:
    assert isinstance(advice("/lake", "read x", failed(errno.EIO)), LakeError)


@pytest.mark.parametrize(
    ("variables", "endpoint"),
    [
        ({}, "AWS"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "http://127.0.0.1:1"),
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:2"},
            "http://127.0.0.1:2",
        ),
    ],
)
def test_on_s3_the_endpoint_in_force_is_named(
    variables: dict[str, str], endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    text = told(ConnectionError("reset"), "s3://bucket/lake")
    assert f"endpoint ({endpoint})" in text
    assert "credentials" in text


def test_a_librarys_message_is_one_line_without_colours_and_not_endless() -> None:
    text = told(RuntimeError("\x1b[31mfirst\x1b[0m\n\n   second " + "x" * 1000))
    assert "first second x" in text
    assert "\x1b" not in text
    assert len(text) < 500


def test_a_failure_without_words_is_named_by_its_kind() -> None:
    assert "(TimeoutError: TimeoutError)" in told(TimeoutError())
