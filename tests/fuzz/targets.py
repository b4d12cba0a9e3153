"""What must hold for whatever bytes come in: one function per reader, over one input.

A target takes bytes and raises AssertionError (or whatever the reader raises, which must raise nothing) when
something does not hold. The first byte or two choose among settings, the rest is the input proper, so that a
mutating fuzzer reaches all of them. Time is bounded from outside (`tests.fuzz`, `limit`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from crawl import html, robots, scope, sitemap, url
from crawl.documents import sniff
from crawl.documents.screen import Screen
from crawl.errors import UrlError
from crawl.html import charset, directives, linkheader, markup, pagelinks
from crawl.net import exchange
from crawl.net.content import Decoder
from crawl.net.incoming import Incoming, settle
from crawl.outcomes import Outcome
from crawl.policy import Content, Limits, Scope
from crawl.politeness import retry_after

__all__ = ["SEEDS", "TARGETS", "Target"]

Target = Callable[[bytes], None]

_BASE: Final = "http://base.test/dir/page?q=1"
_BASES: Final = (None, _BASE, "http://base.test/", "https://b.test/a/b/c;p", "http://[::1]:8080/x")
_ENCODINGS: Final = (
    "utf-8",
    "windows-1252",
    "shift_jis",
    "iso-2022-jp",
    "gb18030",
    "big5",
    "koi8-r",
    "no such",
)
_NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _is_canonical(found: str) -> None:
    assert found.isascii(), found
    assert found.startswith(("http://", "https://")), found
    assert "#" not in found, found
    assert not set(found) & set(" \t\r\n\0"), found
    assert url.canonical(found) == found
    host = url.host(found)
    assert host, found
    assert url.domain(host), found


def of_url(data: bytes) -> None:
    """A link: canonical or refused; both forms are fixed points; batches agree with single calls."""
    choice, text = (data[0] if data else 0), data[1:].decode("utf-8", "surrogateescape")
    reason = ""
    base, encoding = _BASES[choice % len(_BASES)], _ENCODINGS[choice // 8 % len(_ENCODINGS)]
    try:
        found = url.canonical(text, base, encoding)
    except UrlError as error:
        reason, found = error.reason, None
    if found is None:
        assert reason in {"url_invalid", "url_scheme", "url_too_long"}
        assert base is None or url.canonical_many([text], base, encoding) == [None]
        return
    _is_canonical(found)
    if base is not None:
        assert url.canonical_many([text], base, encoding) == [found]
    key = url.key_form(found)
    assert url.key_form(key) == key
    (origin,), (host,), (domain,) = url.split_many([found])
    assert (origin, host, domain) == (url.origin(found), url.host(found), url.domain(host))
    scope.allowed(found, host, domain, 1, Scope(exclude=("/a*b?c*",)), Limits())


def of_robots(data: bytes) -> None:
    """A robots.txt: every question has an answer, itself may always be asked, delays are sane."""
    rules = robots.parse(data)
    for agent in ("probe", "*", "Googlebot", ""):
        for path in ("", "a", "a/b?c=d", "%2e%2e/é", "*", "$", "x" * 500):
            verdict = rules.verdict(agent, f"http://a.test/{path}")
            assert verdict.allowed in (True, False)
            assert verdict.line is None or verdict.line >= 1
        assert rules.verdict(agent, "http://a.test/robots.txt").allowed
        delay = rules.crawl_delay(agent)
        assert delay is None or (delay >= 0 and math.isfinite(delay))
    assert all(isinstance(line, str) for line in rules.sitemaps)


def of_html(data: bytes) -> None:
    """A page: links are canonical and distinct, texts can be stored."""
    choice, body = (data[0] if data else 0), data[1:]
    header = (None, "text/html", "text/html; charset=shift_jis", "text/html;charset=utf-16", "x;;=,")[
        choice % 5
    ]
    page = html.read(body, header, _BASE)
    for found, anchor, rel, via in page.links:
        _is_canonical(found)
        assert anchor is None or (anchor == anchor.strip() and 0 < len(anchor) <= pagelinks.ANCHOR_CHARS)
        assert rel is None or rel == rel.lower()
        assert via in {"a", "area", "link", "frame", "iframe", "refresh"}
    rows = list(page.links)
    assert len(rows) == len(set(rows))
    for text in (page.title, page.text, page.description or "", page.language or "", *page.robots):
        text.encode()
        assert "\0" not in text
    assert page.canonical is None or page.canonical.startswith("http")
    assert page.refresh is None or page.refresh[0] >= 0
    again = html.read(body, header, _BASE)
    assert (again.text, again.title, list(again.links)) == (page.text, page.title, rows)


def of_sitemap(data: bytes) -> None:
    """A sitemap or feed: entries are canonical, dates are aware, hints in their bounds."""
    choice, body = (data[0] if data else 0), data[1:]
    header = (None, "application/xml", "text/plain", "application/gzip", "application/rss+xml")[choice % 5]
    found = sitemap.read(body, "http://base.test/dir/sitemap.xml", header)
    assert isinstance(found.kind, str)
    count = 0
    for entry in found.entries:
        count += 1
        _is_canonical(entry.loc)
        assert entry.lastmod is None or entry.lastmod.tzinfo is not None
        assert entry.priority is None or 0 <= entry.priority <= 1
    assert count <= 50_000
    assert found.error is None or found.error


def of_headers(data: bytes) -> None:
    """A head, line by line: bounded, told apart, and each header we read is read without harm."""
    incoming = Incoming(Limits(header_bytes=8_192, header_lines=50))
    for line in data.splitlines(keepends=True):
        if incoming.header(line) == 0:
            assert incoming.stop in {"header_bytes", "header_lines"}
            break
    incoming.data(b"x" * 10)
    incoming.end(whole=True)
    status = incoming.status
    assert status is None or 0 <= status <= 999
    if status is not None:
        settle(incoming, status, None)
    lines = incoming.lines()
    for values in markup.headers(lines).values():
        for value in values:
            seconds = retry_after(value, _NOW)
            assert seconds is None or (seconds >= 0 and math.isfinite(seconds))
            charset.from_content_type(value)
            markup.media_type(value)
            found = markup.refresh(value)
            assert found is None or found[0] >= 0
            linkheader.read([value], "http://a.test/")
            directives.meant(directives.of_headers([value], "probe"))
    name = exchange.header(lines, "location")
    if name is not None:
        answer = exchange.Answer(
            outcome=Outcome.REDIRECT, reason=None, began=0.0, ended=0.0, status=302, headers=lines
        )
        try:
            _is_canonical(url.canonical(exchange.location(answer) or "", _BASE))
        except UrlError:
            pass


_CODINGS: Final = (
    "gzip", "deflate", "br", "zstd", "x-gzip", "gzip, br", "deflate, gzip", "identity", "no such",
)  # fmt: skip
_CAP: Final = 1 << 20


def of_bodies(data: bytes) -> None:
    """A coded body: bounded whatever it claims, and the same however it is cut."""
    choice, cut, body = (data[0] if data else 0), (data[1] if len(data) > 1 else 0), data[2:]
    coding = _CODINGS[choice % len(_CODINGS)]
    whole = Decoder(coding, _CAP)
    out = whole.feed(body)
    whole.finish()
    assert len(out) <= _CAP
    assert whole.length == len(out)
    pieces = Decoder(coding, _CAP)
    size = 1 + cut % 61
    joined = b"".join(pieces.feed(body[at : at + size]) for at in range(0, len(body), size))
    pieces.finish()
    # What is whole in one piece is whole in any. A broken body may be found out later, or in one piece alone;
    # and libzstd looks less closely at frames that come to nothing.
    if whole.fault is None and out:
        assert pieces.fault is None, (coding, pieces.fault)
        assert joined == out


#: by the name that `python -m tests.fuzz` takes
_TYPED: Final = (
    None,
    "",
    "text/html; charset=x",
    "text/plain",
    "text/xml",
    "image/png",
    "application/pdf",
    "a",
)
_SCREEN: Final = Screen(Content(types=("text/html", "application/xhtml+xml", "image/png", "application/pdf")))


def of_types(data: bytes) -> None:
    """A type: there is one, the first bytes alone make it, and a screen tells the same at any length."""
    choice, body = (data[0] if data else 0), data[1:]
    declared, nosniff = _TYPED[choice % len(_TYPED)], bool(choice & 128)
    found = sniff.computed(declared, body, nosniff=nosniff)
    assert found.count("/") == 1
    assert found == sniff.computed(declared, body[: sniff.HEADER], nosniff=nosniff)
    if declared == "text/plain":
        assert found in ("text/plain", "application/octet-stream")
    really = sniff.contradiction(found, body)
    assert really != found
    early = _SCREEN.declared(declared)
    late = _SCREEN.shown(declared, "X-Content-Type-Options: nosniff" if nosniff else "", body[: sniff.HEADER])
    assert early is None or late.reason is not None
    assert late.media_type in (found, really)


TARGETS: Final[Mapping[str, Target]] = {
    "url": of_url,
    "robots": of_robots,
    "html": of_html,
    "sitemap": of_sitemap,
    "headers": of_headers,
    "bodies": of_bodies,
    "types": of_types,
}

#: where a fuzzer begins: ordinary inputs of each kind, ours
SEEDS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "url": (
        b"\x01../a/b;c?d=e&f=%C3%A9#g",
        b"\x00http://user@b\xc3\xbccher.test:8080/%7Ea/./../b",
        b"\x09//[2001:db8::1]/\xe2\x82\xac?\xe3\x81\x82",
    ),
    "robots": (
        b"User-agent: *\nDisallow: /a*b$\nAllow: /\nCrawl-delay: 1.5\nSitemap: http://a.test/s.xml\n",
        b"\xef\xbb\xbfuser-agent: probe\r\nuser-agent: b\r\ndisallow: /%2e\xc3\xa9 # c\r\rallow: *",
    ),
    "html": (
        b'\x01<html lang=en><head><base href="/x/"><meta name=robots content="noindex"><title>t</title>'
        b'<meta http-equiv=refresh content="3;url=b"></head><body><a href=c rel=nofollow>d <b>e</b></a>'
        b"<area href=f alt=g><iframe src=h></iframe><svg><a xlink:href=i>j</a></svg></body>",
        b"\x00\xfe\xff\x00<\x00a\x00>",
    ),
    "sitemap": (
        b'\x01<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>'
        b"<loc>http://base.test/dir/a?b=c&amp;d</loc><lastmod>2025-01-02T03:04:05+02:00</lastmod>"
        b"<changefreq>daily</changefreq><priority>0.7</priority></url></urlset>",
        b"\x04<rss version='2.0'><channel><item><link>http://base.test/e</link>"
        b"<pubDate>Thu, 02 Jan 2025 03:04:05 GMT</pubDate></item></channel></rss>",
        b"\x01<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='f'/><updated>2025-01-02</updated>"
        b"</entry></feed>",
        b"\x02http://base.test/dir/g\nhttp://base.test/dir/h\n",
        b"\x01<sitemapindex><sitemap><loc>http://base.test/dir/i.xml</loc></sitemap></sitemapindex>",
    ),
    "headers": (
        b"HTTP/1.1 302 Found\r\nLocation: /a%20\xc3\xa9\r\nRetry-After: Thu, 02 Jan 2025 03:04:05 GMT\r\n"
        b'Link: </n>; rel="next", <c>;rel=canonical\r\nX-Robots-Tag: probe: noindex, nofollow\r\n\r\n',
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200\r\ncontent-type: text/html; charset='utf-8'\r\n"
        b"refresh: 3; url=x\r\ncontent-encoding: gzip\r\n folded: line\r\n\r\n",
    ),
    "bodies": (
        b"\x00\x05\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03KLJ\x06\x00\xc2A$5\x03\x00\x00\x00",
        b"\x01\x02x\x9cKLJ\x06\x00\x02M\x01'",
        b"\x02\x03\x0b\x01\x80abc\x03",
        b"\x03\x04(\xb5/\xfd \x03\x19\x00\x00abc",
    ),
    "types": (
        b"\x00<?xml version='1.0'?><!-- c --><!DOCTYPE html><html>",
        b"\x04<?xml?><rss version='2.0'>",
        b"\x05\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\x02MZ\x90\0\3\0\0\0",
        b"\x06%PDF-1.7",
        b"\x00\0\0\0\x18ftypmp42",
        b"\x02P\0l\0a\0i\0n\0 \0t\0e\0x\0t\0",
    ),
}
