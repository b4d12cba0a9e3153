"""The clocks of this machine, in one place: everything else takes time as an argument.

`boottime` goes on while a machine or process is suspended, so a lease that lapsed in its sleep is seen to
have lapsed; it means something on this machine since this boot only, which `boot_id` tells.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

__all__ = ["boot_id", "boottime", "utcnow"]


def boottime() -> float:
    """Seconds since this machine booted, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def utcnow() -> datetime:
    """Real time, UTC."""
    return datetime.now(UTC)


@cache
def boot_id() -> str:
    """Names this boot of this machine; empty where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
