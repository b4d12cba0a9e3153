from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawl import policy
from crawl.fetching.agenda import Agenda
from crawl.outcomes import Outcome
from crawl.politeness.clock import HostState, after

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def rehearse(
    hosts: dict[str, tuple[float, int]], slots: int, rules: policy.Politeness
) -> list[tuple[str, float, float]]:
    """(host, start, end) of every download in virtual time; `hosts`: seconds a download, and how many."""
    agenda: Agenda[str] = Agenda(slots)
    states = {host: HostState.new(host, host, i) for i, host in enumerate(hosts)}
    left = {host: count for host, (_, count) in hosts.items()}
    running: list[tuple[float, str]] = []
    done = []
    now = 0.0
    for host in hosts:
        agenda.put(host, now)
    while agenda.waiting or running:
        while (host := agenda.claim(now)) is not None:
            running.append((now + hosts[host][0], host))
            done.append((host, now, now + hosts[host][0]))
        running.sort()
        wake = [running[0][0]] if running else []
        at = agenda.next_at()
        now = min([*wake, *([] if at is None else [max(at, now)])])
        while running and running[0][0] <= now:
            end, host = running.pop(0)
            agenda.release(host)
            left[host] -= 1
            states[host] = after(
                states[host],
                finished_at=EPOCH + timedelta(seconds=end),
                duration=timedelta(seconds=hosts[host][0]),
                outcome=Outcome.OK,
                retry_after_ms=None,
                status=200,
                policy=rules,
                public=False,
                unit=0.0,
            )
            allowed = states[host].next_allowed_at
            assert allowed is not None
            if left[host]:
                agenda.put(host, (allowed - EPOCH).total_seconds())
    return done


def test_the_dry_run_of_three_hosts_and_one_thread() -> None:
    rules = policy.Politeness(min_delay=timedelta(0), factor=10.0)
    done = rehearse({"a": (0.4, 2), "b": (0.2, 3), "c": (1.0, 1)}, 1, rules)
    rounded = [(host, round(start, 6), round(end, 6)) for host, start, end in done]
    assert rounded == [
        ("a", 0.0, 0.4),
        ("b", 0.4, 0.6),
        ("c", 0.6, 1.6),
        ("b", 2.6, 2.8),
        ("a", 4.4, 4.8),
        ("b", 4.8, 5.0),
    ]
    busy = sum(end - start for _, start, end in done)
    assert round(busy / 5.0, 2) == 0.48


def test_two_claims_for_one_slot_are_one_grant() -> None:
    agenda: Agenda[str] = Agenda(1)
    agenda.put("a", 0.0)
    agenda.put("b", 0.0)
    assert [agenda.claim(0.0), agenda.claim(0.0)] == ["a", None]
    agenda.release("a")
    assert agenda.claim(0.0) == "b"


def test_two_claims_for_one_host_are_one_grant() -> None:
    agenda: Agenda[str] = Agenda(10)
    agenda.put("a", 1.0)
    assert [agenda.claim(1.0), agenda.claim(1.0)] == ["a", None]
    with pytest.raises(ValueError, match="already"):
        agenda.put("a", 2.0)


def test_nobody_starts_early_and_who_waits_takes_no_slot() -> None:
    agenda: Agenda[str] = Agenda(1)
    agenda.put("late", 10.0)
    agenda.put("soon", 2.0)
    assert agenda.claim(1.999_999) is None
    assert agenda.next_at() == 2.0
    assert agenda.claim(2.0) == "soon"
    assert agenda.next_at() is None
    assert (agenda.waiting, agenda.granted, "late" in agenda, "soon" in agenda) == (1, 1, True, True)
    agenda.release("soon")
    assert "soon" not in agenda
    agenda.clear()
    assert agenda.claim(99.0) is None


def test_who_waits_can_be_moved_and_is_granted_once() -> None:
    agenda: Agenda[str] = Agenda(2)
    agenda.put("a", 5.0)
    agenda.put("b", 4.0)
    agenda.move("a", 1.0)
    agenda.move("b", 6.0)
    assert agenda.next_at() == 1.0
    assert [agenda.claim(5.0), agenda.claim(5.0)] == ["a", None]
    assert (agenda.waiting, agenda.next_at(), agenda.claim(6.0)) == (1, 6.0, "b")
    agenda.release("a")
    assert agenda.next_at() is None
    with pytest.raises(ValueError, match="does not wait"):
        agenda.move("b", 1.0)


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.tuples(st.floats(0.01, 5), st.integers(1, 6)), min_size=1
    ),
    st.integers(1, 4),
    st.floats(0, 3),
)
def test_in_any_plan_gaps_are_kept_and_slots_not_exceeded(
    hosts: dict[str, tuple[float, int]], slots: int, floor: float
) -> None:
    rules = policy.Politeness(min_delay=timedelta(seconds=floor), factor=2.0)
    done = rehearse(hosts, slots, rules)
    assert len(done) == sum(count for _, count in hosts.values())
    for host, (seconds, _) in hosts.items():
        own = [(start, end) for name, start, end in done if name == host]
        for (_, end), (start, _) in pairwise(own):
            assert start >= end + max(floor, 2 * seconds) - 2e-6
    for _, start, _ in done:
        assert sum(s <= start < e for _, s, e in done) <= slots
