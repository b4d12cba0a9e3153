import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from crawl.fetching.hostqueue import HostQueue
from crawl.fetching.turns import LeaseLost, Turns
from crawl.politeness.clock import HostState
from crawl.politeness.joined import Joined
from crawl.records import Planned

WALL = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    """Real seconds, a date of its own."""

    def now(self) -> datetime:
        return WALL

    def monotonic(self) -> float:
        return time.monotonic()


def host(name: str, items: int, after_s: float | None = None) -> HostQueue:
    state = HostState.new(name, name, 1)
    if after_s is not None:
        state = replace(state, next_allowed_at=WALL + timedelta(seconds=after_s))
    queue = HostQueue(state)
    for i in range(items):
        url = f"http://{name}/{i}"
        queue.planned.append(
            Planned(url_key=i, url=url, origin=f"http://{name}", host=name, domain=name, position=i, depth=0)
        )
    return queue


def run(
    queues: list[HostQueue],
    *,
    slots: int = 10,
    window: float = 5.0,
    permit: Callable[[], bool] = lambda: True,
    lease: float = 0.2,
    broken: bool = False,
) -> tuple[list[tuple[str, float]], Turns, list[str]]:
    """(host, seconds since the start) of every turn; each takes 20 ms."""
    given: list[tuple[str, float]] = []
    lapses: list[str] = []

    async def main() -> Turns:
        turns = Turns(slots, Clock(), time.monotonic() + window, permit, lease)
        started = time.monotonic()

        def turn(queue: HostQueue, now: float) -> None:
            if broken:
                raise RuntimeError("a broken turn")
            queue.planned.popleft()
            given.append((queue.state.host, now - started))

            def end() -> None:
                turns.release(queue)
                turns.go_on()

            asyncio.get_running_loop().call_later(0.02, end)

        turns.turn, turns.tick, turns.lapse = turn, lambda: None, lambda: lapses.append("lapse")
        for queue in queues:
            turns.enlist(queue)
        await turns.run()
        return turns

    return given, asyncio.run(main()), lapses


def test_turns_that_take_long_let_the_loop_do_other_things_in_between() -> None:
    """Answers that come in meanwhile, say, and the look at the lease."""
    now = 0.0
    said: list[str] = []

    class Slow(Clock):
        def monotonic(self) -> float:
            return now

    async def main() -> None:
        turns = Turns(10, Slow(), 1e6, lambda: True, 0.2)

        def turn(queue: HostQueue, _: float) -> None:
            nonlocal now
            now += 1.0
            queue.planned.popleft()
            said.append("turn")
            asyncio.get_running_loop().call_soon(said.append, "other")
            turns.release(queue)

        turns.turn, turns.tick, turns.lapse = turn, lambda: None, lambda: None
        for number in range(5):
            turns.enlist(host(str(number), 1))
        await turns.run()

    asyncio.run(main())
    assert said[:4] == ["turn", "other"] * 2
    assert said.count("turn") == 5


def test_every_host_with_work_gets_its_turns_and_the_run_ends() -> None:
    given, turns, _ = run([host("a", 2), host("b", 3), host("c", 0)])
    assert sorted(name for name, _ in given) == ["a", "a", "b", "b", "b"]
    assert (turns.in_flight, turns.waiting(), turns.late) == (0, {}, {})


def test_without_work_the_run_ends_at_once() -> None:
    given, _, _ = run([])
    assert given == []


def test_no_turn_comes_before_its_time_not_even_by_a_rounding() -> None:
    given, _, _ = run([host("a", 1, 0.1), host("b", 1, 0.05)])
    assert [name for name, _ in given] == ["b", "a"]
    assert given[0][1] >= 0.05
    assert given[1][1] >= 0.1


def test_slots_bound_the_turns_under_way_and_the_rest_follow() -> None:
    given, _, _ = run([host(f"h{i}", 1) for i in range(6)], slots=2)
    starts = sorted(at for _, at in given)
    assert len(starts) == 6
    assert starts[2] - starts[0] >= 0.019
    assert starts[4] - starts[2] >= 0.019


def test_joined_hosts_take_turns_one_at_a_time_whoever_of_them_is_due() -> None:
    clock = Joined("news", allowed_at=WALL + timedelta(seconds=0.05))
    together = [host(f"h{i}", 2) for i in range(3)]
    for queue in together:
        queue.joined = clock
    given, _, _ = run([*together, host("alone", 1)])
    assert given[0][0] == "alone"
    starts = [at for name, at in given if name != "alone"]
    assert len(starts) == 6
    assert starts[0] >= 0.05
    assert all(later - earlier >= 0.019 for earlier, later in pairwise(starts))


def test_a_host_that_is_told_to_wait_longer_while_it_waits_is_not_asked_early() -> None:
    late = host("a", 1, 0.02)

    def permit() -> bool:
        late.state = replace(late.state, next_allowed_at=WALL + timedelta(seconds=0.2))
        return True

    given, _, _ = run([late], permit=permit)
    assert given[0][1] >= 0.2


def test_hosts_that_would_start_after_the_window_are_told_with_their_reason() -> None:
    backing = host("b", 1, 99)
    backing.state = replace(backing.state, gap_rule="backoff")
    opened = host("c", 1, 99)
    opened.state = replace(opened.state, gap_rule="backoff", circuit="open")
    shut = host("e", 1)
    shut.state, shut.shut = replace(shut.state, circuit="open"), True
    given, turns, _ = run([host("a", 1, 99), backing, opened, host("d", 1), shut])
    assert [name for name, _ in given] == ["d"]
    assert turns.late == {"a": "window", "b": "backoff", "c": "circuit_open", "e": "circuit_open"}


def test_the_closing_window_ends_the_run_though_hosts_have_work() -> None:
    given, _, _ = run([host("a", 1_000)], window=0.15)
    assert 1 <= len(given) <= 8


def test_a_lease_that_does_not_come_back_is_lost() -> None:
    with pytest.raises(LeaseLost):
        run([host("a", 5)], permit=lambda: False)


def test_a_lease_that_comes_back_lets_the_run_go_on() -> None:
    answers = iter([True, False])
    given, _, lapses = run([host("a", 3)], permit=lambda: next(answers, True), lease=5.0)
    assert len(given) == 3
    assert lapses == ["lapse"]


def test_an_error_in_a_turn_ends_the_run_with_it() -> None:
    with pytest.raises(RuntimeError, match="a broken turn"):
        run([host("a", 1)], broken=True)


def test_real_times_are_those_of_the_monotonic_clock() -> None:
    turns = Turns(1, Clock(), 0.0, lambda: True, 1.0)
    now = turns.monotonic()
    assert turns.wall(now + 2) - turns.wall(now) == timedelta(seconds=2)
    assert turns.due(host("a", 1, 60)) - now == pytest.approx(60, abs=0.1)


# --- waiting for something else than a time -----------------------------------------------------------------


def parked(
    what: str, then: Callable[[Turns, HostQueue], object], window: float = 5.0
) -> tuple[list[str], Turns]:
    """One slot, and two hosts; the first is parked at its first turn, and `then` follows 50 ms later."""
    given: list[str] = []

    async def main() -> Turns:
        turns = Turns(1, Clock(), time.monotonic() + window, lambda: True, 0.2)

        def turn(queue: HostQueue, now: float) -> None:
            given.append(queue.state.host)
            if given == ["a.test"]:
                turns.park(queue, what)
                assert turns.waiting() == {what: 1, "none": 1}
                turns.enlist(queue)  # other work of it came meanwhile: it waits as it did
                asyncio.get_running_loop().call_later(0.05, lambda: (then(turns, queue), turns.go_on()))
                return
            queue.planned.popleft()
            turns.release(queue)

        turns.turn, turns.tick, turns.lapse = turn, lambda: None, lambda: None
        for queue in (host("a.test", 1), host("b.test", 1)):
            turns.enlist(queue)
        await turns.run()
        return turns

    return given, asyncio.run(main())


def test_a_parked_host_holds_no_slot_and_the_run_goes_on_for_it() -> None:
    given, turns = parked("name", lambda turns, queue: turns.wake(queue))
    assert given == ["a.test", "b.test", "a.test"]
    assert turns.late == {}


def test_a_parked_host_is_called_for_a_moment() -> None:
    def call(turns: Turns, queue: HostQueue) -> None:
        assert turns.call(queue, turns.monotonic() + 0.05)
        assert turns.waiting() == {"address": 1}
        assert not turns.call(queue, turns.monotonic())

    assert parked("address", call)[0] == ["a.test", "b.test", "a.test"]


def test_a_host_whose_own_time_is_later_follows_no_call() -> None:
    def call(turns: Turns, queue: HostQueue) -> None:
        queue.state = replace(queue.state, next_allowed_at=turns.wall(turns.monotonic() + 0.1))
        assert not turns.call(queue, turns.monotonic())

    assert parked("address", call)[0] == ["a.test", "b.test", "a.test"]


@pytest.mark.parametrize(("what", "why"), [("address", "address"), ("name", "window")])
def test_a_host_still_parked_when_the_window_closes_is_late(what: str, why: str) -> None:
    given, turns = parked(what, lambda turns, queue: None, window=0.3)
    assert (given, turns.late) == (["a.test", "b.test"], {"a.test": why})


def test_a_call_that_comes_after_the_deadline_is_none() -> None:
    given, turns = parked("address", lambda turns, queue: turns.call(queue, turns.monotonic() + 60))
    assert (given, turns.late) == (["a.test", "b.test"], {"a.test": "address"})


def test_who_is_told_to_wait_longer_after_its_call_is_missed_and_says_so() -> None:
    missed: list[str] = []

    def call(turns: Turns, queue: HostQueue) -> None:
        turns.missed = lambda queue, now: missed.append(queue.state.host)
        assert turns.call(queue, turns.monotonic() + 0.05)
        queue.state = replace(queue.state, next_allowed_at=turns.wall(turns.monotonic() + 0.1))

    assert parked("address", call)[0] == ["a.test", "b.test", "a.test"]
    assert missed == ["a.test"]
