from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from crawl.planning.capacity import Clocks
from crawl.planning.forecast import PAGE_COST_S, chains, predict, troubled, work
from crawl.policy import Politeness


def clocks(*steps: tuple[float, float, float]) -> Clocks:
    """Hosts by (wait, step, latency) in seconds."""
    wait, step, latency = np.array(steps, dtype=np.float64).reshape(-1, 3).T
    count = len(steps)
    return Clocks(
        wait_s=wait,
        step_s=step,
        latency_s=latency,
        first_s=latency,
        capacity=np.full(count, 1_000),
        reason=np.full(count, "host_capacity", dtype=object),
        canary=np.zeros(count, dtype=np.bool_),
        extra_s=np.zeros(count),
        slowed_s=np.ones(count),
        usual_s=np.ones(count),
        lanes=np.ones(count, dtype=np.int64),
        slow=np.zeros(count, dtype=np.bool_),
        line=np.arange(count),
        line_wait_s=wait,
        line_step_s=step,
        line_capacity=np.full(count, 1_000),
        spot=np.arange(count),
        spot_step_s=np.zeros(count),
    )


def test_a_chain_ends_with_its_last_answer() -> None:
    found = chains(clocks((2.0, 1.5, 0.5), (0.0, 1.0, 0.1)), np.array([4, 0]))
    assert [2.0 + 3 * 1.5 + 0.5, 0.0] == found.tolist()


def test_of_a_host_with_lanes_each_takes_its_part() -> None:
    found = replace(clocks((2.0, 1.5, 0.5), (2.0, 1.5, 0.5)), lanes=np.array([4, 4]))
    assert [2.0 + 0.5, 2.0 + 1.5 + 0.5] == chains(found, np.array([4, 5])).tolist()
    pushed = replace(found, slowed_s=np.array([8.0, 8.0]))
    extra = chains(pushed, np.array([9, 9])) - chains(found, np.array([9, 9]))
    alone = replace(pushed, lanes=np.array([1, 1]))
    assert extra[0] == pytest.approx(
        (chains(alone, np.array([9, 9])) - chains(replace(found, lanes=alone.lanes), np.array([9, 9])))[0] / 4
    )
    told = predict(
        ["a.test", "b.test"],
        found,
        pages=np.array([40, 0]),
        asks=np.array([1, 0]),
        group=np.array([0, -1]),
        in_flight=100,
        left_out=0,
    )
    assert (told.seconds, told.caps[0].per_second) == (2.0 + 10 * 1.5 + 0.5, pytest.approx(4 / 1.5))


def test_hosts_at_one_address_wait_for_each_other() -> None:
    found = replace(
        clocks((0.0, 1.0, 0.5), (0.0, 1.0, 0.1), (0.0, 1.0, 0.1)),
        spot=np.array([0, 0, 2]),
        spot_step_s=np.array([2.0, 2.0, 0.0]),
    )
    assert [6 * 2.0 + 0.5, 6 * 2.0 + 0.1, 1.1] == chains(found, np.array([3, 4, 2])).tolist()


def test_slow_answers_bound_a_group_by_its_open_transfers() -> None:
    found = work(clocks((0.0, 1.0, 10.0), (0.0, 1.0, 0.1)), np.array([100, 100]), in_flight=100)
    assert pytest.approx([10.0, 100 * PAGE_COST_S]) == found.tolist()


def test_a_round_takes_what_its_slowest_group_takes() -> None:
    told = predict(
        ["a", "b", "c"],
        clocks((0.0, 1.0, 0.2), (0.0, 2.0, 0.2), (0.0, 1.0, 0.2)),
        pages=np.array([5, 9, 0]),
        asks=np.array([1, 0, 1]),
        group=np.array([0, 1, -1]),
        in_flight=1_000,
        left_out=3,
    )
    assert (14, 1, 3, "host") == (told.pages, told.robots, told.left_out, told.cap)
    assert pytest.approx(8 * 2.0 + 0.2) == told.seconds
    assert [("b", 9), ("a", 6)] == [(cap.host, cap.requests) for cap in told.caps]
    assert [0, 1] == [group.group for group in told.groups]
    assert told.seconds == json.loads(json.dumps(told.to_dict()))["seconds"]


def test_a_round_can_be_capped_by_an_address_that_hosts_share() -> None:
    crowded = replace(
        clocks((0.0, 1.0, 0.2), (0.0, 1.0, 0.2)), spot=np.array([0, 0]), spot_step_s=np.array([0.8, 0.8])
    )
    pages = np.array([5, 5])
    told = predict(
        ["a", "b"],
        crowded,
        pages=pages,
        asks=np.array([0, 0]),
        group=np.array([0, 0]),
        in_flight=1_000,
        left_out=0,
    )
    assert ("address", pytest.approx(9 * 0.8 + 0.2)) == (told.cap, told.seconds)


def test_nothing_planned_is_capped_by_nothing() -> None:
    none = np.array([], dtype=np.int64)
    told = predict([], clocks(), pages=none, asks=none, group=none, in_flight=10, left_out=0)
    assert (0.0, "nothing", (), ()) == (told.seconds, told.cap, told.caps, told.groups)


def test_pages_that_failed_by_an_answer_last_time_will_make_their_host_wait_again() -> None:
    own = clocks((0.0, 1.0, 0.1), (0.0, 1.0, 0.1))
    ended = pa.array(["UNAVAILABLE", "OK", None, "SERVER_ERROR", "REFUSED"])
    found = troubled(own, np.array([0, 0, 0, 0, 1]), ended, Politeness())
    assert found.extra_s.tolist() == [4.5, 0.0]  # twice two seconds, a quarter of them by chance
    assert chains(found, np.array([4, 4])).tolist() == pytest.approx([3.1 + 4.5, 3.1])
    assert troubled(own, np.array([0]), pa.array(["OK"]), Politeness()) is own
