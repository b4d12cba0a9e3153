"""How to come back after being pushed back: `python -m benchmarks.pushback`.

A host answers 429, without Retry-After, to whatever comes sooner after the last request than it likes. Each
rule asks it for an hour of its own time, with an ordinary gap of one second: what it got, and how often it
was refused. The rule in use is the product's own; the others are written out here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crawl.outcomes import Outcome
from crawl.policy import Politeness
from crawl.politeness.clock import HostState, after

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Politeness(min_delay=timedelta(seconds=1), factor=0.0)
HOUR = 3_600.0
TOOK = 0.05
ORDINARY = 1_000.0  # ms


def halving(slowed: float) -> float:
    """What the gap is longer than the ordinary one is halved."""
    return ORDINARY + (slowed - ORDINARY) / 2


def adding(slowed: float) -> float:
    """A tenth of the ordinary rate is added."""
    return 1 / (1 / slowed + 0.1 / ORDINARY)


def twentieth(slowed: float) -> float:
    """As we do, with half the step."""
    return slowed * 0.95


def hour(least: float, shorten: Callable[[float], float] | None) -> tuple[int, int]:
    """(pages, refusals) of an hour with a host that wants `least` seconds between requests.

    `shorten`: the gap (ms) after a success, from the one before it; None: as the product does.
    """
    state = HostState.new("a.test", "a.test", 1)
    now, end, pages, refusals = 0.0, -1e9, 0, 0
    while now < HOUR:
        pushed = now - end < least
        end = now + TOOK
        before = state.slowed_ms
        state = after(
            state,
            finished_at=START + timedelta(seconds=end),
            duration=timedelta(seconds=TOOK),
            outcome=Outcome.RATE_LIMITED if pushed else Outcome.OK,
            retry_after_ms=None,
            status=429 if pushed else 200,
            policy=POLICY,
            public=False,
            unit=0.5,
        )
        wait = state.delay_ms
        if shorten is not None and before is not None and not pushed:
            slowed = shorten(before)
            state = replace(state, slowed_ms=slowed if slowed > ORDINARY + 1 else None)
            wait = max(slowed, ORDINARY)
            state = replace(state, delay_ms=wait)
        refusals += pushed
        pages += not pushed
        now = end + wait / 1e3
    return pages, refusals


def main() -> None:
    """Prints a line per host."""
    rules = {
        "forgotten": lambda _: ORDINARY,
        "halved": halving,
        "a tenth added": adding,
        "as we do": None,
        "a twentieth": twentieth,
    }
    print("least gap  most pages  " + "".join(f"{name:>17}" for name in rules))
    for least in (1.5, 2.5, 5.0, 10.0, 30.0):
        told = (f"{pages:,} / {refusals:,}" for pages, refusals in (hour(least, of) for of in rules.values()))
        print(f"{least:>7.1f} s  {HOUR / (least + TOOK):>10,.0f}  " + "".join(f"{text:>17}" for text in told))


if __name__ == "__main__":
    main()
