"""Where a crawl stops rather than harm its own data: SafetyStop, exit code 6.

What always holds: nothing was written when it is raised, and the message says what lets the crawl go on.
Other harm is refused elsewhere without a stop: requests by crawl.net.egress and robots, retirements by
crawl.merging.retirement.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from crawl import policy, url
from crawl.errors import SafetyStop
from crawl.keys import Keyer
from lake import identity
from lake.store import Store

__all__ = ["FORWARD", "forward", "keyer"]

#: the furthest that one planning time may lie ahead: longer than every retention and interval by default
FORWARD: Final = timedelta(days=400)


def keyer(store: Store, rules: policy.Identity) -> Keyer:
    """Makes keys with the lake's secret, read for this one use: the way every process gets its keys.

    Domains are part of keys, and the Public Suffix List makes domains. With another list than the lake's own,
    URLs of the domains it moved would be taken for new, and in a cluster two processes could disagree about
    one URL. Raises SafetyStop then, unless the settings accept this list; LakeError as `identity.load`.
    """
    known = identity.load(store)
    here = url.psl_hash()
    if here != known.psl_hash and here not in rules.accept_suffixes:
        raise SafetyStop(
            f"{store.root} was made with the Public Suffix List {known.psl_hash[:12]}, and this process has"
            f" {here[:12]}: known URLs of the domains that moved would be met anew. Install the version of"
            " publicsuffixlist that the lake was made with, on every worker; or accept the new list with"
            f" `crawl config {store.root} set identity.accept_suffixes '[\"{here}\"]'`"
        )
    return Keyer(known.secret, rules)


def forward(now: datetime, last: datetime | None, real: datetime) -> None:
    """Refuses a planning time far beyond the last round's and the clock's. Raises SafetyStop.

    A lake only goes forward in time, and retention follows planning time: one mistyped year would drop
    everything old enough for ever, and no round could be planned before that time again.
    """
    base = real if last is None else max(real, last)
    if now > base + FORWARD:
        raise SafetyStop(
            f"planning time {now.isoformat()} lies {(now - base).days} days ahead of {base.isoformat()}: a"
            " lake only goes forward in time, and what is too old by then would be deleted for good. If that"
            f" is meant, go there in steps of at most {FORWARD.days} days"
        )
