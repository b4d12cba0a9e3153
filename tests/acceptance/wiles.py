"""Hosts that mean harm, by name: what each does, and how a fetch of its home page may end."""

from __future__ import annotations

import gzip

from tests.acceptance.evil import (
    WAITS,
    Answers,
    Wile,
    bomb,
    bombing,
    chunked,
    endless,
    head,
    html,
    in_parts,
    lending_a_cookie,
    links,
    lying_about_sameness,
    many,
    raw,
    to,
    wile,
)  # fmt: skip
from tests.crawl.rawserver import closing, dripping, resetting, response, silent

__all__ = ["WILES", "inwards"]


def inward(port: int) -> list[str]:
    """Ways to write this machine, all of them refused."""
    hosts = [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "localhost",
        "a.localhost",
        "0",
        "0.0.0.0",
        "127.0.0.1.",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "１２７.0.0.1",
        "u:p@127.0.0.1",
    ]
    return [f"http://{host}:{port}/secret" for host in hosts]


def elsewhere(port: int) -> list[str]:
    """What is no place for a crawler, or none of HTTP."""
    return [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,<a href=x>",
        "ftp://ok.test/",
        "about:blank",
        "http://169.254.169.254/latest/meta-data/",
        "http://100.100.100.200/",
        "http://[fd00:ec2::254]/",
        "http://well0.test:0/",
        "http://well0.test:65536/",
        "http://well0.test:99999999999/",
        "gopher://x/_",
        "http://",
        "http:///",
        "http://?",
        "//",
        "http://a b.test/",
        "http://%00.test/",
        "http://.test/",
        "http://" + "a" * 64 + ".test/",
        "http://" + ".".join(["a" * 60] * 4)[:249] + ".test/",
        "http://" + "x." * 200 + "test/",
        "http://xn--a.test/",
        "http://exa\u00admple.test/",
        "ws://well0.test/",
    ]


def odd_links(port: int) -> bytes:
    """Links of every kind, each of which is crawled, refused with a reason, or nothing."""
    own = [
        "/%00",
        "/a%zz",
        "/a%ZZ",
        "/a%25zz",
        "/a%",
        "/%",
        "/a\x00b",
        "/\ud800".encode("utf-8", "replace").decode(),
        "/&#xD800;",
        "/%ed%a0%80",
        "/ä?ä",
        "/..%2f..%2fetc",
        "/a%0d%0aSet-Cookie:x",
        "/\\..\\x",
        "/?" + "a" * 5000,
        "/" + "s/" * 500,
        "/x?" + "&".join(f"p{n}=1" for n in range(500)),
        "/a/a/a/a/a/a/a/a",
        "?",
        "#",
        ".",
        "",
        f"HTTP://ODD.TEST:{port}/Upper",
        f"http://odd.test.:{port}/dot",
        f"http://bücher.test:{port}/",
        f"http://faß.test:{port}/",
        f"http://xn--bcher-kva.test:{port}/p",
        "/\U0001f4a9",
        "/\u202egpj.exe",
        f"http://odd.test:{port}@well0.test/",
        f"//well0.test:{port}/p1",
        "http:p",
        "http:/p2",
    ]
    targets = [*own, *inward(port), *elsewhere(port)]
    return b"<title>odd</title>" + b"".join(
        b'<a href="%s">x</a>' % target.encode("utf-8", "surrogatepass") for target in targets
    )


def _loops(port: int) -> dict[str, Answers]:
    return {"/b": to("/c"), "/c": to("/")}


def _chain(port: int) -> dict[str, Answers]:
    return {f"/{n}": to(f"/{n + 1}") for n in range(30)}


def _refreshes(port: int) -> dict[str, Answers]:
    return {
        f"/{n}": html(b'<title>r%d</title><meta http-equiv=refresh content="0; url=/%d">' % (n, n + 1))
        for n in range(3)
    }


#: name → behaviour. HTML first, then codings, time, framing, heads, redirects, robots, validators.
WILES: dict[str, Wile] = {
    # --- pages
    "manylinks": wile(html(b"<title>m</title>" + many(b"<a href=/n%d>x</a>", 100_000))),
    "deep": wile(html(b"<title>deep</title>" + b"<div>" * 1_900_000), "OK", "PARSE_FAILED"),
    "misnested": wile(html(b"<title>b</title>" + b"<b><i><a><p>" * 100_000), "OK", "PARSE_FAILED"),
    "tables": wile(html(b"<table><tr><td>" * 100_000), "OK", "PARSE_FAILED"),
    "attributes": wile(html(b"<title>a</title><p " + many(b" a%d=1", 200_000) + b">x"), "OK", "PARSE_FAILED"),
    "longlinks": wile(html(many(b"<a href=/" + b"x" * 100_000 + b"%d>", 40))),
    "bigtitle": wile(html(b"<title>" + b"t" * 1_000_000 + b"</title><h1>" + b"h" * 1_000_000)),
    "bigmeta": wile(
        html(
            b'<html lang="'
            + b"l" * 500_000
            + b'"><link rel=canonical href="/'
            + b"c" * 500_000
            + b'"><meta name=description content="'
            + b"d" * 500_000
            + b'"><meta name=robots content="'
            + b"nofollow," * 50_000
            + b'"><title>x</title>words'
        )
    ),
    "nul": wile(html(b"<title>n\0ul</title>a\0b<a href='/x\0y'>z\0</a>&#0;&#xD800;&#x110000;\xed\xa0\x80")),
    "odd": wile(lambda port: html(odd_links(port), "Content-Type: text/html; charset=utf-8")),
    "refreshing": wile(html(b'<meta http-equiv=refresh content="0;url=/0">'), more=_refreshes),
    "based": wile(
        html(b"<base href='ftp://x.test/'><a href=y>y</a><base href='javascript:1'><title>b</title>t")
    ),
    "baseinward": wile(lambda port: html(b"<base href='http://127.0.0.1:%d/'><a href=secret>y</a>b" % port)),
    "lyingcharset": wile(
        html("<title>ü</title>ünïcödé".encode("utf-16-le"), "Content-Type: text/html; charset=ascii")
    ),
    "nocharset": wile(
        html(b"\xff\xfe\x00\xd8<p>\x80\x81" * 100, 'Content-Type: text/html; charset="' + "x" * 9_000)
    ),
    "utf7": wile(html(b"+ADw-a href=/x+AD4-", "Content-Type: text/html; charset=utf-7")),
    "noise": wile(html(bytes(range(256)) * 4_000, "Content-Type: text/html"), "TYPE_MISMATCH"),
    "program": wile(html(b"MZ\x90\0\3\0\0\0" * 500_000, "Content-Type: text/html"), "TYPE_MISMATCH"),
    "disc": wile(html(bytes(5_000_000), "Content-Type: application/x-iso9660-image"), "UNSUPPORTED_TYPE"),
    "film": wile(
        endless(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n", b"x" * 9_000), "UNSUPPORTED_TYPE"
    ),
    "typeless": wile(head(b"Content-Type: " + b"x/" * 10_000), "OK", "UNSUPPORTED_TYPE"),
    "manyhosts": wile(lambda port: html(links(*(f"http://h{n}.sink.test:{port}/" for n in range(100))))),
    # --- codings
    "gzipbomb": wile(bombing("gzip"), "TOO_LARGE"),
    "brbomb": wile(bombing("br"), "TOO_LARGE"),
    "zstdbomb": wile(bombing("zstd"), "TOO_LARGE"),
    "twicebomb": wile(bombing("gzip, gzip"), "TOO_LARGE"),
    "manymembers": wile(html(gzip.compress(b"") * 100_000, "Content-Encoding: gzip"), "MALFORMED"),
    "memberslying": wile(
        html(gzip.compress(gzip.compress(b"") * 500_000), "Content-Encoding: gzip, gzip"), "MALFORMED"
    ),
    "parts": wile(
        lambda port: in_parts(gzip.compress(b"<title>one</title>"), gzip.compress(b"<p>two<a href=/3>3</a>"))
    ),
    "notgzip": wile(html(b"<title>p</title>plain", "Content-Encoding: gzip", "Content-Type: text/html")),
    "brokengzip": wile(
        html(gzip.compress(b"x" * 9_999)[:-5] + b"12345", "Content-Encoding: gzip"), "MALFORMED"
    ),
    "cutgzip": wile(
        html(gzip.compress(b"<p>" + bytes(range(256)).hex().encode() * 40)[:-9], "Content-Encoding: gzip"),
        "MALFORMED",
    ),
    "codings": wile(html(b"x", "Content-Encoding: " + "gzip, " * 99 + "br"), "MALFORMED"),
    "unknowncoding": wile(html(b"x", "Content-Encoding: pack200"), "MALFORMED"),
    # --- time
    "trickle": wile(endless(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x", 0.3), "TIMEOUT"),
    "headtrickle": wile(endless(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 0.3), "TIMEOUT"),
    "silence": wile(silent(), "TIMEOUT"),
    "stall": wile(dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx", b"", 1, 30.0), "TIMEOUT"),
    "neverends": wile(
        endless(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"<p>" * 20_000), "TOO_LARGE"
    ),
    # --- framing
    "tooshort": wile(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort"), "RESET"),
    "toolong": wile(
        raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n", b"x" * 500)
    ),
    "negative": wile(
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx"), "MALFORMED", "OK", "UNSUPPORTED_TYPE"
    ),
    "huge": wile(
        raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99999999999999999999\r\n\r\nx"),
        "MALFORMED",
        "TOO_LARGE",
        "RESET",
        "OK",
    ),
    "lengths": wile(
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy"),
        "MALFORMED",
        "OK",
        "UNSUPPORTED_TYPE",
        "RESET",
    ),
    "badchunk": wile(raw(chunked(b"zz\r\nhello\r\n")), "MALFORMED", "RESET"),
    "hugechunk": wile(raw(chunked(b"FFFFFFFFFFFFFFFFFF\r\nhello\r\n")), "MALFORMED", "RESET"),
    "trailers": wile(
        endless(chunked(b"5\r\nhello\r\n0\r\n"), b"X-T: " + b"t" * 900 + b"\r\n"), "MALFORMED", "TOO_LARGE"
    ),
    "http09": wile(raw(b"<html>hello, no head\n" * 50), "MALFORMED"),
    "garbage": wile(raw(bytes(range(256)) * 500), "MALFORMED"),
    "http2": wile(raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "MALFORMED"),
    "http3": wile(raw(b"HTTP/3.0 200 OK\r\n\r\nx"), "MALFORMED", "OK", "UNSUPPORTED_TYPE"),
    "nothing": wile(closing(b""), "RESET"),
    "headcut": wile(raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/ht"), "RESET"),
    "longlength": wile(
        raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n<p>x"),
        "RESET",
    ),
    "transfercoding": wile(raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), "MALFORMED"),
    "part": wile(head(b"Content-Range: bytes 0-17/99", status=b"206 Part"), "MALFORMED"),
    "oddsuccess": wile(head(status=b"299 Odd")),
    "resetcontent": wile(raw(b"HTTP/1.1 205 Reset\r\nContent-Length: 9\r\n\r\nunwanted!")),
    "reset": wile(resetting(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), "RESET"),
    # --- heads
    "manyheaders": wile(head(*(b"X-%d: y" % n for n in range(1_000))), "MALFORMED", "TOO_LARGE"),
    "bigheader": wile(head(b"X: " + b"y" * 1_000_000), "MALFORMED", "TOO_LARGE"),
    "endlessheader": wile(endless(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 9_000), "MALFORMED", "TOO_LARGE"),
    "continues": wile(endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50), "MALFORMED", "TOO_LARGE"),
    "hints": wile(
        raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + html(b"<title>t</title>x")), "OK"
    ),
    "switching": wile(raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nx"), "MALFORMED", "RESET"),
    "latin": wile(head("X-Ünï: ¢€\r\nServer: \u2028".encode(), b"\xff\xfe: \x80", b" folded")),
    "colonless": wile(head(b"NoColon", b": empty"), "OK", "MALFORMED"),
    "nulheader": wile(head(b"X: a\0b"), "OK", "MALFORMED"),
    "lonecr": wile(head(b"X: a\rLocation: /x", b"Y: \x0b\x0c\x1b[31mred"), "OK", "MALFORMED"),
    "twice": wile(
        head(
            b"Content-Type: application/pdf",
            b"Content-Type: text/html",
            b"ETag: a",
            b"ETag: b",
            b"Last-Modified: x",
            b"Retry-After: 1",
            b"Retry-After: 2",
        ),
        "OK",
        "UNSUPPORTED_TYPE",
    ),
    "status999": wile(head(status=b"999 Odd"), "MALFORMED"),
    "status0": wile(head(status=b"000 Odd"), "MALFORMED"),
    "statusless": wile(raw(b"HTTP/1.1 abc\r\n\r\n"), "MALFORMED"),
    "reason": wile(head(status=b"200 " + b"\xff" * 9_000)),
    "nocontent": wile(
        raw(b"HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\nunwanted!"), "OK", "UNSUPPORTED_TYPE"
    ),
    "samelie": wile(lying_about_sameness, "NOT_MODIFIED", "MALFORMED"),
    "cookie": wile(lending_a_cookie, more=lambda port: {"/again": lending_a_cookie}),
    "retry": wile(head(b"Retry-After: 99999999999999999999999", status=b"503 No"), "UNAVAILABLE"),
    "retrydate": wile(head(b"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", status=b"429 No"), "RATE_LIMITED"),
    "retryjunk": wile(head(b"Retry-After: -1e309 nan \xff", status=b"503 No"), "UNAVAILABLE"),
    # --- validators
    "hugetag": wile(head(b'ETag: "' + b"e" * 100_000 + b'"'), "MALFORMED", "TOO_LARGE"),
    "bigtag": wile(head(b'ETag: "' + b"e" * 50_000 + b'"')),
    "oddtag": wile(head(b'ETag: "\xff\x01\x7f', b"Last-Modified: Sat, 99 Foo 99999 99:99:99 XXX\xff")),
    "future": wile(head(b"Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT", b"ETag: W/", b"Date: never")),
    # --- redirects
    "selfloop": wile(to("/"), "REDIRECT_LOOP"),
    "loop": wile(to("/b"), "REDIRECT_LOOP", more=_loops),
    "chain": wile(to("/0"), "REDIRECT", more=_chain),
    "crossa": wile(lambda port: to(f"http://crossb.test:{port}/"), "REDIRECT", "REDIRECT_LOOP"),
    "crossb": wile(lambda port: to(f"http://crossa.test:{port}/"), "REDIRECT", "REDIRECT_LOOP"),
    "a.ring": wile(lambda port: to(f"http://b.ring.test:{port}/"), "REDIRECT", "REDIRECT_LOOP"),
    "b.ring": wile(lambda port: to(f"http://a.ring.test:{port}/"), "REDIRECT", "REDIRECT_LOOP"),
    "nowhere": wile(to(""), "BAD_REDIRECT", "REDIRECT_LOOP"),
    "crlf": wile(to(b"/x%0d%0aSet-Cookie:a=b\r\nX-Injected: y"), "REDIRECT"),
    "rawlocation": wile(to("/ä\t\x01\x7f ".encode() + b"\xff"), "REDIRECT", "BAD_REDIRECT"),
    "longlocation": wile(to("/" + "x" * 20_000), "BAD_REDIRECT", "REDIRECT"),
    "locations": wile(head(b"Location: /one", b"Location: javascript:1", status=b"301 x"), "MALFORMED"),
    "within": wile(lambda port: to(f"http://inner.within.test:{port}/secret"), "REDIRECT"),
    # --- robots
    "hugerobots": wile(html(b"<title>h</title>big"), robots=response(200, b"Disallow: /n\n" * 4_000_000)),
    "endlessrobots": wile(
        html(b"<title>h</title>x"), "OK", robots=endless(b"HTTP/1.1 200 OK\r\n\r\n", b"Allow: /\n" * 7_000)
    ),
    "junkrobots": wile(html(b"<title>h</title>x"), robots=response(200, bytes(range(256)) * 900)),
    "agents": wile(html(b"<title>h</title>x"), robots=response(200, many(b"User-agent: a%d\n", 30_000))),
    "stars": wile(
        html(b"<title>h</title>x"),
        robots=response(200, b"User-agent: *\n" + b"Disallow: " + b"/*a" * 20_000 + b"*$\n"),
        more=None,
    ),
    "manyrules": wile(
        html(b"<title>h</title>x"), robots=response(200, b"User-agent: *\n" + b"Disallow: /*q*z$\n" * 25_000)
    ),
    "delays": wile(
        html(b"<title>h</title>x<a href=/2>2</a>"),
        robots=response(200, b"User-agent: *\nCrawl-delay: 1e308\nCrawl-delay: 99999999999999999999\n"),
    ),
    "sitemaps": wile(
        html(b"<title>h</title>x"),
        robots=lambda port: response(200, many(b"Sitemap: http://127.0.0.3:%d/" % port + b"%d\n", 9_000)),
    ),
    "bombrobots": wile(
        html(b"<title>h</title>x"), robots=lambda port: response(200, bomb("gzip"), "Content-Encoding: gzip")
    ),
    "silentrobots": wile(html(b"x"), "ROBOTS_UNREACHABLE", robots=silent()),
    "inrobots": wile(
        html(b"x"), WAITS, "ROBOTS_UNREACHABLE", robots=lambda port: to(f"http://127.0.0.1:{port}/robots.txt")
    ),
    "toinner": wile(
        html(b"x"),
        "OK",
        "ROBOTS_UNREACHABLE",
        robots=lambda port: to(f"http://inner.toinner.test:{port}/robots.txt"),
    ),
    "looprobots": wile(html(b"x"), "OK", "ROBOTS_UNREACHABLE", robots=to("/robots.txt")),
    "filerobots": wile(html(b"x"), "OK", "ROBOTS_UNREACHABLE", robots=to("file:///etc/passwd")),
}


def inwards(port: int) -> dict[str, bytes]:
    """Hosts whose home page redirects to a place of this machine, or to none."""
    targets = [*inward(port), *elsewhere(port)]
    return {f"to{number}": to(target) for number, target in enumerate(targets)}
