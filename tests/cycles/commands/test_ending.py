"""How commands end: their exit codes, and what stands on standard error."""

from __future__ import annotations

import click
import pytest

from crawl.errors import CrawlError, LakeError
from cycles.commands.ending import Commands, ended
from cycles.session.interrupts import INTERRUPTED, TERMINATED, Terminated


def ends(monkeypatch: pytest.MonkeyPatch, error: BaseException | None) -> int:
    """The exit code of a command that raises this."""

    @click.group("crawl", cls=Commands)
    def command() -> None: ...

    @command.command()
    def work() -> None:
        if error is not None:
            raise error

    monkeypatch.setattr("sys.argv", ["crawl", "work"])
    return ended(command)


def test_what_went_well_ends_in_0(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ends(monkeypatch, None) == 0


@pytest.mark.parametrize("kind", [LakeError, CrawlError])
def test_what_we_raise_ends_in_one_line_and_its_own_code(
    kind: type[CrawlError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends(monkeypatch, kind("the disk is full")) == kind.exit_code
    assert capsys.readouterr().err == "Error: the disk is full\n"


def test_an_interrupt_and_a_termination_end_in_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ends(monkeypatch, KeyboardInterrupt()) == INTERRUPTED
    assert ends(monkeypatch, Terminated()) == TERMINATED


def test_what_nobody_expected_is_shown_whole_with_a_word_on_the_lake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends(monkeypatch, ZeroDivisionError("half")) == 1
    told = capsys.readouterr().err
    assert "ZeroDivisionError: half" in told
    assert "can be resumed with `crawl run`" in told
