"""What once went wrong in other crawlers and in the libraries below them: `bugreports.jsonl`."""

import asyncio
import gzip
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

import duckdb
from deltalake import DeltaTable

from crawl import html, robots, sitemap, url
from crawl.errors import Conflict
from crawl.net.content import Decoder
from crawl.net.exchange import Answer, location
from crawl.outcomes import Outcome
from crawl.policy import Politeness
from crawl.politeness.clock import HostState, gap
from lake import delta, files, runs
from tests.conformance.http_servers import PATIENT, Asked, Site, crawl_rows
from tests.conformance.report import Apart, Row, Scores
from tests.crawl.rawserver import RawServer, response
from tests.crawl.stages.fetching import fetch_group, plan_of
from tests.lake import lakes, rows

HTML: Final = "Content-Type: text/html"


def differs(got: object, wanted: object) -> str | None:
    return None if got == wanted else f"{got!r}, not {wanted!r}"


def crawled(site: Site) -> Asked:
    return crawl_rows({"a.test": site}, PATIENT)["a.test"]


# --- by what a row tells ------------------------------------------------------------------------------------


def of_url(given: Row, right: Row) -> str | None:
    found = url.canonical(given["url"])
    if "request_target" in right:
        return differs("/" + found.split("/", 3)[3], right["request_target"])
    if "either" in right:
        return None if found in right["either"] else found
    if "different_from" in right and url.key_form(found) == url.key_form(right["different_from"]):
        return f"one key with {right['different_from']}"
    if url.key_form(url.key_form(found)) != url.key_form(found):
        return "not stable"
    return differs(url.key_form(found), url.key_form(url.canonical(right["canonical"])))


def of_robots(given: Row, right: Row) -> str | None:
    rules = robots.parse(given["robots_txt"].encode())
    agent = given.get("agent", "probe")
    found = [rules.verdict(agent, url.canonical(one)).allowed for one in given["urls"]]
    return differs(found, right["allowed"])


def of_html(given: Row, right: Row) -> str | None:
    page = html.read(given["html"].encode(), "text/html; charset=utf-8", given["page"])
    if "refresh_url" in right:
        return differs(page.refresh and page.refresh[1], right["refresh_url"])
    if "canonical" in right:
        return differs(page.canonical, right["canonical"])
    return differs([one for one, *_ in page.links], right["links"])


def of_sitemap(given: Row, right: Row) -> str | None:
    """A literal sitemap, or one in as many layers of gzip as the row says, the header's undone first."""
    if "xml" in given:
        found = sitemap.read(given["xml"].encode(), "http://example.com/sitemap.xml", "application/xml")
        return differs([one.loc for one in found.entries], right["entries"])
    listed = ["http://example.com/a", "http://example.com/b"]
    text = "".join(f"<url><loc>{one}</loc></url>" for one in listed)
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{text}</urlset>'.encode()
    for _ in range(given["body"].count("gzip(")):
        body = gzip.compress(body)
    decoder = Decoder(given["headers"]["Content-Encoding"], 1 << 20)
    served = decoder.feed(body)
    decoder.finish()
    found = sitemap.read(served, given["url"], given["headers"]["Content-Type"])
    return differs(([one.loc for one in found.entries], found.error), (listed, None))


# --- one by one ---------------------------------------------------------------------------------------------


def raw_location(row: Row) -> str | None:
    octets = bytes.fromhex(row["smallest_input"]["location_octets"]).decode("latin-1")
    answer = Answer(
        outcome=Outcome.REDIRECT, reason=None, began=0, ended=0, status=302, headers=f"Location: {octets}"
    )
    found = url.canonical(location(answer) or "", "http://example.com/x")
    return differs("/" + found.split("/", 3)[3], row["right"]["next_path"])


def followed_as_written(row: Row) -> str | None:
    """The second request asks for exactly what Location said."""
    first, second = row["right"]["requests"]
    says = {first: response(302, b"", f"Location: {second}"), second: response(200, b"ok", HTML)}
    found = crawled(Site(says=says, paths=(first,)))
    return differs([seen.path for seen in found.seen if seen.path != "/robots.txt"], [first, second])


def target_as_written(row: Row) -> str | None:
    target = row["right"]["request_target"]
    found = crawled(
        Site(says={"/": response(302, b"", f"Location: {target}"), target: response(200, b"ok", HTML)})
    )
    return None if found.times_asked(target) == 1 else str([seen.path for seen in found.seen])


def long_header(row: Row) -> str | None:
    header = row["smallest_input"]["header"]
    line = f"{header['name']}: {'x' * header['length']}"
    found = crawled(Site(says={"/": response(200, b"ok", HTML, line)}))
    return differs((found.first.outcome, found.body("/")), ("OK", b"ok"))


def coded_nothing(_: Row) -> str | None:
    raw = b"HTTP/1.1 204 X\r\nContent-Encoding: gzip\r\n\r\n"
    found = crawled(Site(says={"/": raw}))
    return differs((found.first.outcome, found.first.bytes), ("OK", 0))


def conditional_date(row: Row) -> str | None:
    stored = row["smallest_input"]["stored_last_modified"]
    known = {"last_modified": stored, "content_hash": "0" * 64, "parsed": True}
    raw = b"HTTP/1.1 304 X\r\n\r\n"
    found = crawled(Site(says={"/": raw}, planned=known))
    return differs(found.first.request_validators, f"If-Modified-Since: {stored}")


def long_delay(row: Row) -> str | None:
    delay = robots.parse(row["smallest_input"]["robots_txt"].encode()).crawl_delay("probe")
    host = HostState.new("a.test", "a.test", 1)
    state = HostState.from_row({**host.to_row(1), "robots_delay_ms": (delay or 0) * 1000})
    wait, _ = gap(state, timedelta(seconds=1), Politeness(), public=True)
    return differs((delay, wait.total_seconds()), (row["right"]["delay_s"], row["right"]["delay_s"]))


def late_declaration(row: Row) -> str | None:
    body = b"<head><script>" + b"x" * 4000 + b"</script><meta charset=utf-8></head>\xd8\xa3\xd8\xae"
    return differs(html.read(body, "text/html", "http://a.test/").text, row["right"]["text"])


def declared(row: Row) -> str | None:
    body = row["smallest_input"]["html"].encode("latin-1").replace(b"\\xf6", b"\xf6")
    return differs(html.read(body, "text/html", "http://a.test/").text, row["right"]["text"])


def foreign_rules(_: Row) -> str | None:
    """Rules reached through another host's redirect hold for the asking origin alone."""

    async def main() -> dict[str, str]:
        async with RawServer({"/page": response(200, b"page", HTML)}) as server:
            rules = f"http://b.example.test:{server.port}/x/robots.txt"
            server.says["a.example.test/robots.txt"] = response(301, b"", f"Location: {rules}")
            server.says["b.example.test/x/robots.txt"] = response(200, b"User-agent: *\nAllow: /")
            server.says["b.example.test/robots.txt"] = response(200, b"User-agent: *\nDisallow: /")
            plan = plan_of(server.url("/page", host) for host in ("a.example.test", "b.example.test"))
            found = await fetch_group(server, plan)
            return {r.host: r.outcome for r, _ in found.entries if r.kind == "page"}

    wanted = {"a.example.test": "OK", "b.example.test": "ROBOTS_DENIED"}
    return differs(asyncio.run(main()), wanted)


def redirect_in_record(_: Row) -> str | None:
    """Both hops of a redirected robots.txt are records of their own, each with its status."""

    async def main() -> list[tuple[str, int | None]]:
        async with RawServer({"/page": response(200, b"page", HTML)}) as server:
            rules = f"http://b.example.test:{server.port}/robots.txt"
            server.says["a.example.test/robots.txt"] = response(301, b"", f"Location: {rules}")
            found = await fetch_group(server, plan_of([server.url("/page", "a.example.test")]))
            return [(record.host, record.status) for record in found.fetches("robots")]

    return differs(asyncio.run(main())[:2], [("a.example.test", 301), ("b.example.test", 404)])


def two_writers(folder: Path) -> str | None:
    """Of two rewrites planned on one version, one wins and the other is told."""
    store = lakes.new(folder / "writers")
    lakes.put(store, "seen", rows.seen([1, 2], 1))
    planned = delta.files(store, "seen")
    told = []
    for number in (1, 2):
        again = files.write(store, "seen", rows.seen([1, 2], 1), name=runs.name(1, 1, number))
        try:
            delta.commit(store, "seen", app="rewrite", adds=[again], removes=planned, rewrite=True)
            told.append("won")
        except Conflict:
            told.append("told")
    count = sum(len(files.read(store, entry)) for entry in delta.files(store, "seen"))
    return differs((told, count), (["won", "told"], 2))


def odd_floats(folder: Path) -> str | None:
    store = lakes.new(folder / "floats")
    scores = [1.0, float("inf"), float("nan")]
    lakes.put(store, "seen", rows.seen([1, 2, 3], 1, score=scores))
    read = DeltaTable(str(folder / "floats" / "seen")).to_pyarrow_table().num_rows
    place = f"{folder}/floats/seen/*.parquet"
    found = duckdb.sql(f"select count(*) from read_parquet('{place}') where score > 0.5").fetchall()
    return differs((read, found), (3, [(3,)]))


_KINDS: Final[Mapping[str, Callable[[Row, Row], str | None]]] = {
    "url": of_url,
    "robots": of_robots,
    "html": of_html,
    "sitemap": of_sitemap,
}
_OWN: Final[Mapping[str, Callable[[Row], str | None]]] = {
    "bug-scrapy-2321": raw_location,
    "bug-aiohttp-6626": followed_as_written,
    "bug-aiohttp-7183": target_as_written,
    "bug-aiohttp-2304": long_header,
    "bug-aiohttp-609": coded_nothing,
    "bug-stormcrawler-673": conditional_date,
    "bug-stormcrawler-768": long_delay,
    "bug-stormcrawler-537": late_declaration,
    "bug-trafilatura-231": declared,
    "bug-stormcrawler-573": foreign_rules,
    "bug-nutch-4": redirect_in_record,
}
_LAKE: Final[Mapping[str, Callable[[Path], str | None]]] = {
    "bug-delta-rs-1254": two_writers,
    "bug-delta-rs-1411": odd_floats,
}
_BY_DAY = "tables are partitioned by a date, which is never null nor has to be escaped"
_KILLED = "a matter of whole rounds: tests/acceptance/test_kills.py kills drivers and workers"
_APART: Final[Mapping[str, str]] = {
    "bug-delta-rs-3577": _BY_DAY,
    "bug-duckdb-delta-342": _BY_DAY,
    "bug-distributed-7870": _KILLED,
    "bug-distributed-847": _KILLED,
}


def test_bug_reports(cases: Path, scores: Scores, tmp_path: Path) -> None:
    def check(row: Row) -> str | Apart | None:
        name = row["id"]
        if name in _APART:
            return Apart(_APART[name])
        if name in _LAKE:
            return _LAKE[name](tmp_path)
        if name in _OWN:
            return _OWN[name](row)
        return _KINDS[row["area"]](row["smallest_input"], row["right"])

    scores.run(cases, "bugreports.jsonl", check, through="what each report is about")
