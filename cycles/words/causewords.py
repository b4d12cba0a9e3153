"""Why an attempt failed, in words, and which setting has to do with it: for `crawl explain`.

What always holds: the code is told beside its words, since tables have it; what has no words is told as it
stands, without control characters. It reads no lake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crawl.net.faults import REASONS
from cycles.words.output import safe

__all__ = ["cause", "denied", "once"]

#: errors of the system that a connection ends with
_SYSTEM: Final[Mapping[str, str]] = {
    "econnrefused": "nothing takes connections on that port",
    "ehostunreach": "no way leads to its address",
    "enetunreach": "no way leads to the network of its address",
    "econnreset": "the other side ended the connection",
}
#: what to look at, by reason, else by outcome
_HINTS: Final[Mapping[str, str]] = {
    "tls_unknown_ca": "tls.ca_file names further authorities",
    "tls_self_signed": "tls.ca_file names what is trusted besides",
    "DNS_TIMEOUT": "dns.servers names the name servers that are asked",
    "DNS_FAILURE": "the name does not exist, or has no address",
}


def cause(outcome: str | None, reason: str | None) -> str:
    """The code of a failure, what it means, and a setting that may mend it; empty where nothing is known."""
    known = {**_SYSTEM, **REASONS}
    words = [safe(reason) + (f": {known[reason]}" if reason in known else "")] if reason else []
    hint = _HINTS.get(reason or "") or _HINTS.get(outcome or "")
    return "; ".join([*words, *([hint] if hint else [])])


def denied(addresses: str | None) -> str:
    """Why the addresses (or the port) of a host may not be asked."""
    return (
        f"no request may go to {safe(addresses or 'its address')}: it is not of the public internet, or its"
        " port is none for HTTP, and no range of egress.allow holds it"
    )


def once(text: str) -> str:
    """A code that brackets repeat, without them: `empty (empty)` is `empty`."""
    code, _, more = text.partition(" (")
    return code if more == f"{code})" else text
