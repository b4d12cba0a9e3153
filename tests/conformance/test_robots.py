"""robots.txt: the outside cases of crawl.robots."""

from __future__ import annotations

import base64
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from crawl.robots import Rules, parse
from tests.conformance.report import Apart, Row, Scores

THROUGH = "crawl.robots.parse(…).verdict"


def body(row: Row) -> bytes:
    if "robots_txt_b64" in row:
        return base64.b64decode(row["robots_txt_b64"])
    return str(row["robots_txt"]).encode("utf-8", "surrogatepass")


def differs(got: object, wanted: object) -> str | None:
    return None if got == wanted else f"{got!r}, not {wanted!r}"


def allows(rules: Rules, row: Row) -> bool:
    return rules.verdict(row["user_agent"], row["url"]).allowed


def recommended(row: Row) -> str | None:
    """Where peers differ: what the row recommends; where it leaves the choice, any answer is met."""
    got, advice = allows(parse(body(row)), row), row["recommended"]
    if advice.startswith("either"):
        return None
    return differs(got, row["rfc9309_allowed"] if advice == "RFC" else not advice.endswith("disallow"))


@cache
def archive(cases: Path) -> Mapping[str, Rules]:
    """The real files, read."""
    found = {}
    with tarfile.open(cases / "robots" / "corpus" / "robots_files.tar.gz") as files:
        for member in files:
            if member.isfile() and (file := files.extractfile(member)) is not None:
                found[member.name.rpartition("/")[2]] = parse(file.read())
    return found


def test_verdicts(cases: Path, scores: Scores) -> None:
    scores.run(
        cases,
        "robots/allow.jsonl",
        lambda row: differs(allows(parse(body(row)), row), row["allowed"]),
        through=THROUGH,
    )


def test_where_peers_differ(cases: Path, scores: Scores) -> None:
    scores.run(cases, "robots/peer_specific.jsonl", recommended, through=THROUGH)


def test_large_files(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        made = row["robots_txt_gen"]
        text, pad = made["head"], made["pad_line"]
        text += pad * -(-(made["pad_until_bytes"] - len(text)) // len(pad)) + made["tail"]
        got = allows(parse(text.encode()), row)
        return None if row["allowed"] is None else differs(got, row["allowed"])

    scores.run(cases, "robots/generated_large.jsonl", check, through=THROUGH)


def test_delays_and_sitemaps(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | Apart | None:
        rules = parse(body(row), row.get("robots_url"))
        if "request_rate" in row and "crawl_delay" not in row:
            return Apart("Request-rate is in no standard; Crawl-delay is read")
        if "crawl_delay" in row and (
            wrong := differs(rules.crawl_delay(row["user_agent"]), row["crawl_delay"])
        ):
            return wrong
        return differs(list(rules.sitemaps), row["sitemaps"]) if "sitemaps" in row else None

    scores.run(cases, "robots/meta.jsonl", check, through="crawl.robots.parse(…).crawl_delay, .sitemaps")


def test_real_files(cases: Path, scores: Scores) -> None:
    scores.run(
        cases,
        "robots/corpus/decisions.jsonl",
        lambda row: differs(allows(archive(cases)[row["file"]], row), row["allowed"]),
        through=THROUGH,
    )


def test_real_files_on_which_parsers_disagree(cases: Path, scores: Scores) -> None:
    scores.run(
        cases,
        "robots/corpus/disagreements.jsonl",
        lambda row: differs(allows(archive(cases)[row["file"]], row), row["rfc9309_allowed"]),
        through=THROUGH,
    )
