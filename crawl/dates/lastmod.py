"""When a page says it changed last: the dates of sitemaps and feeds, in all their spellings, as UTC.

What always holds: nothing here raises on any text; what is no date, or no day of the calendar, or cannot be
held as a time in UTC, is None. A date alone is its first moment. A W3C date without a zone is taken as UTC; a
mail date (RFC 822) without one is none, because there the zone is part of the form and its absence a cut.
Spellings whose day and month cannot be told apart (05/01/2024) are none.

Sources: W3C NOTE-datetime (sitemaps.org `lastmod`, Atom), RFC 822 and RFC 2822 4.3 (RSS `pubDate`), and what
sites write instead: ISO basic forms, one-digit months, slashes, a space for the T, JavaScript's own date.
It judges no date: whether one is believed is the merge's.
"""

from __future__ import annotations

import re
from calendar import timegm
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

__all__ = ["LONGEST", "micros", "moment"]

#: a date longer than this is none
LONGEST: Final = 64

_D: Final = "[0-9]"  # `\d` would take digits of every script
_CLOCK: Final = rf"({_D}{{1,2}}):?({_D}{{2}})(?::?({_D}{{2}})(?:[.,]({_D}+))?)?"
_ZONE: Final = rf"(Z|UTC|GMT|UT|[+-]{_D}{{1,2}}(?::?{_D}{{2}})?)?"
_W3C: Final = re.compile(
    rf"({_D}{{4}})(?:([-/.]?)({_D}{{1,2}})(?:\2({_D}{{1,2}})(?:(?:T| +){_CLOCK} *{_ZONE})?)?)?Z?",
    re.IGNORECASE,
).fullmatch
_NAMES: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS: Final = {name: at for at, name in enumerate(_NAMES.split(), 1)}
_MAIL: Final = re.compile(
    rf"(?:[a-z]+,? +)?({_D}{{1,2}})[ -]+([a-z]{{3}})[a-z]*[ -]+({_D}{{4}}|{_D}{{2}}),? +{_CLOCK} *"
    rf"(?:(?:GMT|UTC)?([+-]{_D}{{4}}|[+-]{_D}{{2}}:{_D}{{2}})|([a-z]{{1,4}}))(?: *\(.*\))?",
    re.IGNORECASE,
).fullmatch
#: Fri Jan 05 2024 10:00:00 GMT+0100 (CET): what JavaScript makes of a date
_SCRIPT: Final = re.compile(
    rf"[a-z]{{3}} ([a-z]{{3}}) +({_D}{{1,2}}) ({_D}{{4}}) {_CLOCK} *(?:GMT|UTC)([+-]{_D}{{4}})?(?: *\(.*\))?",
    re.IGNORECASE,
).fullmatch
#: RFC 2822 4.3; military letters but Z are -0000 there, which is UTC
_NAMED: Final = {
    "ut": 0, "gmt": 0, "utc": 0, "z": 0, "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420,
    "mdt": -360, "pst": -480, "pdt": -420,
}  # fmt: skip


def moment(text: str) -> datetime | None:
    """The time a date means, in UTC; None where it means none."""
    at = micros(text)
    return (
        None
        if at is None
        else datetime.fromtimestamp(at // 1_000_000, UTC).replace(microsecond=at % 1_000_000)
    )


def micros(text: str) -> int | None:
    """As `moment`, in microseconds since 1970: what columns hold."""
    text = text.strip()
    return _micros(text) if 4 <= len(text) <= LONGEST and text.isascii() else None


@lru_cache(maxsize=4096)  # a sitemap gives many entries the same date
def _micros(text: str) -> int | None:
    try:
        if found := _W3C(text):
            return _w3c(*found.groups())
        if found := _MAIL(text):
            day, month, year, hour, minute, second, part, offset, name = found.groups()
            zone = _offset(offset) if offset else _NAMED.get(name.lower())
            if zone is None and len(name) == 1:
                zone = 0
            return (
                None
                if zone is None
                else _at(_year(year), _month(month), day, hour, minute, second, part, zone)
            )
        if found := _SCRIPT(text):
            month, day, year, hour, minute, second, part, offset = found.groups()
            zone = _offset(offset) if offset else 0
            return _at(int(year), _month(month), day, hour, minute, second, part, zone)
    except ValueError:  # a day that the calendar does not have
        return None
    return None


def _w3c(
    year: str,
    parting: str | None,
    month: str | None,
    day: str | None,
    hour: str | None,
    minute: str | None,
    second: str | None,
    part: str | None,
    zone: str | None,
) -> int | None:
    if not parting and month is not None and (len(month) < 2 or day is None or len(day) < 2):
        return None  # digits that run on are only told apart where all are there
    minutes = 0 if not zone or zone[0].isalpha() else _offset(zone)
    return _at(int(year), int(month or 1), day or "1", hour or "0", minute or "0", second, part, minutes)


def _at(
    year: int,
    month: int,
    day: str,
    hour: str,
    minute: str,
    second: str | None,
    part: str | None,
    zone: int,
) -> int | None:
    """Microseconds since 1970; None where they cannot be held as a time in UTC. Raises ValueError."""
    seconds = min(int(second or 0), 59) if second == "60" else int(second or 0)  # a leap second
    local = datetime(year, month, int(day), int(hour), int(minute), seconds)  # noqa: DTZ001 - checks the calendar
    whole = timegm(local.timetuple()) - zone * 60
    if not _FIRST <= whole <= _LAST:
        return None
    return whole * 1_000_000 + int(((part or "") + "000000")[:6])


_FIRST: Final = timegm((1, 1, 1, 0, 0, 0))
_LAST: Final = timegm((9999, 12, 31, 23, 59, 59))


def _offset(text: str) -> int:
    """Minutes east of Greenwich. Raises ValueError for hours that no zone has."""
    digits = text[1:].replace(":", "")
    hours, minutes = (int(digits), 0) if len(digits) <= 2 else (int(digits[:-2]), int(digits[-2:]))
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    return (hours * 60 + minutes) * (-1 if text[0] == "-" else 1)


def _year(text: str) -> int:
    """RFC 2822 4.3: two digits below 50 are of this century."""
    year = int(text)
    return year if len(text) == 4 else year + (2000 if year < 50 else 1900)


def _month(name: str) -> int:
    try:
        return _MONTHS[name.lower()]
    except KeyError:
        raise ValueError(name) from None
