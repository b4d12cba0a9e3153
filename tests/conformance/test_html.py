"""Pages: the outside cases of crawl.html and of the grammars beside it."""

import base64
import time
from pathlib import Path
from typing import Any

import webencodings

from crawl import html, url
from crawl.html import charset, directives, linkheader, markup
from crawl.keys import Keyer
from tests.conformance.report import Apart, Row, Scores

PAGE = "http://www.example.com/dir/page.html"
#: what another crawler takes for a link and is no page
_NO_PAGES = {"pg-nu-5", "pg-nu-13", "pg-nu-14"}

_CUT = "a tag that the end of the file cuts is none (HTML 13.2.5, EOF in tag)"
PAGES = {
    "pg-w3-refresh-22": _CUT,
    "pg-w3-refresh-35": "`.1` is 0 for the standard, whose steps end the number at the point",
    "pg-nu-9": "forms are not submitted: what a GET form would ask is no link",
}
CHARSETS = {"cs-w3-loose-meta": "`< meta` is no tag in HTML; the standard's prescan does not read it"}


def bare(target: str) -> str:
    return url.canonical(target) if len(target) < url.MAX_CHARS else target


def of(folder: Path, row: Row) -> html.Page:
    body = (folder / "html" / row["file"]).read_bytes()
    return html.read(body, row["content_type"], row["url"], agent=row["expected"].get("agent", ""))


def wrong_links(row: Row, page: html.Page) -> list[Any]:
    expected = row["expected"]
    unfollowed = {link for link, _, rel, _ in page.links if rel and "nofollow" in rel.split()}
    wrong: list[Any] = []
    if expected.get("links") is not None and not expected.get("lenient"):
        found = {link for link, _, _, via in page.links if via != "refresh"}
        wanted = {bare(link) for link in expected["links"]}
        optional = {bare(link) for link in expected.get("optional", [])} | {bare(row["url"])}
        if "nofollow" in row.get("note", ""):  # whoever asks for none of those may have them flagged
            optional |= unfollowed
        if not wanted - optional <= found or not found <= wanted | optional:
            wrong.append(sorted(found ^ wanted))
    if "links_count" in expected and len(page.links) != expected["links_count"]:
        wrong.append(len(page.links))
    if "nofollow" in expected and unfollowed != {bare(link) for link in expected["nofollow"]}:
        wrong.append(sorted(unfollowed))
    for link, text in (expected.get("texts") or {}).items():
        if text not in [anchor for target, anchor, *_ in page.links if target == bare(link)]:
            wrong.append((link, text))
    return wrong


def wrong_head(row: Row, page: html.Page) -> list[Any]:
    expected = row["expected"]
    either = expected.get("either", [])
    wanted: dict[str, list[Any]] = {}
    if "base" in expected:
        wanted["base"] = [expected["base"], expected.get("either_base", expected["base"])]
    if "canonical" in expected:
        wanted["canonical"] = [expected["canonical"], *either]
    if "title" in expected:
        wanted["title"] = [expected["title"]]
    if "refresh" in expected:
        refresh = expected["refresh"]
        wanted["refresh"] = [refresh and (refresh["delay"], refresh["url"])]
    wrong = [(name, getattr(page, name)) for name in wanted if getattr(page, name) not in wanted[name]]
    if "robots" in expected:
        said = directives.meant(page.robots)
        if {"noindex": said.noindex, "nofollow": said.nofollow} != expected["robots"]:
            wrong.append(("robots", page.robots))
    return wrong


def wrong_text(row: Row, page: html.Page) -> list[Any]:
    """Their text begins with the title, and parts some words at inline elements."""
    if "text" not in row["expected"] or row["expected"].get("lenient"):
        return []
    wanted = row["expected"]["text"].removeprefix(page.title).replace(" ", "")
    found = page.text.replace(" ", "").removesuffix("\ufffd")
    return [] if found == wanted else [page.text]


def test_pages(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | Apart | None:
        if row["id"] in _NO_PAGES:
            return Apart("pictures, films and frames of them are no pages: they are no links here")
        began = time.process_time()
        page = of(cases, row)
        took = time.process_time() - began
        wrong = [*wrong_links(row, page), *wrong_head(row, page), *wrong_text(row, page)]
        if took > row["expected"].get("max_seconds", took):
            wrong.append(f"{took:.1f} s")
        return str(wrong) if wrong else None

    scores.run(cases, "html/pages.jsonl", check, PAGES, through="crawl.html.read")


def known(name: str | None) -> str | None:
    """One spelling per encoding: gbk is decoded as gb18030, and utf-16-le is a spelling of Python's."""
    if name is None or name == "replacement":
        return name
    found = webencodings.lookup({"utf-16-le": "utf-16le", "utf-16-be": "utf-16be"}.get(name, name))
    return {"gbk": "gb18030"}.get(found.name, found.name)


def test_encodings(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        body = base64.b64decode(row["body_b64"])
        name = html.read(body, row["content_type"], PAGE).charset
        wanted = {known(n) for n in [row["expected_encoding"], *row.get("either", [])]}
        if row.get("fallback") == row["expected_encoding"] and "no declaration" in row.get("note", ""):
            wanted.add("utf-8")  # ASCII alone that declares nothing reads the same
        if row["expected_encoding"] and not row.get("any_encoding") and known(name) not in wanted:
            return f"{name}, not {wanted}"
        text = charset.to_utf8(body, row["content_type"])[1].decode()
        texts = {row["expected_text"], *row.get("either_text", [])} if "expected_text" in row else {text}
        return None if text in texts and row.get("must_contain", "") in text else f"{text!r}, not {texts}"

    through = "crawl.html.read, crawl.html.charset.to_utf8"
    scores.run(cases, "html/charset.jsonl", check, CHARSETS, through=through)


def test_charsets_of_content_type_headers(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        got = html.read(b"<p>\xe0", row["header"], PAGE).charset
        wanted = known(row["charset"]) or charset.FALLBACK
        return None if got == wanted else f"{got}, not {wanted}"

    scores.run(cases, "html/content_type.jsonl", check, through="crawl.html.read")


def test_refreshes(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        quoted = row["content"].replace("&", "&amp;").replace('"', "&quot;")
        body = f'<meta http-equiv="refresh" content="{quoted}">'.encode()
        page = html.read(body, "text/html; charset=utf-8", row["page_url"])
        wanted = row["refresh"] and (float(row["refresh"]["delay"]), row["refresh"]["url"])
        if wanted and (not wanted[1].startswith("http") or wanted[1] == row["page_url"]):
            wanted = None  # the rows' notes: never to be followed; a reload is no redirect
        leads = [link for link, *_ in page.links]
        away = [wanted[1]] if wanted else []
        return None if (page.refresh, leads) == (wanted, away) else f"{page.refresh} and {leads}"

    scores.run(cases, "html/refresh_grammar.jsonl", check, through="crawl.html.read")


def test_headers(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        pairs = row.get("headers") or list(row["header"].items())
        lines = markup.headers("\n".join(f"{name}: {value}" for name, value in pairs))
        if "agent" in row:
            said = directives.meant(directives.of_headers(lines.get("x-robots-tag", ()), row["agent"]))
            got: Any = (said.noindex, said.nofollow)
            wanted: Any = (row["noindex"], row["nofollow"])
        else:
            got = linkheader.read(lines.get("link", ()), row["page_url"]).canonical
            wanted = row["canonical"]
        return None if got == wanted else f"{got}, not {wanted}"

    through = "crawl.html.directives.of_headers, crawl.html.linkheader.read"
    scores.run(cases, "html/headers_meta.jsonl", check, through=through)


def test_equal_texts(cases: Path, scores: Scores) -> None:
    keyer = Keyer(b"x" * 32)

    def check(row: Row) -> str | Apart | None:
        if row["relation"] == "near":
            return Apart("near duplicates are not labelled yet: only equal texts are one document")
        texts = [html.read(f"<p>{row[name]}".encode(), "text/html", PAGE).text for name in ("a", "b")]
        same = keyer.document_key(texts[0]) == keyer.document_key(texts[1])
        return None if same == (row["relation"] == "exact") else f"one document: {same}"

    scores.run(
        cases,
        "html/near_duplicates.jsonl",
        check,
        through="crawl.html.read, crawl.keys.Keyer.document_key",
    )
