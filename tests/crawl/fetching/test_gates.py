"""Gates by a clock of numbers: who is called when, who stands in line, and what no order of events breaks."""

from __future__ import annotations

import heapq
import itertools
import random

from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.fetching.gates import FREE, Gates, Pass
from crawl.politeness.addresscap import Cap

CAP = Cap(in_flight=2, delay_s=1.0)


class Calls(list[tuple[str, float]]):
    """Who was called for when; those in `busy` have something else to wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.busy: set[str] = set()

    def __call__(self, key: str, at: float) -> bool:
        if key in self.busy:
            return False
        self.append((key, at))
        return True


def gates(calls: Calls, opens: float = float("-inf"), **caps: Cap) -> Gates[str]:
    return Gates(lambda address: address != "loopback", caps, CAP, calls, opens=opens)


def test_an_address_without_a_cap_has_no_gate() -> None:
    calls = Calls()
    door = gates(calls)
    assert [door.enter(key, "loopback", 0.0) for key in "abcdef"] == [FREE] * 6
    door.leave("a", 1.0)
    assert calls == []


def test_two_starts_are_a_delay_apart_and_the_first_in_line_is_called_for_its_end() -> None:
    calls = Calls()
    door = gates(calls)
    assert door.enter("a", "x", 5.0) == Pass(cap=CAP)
    assert door.enter("b", "x", 5.2) is None
    door.stand("b", "x", 5.2)
    assert calls == [("b", 6.0)]
    assert door.enter("c", "x", 6.0) is None, "b was there first"
    door.stand("c", "x", 6.0)
    assert door.enter("b", "x", 6.0) == Pass(cap=CAP, waited_s=6.0 - 5.2)
    assert calls == [("b", 6.0)], "two are open: c waits for one of them to end"
    assert list(door.standing()) == ["c"]
    door.leave("a", 6.5)
    assert calls[-1] == ("c", 7.0)
    assert door.enter("c", "x", 7.0) == Pass(cap=CAP, waited_s=1.0)
    assert list(door.standing()) == []


def test_addresses_have_gates_and_caps_of_their_own() -> None:
    calls = Calls()
    door = gates(calls, x=Cap(in_flight=1, delay_s=0.0))
    assert door.enter("a", "x", 0.0) is not None
    assert door.enter("b", "y", 0.0) is not None
    assert door.enter("c", "x", 1.0) is None
    assert door.enter("d", "y", 1.0) is not None


def test_who_is_called_and_does_not_go_makes_room_for_the_next() -> None:
    calls = Calls()
    door = gates(calls)
    door.enter("a", "x", 0.0)
    for key in "bcd":
        door.stand(key, "x", 0.1)
    calls.busy.add("c")
    door.step_down("b", 1.0)
    door.step_down("b", 1.0)
    assert calls == [("b", 1.0), ("d", 1.0)], "c had something else to wait for"
    assert door.enter("d", "y", 1.0) is not None, "d goes elsewhere"
    assert door.enter("c", "x", 1.0) is not None, "and the line is empty"


def test_after_a_resume_an_address_is_left_alone_first() -> None:
    calls = Calls()
    door = gates(calls, opens=100.0)
    assert door.enter("a", "x", 100.5) is None
    door.stand("a", "x", 100.5)
    assert calls == [("a", 101.0)]


@hypothesis(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    hosts=st.integers(1, 12),
    cap=st.builds(Cap, in_flight=st.integers(1, 3), delay_s=st.sampled_from([0.0, 0.3, 1.0])),
)
def test_whatever_happens_the_cap_is_kept_everybody_is_served_and_nobody_waits_for_nothing(
    seed: int, hosts: int, cap: Cap
) -> None:
    chance = random.Random(seed)
    events: list[tuple[float, int, str, str]] = []
    order = itertools.count()
    left = {f"h{i}": 3 for i in range(hosts)}
    starts: dict[str, list[float]] = {"x": [], "y": []}
    open_now: dict[str, int] = {"x": 0, "y": 0}

    def at(time: float, what: str, key: str) -> None:
        heapq.heappush(events, (time, next(order), what, key))

    def call(key: str, when: float) -> bool:
        if chance.random() < 0.1:  # it has something else to wait for, and comes by itself
            at(when + 0.7, "turn", key)
            return False
        at(when, "turn", key)
        return True

    door = Gates(lambda address: True, {"x": cap, "y": cap}, cap, call, opens=float("-inf"))
    going: dict[str, str] = {}
    for key in left:
        at(chance.random(), "turn", key)
    while events:
        now, _, what, key = heapq.heappop(events)
        if what == "end":
            open_now[going.pop(key)] -= 1
            door.leave(key, now)
            if left[key]:
                at(now + chance.choice([0.0, 0.5]), "turn", key)
        elif chance.random() < 0.1:  # its turn passes without a request
            door.step_down(key, now)
            at(now + 0.2, "turn", key)
        else:
            address = chance.choice("xxy")
            if door.enter(key, address, now) is None:
                door.stand(key, address, now)
                continue
            left[key] -= 1
            going[key] = address
            open_now[address] += 1
            assert open_now[address] <= cap.in_flight
            assert not starts[address] or now - starts[address][-1] >= cap.delay_s - 1e-9
            starts[address].append(now)
            at(now + chance.random(), "end", key)
    assert not any(left.values())
    assert list(door.standing()) == []
