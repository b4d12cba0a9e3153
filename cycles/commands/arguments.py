"""What a person types, as values: durations, times and hosts, refused with a word on how to write them.

What always holds: a time has a zone (UTC where none is given). It imports nothing heavy, since every
command, `--help` included, pays for it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

__all__ = ["DURATION", "HOST", "ROUND", "TIME"]


class Duration(click.ParamType[timedelta]):
    """A number with its unit: 20ms, 90s, 10m, 1h, 5d."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The duration. Fails for anything without a unit, and for nothing at all."""
        if isinstance(value, timedelta):
            return value
        from cycles.settings.config import duration

        try:
            found = duration(value)
        except ValueError as exc:
            self.fail(f"{value!r}: {exc}", param, ctx)
        if found <= timedelta(0):
            self.fail(f"{value!r} is no time at all", param, ctx)
        return found


class Time(click.ParamType[datetime]):
    """An ISO time or date; without a zone it is UTC."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time, in UTC."""
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(str(value).strip())
            found = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time: write 2026-01-31 or 2026-01-31T12:00:00Z", param, ctx)
        return found


class Round(click.ParamType[int]):
    """The number of a round, from 1."""

    name = "round"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Fails for anything else."""
        text = str(value).strip()
        if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
            self.fail(
                f"{text!r} is no round: write its number, like 3 (`crawl status` lists them)", param, ctx
            )
        return int(text)


class Host(click.ParamType[str]):
    """A host or domain name, or an IP address."""

    name = "host"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as the lake has it: lower case, ASCII."""
        from crawl import url

        text = str(value).strip()
        found = url.bare_host(text)
        if found is None:
            self.fail(
                f"{text!r} is no host: write a name like www.example.org, without https://, port and path",
                param,
                ctx,
            )
        return found


DURATION: Final = Duration()
TIME: Final = Time()
ROUND: Final = Round()
HOST: Final = Host()
