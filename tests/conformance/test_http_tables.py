"""The smaller tables of HTTP facts: dates, validators, cookies, what may be reused."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from crawl import policy
from crawl.dates import httpdate
from crawl.merging import visited
from crawl.merging.visits import Parsed, visit_rows
from crawl.net.egress import Guard
from crawl.net.exchange import Answer, Request
from crawl.net.transport import Transport
from crawl.records import Fetch
from crawl.schema import SEEN
from tests.conformance.http_servers import HTML, PATIENT, Asked, Site, crawl_rows, slug
from tests.conformance.report import Apart, Row, Scores, rows
from tests.crawl import certificates, urlrows
from tests.crawl.rawserver import RawServer, Say, closing, response
from tests.crawl.stages.fetching import KEYER

LINES = ("If-None-Match", "If-Modified-Since")


# --- dates --------------------------------------------------------------------------------------------------


def date(row: Row) -> str | None:
    found = httpdate.parse(row["header"])
    wanted = None if row["utc"] is None else datetime.fromisoformat(row["utc"])
    return None if found == wanted else str(found)


def test_dates(cases: Path, scores: Scores) -> None:
    scores.run(cases, "http/http_dates.jsonl", date, through="crawl.dates.httpdate.parse")


# --- validators: two fetches with a merge between them ------------------------------------------------------


def _first(row: Row) -> bytes | Say:
    lines = [f"{name}: {value}" for name, value in row["stored_headers"].items()]
    if row["id"] == "val-304-body-lost":  # what is known is a part only
        return closing(response(200, b"some", HTML, "Content-Length: 9", 'ETag: "abc"', *lines))
    return response(200, b"same octets", HTML, *lines)


def _second(row: Row) -> bytes:
    said = dict(row["second_response"])
    status, body = said.pop("status"), said.pop("body", "same octets" if said == {} else "").encode()
    return response(status, b"" if status == 304 else body, HTML, *(f"{k}: {v}" for k, v in said.items()))


def _merged(came: Asked, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The row of `seen` once the round's records are folded in."""
    first = came.first
    old = before or urlrows.row(
        first.url_key, url=first.url, host=first.host, domain=first.domain, origin=first.origin
    )
    records = [record for record, _ in came.records]
    made = visited.after(
        pa.Table.from_pylist([dict(old)], SEEN),
        visit_rows(records, {first.url_key: Parsed(7, None)} if came.body() else {}, {}, KEYER),
        settings=urlrows.SETTINGS,
        policy_version="p1",
        now=urlrows.NOW,
        round=urlrows.ROUND,
    )
    return dict(made.to_pylist()[0])


def _planned(known: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "etag": known["etag"],
        "last_modified": known["last_modified"],
        "content_hash": known["content_hash"],
        "parsed": known["parsed_at"] is not None,
    }


@cache
def validated(cases: Path) -> dict[str, tuple[Asked, dict[str, Any], Asked]]:
    """By row: what came of the first fetch (its place in `seen`), and of the second."""
    found = list(rows(cases, "http/validators.jsonl"))
    hosts = {slug(row, place): row for place, row in enumerate(found)}
    once = crawl_rows({host: Site(says={"/": _first(row)}) for host, row in hosts.items()}, PATIENT)
    known = {host: _merged(came) for host, came in once.items()}
    sites = {
        host: Site(says={"/": _second(row)}, planned=_planned(known[host])) for host, row in hosts.items()
    }
    again = crawl_rows(sites, PATIENT)
    return {row["id"]: (once[host], known[host], again[host]) for host, row in hosts.items()}


def validator(row: Row, cases: Path) -> str | None:
    once, known, again = validated(cases)[row["id"]]
    one, two = once.seen[-1], again.seen[-1]
    sent = {name: value for name in LINES if (value := two.header(name)) is not None}
    wanted = {k: v for k, v in row["expected_request_headers"].items() if k in LINES}
    if sent != wanted:
        return f"sent {sent}"
    if one.header("accept-language") != two.header("accept-language"):
        return "asked in another language"
    record = again.first
    assert isinstance(record, Fetch)
    outcome = {"OK": "fetched", "NOT_MODIFIED": "not_modified"}.get(record.outcome, record.outcome)
    if outcome == "fetched" and record.body_hash == record.known_hash:
        outcome = "fetched_unchanged_by_hash"
    if row["id"] == "val-304-new-etag":
        newest = _merged(again, known)
        if (newest["etag"], newest["content_hash"]) != ('"abc2"', known["content_hash"]):
            return f"kept {newest['etag']}"
    told = str(row["outcome"])
    return None if outcome == told or (told == "fetched" and "fetched" in outcome) else outcome


def test_validators(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        return validator(row, cases)

    scores.run(cases, "http/validators.jsonl", check, through="the fetch stage and the merge, over sockets")


# --- cookies and reuse --------------------------------------------------------------------------------------


def _talk(first: str, then: str, says: bytes, tls: policy.Tls) -> list[tuple[str, str | None]]:
    """Asks two URLs one after the other; each request as its server saw it: path and cookie."""

    async def main() -> list[tuple[str, str | None]]:
        egress = policy.Egress(allow=("127.0.0.0/8",))
        transport = Transport(Guard(egress), PATIENT.limits, PATIENT.agent, tls=tls)
        secure = certificates.context(urlsplit(first).hostname or "")
        async with RawServer(tls=secure) as https, RawServer() as http, transport:
            for text in (first, then):
                parts = urlsplit(text)
                server = https if parts.scheme == "https" else http
                server.says[parts.path] = says
                url = f"{parts.scheme}://{parts.hostname}:{server.port}{parts.path}"
                answer: Answer = await transport.get(Request(url=url, pin="127.0.0.1"))
                assert answer.status is not None, answer
            return [(seen.path, seen.header("cookie")) for seen in (*https.seen, *http.seen)]

    return asyncio.run(main())


def test_cookies(cases: Path, scores: Scores, tmp_path: Path) -> None:
    tls = policy.Tls(ca_file=str(certificates.ca_file(tmp_path)))

    def check(row: Row) -> str | Apart | None:
        said = response(200, b"x", HTML, *(f"Set-Cookie: {line}" for line in row["set_cookie"]))
        sent = [cookie for _, cookie in _talk(row["from_url"], row["next_url"], said, tls)]
        if sent != [None, None]:
            return f"sent {sent}"
        return None if row["cookie_sent"] is None else Apart("no cookies are kept: each request stands alone")

    scores.run(cases, "http/cookies.jsonl", check, through="crawl.net.transport, over sockets")


def test_cacheability(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | Apart | None:
        lines = [f"{name}: {value}" for name, value in row["headers"].items()]
        said = response(row["status"], b"" if row["status"] == 304 else b"x", *lines, "Location: /x")
        asked = _talk("http://a.test/", "http://a.test/", said, policy.Tls())
        if len(asked) != 2:
            return "an answer was used twice"
        return Apart("no answer is used twice: the recrawl decides when to ask") if row["may_reuse"] else None

    scores.run(cases, "http/cacheability.jsonl", check, through="crawl.net.transport, over sockets")
