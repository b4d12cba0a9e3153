"""The states of a URL, apart from their moves (crawl.lifecycle), because outcomes name states as well."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["State"]


class State(StrEnum):
    """What is known of a URL. Due and leased are no states: views derive them."""

    DISCOVERED = "DISCOVERED"  # met, never answered
    FETCHED = "FETCHED"  # it answered; later faults of its host do not change that
    FAILED_RETRYABLE = "FAILED_RETRYABLE"  # it failed before it ever answered, and is tried again
    # a rule forbids asking: robots, scope, egress, suppression; looked at again when it changes
    BLOCKED = "BLOCKED"
    QUARANTINED = "QUARANTINED"  # its content cannot be handled; looked at again when the limits change
    GONE = "GONE"  # evidence that it was removed
    TERMINAL = "TERMINAL"  # given up, with the last error
