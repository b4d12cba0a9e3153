"""The one error tree.

    CrawlError
     ├─ UsageError          ours: a wrong call, setting or file; stop and say what to do      exit 2
     │   └─ SettingsError   an unknown or ill-typed setting
     ├─ UrlError            a text that is no URL we fetch (also a ValueError)
     ├─ LakeError           storage: unreachable, full, read-only, damaged                    exit 4
     │   ├─ NoSuchLake      there is no lake here
     │   ├─ NewerFormat     written by a newer version of this software
     │   └─ Conflict        somebody else committed first; re-read and decide again
     ├─ LakeBusy            another driver holds the lake                                     exit 3
     │   └─ FenceLost       we held it, and a newer driver took over
     ├─ ClusterError        scheduler or workers unreachable                                  exit 5
     ├─ SafetyStop          stopped to protect data or somebody else's servers                exit 6
     └─ CheckFailed         an invariant does not hold                                        exit 1

What the web does wrong is no error but an `Outcome` (crawl.outcomes). What is not known is not caught.

Every error pickles: positional arguments only, all passed to `super().__init__`.
"""

from __future__ import annotations

__all__ = [
    "CheckFailed",
    "ClusterError",
    "Conflict",
    "CrawlError",
    "FenceLost",
    "LakeBusy",
    "LakeError",
    "NewerFormat",
    "NoSuchLake",
    "SafetyStop",
    "SettingsError",
    "UrlError",
    "UsageError",
]


class CrawlError(Exception):
    """Root of everything this software raises on purpose. `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(CrawlError):
    """A wrong call: the message says what to do instead."""

    exit_code = 2


class SettingsError(UsageError):
    """An unknown or ill-typed setting; the message names the key, the place and the nearest valid key."""


class UrlError(CrawlError, ValueError):
    """A text that is no URL this crawler can fetch. `args` = (reason code, text)."""

    @property
    def reason(self) -> str:
        """Reason code, e.g. 'url_invalid', 'url_scheme', 'url_too_long'."""
        return str(self.args[0]) if self.args else "url_invalid"


class LakeError(CrawlError):
    """Storage failed: the round stays as it is and can be resumed."""

    exit_code = 4


class NoSuchLake(LakeError):
    """There is no lake at the given place."""


class NewerFormat(LakeError):
    """The lake was written by a newer version of this software."""


class Conflict(LakeError):
    """Somebody else committed first. Re-read and decide again; nothing was written."""


class LakeBusy(CrawlError):
    """Another driver holds the lake; the message names it."""

    exit_code = 3


class FenceLost(LakeBusy):
    """We held the lake and a newer driver took over: stop, write nothing more."""


class ClusterError(CrawlError):
    """The scheduler or its workers cannot be reached, or kept dying."""

    exit_code = 5


class SafetyStop(CrawlError):
    """Stopped to protect data or somebody else's servers; the message says what would let it go on."""

    exit_code = 6


class CheckFailed(CrawlError):
    """An invariant of the lake does not hold."""
