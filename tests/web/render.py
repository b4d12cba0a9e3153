"""What a URL of the grown web answers at a time: status, headers and body, and the text that is in it.

What always holds: an answer is a function of the web, the URL and the time; `state` names everything of the
time that it depends on, so answers may be kept by (URL, state). It speaks no HTTP: conditions, HEAD and
codings are `serve`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import formatdate
from html import escape
from typing import TYPE_CHECKING

from tests.web import specials
from tests.web.dice import Dice, number
from tests.web.model import Kind, Link, Resource, Validators, when
from tests.web.words import paragraph, phrase

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tests.web.grow import Web

__all__ = ["Answer", "Content", "answer", "content", "http_date", "state"]

_WORDS = 80  # of a paragraph, about 540 bytes
_NAVIGATION = 10  # links that stand in the list above the text; the others stand in the text


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response before HTTP: `headers` are lines with CR LF, without Date, length and validators."""

    status: int
    headers: bytes = b""
    body: bytes = b""
    etag: str = ""  #: with its quotes; empty: none
    modified: int | None = None  #: Last-Modified, seconds since 1970


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a reader sees on a page, in document order."""

    title: str
    heading: str
    navigation: tuple[Link, ...]
    paragraphs: tuple[str, ...]
    inline: tuple[Link, ...]  #: one at the end of each paragraph, the rest in paragraphs of their own
    footer: str

    @property
    def text(self) -> str:
        """All visible text, the title apart, blocks and words separated by one space."""
        parts = [self.heading, *(link.anchor for link in self.navigation)]
        for at, words in enumerate(self.paragraphs):
            parts.append(words)
            parts += [link.anchor for link in self.inline[at : at + 1]]
        parts += [link.anchor for link in self.inline[len(self.paragraphs) :]]
        return " ".join([*parts, self.footer])


def state(web: Web, resource: Resource, now: int) -> Hashable:
    """What of the time the answer depends on."""
    match resource.kind:
        case Kind.PAGE:
            return len(web.changes(resource, now)) if web.alive(resource, now) else -1
        case Kind.ROBOTS:
            return _open_by_now(resource, now)
        case Kind.SITEMAP | Kind.FEED:
            return answer(web, resource, now).body
        case _:
            return 0


def answer(web: Web, resource: Resource | None, now: int) -> Answer:
    """What is answered at a URL at a time. None (nothing ever at that URL) is a 404."""
    if resource is None or not web.alive(resource, now):
        dead = resource is not None and resource.dies is not None and now >= resource.dies
        return _failure(resource.status_dead if resource is not None and dead else 404)
    match resource.kind:
        case Kind.PAGE:
            body = page(web, resource, now)
            etag = f'"{_tag(web, resource)}-{len(web.changes(resource, now)):x}"'
            has = resource.validators
            return Answer(
                status=200, headers=_type(_content_type(resource)), body=body,
                etag=etag if has in (Validators.BOTH, Validators.ETAG) else "",
                modified=web.last_changed(resource, now)
                if has in (Validators.BOTH, Validators.MODIFIED)
                else None,
            )  # fmt: skip
        case Kind.CALENDAR:
            return Answer(
                status=200, headers=_type("text/html; charset=utf-8"), body=page(web, resource, now)
            )
        case Kind.REDIRECT:
            at = resource.location
            if _tag(web, resource)[-1] in "02468" and at.startswith(web.origin(resource.host.name) + "/"):
                at = at.removeprefix(web.origin(resource.host.name))
            return Answer(status=resource.status, headers=b"Location: " + at.encode() + b"\r\n")
        case Kind.ERROR:
            return _failure(resource.status, resource.retry_after)
        case Kind.FILE:
            return _file(web, resource)
        case Kind.ROBOTS:
            return _robots(web, resource, now)
        case Kind.SITEMAP:
            return _sitemap(web, resource, now)
        case Kind.FEED:
            return _feed(web, resource, now)


# --- pages --------------------------------------------------------------------------------------------------


def content(web: Web, resource: Resource, now: int) -> Content:
    """What a page says at a time. A duplicate says what its original says; a near duplicate nearly."""
    source = web.origin_of(resource)
    key = (web.seed, source.host.name, source.path)
    if source.kind is Kind.CALENDAR:
        month = source.path.removeprefix(specials.CALENDAR).removesuffix(".html")
        title, count, version = f"Calendar of {month}", 2, 0
    else:
        title = f"{phrase(source.language, 3, *key, 'title')} {number(*key) % 1000}"
        count, version = _length(web, key), web.version(source, now)
    paragraphs = []
    for at in range(count):
        # the k-th change rewrites paragraph k mod count, so this one was last written at change `written`
        written = max(0, version - (version - at) % count)
        paragraphs.append(paragraph(source.language, _WORDS, *key, at, written))
    if resource.edits:
        paragraphs = [_edited(web, resource, words, at) for at, words in enumerate(paragraphs)]
    visible = [link for link in web.links(source, now) if link.via == "a"]
    return Content(
        title=f"{title} & more" if number(*key, "and") % 20 == 0 else title,
        heading=title,
        navigation=tuple(visible[:_NAVIGATION]),
        paragraphs=tuple(paragraphs),
        inline=tuple(visible[_NAVIGATION:]),
        footer=f"{phrase(source.language, 4, web.seed, 'footer', source.host.name)} – {source.host.name}"
        if source.charset.startswith("utf")
        else source.host.name,
    )


def _length(web: Web, key: tuple[object, ...]) -> int:
    """Paragraphs of a page: a third of the mean at least, a few of four times the mean."""
    share = 0.35 + min(3.65, Dice(*key, "length").gap(1 / 0.65))
    return max(2, round(web.mean_bytes * share / 590))


def _edited(web: Web, resource: Resource, words: str, at: int) -> str:
    """The paragraph with a share of its words replaced, the very first in any case."""
    dice = Dice(web.seed, "edits", resource.host.name, resource.path, at)
    written = words.split(" ")
    for index in range(len(written)):
        if dice.chance(resource.edits) or (at == 0 and index == 0):
            written[index] = phrase(resource.language, 1, web.seed, "edit", resource.path, at, index)
    return " ".join(written)


def page(web: Web, resource: Resource, now: int) -> bytes:
    """The bytes of a page."""
    shown = content(web, resource, now)
    source = web.origin_of(resource) if resource.same_bytes else resource
    found = web.links(resource, now)
    plain = source.twin is None
    head = [
        "<!doctype html>",
        f'<html lang="{source.language}">',
        "<head>",
        f'<meta charset="{source.charset}">' if _declares(source) else "",
        f"<title>{escape(shown.title)}</title>",
        f'<base href="{source.base}">' if source.base else "",
        f'<meta name="robots" content="{source.meta_robots}">' if source.meta_robots else "",
        f'<meta name="description" content="{escape(shown.paragraphs[0][:120])}">' if plain else "",
        *(_link_element(link) for link in found if link.via == "link"),
        *(
            f'<meta http-equiv="refresh" content="1; url={escape(x.href)}">'
            for x in found
            if x.via == "refresh"
        ),
        "" if source.twin is None else f'<link rel="canonical" href="{escape(source.twin.url)}">',
        "<style>p { margin: 1em }</style>",
        """<script>var hidden = '<a href="/scripted.html">no link</a>';</script>""" if plain else "",
        "</head>",
    ]
    body = _frames(found) if source.frameset else _body(shown, found, plain)
    text = "\n".join(line for line in [*head, *body, "</html>\n"] if line)
    if source.charset.startswith("utf-16"):
        return ("\ufeff" + text).encode(source.charset)
    return text.encode(source.charset)


def _body(shown: Content, found: tuple[Link, ...], plain: bool) -> list[str]:
    lines = ["<body>" if plain else '<body class="copy">', f"<h1>{escape(shown.heading)}</h1>", "<nav><ul>"]
    lines += [f"<li>{_anchor(link)}</li>" for link in shown.navigation]
    lines += [
        "</ul></nav>",
        '<!-- <a href="/commented.html">no link</a> -->' if plain else "<!-- a copy -->",
        "<main>",
    ]
    inline = iter(shown.inline)
    for words in shown.paragraphs:
        link = next(inline, None)
        lines.append(f"<p>{words}</p>" if link is None else f"<p>{words} {_anchor(link)}</p>")
    lines += [f"<p>{_anchor(link)}</p>" for link in inline]
    areas = [
        f'<area shape="rect" coords="0,0,9,9" href="{escape(x.href)}" alt="">'
        for x in found
        if x.via == "area"
    ]
    if areas:
        lines += ['<map name="plan">', *areas, "</map>"]
    lines += [f'<iframe src="{escape(link.href)}"></iframe>' for link in found if link.via == "iframe"]
    return [*lines, "</main>", f"<footer>{escape(shown.footer)}</footer>", "</body>"]


def _frames(found: tuple[Link, ...]) -> list[str]:
    frames = [f'<frame src="{escape(link.href)}">' for link in found if link.via == "frame"]
    return ['<frameset cols="100%">', *frames, "</frameset>"]


def _anchor(link: Link) -> str:
    rel = f' rel="{link.rel}"' if link.rel else ""
    return f'<a href="{escape(link.href)}"{rel}>{escape(link.anchor)}</a>'


def _link_element(link: Link) -> str:
    kind = ' type="application/rss+xml"' if link.rel == "alternate" else ""
    return f'<link rel="{link.rel}"{kind} href="{escape(link.href)}">'


def _declares(resource: Resource) -> bool:
    """Whether a page states its encoding in itself; a Latin-1 page does so, or the header does."""
    return resource.charset == "utf-8" or (resource.charset == "iso-8859-1" and len(resource.path) % 2 == 0)


def _content_type(resource: Resource) -> str:
    source = resource.twin if resource.same_bytes and resource.twin else resource
    if source.charset == "iso-8859-1" and _declares(source):
        return "text/html"
    return f"text/html; charset={source.charset}"


# --- other answers ------------------------------------------------------------------------------------------


def _tag(web: Web, resource: Resource) -> str:
    return f"{number(web.seed, 'tag', resource.host.name, resource.path) & 0xFFFFFFFF:08x}"


def _type(content_type: str) -> bytes:
    return f"Content-Type: {content_type}\r\n".encode()


def _failure(status: int, retry_after: int | None = None) -> Answer:
    body = f"<!doctype html><title>{status}</title><h1>{status}</h1><p>There is nothing to see here.</p>\n"
    headers = _type("text/html; charset=utf-8")
    if retry_after is not None:
        headers += f"Retry-After: {retry_after}\r\n".encode()
    return Answer(status=status, headers=headers, body=body.encode())


def _file(web: Web, resource: Resource) -> Answer:
    dice = Dice(web.seed, "file", resource.host.name, resource.path)
    if resource.media_type == "text/css":
        body = b"body { background: url(/nowhere.png) }\n" * (1 + dice.below(50))
    else:
        start = {"application/pdf": b"%PDF-1.4\n", "image/png": b"\x89PNG\r\n\x1a\n"}.get(
            resource.media_type, b"PK\3\4"
        )
        body = start + b"".join(dice.below(1 << 64).to_bytes(8, "big") for _ in range(200 + dice.below(2000)))
    return Answer(
        status=200, headers=_type(resource.media_type), body=body, etag=f'"{_tag(web, resource)}"',
        modified=web.first_modified(resource),
    )  # fmt: skip


def _open_by_now(resource: Resource, now: int) -> bool:
    opens_at = resource.host.robots.opens_at
    return opens_at is not None and now >= opens_at


def _robots(web: Web, resource: Resource, now: int) -> Answer:
    if resource.status != 200:
        return _failure(resource.status)
    text = "User-agent: *\nDisallow:\n" if _open_by_now(resource, now) else resource.host.robots.text
    if resource.host.sitemap:
        text += f"\nSitemap: {web.url(resource.host.name, '/sitemap.xml')}\n"
    return Answer(status=200, headers=_type("text/plain; charset=utf-8"), body=text.encode())


def _sitemap(web: Web, resource: Resource, now: int) -> Answer:
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
    ]
    for listed in specials.listed(web, resource.host):
        changed = when(web.last_changed(listed, now)).strftime("%Y-%m-%dT%H:%M:%SZ")
        lines.append(f"<url><loc>{escape(listed.url)}</loc><lastmod>{changed}</lastmod></url>")
    body = "\n".join([*lines, "</urlset>\n"]).encode()
    return Answer(status=200, headers=_type("application/xml"), body=body)


def _feed(web: Web, resource: Resource, now: int) -> Answer:
    items = "".join(
        f"<item><title>News</title><link>{escape(made.url)}</link>"
        f"<pubDate>{http_date(web.last_changed(made, now))}</pubDate></item>"
        for made in specials.news(web, resource.host)
    )
    body = f'<rss version="2.0"><channel><title>News</title>{items}</channel></rss>'.encode()
    return Answer(status=200, headers=_type("application/rss+xml"), body=body)


def http_date(moment: int) -> str:
    """A time as HTTP writes it."""
    return formatdate(moment, usegmt=True)
