"""What is said about robots.txt."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from cycles.words import robotswords

THEN = datetime(2026, 3, 1, tzinfo=UTC)


def asked(round_: int, **columns: Any) -> dict[str, Any]:
    made = {"round": round_, "url": "http://a.test/robots.txt", "started_at": THEN, "status": None}
    return made | {"outcome": "TLS_FAILURE", "reason": "tls_wrong_host"} | columns


def copy(**columns: Any) -> dict[str, Any]:
    made = {"origin": "http://a.test", "version": "abc", "how": "fetched", "status": 200, "line": None}
    return made | {"fetched_at": THEN, "valid_until": THEN, "allowed": True, "rule": None} | columns


@pytest.mark.parametrize(
    ("code", "requests", "words"),
    [
        ("TLS_FAILURE", [asked(1)], "TLS_FAILURE (tls_wrong_host: the certificate is another host's)"),
        ("TLS_FAILURE", [asked(1), asked(9, reason="tls_expired")], "TLS_FAILURE (tls_wrong_host: the c"),
        ("503", [asked(1, outcome="UNAVAILABLE", status=503, reason=None)], "HTTP 503 UNAVAILABLE"),
        ("503", [], "HTTP 503"),
        ("RESET", [asked(1)], "RESET"),  # that request is no longer kept
    ],
)
def test_what_waits_for_its_robots_txt_is_told_why(code: str, requests: list[Any], words: str) -> None:
    told = robotswords.waiting({"reason": f"unreachable:{code}", "round": 1}, requests)
    assert told.startswith(f"its robots.txt could not be read: {words}")


def test_a_robots_txt_elsewhere_is_no_failure() -> None:
    told = robotswords.waiting({"reason": "elsewhere:REDIRECT", "round": 1}, [])
    assert told.startswith("its robots.txt is in another domain")


def test_of_many_requests_the_last_are_told() -> None:
    lines = list(robotswords.requests([asked(number) for number in range(1, 6)]))
    assert ["round 3", "round 4", "round 5"] == [line.partition(",")[0] for line in lines]
    assert "GET http://a.test/robots.txt → TLS_FAILURE (tls_wrong_host: " in lines[0]


def test_a_copy_is_told_with_the_rule_that_speaks_of_the_url() -> None:
    assert robotswords.copied(copy()).endswith("no rule speaks of it, so it is allowed")
    told = robotswords.copied(copy(line=3, rule="Disallow: /\x1b", allowed=False))
    assert told.endswith(": forbidden by line 3, Disallow: /\\x1b")


def test_a_robots_txt_tells_of_itself() -> None:
    lines = list(robotswords.itself(copy(), [asked(1, outcome="OK", status=200, reason=None)]))
    assert lines[0].startswith("It is the robots.txt of its origin")
    assert lines[1].endswith("valid until 2026-03-01 00:00:00")
    assert lines[2].endswith("→ HTTP 200 OK")
