"""The names of states: what tables hold, and what questions in SQL ask for (moves: test_lifecycle)."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from crawl.lifecycle import next_state
from crawl.outcomes import TABLE, Outcome
from crawl.state import State

#: a state compared with literals, as the .sql files write it
ASKED = re.compile(r"\bstate (?:=|<>|!=|(?:NOT )?IN) (\([^)]*\)|'[^']*')")


def test_a_state_stands_in_a_table_under_its_own_name() -> None:
    names = pa.array([state.name for state in State])
    assert pc.all(pc.equal(pa.array(list(State), pa.string()), names)).as_py()


def test_every_state_is_reached_from_the_first_one() -> None:
    reached, fresh = {State.DISCOVERED}, [State.DISCOVERED]
    while fresh:
        state = fresh.pop()
        moved = {next_state(state, outcome, spent=spent) for outcome in Outcome for spent in (False, True)}
        fresh += moved - reached
        reached |= moved
    assert set(State) == reached
    assert {rule.final for rule in TABLE.values()} <= reached


def test_sql_asks_for_states_that_there_are(repo_root: Path) -> None:
    asked = {
        (path.name, name)
        for path in (repo_root / "lake" / "sql").glob("*.sql")
        for literals in ASKED.findall(path.read_text())
        for name in re.findall(r"'([^']*)'", literals)
    }
    assert set(State) >= {name for _, name in asked}
    assert set(State) == {name for file, name in asked if file == "check-states.sql"}
    assert len({file for file, _ in asked}) > 5
