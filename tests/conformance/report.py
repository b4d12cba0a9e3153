"""Runs outside cases file by file, and keeps the score that `docs/conformance.md` shows.

A test module has one test per file of cases:

    EXCEPTIONS = {"row-id": "why the right answer is another one here"}

    def test_addresses(cases: Path, scores: Scores) -> None:
        scores.run(cases, "url/normalize.jsonl", check, EXCEPTIONS, through="crawl.url.key_form")

`check(row)` gives None where the row is met, `Apart(reason)` where it asks for something that this crawler
does not do at all, and otherwise a text that says what came out instead. Raising counts as not met. A row
that is not met and is no exception fails the test, and so does an exception that is met by now: the document
never claims more or less than what holds.

Each run of a file leaves its score in `.conformance/`; when every file of cases has one, the document is
written anew. The rows themselves are other people's data and stay where they are: only their ids are named.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["Apart", "Row", "Scores", "missing", "render", "rows"]

Row = Mapping[str, Any]

#: how many rows that are not met a failure shows
_SHOWN: Final = 20
_HEAD: Final = """# Conformance

Outside cases: facts (an input and its right answer) from public test suites and standards, run row by row
through the public functions or over real sockets by `make test`, which writes this page. *Apart* are rows
that ask for something this crawler does not do. Every exception has its reason below.

| cases | through | rows | passed | exceptions | apart |
|---|---|---:|---:|---:|---:|
"""


@dataclass(frozen=True, slots=True)
class Apart:
    """What `check` gives for a row that does not apply."""

    reason: str


Check = Callable[[Row], "str | Apart | None"]


def rows(cases: Path, name: str) -> Iterator[Row]:
    """The rows of one file, each with an `id` (of its place, where it has none of its own)."""
    with (cases / name).open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                row = json.loads(line)
                row.setdefault("id", f"line-{number}")
                yield row


class Scores:
    """Where scores are kept: one JSON file per file of cases."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(
        self,
        cases: Path,
        name: str,
        check: Check,
        exceptions: Mapping[str, str] | None = None,
        *,
        through: str,
    ) -> None:
        """Checks every row of `name` and keeps the score. Raises AssertionError as the module tells.

        `through`: what the rows were run through, as the document shows it.
        """
        allowed = exceptions or {}
        met, apart, failed = 0, Counter[str](), {}
        for row in rows(cases, name):
            found = _checked(check, row)
            if found is None:
                met += 1
            elif isinstance(found, Apart):
                apart[found.reason] += 1
            else:
                failed[str(row["id"])] = found
        unexplained = {row: what for row, what in failed.items() if row not in allowed}
        stale = sorted(set(allowed) - set(failed))
        score = {
            "name": name,
            "through": through,
            "rows": met + sum(apart.values()) + len(failed),
            "met": met,
            "exceptions": {row: allowed[row] for row in sorted(failed) if row in allowed},
            "apart": dict(sorted(apart.items())),
        }
        if not unexplained and not stale:
            self._keep(name, score)
        shown = "\n".join(f"  {row}: {what}" for row, what in list(unexplained.items())[:_SHOWN])
        assert not unexplained, f"{name}: {len(unexplained)} of {score['rows']} rows are not met\n{shown}"
        assert not stale, f"{name}: exceptions that no row needs (any more): {stale}"

    def _keep(self, name: str, score: Mapping[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / (name.replace("/", "-") + ".json")
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(score, indent=1), encoding="utf-8")
        fresh.replace(path)

    def all(self) -> list[dict[str, Any]]:
        """Every score kept, by name."""
        found = [json.loads(path.read_text(encoding="utf-8")) for path in self._folder.glob("*.json")]
        return sorted(found, key=lambda score: str(score["name"]))


def _checked(check: Check, row: Row) -> str | Apart | None:
    try:
        return check(row)
    except Exception as error:  # noqa: BLE001 - whatever it is, the row is not met
        return f"{type(error).__name__}: {error}"


def missing(cases: Path, scores: Scores) -> list[str]:
    """Files of cases that have no score yet."""
    names = {path.relative_to(cases).as_posix() for path in cases.rglob("*.jsonl")}
    return sorted(names - {score["name"] for score in scores.all()})


def render(scores: list[dict[str, Any]]) -> str:
    """The document."""
    table = "".join(
        f"| {score['name'].removesuffix('.jsonl')} | `{score['through']}` | {score['rows']} | {score['met']}"
        f" | {len(score['exceptions'])} | {sum(score['apart'].values())} |\n"
        for score in scores
    )
    parts = [_HEAD + table]
    for score in scores:
        lines = [
            f"- {', '.join(f'`{row}`' for row in sorted(ids))}: {reason}"
            for reason, ids in sorted(_by_reason(score["exceptions"]).items())
        ]
        lines += [f"- apart, {count}: {reason}" for reason, count in score["apart"].items()]
        if lines:
            parts.append(f"\n## {score['name'].removesuffix('.jsonl')}\n\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def _by_reason(exceptions: Mapping[str, str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for row, reason in exceptions.items():
        grouped.setdefault(reason, []).append(row)
    return grouped
