"""A crawl of a small web by the commands alone: seeded, planned, run, asked, explained, kept up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.web.grow import Web
from tests.web.serve import Running, running, toml

FIRST, LATER = "2026-01-05", "2026-03-05"


@dataclass(frozen=True)
class Crawl:
    """A lake and the web it is of."""

    lake: Path
    web: Running
    root: Path

    def __call__(self, *arguments: object, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "cycles", arguments[0], self.lake, *map(str, arguments[1:])],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert code == done.returncode, done.stdout + done.stderr
        return done.stdout

    def sql(self, statement: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self("sql", statement, "--format", "json"))
        return found


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory, repo_root: Path) -> Iterator[Crawl]:
    """Two rounds of a small web, with one page a host in the first and room for few in the second."""
    with running(Web(1, hosts=4, pages=24)) as web:
        made = Crawl(tmp_path_factory.mktemp("crawl") / "lake", web, repo_root)
        made("init")
        (made.lake / "crawl.toml").write_text(
            toml(web.settings) + '\n[politeness]\nmin_delay = "10ms"\nfactor = 0.0\n[planning]\nurls = 9\n'
        )
        made("seed", *web.web.seed_urls)
        web.control(now=FIRST)
        plan = json.loads(made("plan", "--now", FIRST, "--format", "json"))
        made("run", "--rounds", 2, "--now", FIRST, "--workers", 1)
        assert len(web.web.seed_urls) == plan["pages"]
        yield made


def test_every_request_that_was_answered_is_in_the_lake(crawl: Crawl) -> None:
    asked = crawl.sql("SELECT url FROM fetches WHERE status IS NOT NULL")
    served = [f"http://{row['host']}{row['path']}" for row in crawl.web.log() if row["status"]]
    port = f":{crawl.web.port}"
    assert sorted(row["url"].replace(port, "") for row in asked) == sorted(
        u.replace(port, "") for u in served
    )


def test_the_lake_holds_every_check(crawl: Crawl) -> None:
    assert "FAIL" not in crawl("check")


def test_the_report_adds_up(crawl: Crawl) -> None:
    found = json.loads(crawl("report", 2, "--format", "json"))
    assert 9 == found["funnel"][0]["planned"]
    assert ["round_cap"] == sorted({row["reason"] for row in found["cuts"]})
    text = crawl("report")
    assert "9 planned" in text
    assert "round_cap" in text


def test_a_url_that_was_cut_is_explained_by_how_much(crawl: Crawl) -> None:
    cut = crawl.sql(
        "SELECT url FROM urls WHERE first_seen_round = 1 AND crawl_count = 0 AND attempts = 0"
        " AND state = 'DISCOVERED' ORDER BY score LIMIT 1"
    )[0]["url"]
    decision = json.loads(crawl("explain", cut, "--format", "json"))["decisions"][1]
    assert ("left_out", "round_cap") == (decision["decision"], decision["reason"])
    assert decision["short_by"] >= 0
    assert "left out (round_cap" in crawl("explain", cut)


def test_a_url_that_was_fetched_is_explained_with_its_requests(crawl: Crawl) -> None:
    url = crawl.sql("SELECT url FROM fetches WHERE kind = 'page' AND round = 2 AND outcome = 'OK' LIMIT 1")[
        0
    ]["url"]
    text = crawl("explain", url)
    assert "found by link from" in text
    assert "round 1 (2026-01-05 00:00:00): discovered" in text
    assert "OK → FETCHED" in text
    assert f"GET {url} → 200 OK" in text
    assert "7 d after the first answer" in text


def test_status_says_what_is_due(crawl: Crawl) -> None:
    found = json.loads(crawl("status", "--now", FIRST, "--format", "json"))
    assert 2 == found["round"]
    assert found["urls"]["due"] > 0
    assert "released" == found["holder"]["state"]
    assert found["open_round"] is None


def test_a_paused_host_is_not_planned(crawl: Crawl) -> None:
    host = crawl.sql("SELECT host FROM urls WHERE due GROUP BY host ORDER BY count(*) DESC, host LIMIT 1")[0][
        "host"
    ]
    crawl("pause", host)
    held = json.loads(crawl("plan", "--now", FIRST, "--format", "json"))
    crawl("resume", host)
    free = json.loads(crawl("plan", "--now", FIRST, "--format", "json"))
    assert held["hosts"] < free["hosts"] or host not in {cap["host"] for cap in held["caps"]}
    assert "paused" in held["cuts"]
    assert "paused" not in free["cuts"]


def test_upkeep_changes_no_answer(crawl: Crawl) -> None:
    question = "SELECT url_key, state, round FROM urls ORDER BY 1"
    before = crawl.sql(question)
    crawl("upkeep")
    assert before == crawl.sql(question)
    assert "FAIL" not in crawl("check")
