"""What holds a host back, in words: its gap, its group, what it answered lately, its circuit.

What always holds: it says only what the host's row says, and nothing of a host that is asked as any other.
It reads no lake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from crawl.policy import Politeness
from cycles.words.output import safe, shown

__all__ = ["held_back"]


def held_back(host: Mapping[str, Any] | None, manners: Politeness) -> Iterator[str]:
    """Sentences about a row of `host_health`; none for a host that was never asked."""
    if host is None:
        return
    if host["politeness_group"] is not None:
        yield f"its host shares one clock with the others of group {safe(host['politeness_group'])}"
    delay = host["robots_delay_ms"]
    if host["max_in_flight"] > 1:
        yield (
            f"its host may have {host['max_in_flight']} requests open at once (politeness.in_flight)"
            + (": one while it states a Crawl-delay" if delay else "")
        )
    if delay is not None and delay > manners.long_crawl_delay / timedelta(milliseconds=1):
        yield f"its host asks for {delay / 1000:,.0f} s between requests (Crawl-delay); no round waits for it"
    if host["slowed_ms"] is not None:
        yield (
            f"its host answered 429 or 503: at least {host['slowed_ms'] / 1000:,.1f} s between requests,"
            " less after each success"
        )
    if host["backoff_until"] is not None:
        yield f"its host is left alone until {shown(host['backoff_until'])} (real time)"
    if host["circuit"] != "closed":
        yield (
            f"its host is shut off ({host['circuit']}) after {host['consecutive_errors']} errors in a row:"
            " one request a round, until one succeeds"
        )
