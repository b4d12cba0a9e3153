"""Answers as servers give them: `http/behaviours.jsonl` over real sockets, through the fetch stage."""

import asyncio
import hashlib
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from crawl import policy
from crawl.outcomes import TABLE, Outcome
from crawl.records import Fetch
from crawl.stages import parse
from tests.conformance import http_redirects
from tests.conformance.http_servers import (
    HTML,
    PATIENT,
    QUICK,
    Asked,
    Site,
    closing,
    crawl_rows,
    site_of,
    slug,
)
from tests.conformance.report import Row, Scores, rows
from tests.crawl import certificates
from tests.crawl.rawserver import RawServer, response
from tests.crawl.stages.fetching import KEYER, fetch_group, plan_of
from tests.crawl.talking import Server, answer_of

FILE = "http/behaviours.jsonl"
EXCEPTIONS = {
    "http-v-12": "libcurl reads HTTP/1.0 and HTTP/1.1 and refuses other minor versions (`http_version`)",
    "http-enc-gzip-nohdr": "gzip that says it is HTML is set aside as `TYPE_MISMATCH`: parsed it is not",
}
#: rows whose servers take their time: they are crawled with limits to match
SLOW = ("http-hdr-endless", "http-slow-body", "http-slow-start", "http-accept-only")
#: limits of 64 KiB, as the rows have it
TIGHT = ("http-limit-64k", "http-limit-65k")


@cache
def asked(cases: Path) -> dict[str, Asked]:
    """What came of every row that is one answer, by id."""
    kinds: dict[str, list[Row]] = {"slow": [], "tight": [], "type": [], "plain": []}
    for row in rows(cases, FILE):
        if (row["area"] == "redirect" and row["id"] not in ONE_ANSWER) or row["id"] in BY_HAND:
            continue
        kind = "slow" if row["id"] in SLOW else "tight" if row["id"] in TIGHT else "plain"
        kinds["type" if row["area"] == "type" or row["id"] == "http-hdr-dup-ct" else kind].append(row)
    tight = replace(PATIENT, limits=replace(PATIENT.limits, wire_bytes=65_536, decoded_bytes=65_536))
    types = replace(PATIENT, content=policy.Content())
    settings = {"slow": QUICK, "tight": tight, "type": types, "plain": PATIENT}
    found: dict[str, Asked] = {}
    for kind, group in kinds.items():
        hosts = {slug(row, place): row for place, row in enumerate(group)}
        came = crawl_rows({host: site_of(row, cases) for host, row in hosts.items()}, settings[kind])
        found |= {row["id"]: came[host] for host, row in hosts.items()}
    return found


def labels(came: Asked, path: str = "/") -> set[str]:
    """What the row's words would call it."""
    last = came.pages(path)[-1]
    outcome = Outcome(last.outcome)
    found = set()
    whole = outcome in (Outcome.OK, Outcome.UNSUPPORTED_TYPE) and not last.truncated
    cut = last.truncated and came.body(path) is not None
    if whole or (outcome is Outcome.TOO_LARGE and cut):  # to the limit: it is there as far as it is wanted
        found.add("fetched")
    if cut:
        found.add("truncated")
    if outcome in (Outcome.NOT_FOUND, Outcome.GONE):
        found |= {"gone", "failed"}
    elif outcome is Outcome.NOT_MODIFIED:
        found.add("not_modified")
    elif outcome is not Outcome.OK:
        found.add("failed")
        if TABLE[outcome].retry:
            found.add("retry")
    return found


def _extracted(first: Fetch, body: bytes) -> parse.Extract:
    """What the parse stage makes of an answer and its body."""
    page = parse.RawPage(
        url_key=first.url_key,
        url=first.url,
        host=first.host,
        domain=first.domain,
        depth=1,
        first_parse=True,
        content_type=first.content_type,
        headers=first.response_headers,
        body=body,
    )
    return parse.extract([page], keyer=KEYER, settings=policy.Settings())


def is_html(came: Asked) -> bool:
    """Whether the parse stage makes a page of HTML of what was kept."""
    body, first = came.body(), came.first
    if body is None or first.truncated:
        return False
    made = _extracted(first, body)
    return bool(made.documents.num_rows) and first.sniffed_type in ("text/html", "application/xhtml+xml")


def _outcome(wanted: Any, came: Asked) -> bool:
    path = "/again" if came.pages("/again") and wanted == "fetched" and not came.pages("/") else "/"
    choices = wanted if isinstance(wanted, list) else str(wanted).split("_or_")
    choices = ["fetched" if choice == "fetched_raw" else choice for choice in choices]
    return bool(labels(came, path) & set(choices))


def _once(came: Asked) -> bool:
    """Asked once in this run, and not as often again as one likes."""
    return came.times_asked("/") == 1


def _paused(seconds: float, came: Asked) -> bool:
    state = came.state
    until = state.next_allowed_at if state else None
    return until is not None and until - came.first.finished_at >= timedelta(seconds=seconds)


def _not_reused(came: Asked) -> bool:
    again = came.pages("/again")
    return bool(again) and again[-1].outcome == "OK" and not again[-1].conn_reused


def _within(limit: timedelta, came: Asked) -> bool:
    return came.first.total_ms <= limit / timedelta(milliseconds=1) + 1_000


def _starts(wanted: str, came: Asked) -> bool:
    return (came.body() or b"").lower().startswith(wanted.lower().encode())


#: what a row may ask for → whether it holds; words that only explain are not in it
DEMANDS: dict[str, Callable[[Any, Asked], bool]] = {
    "outcome": _outcome,
    "either": _outcome,
    "retry": lambda wanted, came: wanted or _once(came),
    "bounded": lambda _, came: _within(PATIENT.limits.request_deadline, came),
    "no_hang": lambda _, came: _within(PATIENT.limits.request_deadline, came),
    "within": lambda _, came: _within(QUICK.limits.request_deadline, came),
    "not_stored_as_page": lambda _, came: came.body() is None,
    "links_followed": lambda _, came: came.body() is None,
    "host_paused_s": _paused,
    "body": lambda wanted, came: came.body() == wanted.encode(),
    "body_len": lambda wanted, came: len(came.body() or b"") == wanted == came.first.bytes,
    "body_sha1": lambda wanted, came: hashlib.sha1(came.body() or b"").hexdigest() == wanted,
    "body_if_fetched": lambda wanted, came: came.first.outcome != "OK" or _starts("<", came) or bool(wanted),
    "starts_with": _starts,
    "status": lambda wanted, came: came.first.status == wanted,
    "as_status": lambda wanted, came: came.first.outcome == "OK" and came.body() is not None,
    "connection_reused": lambda _, came: _not_reused(came),
    "truncated": lambda wanted, came: came.first.truncated is wanted,
    "full_page": lambda _, came: came.first.truncated or came.first.outcome != "OK",
    "flag": lambda _, came: came.first.truncated,
    "memory_bounded": lambda _, came: came.first.bytes <= PATIENT.limits.decoded_bytes,
    "no_alloc": lambda _, came: came.first.bytes <= 1_000,
    "page_kept": lambda _, came: came.first.known_hash == "0" * 64 and came.body() is None,
    "last_checked_updated": lambda _, came: TABLE[Outcome(came.first.outcome)].final.value == "FETCHED",
    "request_header": lambda wanted, came: all(
        came.seen[-1].header(name) == value for name, value in wanted.items()
    ),
    "stored_as": lambda _, came: came.body() is None,
    "decode_error": lambda _, came: came.first.reason is None,
    "parsed_as_html": lambda wanted, came: is_html(came) is wanted if isinstance(wanted, bool) else True,
    "stop_reading": lambda _, came: came.first.wire_bytes < 200_000 and came.body() is None,
    "retries": lambda wanted, came: len(came.pages("/again")) == 1 + wanted,
    "followed": lambda _, came: came.first.outcome == "REDIRECT" and len(came.pages()) <= 2,
    "body_not_read": lambda _, came: came.first.wire_bytes < 200_000,
    "must_not": lambda _, came: came.first.outcome == "OK",
}


def of_answer(row: Row, cases: Path) -> str | None:
    came = asked(cases)[row["id"]]
    expected = row["expected"]
    wrong = [key for key, holds in DEMANDS.items() if key in expected and not holds(expected[key], came)]
    if not wrong:
        return None
    last = came.pages()[-1]
    what = f"{last.outcome} {last.reason} {last.status}, {last.bytes} bytes, truncated {last.truncated}"
    return f"{wrong}: {what}"


# --- rows that need more than one answer --------------------------------------------------------------------


def slow_name(_: Row, folder: Path) -> str | None:
    """A name server that never answers; the other host is in the operator's list."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        dns = policy.Dns(
            hosts={"*.test": "127.0.0.1"},
            servers=(f"127.0.0.1:{mute.getsockname()[1]}",),
            timeout=timedelta(seconds=1),
        )

        async def main() -> list[Any]:
            async with RawServer({"/": response(200, b"x", HTML)}) as server:
                urls = [f"http://slow.example:{server.port}/", server.url("/")]
                result = await fetch_group(server, plan_of(urls), settings=replace(QUICK, dns=dns))
                return [record for record, _ in result.entries if record.url in urls]

        first, second = asyncio.run(main())
    if first.host != "a.test" or first.outcome != "OK":
        return f"the other host waited: {first.outcome}"
    timed_out = second.outcome in ("DNS_TIMEOUT", "ROBOTS_UNREACHABLE")
    return None if timed_out and TABLE[Outcome(second.outcome)].retry else second.outcome


def bad_certificate(_: Row, folder: Path) -> str | None:
    tls = policy.Tls(ca_file=str(certificates.ca_file(folder)))
    for context, reason in (
        (certificates.expired("a.test"), "tls_expired"),
        (certificates.self_signed("a.test", folder), "tls_self_signed"),
    ):
        answer = answer_of(RawServer({"/": response(200)}, tls=context), tls=tls)
        if (answer.outcome, answer.reason) != (Outcome.TLS_FAILURE, reason):
            return f"{answer.outcome} {answer.reason}"
    return None


def by_name(_: Row, folder: Path) -> str | None:
    """The certificate is right only for whoever says the name."""
    shown, right = certificates.context("other.test"), certificates.context("a.test")

    def choose(connection: Any, name: str | None, _: Any) -> None:
        connection.context = right if name == "a.test" else shown

    shown.sni_callback = choose  # type: ignore[assignment]
    server: Server = RawServer({"/": response(200, b"x")}, tls=shown)
    answer = answer_of(server, tls=policy.Tls(ca_file=str(certificates.ca_file(folder))))
    return None if answer.outcome is Outcome.OK else f"{answer.outcome} {answer.reason}"


def refreshed(_: Row, folder: Path) -> str | None:
    """A Refresh header is a link, as a meta refresh is."""
    says = {"/": closing(response(200, b"<p>x", HTML, "Refresh: 0; url=/new"))}
    came = crawl_rows({"a.test": Site(says=says)}, PATIENT)["a.test"]
    first, body = came.first, came.body()
    assert body is not None
    links = _extracted(first, body).links.to_pylist()
    found = [link for link in links if link["via"] == "refresh" and link["target_url"].endswith("/new")]
    return None if found else f"links: {[link['target_url'] for link in links]}"


BY_HAND: dict[str, Callable[[Row, Path], str | None]] = {
    "http-slow-dns": slow_name,
    "http-tls-cert": bad_certificate,
    "http-tls-sni": by_name,
    "http-rd-refresh-header": refreshed,
}
#: redirect rows whose point is the answer itself
ONE_ANSWER = ("http-rd-body", "http-rd-body-huge")


def test_behaviours(cases: Path, scores: Scores, tmp_path: Path) -> None:
    def check(row: Row) -> str | None:
        if row["id"] in BY_HAND:
            return BY_HAND[row["id"]](row, tmp_path)
        if row["area"] == "redirect" and row["id"] not in ONE_ANSWER:
            return http_redirects.check(row)
        return of_answer(row, cases)

    scores.run(cases, FILE, check, EXCEPTIONS, through="the fetch stage, over sockets")


def test_every_demand_of_a_row_is_known(cases: Path) -> None:
    """So that no row is met because nobody looked."""
    told = {"why", "note", "next", "method", "policy", "default", "at", "flag_optional", "retries"}
    told |= {"body_kept", "followed_forever", "referer_sent", "not_a_loop", "key_without_fragment"}
    told |= {"robots_checked_for", "next_equiv", "requests_max", "bounded_by", "requests_for_c"}
    told |= {"next_headers_without", "other_hosts_unhindered"}
    for row in rows(cases, FILE):
        assert set(row["expected"]) <= set(DEMANDS) | told, row["id"]
