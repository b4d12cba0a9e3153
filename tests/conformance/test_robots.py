"""robots.txt: the outside cases of crawl.robots, and of how the fetch stage obtains it over real sockets."""

from __future__ import annotations

import asyncio
import base64
import gzip
import tarfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from crawl.robots import Rules, parse
from crawl.robots.copies import robots_url
from crawl.url import origin
from tests.conformance.report import Apart, Row, Scores
from tests.crawl.rawserver import RawServer, response, silent
from tests.crawl.stages.fetching import Result, fetch_group, plan_of

DENY = b"User-agent: *\nDisallow: /private\n"
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


# --- over sockets -------------------------------------------------------------------------------------------

Says = dict[str, Any]


def crawled(says: Says, paths: list[str], *, listening: bool = True) -> Result:
    """One group asks these paths of one host, whose pages are all there."""

    async def main() -> Result:
        pages: Says = {path: response(200, b"page") for path in paths}
        async with RawServer({**pages, **says}) as server:
            plan = plan_of(server.url(path) for path in paths)
            if not listening:
                await server.__aexit__(None, None, None)
            return await fetch_group(server, plan)

    return asyncio.run(main())


def outcome(result: Result, path: str) -> str:
    """What became of a page: allowed, disallowed for now, or denied."""
    said = result.outcomes().get(path, "deferred")  # its host is left alone for longer than the window
    named = {"ROBOTS_UNREACHABLE": "deferred", "ROBOTS_DENIED": "denied"}
    return named.get(said, "allowed" if path in result.server.paths() else said)


def expected(result: Result, row: Row) -> str | None:
    """Compares with what a row of `fetch_status` expects."""
    wants: Mapping[str, Any] = row["expected"]
    copy = result.visited.robots[0]
    if wants.get("either"):
        return None
    for path in wants.get("disallowed", ()):
        if outcome(result, path) != "denied":
            return f"{path} is {outcome(result, path)}"
    for path in wants.get("allowed", ()):
        if outcome(result, path) != "allowed":
            return f"{path} is {outcome(result, path)}"
    if "decision" not in wants:
        return None
    decision = "allowed" if wants["decision"] == "allow_all" else "deferred"
    if outcome(result, "/x") != decision:
        return f"/x is {outcome(result, '/x')}, not {decision}"
    if "retry_after_s" in wants:
        waits = (copy.valid_until - copy.fetched_at).total_seconds()
        return None if waits >= wants["retry_after_s"] else f"asked again after {waits} s"
    return None


def said(row: Row) -> Says:
    """What the server says, from a row's words."""
    sends: Mapping[str, Any] = row["server_sends"]
    if "chain" in sends:
        return chain(sends["chain"])
    if sends.get("connect") == "timeout":
        return {"/robots.txt": silent()}
    text = sends.get("body", "")
    content = base64.b64decode(sends["body_b64"]) if "body_b64" in sends else text.encode()
    if text.startswith("gzip("):
        content = gzip.compress(DENY)
    lines = [f"{name}: {value}" for name, value in sends.get("headers", {}).items()]
    return {"/robots.txt": response(sends.get("status", 200), content, *lines)}


def chain(words: list[str]) -> Says:
    """`301 -> /x`, `302`, `404`, `200 Disallow: /private`: one answer after the other."""
    says: Says = {}
    here = "/robots.txt"
    for number, word in enumerate(words):
        status, _, rest = word.partition(" ")
        if not status.startswith("3"):
            says[here] = response(int(status), b"User-agent: *\n" + rest.encode())
            break
        to = rest.removeprefix("-> ") or f"/hop{number}"
        says[here] = response(int(status), b"", f"Location: {to}")
        here = to
    return says


def cross_host(row: Row) -> str | None:
    """Two rounds: in the first the target belongs to another owner, in the second to this one."""

    async def main() -> Result:
        async with RawServer({"/private/x": response(200, b"page")}) as server:
            rules = f"http://www.other.test:{server.port}/robots.txt"
            server.says["a.test/robots.txt"] = response(302, b"", f"Location: {rules}")
            server.says["www.other.test/robots.txt"] = response(200, DENY)
            plan = plan_of([server.url("/private/x")])
            first = await fetch_group(server, plan)
            copies = {copy.origin: copy for copy in first.visited.robots}
            return await fetch_group(server, plan, robots=copies)

    result = asyncio.run(main())
    return expected(result, row) or differs(
        result.visited.robots[0].origin, result.fetches("robots")[0].origin
    )


def once(row: Row) -> str | None:
    result = crawled({"/robots.txt": response(200, DENY)}, [f"/{n}" for n in range(100)])
    return differs(result.server.paths().count("/robots.txt"), row["expected"]["robots_requests"])


def target_checked(row: Row) -> str | None:
    says = {"/robots.txt": response(200, DENY), "/a": response(302, b"", "Location: /private/b")}
    result = crawled({**says, "/private/b": response(200, b"page")}, ["/a"])
    return "the target was requested" if "/private/b" in result.server.paths() else None


_OWN: Mapping[str, Callable[[Row], str | None]] = {
    "robs-302-cross-host": cross_host,
    "robs-once": once,
    "robs-redir-target-check": target_checked,
}


def test_answers_over_sockets(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        if row["id"] in _OWN:
            return _OWN[row["id"]](row)
        if "robots_url" in row["expected"]:
            page = row["server_sends"]["note"].removesuffix(" page")
            if not page.startswith("http"):  # "… exists": another file than the one asked for
                page = page.partition(" ")[0]
            return differs(robots_url(origin(page)), row["expected"]["robots_url"])
        listening = row["server_sends"].get("connect") != "refused"
        result = crawled(said(row), ["/x", "/private/x"], listening=listening)
        return expected(result, row)

    scores.run(
        cases,
        "robots/fetch_status.jsonl",
        check,
        through="the fetch stage over sockets, crawl.robots.robots_url",
    )
