"""The scores of outside cases, and the document made of them when a run has completed them."""

import os

import pytest

from tests.conformance import report
from tests.conftest import ROOT, cases_folder

_SCORES = report.Scores(ROOT / ".conformance")


@pytest.fixture(scope="session")
def scores() -> report.Scores:
    """Where each file of cases leaves its score."""
    return _SCORES


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes `docs/conformance.md` when every file of cases has its score."""
    cases = cases_folder()
    if not cases.is_dir() or report.missing(cases, _SCORES):
        return
    text = report.render(_SCORES.all())
    document = ROOT / "docs" / "conformance.md"
    if not document.exists() or document.read_text(encoding="utf-8") != text:
        fresh = document.with_suffix(f".{os.getpid()}.new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(document)
