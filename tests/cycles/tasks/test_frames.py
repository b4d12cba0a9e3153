"""Messages over pipes: whole, and never waited for longer than said."""

import os
import threading
from collections.abc import Iterator

import pytest

from cycles.tasks import frames
from cycles.tasks.frames import Gone, Pipe, Silent


class Ends:
    """Two pipes: the waiting side as a Pipe, the other side as descriptors."""

    def __init__(self) -> None:
        self.child_in, to_child = os.pipe()
        from_child, self.child_out = os.pipe()
        self.pipe = Pipe(to_child, from_child)
        self.mine = [to_child, from_child]

    def close(self, *descriptors: int) -> None:
        for descriptor in descriptors or (self.child_in, self.child_out, *self.mine):
            try:
                os.close(descriptor)
            except OSError:
                pass  # closed by the test


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close()


def test_a_message_of_megabytes_goes_through_both_ways(ends: Ends) -> None:
    value = ("x" * 100, b"\0" * 3_000_000, 7, None)
    echo = threading.Thread(target=lambda: frames.send(ends.child_out, frames.receive(ends.child_in)))
    echo.start()
    ends.pipe.send(value, 5)
    assert ends.pipe.receive(5) == value
    echo.join()


def test_messages_sent_together_come_one_by_one(ends: Ends) -> None:
    frames.send(ends.child_out, ("one",))
    frames.send(ends.child_out, ("two", 2))
    assert [ends.pipe.receive(1), ends.pipe.receive(1)] == [("one",), ("two", 2)]


def test_silence_ends_the_wait_and_the_rest_of_a_message_may_still_come(ends: Ends) -> None:
    data = frames._packed(("late",))
    os.write(ends.child_out, data[:3])
    with pytest.raises(Silent):
        ends.pipe.receive(0.05)
    os.write(ends.child_out, data[3:])
    assert ends.pipe.receive(1) == ("late",)


def test_a_full_pipe_that_nobody_reads_ends_the_sending(ends: Ends) -> None:
    with pytest.raises(Silent):
        ends.pipe.send((b"x" * 1_000_000,), 0.05)


def test_an_end_of_file_is_told_on_both_sides(ends: Ends) -> None:
    ends.close(ends.child_out)
    with pytest.raises(Gone):
        ends.pipe.receive(1)
    ends.close(ends.mine[0])
    with pytest.raises(Gone):
        frames.receive(ends.child_in)


def test_sending_to_a_closed_end_is_told(ends: Ends) -> None:
    ends.close(ends.child_in)
    with pytest.raises(Gone):
        ends.pipe.send(("x",), 1)
