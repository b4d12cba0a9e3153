"""What hosts could demand of a crawl, worked out anew from the lake: settings of rounds, robots.txt copies.

What always holds: nothing is taken from what a request recorded about its own gap, so that a check can hold
the two against each other. Settings that this version cannot read are left out.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

from crawl import robots
from crawl.errors import SettingsError
from crawl.policy import Politeness, Settings
from cycles.session import reading
from cycles.settings.config import from_json
from lake import sql

__all__ = ["demands"]

_MS: Final = timedelta(milliseconds=1)


def demands(reader: sql.Reader) -> dict[str, str]:
    """`manners`, `delays` and `lanes` of the checks of gaps (`lake/sql/check-*.sql`), as JSON.

    Raises LakeError.
    """
    settings = _settings(reader)
    manners = [_manners(policy, of.politeness) for policy, of in settings.items()]
    delays = []
    for row in reading.query(reader, "crawl-delays"):
        of = settings.get(row["policy_version"])
        delay = _delay(row["text"], of) if of else None
        if delay is not None:
            delays.append(
                {
                    "policy": row["policy_version"],
                    "origin": row["origin"],
                    "version": row["version"],
                    "delay": delay * 1e3,
                }
            )
    lanes = [
        {"policy": policy, "host": host, "most": most}
        for policy, of in settings.items()
        for host, most in of.politeness.in_flight.items()
    ]
    return {"manners": json.dumps(manners), "delays": json.dumps(delays), "lanes": json.dumps(lanes)}


def _delay(text: str, settings: Settings) -> float | None:
    """Seconds that a copy asks of us."""
    return robots.parse(text.encode(), limit=settings.robots.bytes).crawl_delay(settings.agent.name)


def _settings(reader: sql.Reader) -> dict[str, Settings]:
    found = {}
    for row in reading.query(reader, "policies"):
        try:
            found[row["policy_version"]] = from_json(row["settings"])
        except SettingsError:  # a newer version made that round
            continue
    return found


def _manners(policy: str, politeness: Politeness) -> dict[str, Any]:
    """Milliseconds that any request demands of the next one."""
    return {
        "policy": policy,
        "floor": politeness.min_delay / _MS,
        "factor": politeness.factor,
        "cap": politeness.factor_cap / _MS,
        "backoff": min(2 * politeness.backoff_base, politeness.backoff_max) / _MS,
        "longest": politeness.retry_after_max / _MS,
    }
