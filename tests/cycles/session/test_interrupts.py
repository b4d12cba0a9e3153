"""Ctrl-C and SIGTERM end things tidily, and wait where they must."""

from __future__ import annotations

import signal
import threading

import pytest

from cycles.session.interrupts import Terminated, postponed, tidy

BOTH = [signal.SIGINT, signal.SIGTERM]


def test_sigterm_is_raised_as_an_interrupt_and_the_old_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def terminated() -> None:
        with tidy():
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Terminated):
        terminated()
    assert before is signal.getsignal(signal.SIGTERM)


def test_a_second_sigterm_does_not_disturb_the_tidying() -> None:
    steps: list[str] = []

    def terminated() -> None:
        with tidy():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGTERM)
                steps.append("tidied")

    with pytest.raises(Terminated):
        terminated()
    assert ["tidied"] == steps


@pytest.mark.parametrize("number", BOTH)
def test_a_postponed_signal_comes_when_the_block_is_over(number: signal.Signals) -> None:
    steps: list[str] = []

    def interrupted() -> None:
        with tidy():
            with postponed():
                signal.raise_signal(number)
                steps.append("whole")
            steps.append("never reached")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ["whole"] == steps


def test_without_a_signal_nothing_happens() -> None:
    before = [signal.getsignal(number) for number in BOTH]
    with tidy(), postponed():
        pass
    assert before == [signal.getsignal(number) for number in BOTH]


def test_a_fault_in_the_block_goes_before_the_signal() -> None:
    def fails() -> None:
        with tidy(), postponed():
            signal.raise_signal(signal.SIGTERM)
            raise KeyError

    with pytest.raises(KeyError):
        fails()


def test_other_threads_have_no_signals_to_postpone() -> None:
    done: list[bool] = []

    def work() -> None:
        with postponed():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [True] == done
