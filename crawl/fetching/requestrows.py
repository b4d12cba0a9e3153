"""How an answer becomes a row of `fetches`, and which conditional lines a request carries.

What always holds: every request makes one record; its times are real, its phases the transport's; a body is
kept only where a page came, and flagged where not all of it did. It decides nothing about what is asked next.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

from crawl.dates import httpdate
from crawl.documents.screen import content_type
from crawl.fetching.hostqueue import Ask
from crawl.net.exchange import Answer, header
from crawl.outcomes import Outcome, brings_page
from crawl.politeness.clock import HostState, retry_after
from crawl.quickrecord import quickrecord
from crawl.records import Fetch

__all__ = ["Sent", "kept", "record", "validators"]


@quickrecord
class Sent:
    """What was true when a request was dispatched."""

    started_at: datetime
    state: HostState  # of its host, for the gap that was in force
    validators: tuple[str, ...]
    dns_ms: float | None
    dns_cached: bool | None
    robots_version: str | None
    dns_note: str | None = None
    address_gap_ms: float | None = None
    address_in_flight: int | None = None
    address_wait_ms: float | None = None
    group_gap_ms: float | None = None  # of the hosts that share a clock with it; None for one of its own
    lane: int | None = None  # of its host; None for a host with one request at a time


def validators(ask: Ask, now: datetime) -> tuple[str, ...]:
    """If-None-Match and If-Modified-Since lines, as received from the server (RFC 9110 13.1).

    Left out: what would not be a line, `*`, and a date that is none or lies in the future of `now`.
    """
    lines = []
    if ask.etag and ask.etag.strip() != "*" and _line(ask.etag):
        lines.append(f"If-None-Match: {ask.etag}")
    if ask.last_modified and _line(ask.last_modified) and _past(ask.last_modified, now):
        lines.append(f"If-Modified-Since: {ask.last_modified}")
    return tuple(lines)


def _line(text: str) -> bool:
    return len(text) <= 1_000 and all(" " <= char <= "\xff" and char != "\x7f" for char in text)


def _past(text: str, now: datetime) -> bool:
    at = httpdate.parse(text)
    return at is not None and at <= now


def kept(ask: Ask, answer: Answer, outcome: Outcome) -> bool:
    """Whether the answer's body is worth keeping: a whole page, or as much of one as came.

    `outcome`: after redirects were judged.
    """
    if ask.kind == "robots":  # the rules are read as far as they came
        return outcome in (Outcome.OK, Outcome.TOO_LARGE)
    if not brings_page(answer.status):
        return False
    return outcome is Outcome.OK or (answer.truncated and answer.size > 0)


def record(
    ask: Ask,
    sent: Sent,
    answer: Answer,
    *,
    outcome: Outcome,
    reason: str | None,
    next_url: str | None,
    final_url_key: int | None,
    finished_at: datetime,
    total_ms: float,
    policy_version: str,
) -> Fetch:
    """The record of one request. `outcome`, `reason`, `next_url`: after redirects were judged."""
    status = answer.status
    refused = status is not None and (status == 429 or status >= 500)
    asked = header(answer.headers, "retry-after") if refused else None
    seconds = None if asked is None else retry_after(asked, finished_at)
    robots = ask.kind == "robots" and kept(ask, answer, outcome)
    state = sent.state
    return Fetch(
        kind=ask.kind,
        url=ask.url,
        url_key=ask.url_key,
        origin=ask.origin,
        host=ask.host,
        domain=ask.domain,
        attempt=ask.attempt,
        chain_id=ask.chain_id,
        hop=ask.hop,
        next_url=next_url,
        final_url_key=final_url_key,
        started_at=sent.started_at,
        finished_at=finished_at,
        required_gap_ms=0.0 if state.next_allowed_at is None else state.delay_ms,
        gap_rule="none" if state.next_allowed_at is None else state.gap_rule,
        address=answer.address,
        dns_ms=sent.dns_ms,
        dns_cached=sent.dns_cached,
        dns_note=sent.dns_note,
        address_gap_ms=sent.address_gap_ms,
        address_in_flight=sent.address_in_flight,
        address_wait_ms=sent.address_wait_ms,
        connect_ms=answer.connect_ms,
        tls_ms=answer.tls_ms,
        first_byte_ms=answer.first_byte_ms,
        total_ms=total_ms,
        conn_reused=answer.reused,
        http_version=answer.http_version,
        status=status,
        outcome=outcome._value_,  # `value` is a property, and slow
        reason=reason,
        request_validators="\n".join(sent.validators) or None,
        response_headers=answer.headers or None,
        content_type=content_type(answer.headers),
        sniffed_type=answer.sniffed_type,
        wire_bytes=answer.wire_bytes,
        bytes=answer.size,
        body_hash=sha256(answer.body).hexdigest() if robots else None,  # of a page: who reads the journal
        truncated=answer.truncated,
        retry_after_ms=None if seconds is None else seconds * 1e3,
        robots_version=sent.robots_version,
        politeness_group=state.politeness_group,
        group_gap_ms=sent.group_gap_ms,
        lane=sent.lane,
        policy_version=policy_version,
        depth=ask.depth,
        referrer_key=ask.referrer_key,
        planned=ask.planned,
        parsed_before=ask.parsed_before,
        known_hash=ask.known_hash,
    )
