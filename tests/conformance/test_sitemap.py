"""Sitemaps and feeds: the outside cases of crawl.sitemap."""

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crawl import sitemap
from crawl.sitemap.submission import admitted
from tests.conformance.report import Row, Scores

_FORMS = {
    "rss": '<rss version="2.0"><channel><item><link>http://a.test/</link>'
    "<pubDate>{}</pubDate></item></channel></rss>",
    "atom": '<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="http://a.test/"/>'
    "<updated>{}</updated></entry></feed>",
    "urlset": "<urlset><url><loc>http://a.test/</loc><lastmod>{}</lastmod></url></urlset>",
}

_ORDER = "its file has `item` before `desc`, and a query is kept as it is written (the two have one key form)"
EXCEPTIONS = {f"sm-cc-gz{n}": _ORDER for n in range(6)}


def utc(entry: sitemap.Entry) -> str | None:
    """As the rows write it."""
    if entry.lastmod is None:
        return None
    text = entry.lastmod.replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"


def amiss(entry: sitemap.Entry, expected: Mapping[str, Any]) -> Iterator[str]:
    """What is not as expected, of what the row gives."""
    if "lastmod_utc" in expected and utc(entry) != expected["lastmod_utc"]:
        yield f"lastmod {utc(entry)}, not {expected['lastmod_utc']}"
    if "lastmod" in expected and not (utc(entry) or "").startswith(expected["lastmod"][:19]):
        yield f"lastmod {utc(entry)}, not {expected['lastmod']}"
    for name in ("changefreq", "priority"):
        if name in expected and getattr(entry, name) != expected[name]:
            yield f"{name} {getattr(entry, name)}, not {expected[name]}"
    if "alternates" in expected and list(entry.alternates) != expected["alternates"]:
        yield f"alternates {entry.alternates}"


def test_sitemaps_and_feeds(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        body = (cases / "sitemap" / row["file"]).read_bytes()
        found = sitemap.read(body, row["url"], row["content_type"])
        if row.get("error_or_entries") and found.error is not None:
            return None
        wanted = row.get("entries")
        if found.kind != row["kind"]:
            return f"kind {found.kind} ({found.error}), not {row['kind']}"
        if row.get("expected_error") and found.error is None:
            return "no error told"
        if "entries_count" in row and len(found.entries) != row["entries_count"]:
            return f"{len(found.entries)} entries, not {row['entries_count']}"
        if wanted is None:
            return None
        got = list(found.entries)
        if row.get("at_least") or row.get("at_least_one_of"):
            locs = {entry["loc"] for entry in wanted}
            got = [entry for entry in got if entry.loc in locs]
            if row.get("at_least_one_of") and got:
                return None
        if [entry.loc for entry in got] != [entry["loc"] for entry in wanted]:
            return f"{[entry.loc for entry in got]} ({found.error}, {dict(found.skipped)})"
        if "alternates" in row and set(row["alternates"]) != {a for e in got for a in e.alternates}:
            return f"alternates {[entry.alternates for entry in got]}"
        wrong = [what for entry, expected in zip(got, wanted, strict=True) for what in amiss(entry, expected)]
        return "; ".join(wrong) or None

    scores.run(cases, "sitemap/cases.jsonl", check, EXCEPTIONS, through="crawl.sitemap.read")


def test_dates_of_entries(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        body = _FORMS[row.get("feed", "urlset")].format(row["input"]).encode()
        (entry,) = sitemap.read(body, "http://a.test/sitemap.xml").entries
        expected = row["expected_utc"]
        if expected and "." in expected:  # a time is kept to the microsecond
            expected = expected[:-1][:26] + "Z"
        return None if utc(entry) == expected else f"{utc(entry)}, not {expected}"

    scores.run(cases, "sitemap/lastmod.jsonl", check, through="crawl.sitemap.read")


def test_whom_a_sitemap_speaks_for(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        expected = row["strict_valid"] if "strict_valid" in row else row["cross_submit_valid"]
        (got,) = admitted(row["sitemap"], [row["url"]], row.get("named_in_robots_of", ()))
        return None if got == expected else f"{got}"

    scores.run(cases, "sitemap/location.jsonl", check, through="crawl.sitemap.submission.admitted")


def generated(row: Row) -> bytes:
    name, entry = ("sitemapindex", "sitemap") if "index" in row["id"] else ("urlset", "url")
    each = "".join(f"<{entry}><loc>http://www.example.com/p/{n}</loc></{entry}>" for n in range(50_001))
    return f'<{name} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{each}</{name}>'.encode()


def test_large_sitemaps(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        if "sitemapindex" not in row["generate"] and "urlset" not in row["generate"]:
            return f"cannot make {row['generate']}"
        found = sitemap.read(gzip.compress(generated(row), 1), "http://www.example.com/sitemap.xml")
        locs = found.entries.loc
        if len(locs) != sitemap.MOST_URLS or locs[-1] != "http://www.example.com/p/49999":
            return f"{len(locs)} entries"
        return None if found.error == "too_many_urls" else f"error {found.error}"

    scores.run(cases, "sitemap/generated_large.jsonl", check, through="crawl.sitemap.read")
