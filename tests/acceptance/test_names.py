"""`crawl run` against a name server of its own (`[dns] servers`) that lies, and what the lake says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.acceptance.handmade import Crawl, Reply, Site, page, serving
from tests.dnsserver import DnsServer, alias, in_turn, leads_to, nothing, silence, slow
from tests.dnsserver import serving as naming
from tests.trap import Trap, trap

ALLOWED, FORBIDDEN = "127.0.0.2", "127.0.0.1"
NOW = datetime(2026, 1, 5, 3, tzinfo=UTC)

NAMES = {
    "plain.test": leads_to(ALLOWED),
    "alias.test": alias("x.elsewhere.test", "y.elsewhere.test", to=(ALLOWED,)),
    "mixed.test": leads_to(FORBIDDEN, ALLOWED, "10.0.0.1"),
    "inside.test": leads_to(FORBIDDEN, "10.0.0.1"),
    "in.plain.test": leads_to(FORBIDDEN),
    "moving.test": in_turn(leads_to(ALLOWED, ttl=0), leads_to(FORBIDDEN, ttl=0)),
    "gone.test": nothing,
    "silent.test": silence,
    "late.test": slow(5.0, leads_to(ALLOWED)),
    "rules.test": leads_to(ALLOWED),
    "in.rules.test": leads_to(FORBIDDEN),
}


@dataclass(slots=True)
class Scene:
    site: Site
    names: DnsServer
    caught: Trap
    crawl: Crawl

    def seen(self) -> dict[str, tuple[str, str | None]]:
        """Last outcome and reason of each URL, by host and path."""
        rows = self.crawl.sql("SELECT url, last_outcome, reason FROM urls")
        short = {row["url"].removeprefix("http://").replace(f":{self.site.port}", ""): row for row in rows}
        return {place: (row["last_outcome"], row["reason"]) for place, row in short.items()}

    def fetches(self, host: str) -> list[dict[str, Any]]:
        return self.crawl.sql(f"SELECT * FROM fetches WHERE host = '{host}' ORDER BY started_at")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Iterator[Scene]:
    with serving(ALLOWED) as site, naming() as names, trap(site.port) as caught:
        names.says.update(NAMES)
        site.put("plain.test", "/", Reply(status=302, headers={"Location": site.url("in.plain.test")}))
        for host in ("alias.test", "mixed.test", "moving.test", "rules.test"):
            site.put(host, "/", page(host, f"the text of {host}"))
        elsewhere = {"Location": site.url("in.rules.test", "/robots.txt")}
        site.put("rules.test", "/robots.txt", Reply(status=301, headers=elsewhere))
        crawl = Crawl(
            tmp_path_factory.mktemp("names") / "lake",
            workers,
            {
                "agent": {"name": "Atlas-Bot", "contact": "https://atlas.example.org/bot"},
                "egress": {"allow": [f"{ALLOWED}/32"]},
                "dns": {"servers": [names.setting], "timeout": "800ms"},
                "politeness": {"min_delay": "20ms", "factor": 0.0},
                "storage": {"upkeep": False},
            },
        )
        seeds = [host for host in NAMES if not host.startswith("in.")]
        literals = [FORBIDDEN, "127.1", "0x7f000001", "localhost", "[::1]", f"[::ffff:{FORBIDDEN}]"]
        urls = [site.url(host) for host in (*seeds, *literals)]
        crawl.seed(*urls, site.url("moving.test", "/2"), now=NOW)
        crawl.command("run", str(crawl.root), "--scheduler", workers, "--now", NOW.isoformat())
        yield Scene(site, names, caught, crawl)


def test_the_listener_on_the_forbidden_address_saw_no_connection_at_all(scene: Scene) -> None:
    assert scene.caught.connections == []
    assert {asked.host for asked in scene.site.log} <= {"plain.test", "alias.test", "mixed.test"} | {
        "moving.test",
        "rules.test",
    }


def test_a_refused_address_is_told_by_name_for_pages_hops_addresses_and_robots(scene: Scene) -> None:
    seen = scene.seen()
    assert seen["inside.test/"][0] == "EGRESS_DENIED"
    assert sorted((seen["inside.test/"][1] or "").split(", ")) == ["10.0.0.1", FORBIDDEN]
    assert seen["in.plain.test/"] == ("EGRESS_DENIED", FORBIDDEN)
    assert seen[f"{FORBIDDEN}/"] == seen["localhost/"] == ("EGRESS_DENIED", FORBIDDEN)
    assert seen["[::1]/"] == ("EGRESS_DENIED", "::1")
    assert seen["[::ffff:7f00:1]/"] == ("EGRESS_DENIED", "::ffff:7f00:1")
    assert seen["plain.test/"][0] == "REDIRECT"
    assert seen["rules.test/"][0] == "ROBOTS_UNREACHABLE"


def test_a_name_that_moved_between_two_requests_is_checked_anew(scene: Scene) -> None:
    robots, *pages = scene.fetches("moving.test")
    assert (robots["kind"], robots["address"], pages) == ("robots", ALLOWED, [])
    assert scene.seen()["moving.test/"] == scene.seen()["moving.test/2"] == ("EGRESS_DENIED", FORBIDDEN)


def test_of_mixed_answers_the_row_says_which_were_refused(scene: Scene) -> None:
    for row in scene.fetches("mixed.test"):
        assert row["address"] == ALLOWED
        assert sorted(row["dns_note"].removesuffix(" refused").split(", ")) == ["10.0.0.1", FORBIDDEN]
    assert scene.seen()["mixed.test/"][0] == scene.seen()["alias.test/"][0] == "OK"
    told = scene.crawl.explain(scene.site.url("mixed.test"), NOW)
    assert "of its name's answer:" in told


def test_names_without_an_answer_are_typed_and_look_ups_can_be_counted(scene: Scene) -> None:
    outcomes = {
        host: {(row["outcome"], row["reason"]) for row in scene.fetches(host)}
        for host in ("gone.test", "silent.test", "late.test")
    }
    assert outcomes == {
        "gone.test": {("DNS_FAILURE", "Domain name not found")},
        "silent.test": {("DNS_TIMEOUT", "no answer in 0.8 s")},
        "late.test": {("DNS_TIMEOUT", "no answer in 0.8 s")},
    }
    (first,) = scene.crawl.sql(
        "SELECT count(*) AS lookups, count(*) FILTER (outcome LIKE 'DNS%') AS failed,"
        " count(*) FILTER (dns_cached) AS hits, bool_and(dns_cached = (dns_ms = 0)) AS told"
        " FROM fetches WHERE round = 1 AND dns_cached IS NOT NULL"
    )
    assert (first["failed"], first["told"]) == (3, True)
    asked = {q.name for q in scene.names.asked}
    assert first["lookups"] - first["hits"] <= len(asked)


def test_the_checks_find_nothing(scene: Scene) -> None:
    scene.crawl.command("check", str(scene.crawl.root))
