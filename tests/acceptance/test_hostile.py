"""A web of servers that mean harm, crawled beside healthy ones by the command: two rounds, one lake.

Every wile ends in an outcome it may have; the healthy hosts are crawled whole; nobody's memory grows with
what a server sends; nothing beyond the one address allowed is ever connected to, by whatever path; the lake
stays right. A bomb, a loop or an endless header of one server costs the others nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.acceptance.evil import WAITS
from tests.acceptance.hostileweb import ALLOWED, HEALTHY, PAGES, Canary, besieged, running
from tests.acceptance.processes import Command, crawl, done
from tests.acceptance.securewiles import BY_NAME, HTTP2, Secure, secure
from tests.acceptance.wiles import WILES, inwards
from tests.crawl.rawserver import RawServer
from tests.web.serve import toml

FIRST, SECOND = "2026-01-01T00:00:00Z", "2026-01-09T00:00:00Z"
#: no process of a crawl may ever have held more (bytes)
MOST_MEMORY = 1 << 30
#: names that the operator's own list leads to where it must not go
INNER = {"inner.within.test": "127.0.0.1", "inner.toinner.test": "127.0.0.1"}

pytestmark = pytest.mark.timeout(240)


@dataclass(slots=True, kw_only=True)
class Crawled:
    """The lake after two rounds."""

    root: Path
    server: RawServer
    secure: Secure
    canary: Canary
    peaks: Mapping[int, int]  # process → most memory it ever had, in bytes
    rounds: list[dict[str, Any]]  # after each round: url (without port) → row

    def ask(self, question: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(done("sql", str(self.root), question, "--format", "json"))
        return rows

    def row(self, host: str, path: str = "/", round_: int = 1) -> dict[str, Any]:
        found: dict[str, Any] = self.rounds[round_ - 1][f"http://{host}{path}"]
        return found


def settings(ca_file: Path) -> str:
    """One address is allowed; nobody is asked about names; patience is short."""
    return toml(
        {
            "agent": {"name": "tester", "contact": "mailto:tester@example.org"},
            "egress": {"allow": [f"{ALLOWED}/32"]},
            "tls": {"ca_file": str(ca_file)},
            "dns": {"hosts": {"*.test": ALLOWED, **INNER}, "servers": [f"{ALLOWED}:9"], "timeout": "1s"},
            "politeness": {"min_delay": "5ms", "factor": 0.0},
            "limits": {"request_deadline": "8s", "idle": "4s", "connect_timeout": "4s"},
            "parsing": {"deadline": "2s", "links": 500},
            "retry": {"attempts": 1},  # no round waits for second tries
            "storage": {"upkeep": False},
        }
    )


def watched(command: Command, peaks: dict[int, int]) -> None:
    """Keep the peak memory of all its processes until it ends."""
    while command.code is None:
        for process in [psutil.Process(command.pid), *command.tree()]:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            found = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
            peaks[process.pid] = max(peaks.get(process.pid, 0), *(kib * 1024 for kib in found), 0)
        time.sleep(0.2)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("hostile")
    root = folder / "lake"
    closed = secure(ALLOWED, folder)
    with besieged() as (server, canary), running(closed.one, closed.two):
        done("init", str(root))
        (root / "crawl.toml").write_text(settings(closed.ca_file), encoding="utf-8")
        names = [*HEALTHY, *(f"{name}.test" for name in (*WILES, *inwards(server.port)))]
        seeds = [*(server.url("/", name) for name in names), *map(closed.url, (*BY_NAME, *HTTP2))]
        (root / "seeds.txt").write_text("\n".join(seeds), encoding="utf-8")
        done("seed", str(root), "--file", str(root / "seeds.txt"), "--now", FIRST)
        made = Crawled(root=root, server=server, secure=closed, canary=canary, peaks={}, rounds=[])
        peaks: dict[int, int] = {}
        for now in (FIRST, SECOND):
            with crawl("run", str(root), "--now", now, "--workers", "2", "--window", "60s") as command:
                watched(command, peaks)
                assert command.ended() == 0, command.text()
            question = "SELECT url, state, last_outcome AS outcome, reason, crawl_count FROM urls"
            rows = made.ask(question)
            made.rounds.append({row["url"].replace(f":{server.port}", "", 1): row for row in rows})
        made.peaks = peaks
        yield made


@pytest.mark.parametrize("name", WILES)
def test_a_wile_ends_in_an_outcome_it_may_have(crawled: Crawled, name: str) -> None:
    row = crawled.row(f"{name}.test")
    assert (row["outcome"] or WAITS) in WILES[name].outcomes, row
    assert row["state"] in ("FETCHED", "FAILED_RETRYABLE", "QUARANTINED", "BLOCKED", "DISCOVERED"), row


@pytest.mark.parametrize("name", HTTP2)
def test_a_wile_of_http_2_ends_in_an_outcome_it_may_have(crawled: Crawled, name: str) -> None:
    home = crawled.secure.url(name)
    (row,) = crawled.ask(f"SELECT last_outcome AS outcome, reason FROM urls WHERE url = '{home}'")
    assert row["outcome"] in HTTP2[name][1], row


def test_each_bad_certificate_has_its_reason_and_nothing_is_asked_of_its_host(crawled: Crawled) -> None:
    rows = crawled.ask("SELECT DISTINCT host, outcome, reason FROM fetches WHERE host LIKE 'tls%'")
    found = {(row["host"].removesuffix(".test"), row["outcome"], row["reason"]) for row in rows}
    bad = {(name, "TLS_FAILURE", reason) for name, reason in BY_NAME.items() if reason is not None}
    assert bad < found
    assert {host for host, outcome, _ in found if outcome == "OK"} == {"tlsfine"}
    assert {seen.host.partition(".")[0] for seen in crawled.secure.one.seen} == {"tlsfine"}


def test_the_protocol_of_each_answer_is_recorded(crawled: Crawled) -> None:
    rows = crawled.ask("SELECT DISTINCT host, http_version FROM fetches WHERE host LIKE '%fine.test'")
    assert {row["host"]: row["http_version"] for row in rows} == {"h2fine.test": "2", "tlsfine.test": "1.1"}


def test_what_came_of_a_page_is_kept_and_flagged(crawled: Crawled) -> None:
    (row,) = crawled.ask("SELECT state, title, text FROM pages WHERE host = 'h2cut.test'")
    assert (row["state"], row["title"]) == ("FAILED_RETRYABLE", "cut")
    assert "the beginning" in row["text"]
    (part,) = crawled.ask("SELECT truncated FROM documents WHERE title = 'cut'")
    assert part["truncated"]


def test_healthy_hosts_are_crawled_whole(crawled: Crawled) -> None:
    for host in HEALTHY:
        assert crawled.row(host)["outcome"] == "OK"
        for number in range(1, PAGES):
            assert crawled.row(host, f"/p{number}", round_=2)["outcome"] == "OK", (host, number)
            assert crawled.server.paths(host).count(f"/p{number}") == 1


def test_only_the_one_address_allowed_was_ever_connected_to(crawled: Crawled) -> None:
    assert crawled.canary.came == []
    asked = crawled.ask("SELECT DISTINCT address FROM fetches WHERE status IS NOT NULL")
    assert asked == [{"address": ALLOWED}]


def test_redirects_inward_are_kept_as_links_and_their_targets_denied(crawled: Crawled) -> None:
    rows = crawled.ask("SELECT host, state, last_outcome AS outcome FROM urls WHERE url LIKE '%/secret'")
    assert len(rows) >= 8  # many of the ways to write this machine are one URL
    assert {row["outcome"] for row in rows} <= {"EGRESS_DENIED", "ROBOTS_UNREACHABLE"}, rows


def test_no_process_held_more_than_its_bound(crawled: Crawled) -> None:
    assert len(crawled.peaks) >= 4
    assert max(crawled.peaks.values()) < MOST_MEMORY, crawled.peaks


def test_a_page_coded_part_by_part_is_read_whole(crawled: Crawled) -> None:
    (row,) = crawled.ask("SELECT text FROM documents WHERE title = 'one'")
    assert "two" in row["text"]
    assert "http://parts.test/3" in crawled.rounds[0]


def test_a_cookie_is_never_brought_back(crawled: Crawled) -> None:
    asked = [seen for seen in crawled.server.seen if seen.host.startswith("cookie.test")]
    assert len(asked) >= 3
    assert all(seen.header("cookie") is None for seen in asked)


def test_links_beyond_the_limit_leave_a_reason(crawled: Crawled) -> None:
    reasons = {row["reason"] for row in crawled.ask("SELECT DISTINCT reason FROM rejects")}
    assert {"too_many_links", "url_too_long", "url_credentials", "repeated_segment"} <= reasons
    (row,) = crawled.ask("SELECT count(*) AS n FROM urls WHERE host = 'manylinks.test'")
    assert row["n"] <= 501


def test_what_a_header_tries_to_inject_is_no_header_of_a_request(crawled: Crawled) -> None:
    for seen in crawled.server.seen:
        names = {line.partition(":")[0].lower() for line in seen.lines[1:]}
        known = {"host", "user-agent", "accept", "accept-encoding", "if-none-match", "if-modified-since"}
        assert names <= known, seen.lines


def test_the_lake_stays_right(crawled: Crawled) -> None:
    done("check", str(crawled.root))
