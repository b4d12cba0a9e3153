"""The score of outside cases claims no more and no less than what holds."""

import json
from pathlib import Path

import pytest

from tests.conformance.report import Apart, Row, Scores, missing, render


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cases" / "sums").mkdir(parents=True)
    rows = [{"id": f"r{n}", "n": n, "twice": 2 * n if n != 3 else 7} for n in range(5)]
    text = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "cases" / "sums" / "twice.jsonl").write_text(text)
    return tmp_path


def check(row: Row) -> str | Apart | None:
    if row["n"] == 4:
        return Apart("no fours here")
    got = row["n"] * 2
    return None if got == row["twice"] else f"{got}, not {row['twice']}"


def test_a_row_that_is_not_met_fails_and_leaves_no_score(folder: Path) -> None:
    scores = Scores(folder / "scores")
    with pytest.raises(AssertionError, match=r"1 of 5 rows are not met\n  r3: 6, not 7"):
        scores.run(folder / "cases", "sums/twice.jsonl", check, through="sum")
    assert scores.all() == []
    assert missing(folder / "cases", scores) == ["sums/twice.jsonl"]


def test_an_exception_has_its_reason_in_the_document(folder: Path) -> None:
    scores = Scores(folder / "scores")
    scores.run(folder / "cases", "sums/twice.jsonl", check, {"r3": "seven is a typo"}, through="sum")
    assert missing(folder / "cases", scores) == []
    document = render(scores.all())
    assert "| sums/twice | `sum` | 5 | 3 | 1 | 1 |" in document
    assert "- `r3`: seven is a typo" in document
    assert "- apart, 1: no fours here" in document


def test_an_exception_that_is_met_by_now_fails(folder: Path) -> None:
    with pytest.raises(AssertionError, match="no row needs"):
        Scores(folder / "scores").run(
            folder / "cases", "sums/twice.jsonl", check, {"r3": "a typo", "r1": "?"}, through="sum"
        )


def test_a_check_that_raises_is_a_row_that_is_not_met(folder: Path) -> None:
    def broken(row: Row) -> None:
        raise ValueError("out of order")

    with pytest.raises(AssertionError, match="ValueError: out of order"):
        Scores(folder / "scores").run(folder / "cases", "sums/twice.jsonl", broken, through="sum")
