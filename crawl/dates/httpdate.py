"""Dates of HTTP headers (RFC 9110 5.6.7): the three forms that there are, and what servers write instead.

A date with a numeric zone, without a weekday or with a day of one digit is read, since its meaning is clear;
a day, hour or second that does not exist (a leap second as well) is none, for nothing can be computed with
it. What always holds: nothing raises; a date is aware.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["parse"]


def parse(text: str) -> datetime | None:
    """The time that a header's value tells, in UTC; None where it tells none."""
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:  # in the year 1 or 9999, and another zone
        return None
