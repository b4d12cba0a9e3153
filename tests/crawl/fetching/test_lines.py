from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawl.fetching.lines import Lines


def lines(opens: dict[str, float], slots: int = 10) -> Lines[str, str]:
    """Keys like `x/1` stand in line x, others in none."""
    return Lines(slots, lambda key: key.partition("/")[0] if "/" in key else None, lambda line: opens[line])


def test_of_a_line_one_has_its_turn_and_the_next_waits_for_its_end() -> None:
    opens = {"x": 0.0}
    agenda = lines(opens)
    for key, at in (("x/1", 1.0), ("x/2", 0.5), ("a", 0.7)):
        agenda.put(key, at)
    assert sorted(agenda.waiters()) == ["a", "x/1", "x/2"]
    assert (agenda.waiting, agenda.next_at()) == (2, 0.5)
    assert [agenda.claim(9.0), agenda.claim(9.0), agenda.claim(9.0)] == ["x/2", "a", None]
    assert ("x/1" in agenda, "x/2" in agenda, agenda.granted) == (True, True, 2)
    opens["x"] = 4.0
    agenda.release("x/2")
    assert agenda.claim(3.9) is None
    assert agenda.claim(4.0) == "x/1"
    assert "x/2" not in agenda


def test_who_comes_to_a_waiting_line_and_may_go_sooner_brings_its_turn_forward() -> None:
    agenda = lines({"x": 2.0, "y": 0.0})
    agenda.put("x/1", 9.0)
    agenda.put("x/2", 3.0)
    agenda.put("x/3", 1.0)
    assert agenda.next_at() == 2.0
    assert agenda.claim(2.0) == "x/3"
    with pytest.raises(ValueError, match="already"):
        agenda.put("x/3", 4.0)
    agenda.clear()
    assert (agenda.waiting, list(agenda.waiters())) == (0, [])


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "x/1", "x/2", "x/3", "y/1"]), st.integers(0, 9)), max_size=40
    )
)
def test_whatever_comes_nobody_is_early_and_a_line_has_one_turn(moves: list[tuple[str, int]]) -> None:
    opens = {"x": 0.0, "y": 0.0}
    agenda, due, running = lines(opens, slots=3), dict[str, float](), set[str]()
    for now, (key, wait) in enumerate(moves):
        if key in running:
            running.remove(key)
            line = key.partition("/")[0]
            if line in opens:
                opens[line] = now + 1.0
            agenda.release(key)
        elif key not in agenda:
            agenda.put(key, now + wait)
            due[key] = now + wait
        got = agenda.claim(now)
        if got is not None:
            line = got.partition("/")[0]
            assert due.pop(got) <= now
            assert opens.get(line, 0.0) <= now
            assert line not in opens or not any(other.startswith(line) for other in running)
            running.add(got)
        assert agenda.granted == len(running) <= 3
    left = set(due)
    for now in range(100, 200):
        if (got := agenda.claim(now)) is not None:
            left.discard(got)
            running.add(got)
        for key in list(running):
            running.remove(key)
            agenda.release(key)
    assert not left
