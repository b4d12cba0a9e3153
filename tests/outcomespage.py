"""The table of `docs/outcomes.md`, made from the code. `python -m tests.outcomespage` writes it anew."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Final

from crawl.lifecycle import MOVES
from crawl.outcomes import TABLE, Outcome, Rule
from crawl.policy import Recrawl
from crawl.state import State

__all__ = ["BEGIN", "END", "PAGE", "table"]

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "outcomes.md"
BEGIN: Final = "<!-- from crawl.outcomes and crawl.lifecycle: python -m tests.outcomespage -->\n"
END: Final = "<!-- end -->\n"
_COLUMNS: Final = (
    *("outcome", "what it is", "speaks of", "asked again after", "in the round", "patience"),
    *("a page never seen", "a page once seen"),
)
_HEAD: Final = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n"


def _meanings() -> dict[str, str]:
    """The comment beside each outcome."""
    source = (ROOT / "crawl" / "outcomes.py").read_text(encoding="utf-8")
    return dict(re.findall(r"^    ([A-Z_]+) = .*  # (.+)$", source, re.MULTILINE))


def _time(time: timedelta) -> str:
    seconds = round(time.total_seconds())
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size} {name}"
    return f"{seconds} s"


def _patience(outcome: Outcome, rule: Rule) -> str:
    recrawl = Recrawl()
    needed = {Outcome.NOT_FOUND: recrawl.gone_404, Outcome.GONE: recrawl.gone_410}.get(outcome)
    if needed is not None:
        return f"{needed} rounds over {_time(recrawl.gone_over)}"
    if not rule.retry:
        return ""
    if rule.against == "host":
        return f"without end; after {rule.attempts}, once a day"
    return f"{rule.attempts} in a row over {_time(rule.over)}"


def _becomes(state: State, outcome: Outcome) -> str:
    patient, final = MOVES[state, outcome]
    return patient.value if patient is final else f"{patient.value}, then {final.value}"


def table() -> str:
    """One row an outcome."""
    meanings = _meanings()
    rows = []
    for outcome in Outcome:
        rule = TABLE[outcome]
        cells = (
            f"`{outcome.value}`",
            meanings[outcome.name],
            {"none": ""}.get(rule.against, rule.against),
            _time(rule.base) if rule.retry else "",
            "yes" if rule.in_round else "",
            _patience(outcome, rule),
            _becomes(State.DISCOVERED, outcome),
            _becomes(State.FETCHED, outcome),
        )
        rows.append(f"| {' | '.join(cells)} |\n")
    return _HEAD + "".join(rows)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + table() + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
