"""What any test may ask for. No test reaches beyond loopback, and none depends on the day it runs."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import s3

# How long one example takes says more of the machine than of the code: a busy one must not fail a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent


def cases_folder() -> Path:
    """Where outside cases are, if they are there."""
    return Path(os.environ.get("CRAWL_CASES") or ROOT.parent / "shared" / "cases")


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The folder that holds `crawl`, `lake`, `cycles` and `tests`."""
    return ROOT


@pytest.fixture(scope="session")
def cases() -> Path:
    """Outside cases (URLs, robots files, pages): CRAWL_CASES, else ../shared/cases beside the checkout.

    They are other people's data and not part of this repository: without them the test is skipped.
    """
    folder = cases_folder()
    if not folder.is_dir():
        pytest.skip(f"no outside cases in {folder}: set CRAWL_CASES to the folder that holds them")
    return folder


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """Endpoint of an S3 server on loopback, one for all tests."""
    with s3.serve() as endpoint:
        yield endpoint


@pytest.fixture
def s3_lake(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Root of an empty place in a new bucket; the environment of this process has the credentials for it."""
    for name, value in s3.environment(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    bucket = f"b{secrets.token_hex(6)}"
    s3.make_bucket(s3_endpoint, bucket)
    return f"s3://{bucket}/lake"


@pytest.fixture(scope="session")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Root of a lake that the command line crawled: a small web, three rounds, the last nine days later."""
    from tests.crawls import crawl_small_web

    return crawl_small_web(tmp_path_factory.mktemp("crawled") / "lake")
