"""One attempt at a host group at a time: who may dispatch, who waits, and whose bytes count."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from crawl.errors import FenceLost
from cycles.session.clock import boottime
from cycles.session.holder import Heartbeat, Lock, Who, heartbeat_path
from cycles.session.workspace import Workspace
from cycles.tasks import claim as claims
from cycles.tasks.claim import Claim, Lease, Part

LONG = timedelta(seconds=600)


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return Workspace(str(tmp_path), 1)


@pytest.fixture
def lock() -> Iterator[Lock]:
    taken = Lock.take()
    yield taken
    taken.drop()


def never(_: float) -> None:
    raise AssertionError("nothing to wait for")


def nap(seconds: float) -> None:
    threading.Event().wait(seconds)


def until(condition: Callable[[], bool]) -> None:
    deadline = boottime() + 20
    while not condition():
        assert boottime() < deadline
        nap(0.005)


@contextmanager
def driver(work: Workspace, lock: Lock, lease: timedelta) -> Iterator[Heartbeat]:
    heart = Heartbeat(work.store, Who.me(lock), lease)
    heart.start()
    try:
        yield heart
    finally:
        heart.release()


def beat(work: Workspace, token: str, number: int, *, boot: str = "another", state: str = "running") -> None:
    """A heartbeat of a driver on another machine."""
    value = {"beat": number, "state": state, "boottime": 0.0, "who": {"boot": boot}}
    work.store.write(heartbeat_path(token), json.dumps(value).encode())


def test_the_first_attempt_waits_for_nobody(work: Workspace, lock: Lock) -> None:
    assert Claim(3, 7, 1) == claims.claim(work, 3, 7, lock, LONG, never)
    assert work.store.exists("_work/round-00000001/group-00003/claim-000007.0001.json")


def test_groups_are_claimed_apart(work: Workspace, lock: Lock) -> None:
    claims.claim(work, 3, 7, lock, LONG, never)
    assert Claim(4, 7, 1) == claims.claim(work, 4, 7, lock, LONG, never)


def test_after_a_released_attempt_nobody_waits(work: Workspace, lock: Lock) -> None:
    claims.release(work, claims.claim(work, 0, 7, lock, LONG, never))
    assert Claim(0, 7, 2) == claims.claim(work, 0, 7, lock, LONG, never)
    goodbye = lambda _: claims.release(work, Claim(0, 7, 2))  # noqa: E731
    assert Claim(0, 8, 3) == claims.claim(work, 0, 8, lock, LONG, goodbye)


def test_after_an_attempt_whose_process_is_gone_nobody_waits(work: Workspace, lock: Lock) -> None:
    gone = Lock.take()
    claims.claim(work, 0, 7, gone, LONG, never)
    os.close(gone._file)  # as the system does when a process ends
    assert Claim(0, 7, 2) == claims.claim(work, 0, 7, lock, LONG, never)
    gone.path.unlink()


def test_while_an_older_attempt_may_live_the_new_one_waits_two_leases(work: Workspace, lock: Lock) -> None:
    lease = timedelta(milliseconds=150)
    claims.claim(work, 0, 7, lock, lease, never)
    began = boottime()
    second = Lock.take()
    assert Claim(0, 7, 2) == claims.claim(work, 0, 7, second, lease, nap)
    assert boottime() - began >= 2 * lease.total_seconds()
    second.drop()


def test_a_release_that_storage_refuses_is_no_error_of_its_own(work: Workspace, lock: Lock) -> None:
    mine = claims.claim(work, 0, 7, lock, LONG, never)
    assert claims.release(work, mine)
    Path(work.root).rename(f"{work.root}-elsewhere")
    Path(work.root).write_text("a file where the lake should be")
    assert not claims.release(work, mine)


def test_the_claim_of_a_newer_driver_refuses_an_older_one(work: Workspace, lock: Lock) -> None:
    claims.claim(work, 0, 8, lock, LONG, never)
    with pytest.raises(FenceLost, match="8 > 7"):
        claims.claim(work, 0, 7, lock, LONG, never)


def test_of_claims_for_one_slot_each_number_is_granted_once(work: Workspace) -> None:
    lease = timedelta(milliseconds=60)

    def one(_: int) -> Claim:
        mine = Lock.take()
        try:
            return claims.claim(work, 0, 7, mine, lease, nap)
        finally:
            mine.drop()

    with ThreadPoolExecutor(4) as pool:
        granted = list(pool.map(one, range(4)))
    assert [1, 2, 3, 4] == sorted(c.attempt for c in granted)


def claimed(work: Workspace, lock: Lock, *claims_: Claim) -> None:
    """Claims as they stand there when their attempts are gone."""
    for mine in claims_:
        who = json.dumps(Who.me(lock).plain()).encode()
        work.store.write(claims.folder(work, mine.group, mine.name), who)


def append(work: Workspace, claim: Claim, part: int, data: bytes) -> str:
    path = f"{claims.parts_folder(work, claim)}/part-{part:05d}.jrnl"
    work.store.write(path, data)
    return path


def size(work: Workspace) -> Callable[[str], int]:
    return lambda path: len(work.store.read(path))


def test_an_attempt_takes_over_what_earlier_ones_finished_and_what_they_had_taken_over(
    work: Workspace, lock: Lock
) -> None:
    first, second, third = (Claim(0, 7, 1), Claim(0, 7, 2), Claim(0, 8, 3))
    claimed(work, lock, first, second, third)
    assert [] == claims.adopt(work, first, size(work))
    one = append(work, first, 1, b"12345")
    empty = append(work, first, 2, b"")
    assert [Part(one, 5)] == claims.adopt(work, second, size(work))
    two = append(work, second, 1, b"123")
    assert [Part(one, 5), Part(two, 3)] == claims.adopt(work, third, size(work))
    assert empty not in [part.path for part in claims.adopt(work, third, size(work))]


def test_what_a_woken_attempt_appends_later_does_not_count(work: Workspace, lock: Lock) -> None:
    first, second = claims.claim(work, 0, 7, lock, LONG, never), Claim(0, 7, 2)
    claims.adopt(work, first, size(work))
    one = append(work, first, 1, b"12345")
    claims.claim(work, 0, 7, lock, timedelta(0), nap)
    before = claims.adopt(work, second, size(work))
    append(work, first, 1, b"12345678")
    append(work, first, 2, b"late")
    assert [Part(one, 5)] == before == claims.adopt(work, second, size(work))


def test_an_attempt_that_died_before_it_began_is_passed_over(work: Workspace, lock: Lock) -> None:
    claimed(work, lock, *(Claim(0, 7, number) for number in (1, 2, 3)))
    claims.adopt(work, Claim(0, 7, 1), size(work))
    one = append(work, Claim(0, 7, 1), 1, b"12345")
    assert [Part(one, 5)] == claims.adopt(work, Claim(0, 7, 3), size(work))


def test_with_a_living_driver_and_the_newest_claim_requests_may_go(work: Workspace, lock: Lock) -> None:
    lease = Lease(work, claims.claim(work, 0, 7, lock, LONG, never), lock.token, LONG)
    assert not lease.permit()
    with driver(work, lock, LONG):
        lease.start(never)
        assert lease.permit()
    lease.stop()


def test_a_newer_claim_ends_the_permission_for_good(work: Workspace, lock: Lock) -> None:
    short = timedelta(milliseconds=200)
    lease = Lease(work, claims.claim(work, 0, 7, lock, short, never), lock.token, short)
    with driver(work, lock, short):
        lease.start(nap)
        assert lease.permit()
        claims.claim(work, 0, 7, lock, short, nap)  # returns only when the older one surely noticed
        assert not lease.permit()
        assert lease.lost is not None
        assert "7.2" in lease.lost
    lease.stop()


def test_a_last_look_tells_an_attempt_that_it_was_overtaken(work: Workspace, lock: Lock) -> None:
    mine = claims.claim(work, 0, 7, lock, LONG, never)
    lease = Lease(work, mine, lock.token, LONG)
    lease.confirm()  # that its driver is gone does not spoil what it finished
    claimed(work, lock, Claim(0, 8, 2))
    with pytest.raises(FenceLost, match=r"8\.2"):
        lease.confirm()


def test_a_driver_that_says_goodbye_or_falls_silent_ends_the_permission(work: Workspace, lock: Lock) -> None:
    short = timedelta(milliseconds=200)
    lease = Lease(work, claims.claim(work, 0, 7, lock, LONG, never), lock.token, short)
    with driver(work, lock, short):
        lease.start(nap)
        until(lease.permit)
    until(lambda: not lease.permit())
    assert lease.lost is None  # it lapsed; a driver that beats again would renew it
    lease.stop()


def test_an_attempt_of_a_dead_driver_does_not_start(work: Workspace, lock: Lock) -> None:
    short = timedelta(milliseconds=50)
    lease = Lease(work, claims.claim(work, 0, 7, lock, short, never), "gone", short)
    with pytest.raises(FenceLost, match="heartbeat"):
        lease.start(nap)


def test_an_attempt_that_was_overtaken_before_it_began_does_not_start(work: Workspace, lock: Lock) -> None:
    mine = claims.claim(work, 0, 7, lock, LONG, never)
    claimed(work, lock, Claim(0, 8, 2))
    with pytest.raises(FenceLost, match=r"8\.2"):
        Lease(work, mine, lock.token, LONG).start(never)


def test_of_a_driver_elsewhere_only_a_heartbeat_that_moves_is_proof(work: Workspace, lock: Lock) -> None:
    lease = Lease(work, claims.claim(work, 0, 7, lock, LONG, never), "far", LONG)
    beat(work, "far", 1)
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            beat(work, "far", 2)

    lease.start(sleep)
    assert 3 == len(naps)
    assert lease.permit()
    lease.stop()


def test_a_swept_work_area_means_that_the_round_is_over(work: Workspace, lock: Lock) -> None:
    mine = claims.claim(work, 0, 7, lock, LONG, never)
    work.store.delete([claims.folder(work, 0, mine.name)])
    with pytest.raises(FenceLost, match="round is over"):
        Lease(work, mine, lock.token, LONG).start(never)
