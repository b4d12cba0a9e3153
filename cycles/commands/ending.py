"""How a command ends: with its results, a line that says what is wrong, or a traceback; and its exit code.

What always holds: what we raise on purpose ends in its own exit code (crawl.errors), a usage error in 2, an
interrupt in 130, a termination in 143, anything unexpected in 1, with its traceback and a word on the lake.
"""

from __future__ import annotations

import os
from typing import Any

import click

from crawl.errors import CrawlError
from cycles.session.interrupts import INTERRUPTED, TERMINATED, Terminated

__all__ = ["Commands", "ended"]


class Told(click.ClickException):
    """An error of ours, as click shows it and ends with it."""

    def __init__(self, error: CrawlError) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.exit_code = error.exit_code  # type: ignore[misc]  # click reads it from the instance


class Commands(click.Group):
    """A group that translates our errors, whoever runs it."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises Told for what the command raised on purpose."""
        try:
            return super().invoke(ctx)
        except CrawlError as error:
            raise Told(error) from error


def ended(command: click.Command) -> int:
    """Run a command as the process was told to; its exit code."""
    try:
        command.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        cause = error.__cause__ if isinstance(error, click.Abort) else error
        return TERMINATED if isinstance(cause, Terminated) else INTERRUPTED
    except BrokenPipeError:  # `crawl sql … | head`: whoever read has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes nowhere
        return 1
    except Exception as error:  # noqa: BLE001 - the last stop: what we do not know is shown whole
        import traceback

        traceback.print_exception(error)
        click.echo(
            f"crawl: unexpected {type(error).__name__}; this is a fault of ours. The lake is as the last"
            " commit left it, and an open round can be resumed with `crawl run`.",
            err=True,
        )
        return 1
    return 0
