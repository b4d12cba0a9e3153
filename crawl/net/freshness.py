"""How long an answer says that it stays fresh (RFC 9111 4.2.1): Cache-Control, else Expires, less its Age.

What always holds: nonsense says nothing; what forbids keeping is no time at all. What a caller makes of that
(floors, caps) is its own affair.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

__all__ = ["seconds"]

_MAX_AGE: Final = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,9})", re.IGNORECASE)
_NO_CACHE: Final = re.compile(r"(?:^|[\s,])(?:no-cache|no-store)(?:$|[\s,=])", re.IGNORECASE)


def seconds(header: Callable[[str], str | None], received: datetime) -> float | None:
    """Seconds from `received` on, at least 0; None where the answer does not say.

    `header` gives the value of a header, by its name in lower case. Expires counts from the server's own Date
    where it sent one, so that its clock need not be right.
    """
    control = header("cache-control") or ""
    if _NO_CACHE.search(control):
        return 0.0
    found = _MAX_AGE.search(control)
    if found is not None:
        return max(int(found[1]) - _age(header("age")), 0.0)
    expires = header("expires")
    if expires is None:
        return None
    until = _date(expires)
    if until is None:  # RFC 9111 5.3: a date that is none, 0 above all, is in the past
        return 0.0
    return max((until - (_date(header("date")) or received)).total_seconds() - _age(header("age")), 0.0)


def _age(value: str | None) -> float:
    text = (value or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0.0


def _date(value: str | None) -> datetime | None:
    try:
        at = parsedate_to_datetime(value or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
