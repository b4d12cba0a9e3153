"""Rows for tests of what a round makes of URLs: of `seen`, of visits and of candidates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from crawl.policy import Settings
from crawl.schema import SEEN, VISITS
from crawl.url import RULES_VERSION

NOW = datetime(2025, 5, 1, 12, tzinfo=UTC)
REAL = datetime(2025, 3, 1, 8, tzinfo=UTC)
ROUND = 9
SETTINGS = Settings()
HOSTS = ("a.one.test", "b.one.test", "c.two.test")


def url_of(key: int) -> str:
    return f"http://{HOSTS[key % 3]}/{key}"


def host_of(key: int) -> str:
    return HOSTS[key % 3]


def row(key: int, **columns: Any) -> dict[str, Any]:
    """A row of `seen` that some earlier round wrote: discovered, never asked."""
    met = NOW - timedelta(days=30)
    return (
        dict.fromkeys(SEEN.names)
        | {
            "url_key": key,
            "url": url_of(key),
            "discovered_url": url_of(key),
            "origin": f"http://{host_of(key)}",
            "host": host_of(key),
            "domain": host_of(key)[2:],
            "rules_version": RULES_VERSION,
            "kind": "page",
            "depth": 1,
            "found_by": "link",
            "first_referrer_key": 77,
            "first_seen_at": met,
            "first_seen_round": 1,
            "state": "DISCOVERED",
            "policy_version": "p0",
            "attempts": 0,
            "crawl_count": 0,
            "change_count": 0,
            "changed_exposure_s": 0.0,
            "unchanged_exposure_s": 0.0,
            "checks_decayed": 0.0,
            "changes_decayed": 0.0,
            "gone_sightings": 0,
            "importance": 0.5,
            "score": 0.5,
            "tier": "discovery",
            "eligible_since": met,
            "next_fetch_at": met,
            "interval_s": 0.0,
            "round": 1,
        }
        | columns
    )


def fetched(key: int, **columns: Any) -> dict[str, Any]:
    """A row of a page that was fetched and parsed ten days ago."""
    then = NOW - timedelta(days=10)
    return (
        row(key)
        | {
            "state": "FETCHED",
            "last_outcome": "OK",
            "http_status": 200,
            "first_fetched_at": then,
            "last_checked_at": then,
            "crawl_count": 1,
            "etag": '"e"',
            "last_modified": "Mon",
            "content_hash": "h1",
            "document_key": 500 + key,
            "content_length": 10,
            "tier": "medium",
            "interval_s": 7 * 86_400.0,
            "fetched_at": then,
            "parsed_at": then,
            "stored_at": then,
            "index_ready_at": then,
            "visited_round": 5,
            "round": 5,
        }
        | columns
    )


def visit(key: int, outcome: str = "OK", **columns: Any) -> dict[str, Any]:
    return (
        dict.fromkeys(VISITS.names)
        | {
            "url_key": key,
            "url": url_of(key),
            "kind": "page",
            "host": host_of(key),
            "depth": 1,
            "planned": True,
            "outcome": outcome,
            "fetched_at": REAL,
            "changed": False,
        }
        | columns
    )


def ok(key: int, **columns: Any) -> dict[str, Any]:
    """A 200 with a text not known before."""
    return (
        visit(key, "OK")
        | {
            "http_status": 200,
            "etag": '"n"',
            "content_hash": "h2",
            "content_length": 20,
            "document_key": 900 + key,
            "changed": True,
        }
        | columns
    )


def link(key: int, source: int | None = 50, depth: int = 2, **columns: Any) -> dict[str, Any]:
    return {
        "target_key": key,
        "target_url": url_of(key),
        "discovered_url": None,
        "target_domain": host_of(key)[2:],
        "source_key": source,
        "depth": depth,
        "found_by": "seed" if source is None else "link",
        "kind": "page",
        "announced": False,
        "lastmod": None,
        "changefreq": None,
        "sitemap_priority": None,
        "counts": source is not None,
        "importance": 0.5,
        "score": 0.25,
    } | columns
