"""What any test may ask for. No test reaches beyond loopback, and none depends on the day it runs."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The folder that holds `crawl`, `lake`, `cycles` and `tests`."""
    return ROOT


@pytest.fixture(scope="session")
def cases() -> Path:
    """Outside cases (URLs, robots files, pages): CRAWL_CASES, else ../shared/cases beside the checkout.

    They are other people's data and not part of this repository: without them the test is skipped.
    """
    folder = Path(os.environ.get("CRAWL_CASES") or ROOT.parent / "shared" / "cases")
    if not folder.is_dir():
        pytest.skip(f"no outside cases in {folder}: set CRAWL_CASES to the folder that holds them")
    return folder
