"""What a round learnt about each URL: rows of `visits` and of `fetches` from what was asked and skipped.

What always holds: one row of `visits` per URL (a request counts before a decision not to ask, a later one
before an earlier one); redirects, unchanged pages and failures alike have theirs. Content that the parser did
not read is UNSUPPORTED_TYPE, whatever the request told. States and schedules are the merge's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa

from crawl import url
from crawl.html import directives, markup
from crawl.keys import Keyer
from crawl.outcomes import Outcome, brings_page
from crawl.policy import Parsing
from crawl.records import Fetch, Skip
from crawl.schema import FETCHES, VISITS

__all__ = ["Parsed", "arrived", "fetch_rows", "unkept", "visit_rows"]

#: columns of `fetches` that are fields of a record; the others are the task's
_OF_RECORD: Final = tuple(name for name in FETCHES.names if name in {field.name for field in fields(Fetch)})
_VALUES: Final = attrgetter(*_OF_RECORD)
_MOVED: Final = frozenset({Outcome.REDIRECT.value, Outcome.REDIRECT_LOOP.value})


class Parsed(NamedTuple):
    """What came of reading a body."""

    document_key: int | None
    canonical_hint: str | None
    withheld: str | None = None  # why its document has no text
    unavailable_after: datetime | None = None
    keep: bool = True  # its body may be kept


def arrived(record: Fetch) -> bool:
    """Whether content came that is not what was known: of a page, a sitemap or a feed."""
    return (
        record.kind != "robots"
        and brings_page(record.status)
        and record.body_hash is not None
        and record.body_hash != record.known_hash
    )


def unkept(record: Fetch, agent: str, policy: Parsing) -> str | None:
    """Why its header alone forbids to keep a body: noindex or noarchive; None where it does not."""
    lines = record.response_headers
    if not lines or "x-robots-tag" not in lines.lower():
        return None
    said = directives.meant(directives.of_headers(markup.headers(lines).get("x-robots-tag", ()), agent))
    if said.noindex and not policy.keep_noindex:
        return "noindex"
    return "noarchive" if said.noarchive and not policy.keep_noarchive else None


def fetch_rows(records: Sequence[Fetch], *, day: date, round_: int, group: int, fence: int) -> pa.Table:
    """Rows of `fetches` in the order of the records."""
    columns: dict[str, tuple[Any, ...]] = (
        dict(zip(_OF_RECORD, zip(*map(_VALUES, records), strict=True), strict=True)) if records else {}
    )
    given = {"day": day, "round": round_, "group": group, "fence": fence}
    columns.update({name: (value,) * len(records) for name, value in given.items()})
    return pa.table([pa.array(columns.get(field.name, ()), field.type) for field in FETCHES], schema=FETCHES)


def visit_rows(
    records: Iterable[Fetch | Skip],
    parsed: Mapping[int, Parsed],
    failed: Mapping[int, str],
    keyer: Keyer,
    *,
    agent: str = "",
    keep_noindex: bool = False,
) -> pa.Table:
    """Rows of `visits`, sorted by url_key. `failed`: pages whose parse was given up, with its reason.

    `agent`: whose directives in headers count besides everybody's; `keep_noindex`: they withhold nothing.
    """
    chosen: dict[int, Fetch | Skip] = {}
    for record in records:
        if isinstance(record, Fetch) and record.kind == "robots":
            continue
        other = chosen.get(record.url_key)
        if other is None or _rank(record) > _rank(other):
            chosen[record.url_key] = record
    ordered = [chosen[key] for key in sorted(chosen)]
    targets = [target for record in ordered if (target := _target(record)) is not None]
    keys = iter(keyer.url_keys(targets, url.split_many(targets)[2]).tolist())
    rows = []
    for record in ordered:
        if isinstance(record, Fetch):
            headers = markup.headers(record.response_headers)
            # what was read of an earlier try (a page that was cut, and then unchanged) is not this one's
            own = arrived(record)
            found = parsed.get(record.url_key) if own else None
            row = _fetched(record, headers, found, failed.get(record.url_key) if own else None, keys)
            rows.append(row | _asked(record, headers, found, agent, keep_noindex))
        else:
            rows.append(_skipped(record))
    return pa.Table.from_pylist(rows, schema=VISITS)


def _rank(record: Fetch | Skip) -> tuple[bool, Any]:
    """A request tells more than a decision not to ask; the last one tells most."""
    fetched = isinstance(record, Fetch)
    return fetched, record.finished_at if isinstance(record, Fetch) else record.decided_at


def _target(record: Fetch | Skip) -> str | None:
    """Where a redirect leads, a loop's too; None for anything else."""
    return record.next_url if isinstance(record, Fetch) and record.outcome in _MOVED else None


def _outcome(record: Fetch, parsed: Parsed | None, failure: str | None) -> str:
    """What came of the request once its content was looked at: read, or of a type that nobody reads.

    Equal content is not looked at again: what was read then is known.
    """
    if record.truncated:
        return record.outcome  # why it is not whole tells more than what was made of the rest
    if failure:
        return Outcome.PARSE_FAILED.value
    content = record.outcome == Outcome.OK and brings_page(record.status) and record.bytes > 0
    unread = content and parsed is None and arrived(record)
    return Outcome.UNSUPPORTED_TYPE.value if unread else record.outcome


def _asked(
    record: Fetch, headers: Mapping[str, list[str]], parsed: Parsed | None, agent: str, keep_noindex: bool
) -> dict[str, Any]:
    """What the answer asks of those who index: as its parse found, else as far as its header tells."""
    lines = headers.get("x-robots-tag", ()) if record.status == 304 or brings_page(record.status) else ()
    words = directives.telling(directives.of_headers(lines, agent)) if lines else []
    said = directives.meant(words)
    withheld = None if keep_noindex else directives.withheld(said, None)
    return {
        "header_robots": directives.written(words),
        "withheld": parsed.withheld if parsed else withheld,
        "unavailable_after": parsed.unavailable_after if parsed else said.unavailable_after,
    }


def _fetched(
    record: Fetch,
    headers: Mapping[str, list[str]],
    parsed: Parsed | None,
    failure: str | None,
    targets: Any,
) -> dict[str, Any]:
    """One request's row. `targets` gives the next redirect's key."""
    content = brings_page(record.status) and record.body_hash is not None and not record.truncated
    failure = None if record.truncated else failure
    return {
        "url_key": record.url_key,
        "url": record.url,
        "kind": record.kind,
        "host": record.host,
        "depth": record.depth,
        "referrer_key": record.referrer_key,
        "planned": record.planned,
        "outcome": _outcome(record, parsed, failure),
        "reason": failure or record.reason,
        "http_status": record.status,
        "robots_version": record.robots_version,
        "fetched_at": record.finished_at,
        "etag": _last(headers.get("etag")),
        "last_modified": _last(headers.get("last-modified")),
        "content_hash": record.body_hash if content else None,
        "content_length": record.bytes if content else None,
        "sniffed_type": record.sniffed_type,
        "redirect_to_key": next(targets) if _target(record) is not None else None,
        "document_key": parsed.document_key if parsed else None,
        "changed": arrived(record),
        "truncated": record.truncated,
        "canonical_hint": parsed.canonical_hint if parsed else None,
        "retry_after_ms": record.retry_after_ms,
    }


def _skipped(record: Skip) -> dict[str, Any]:
    return {
        "url_key": record.url_key,
        "url": record.url,
        "kind": record.kind,
        "host": record.host,
        "depth": record.depth,
        "referrer_key": record.referrer_key,
        "planned": record.planned,
        "outcome": record.outcome,
        "reason": record.reason,
        "robots_version": record.robots_version,
        "fetched_at": record.decided_at,
        "changed": False,
        "truncated": False,
    }


def _last(values: list[str] | None) -> str | None:
    return values[-1] or None if values else None
