"""Per-request records: what passes between a fetch, its journal and the parser.

Frozen and small. For links there are no records: they are columns. `Fetch` has the columns of the table
`fetches` (but `day`, `round`, `group` and `fence`, which its task knows) and, last, what the parser and the
merge need to know about the URL itself; `Skip` is a decision not to ask.
"""

from __future__ import annotations

from datetime import datetime

from crawl.quickrecord import Record, quickrecord

__all__ = ["Fetch", "Planned", "Skip"]


@quickrecord
class Planned:
    """One URL of a fetch list, with what its request and its parse need."""

    url_key: int
    url: str
    origin: str
    host: str
    domain: str
    position: int
    depth: int
    kind: str = "page"
    etag: str | None = None
    last_modified: str | None = None
    content_hash: str | None = None
    document_key: int | None = None
    parsed: bool = False  # parsed before: its links do not count again
    chain_id: int | None = None  # of the redirect chain that led here from another domain, not asked yet
    chain_hop: int = 0


@quickrecord
class Fetch(Record):
    """One request, as the table `fetches` has it (units and nulls: crawl.schema)."""

    kind: str
    url: str
    url_key: int
    origin: str
    host: str
    domain: str
    attempt: int
    chain_id: int
    hop: int
    started_at: datetime
    finished_at: datetime
    required_gap_ms: float
    gap_rule: str
    total_ms: float
    outcome: str
    policy_version: str
    wire_bytes: int = 0
    bytes: int = 0
    truncated: bool = False
    next_url: str | None = None
    final_url_key: int | None = None
    address: str | None = None
    dns_ms: float | None = None
    dns_cached: bool | None = None
    dns_note: str | None = None
    address_gap_ms: float | None = None
    address_in_flight: int | None = None
    address_wait_ms: float | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
    conn_reused: bool | None = None
    http_version: str | None = None
    status: int | None = None
    reason: str | None = None
    request_validators: str | None = None
    response_headers: str | None = None
    content_type: str | None = None
    sniffed_type: str | None = None
    body_hash: str | None = None
    retry_after_ms: float | None = None
    robots_version: str | None = None
    politeness_group: str | None = None
    group_gap_ms: float | None = None
    lane: int | None = None
    # beside the table's columns: what the parser and the merge need to know about the URL itself
    depth: int = 0
    referrer_key: int | None = None
    planned: bool = True
    parsed_before: bool = False
    known_hash: str | None = None


@quickrecord
class Skip(Record):
    """A planned URL (or hop) that was decided against without a request."""

    url_key: int
    url: str
    host: str
    depth: int
    kind: str = "page"
    outcome: str  # e.g. ROBOTS_DENIED; a value of crawl.outcomes.Outcome
    reason: str
    decided_at: datetime
    referrer_key: int | None = None
    planned: bool = True
    robots_version: str | None = None
