"""What `crawl explain` says about robots.txt: which copy decided, why there is none, how it was asked for.

What always holds: what the lake has of the requests for it is told with the failure's own reason; texts of
servers are shown without control characters. It reads no lake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cycles.words.causewords import cause
from cycles.words.output import safe, shown

__all__ = ["copied", "itself", "requests", "waiting"]

#: how a robots.txt copy was obtained (crawl.robots), in words
_HOW: Final = {
    "fetched": "as fetched",
    "unavailable": "there is none: nothing is forbidden",
    "unreachable": "not to be had: everything waits",
    "last_good": "not to be had: the last good copy holds",
    "elsewhere": "in another domain, which is asked for it from the next round on: everything waits",
}
#: requests that are told one by one; of more, the last ones
_LAST: Final = 3


def copied(copy: Mapping[str, Any]) -> str:
    """A copy of robots.txt, and the rule of it that speaks of the URL."""
    status = f", HTTP {copy['status']}" if copy["status"] else ""
    how = _HOW.get(copy["how"], copy["how"])
    rule = ""
    if copy["line"] is not None:
        rule = (
            f": {'allowed' if copy['allowed'] else 'forbidden'} by line {copy['line']}, {safe(copy['rule'])}"
        )
    elif copy["how"] in ("fetched", "last_good"):
        rule = ": no rule speaks of it, so it is allowed"
    return (
        f"robots.txt of {safe(copy['origin'])}: copy {copy['version']}, {how}{status},"
        f" of {shown(copy['fetched_at'])}, valid until {shown(copy['valid_until'])}{rule}"
    )


def waiting(row: Mapping[str, Any], asked: Sequence[Mapping[str, Any]]) -> str:
    """Why a URL waits for its robots.txt, by the last request for that up to the row's round.

    `row`: of `urls`, with a reason such as unreachable:TLS_FAILURE; `asked`: requests, oldest first.
    """
    how, _, code = str(row["reason"]).partition(":")
    if how == "elsewhere":
        return f"its robots.txt is {_HOW['elsewhere']}"
    last = next((one for one in reversed(asked) if one["round"] <= row["round"]), None)
    ended = f"HTTP {code}" if code.isdecimal() else safe(code)
    if last is not None and code in (str(last["status"]), last["outcome"]):
        ended = _ended(last)
    return f"its robots.txt could not be read: {ended}"


def requests(asked: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The last requests for a robots.txt, a line each."""
    for one in asked[-_LAST:]:
        yield f"round {one['round']}, {shown(one['started_at'])}: GET {safe(one['url'])} → {_ended(one)}"


def itself(copy: Mapping[str, Any] | None, asked: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Of a robots.txt as a URL: that it is no page, its newest copy, and how it was asked for."""
    yield "It is the robots.txt of its origin: asked for before all else there, and never taken as a page."
    if copy is not None:
        yield "  " + copied(copy).removesuffix(": no rule speaks of it, so it is allowed")
    yield from (f"  {line}" for line in requests(asked))


def _ended(one: Mapping[str, Any]) -> str:
    """How a request ended: status, outcome, and the reason with its words."""
    status = f"HTTP {one['status']} " if one["status"] else ""
    why = cause(one["outcome"], one["reason"])
    return f"{status}{one['outcome']}" + (f" ({why})" if why else "")
