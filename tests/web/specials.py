"""What makes the grown web hard: redirects, duplicates, faults, pages that come and go, traps, odd documents.

What always holds: each thing is reached from an ordinary page that stays (unless it is meant to be found
otherwise); its number follows from `Features` and the number of ordinary pages; a feature that is off leaves
nothing behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.web.dice import Dice
from tests.web.model import DAY, EPOCH, Host, Kind, Must, Resource, Validators

if TYPE_CHECKING:
    from tests.web.grow import Web

__all__ = ["CALENDAR", "calendar_host", "grow", "listed", "month"]

CALENDAR = "/calendar/"  # of the second host, or of the only one; its first month is 2026-01
_MONTH = re.compile(rf"{CALENDAR}(\d{{4}})-(\d{{2}})\.html")


def grow(web: Web) -> None:
    """Add every special thing to a web that has its ordinary pages."""
    features = web.features
    for make, share in (
        (_redirect, features.redirects),
        (_duplicate, features.duplicates),
        (_near_duplicate, features.near_duplicates),
        (_missing, features.missing),
        (_gone, features.gone),
        (_error, features.errors),
        (_appearing, features.appearing),
        (_vanishing, features.vanishing),
        (_file, features.files),
        (_nofollow, features.nofollow),
        (_framed, features.frames),
    ):
        for index in range(max(1, round(share * web.page_count)) if share else 0):
            make(web, index, Dice(web.seed, make.__name__, index))
    for index in range(features.long_urls):
        _long(web, index, Dice(web.seed, "long", index))
    for index, name in enumerate(web.dead + web.unlisted):
        for which in ("/", "/docs/lost.html"):
            _tie(web, Dice(web.seed, "dead", index, which), web.url(name, which))
    if features.trap:
        _trap(web)
    for host in web.hosts:
        _robots(web, host)
        if host.sitemap:
            _sitemap(web, host)
        if host.feed:
            _feed(web, host)


# --- hanging things on pages --------------------------------------------------------------------------------


def _quick(web: Web) -> list[Host]:
    return [host for host in web.hosts if host.open and not host.latency_ms]


def _parent(web: Web, dice: Dice, host: Host | None = None) -> Resource:
    """A page that stays, of the host or of any quick open one, to link from."""
    return dice.pick(web.spines[(host or dice.pick(_quick(web))).number])


def _tie(web: Web, dice: Dice, target: str, host: Host | None = None, **traits: Any) -> Resource:
    parent = _parent(web, dice, host)
    parent.must.append(Must(target=target, **traits))
    return parent


def _elsewhere(web: Web, dice: Dice, host: Host, *, same_domain: bool) -> Host:
    """Another quick open host, in the same domain or in another (the host itself if there is none)."""
    others = [h for h in _quick(web) if h is not host and (h.domain == host.domain) is same_domain]
    return dice.pick(others) if others else host


def _several(web: Web, dice: Dice) -> Host:
    """A quick open host whose domain has another such, if there is one."""
    counts: dict[str, int] = {}
    for host in _quick(web):
        counts[host.domain] = counts.get(host.domain, 0) + 1
    return dice.pick([h for h in _quick(web) if counts[h.domain] > 1] or _quick(web))


# --- one maker a kind ---------------------------------------------------------------------------------------


def _redirect(web: Web, index: int, dice: Dice) -> None:
    """In turn: 301 on the host, 302 in the domain, 307 elsewhere, chain of three, 308, to a 404, a loop."""
    kind = index % 7 if index < 7 else (index - 7) % 6  # one loop in a web is enough
    host = _several(web, dice) if kind == 1 else dice.pick(_quick(web))

    def hop(name: str, status: int, location: str) -> str:
        path = f"/moved/{name}-{index}"
        return web.add(host, path, Kind.REDIRECT, status=status, location=location).url

    end = _parent(web, dice, host).url
    match kind:
        case 0:
            start = hop("same", 301, end)
        case 1:
            start = hop("sibling", 302, _parent(web, dice, _elsewhere(web, dice, host, same_domain=True)).url)
        case 2:
            start = hop("away", 307, _parent(web, dice, _elsewhere(web, dice, host, same_domain=False)).url)
        case 3:
            away = _parent(web, dice, _elsewhere(web, dice, host, same_domain=False)).url
            start = hop("first", 301, hop("second", 302, hop("third", 307, away)))
        case 4:
            start = hop("permanent", 308, end)
        case 5:
            start = hop("lost", 301, web.url(host.name, f"/lost/behind-{index}.html"))
        case _:
            back = web.url(host.name, f"/moved/loop-b-{index}")
            start = hop("loop-a", 302, back)
            hop("loop-b", 302, start)
    _tie(web, dice, start)


def _original(web: Web, dice: Dice) -> Resource:
    """A page to make a copy of: plain UTF-8 without base, and not the home page if there is another."""
    host = dice.pick(_quick(web))
    fit = [p for p in web.spines[host.number][1:] if p.charset == "utf-8" and not p.base]
    original = dice.pick(fit or web.spines[host.number])
    original.absolute = True  # so that its copies' links lead where its own do
    return original


def _duplicate(web: Web, index: int, dice: Dice) -> None:
    """A copy of a page on its host, in its domain or elsewhere; every second one in other markup."""
    original = _original(web, dice)
    sibling = _elsewhere(web, dice, original.host, same_domain=True)
    host = (original.host, sibling, dice.pick(_quick(web)))[index % 3]
    copy = web.add(
        host, f"/copy/{index}.html", twin=original, same_bytes=index % 2 == 0, language=original.language,
        validators=dice.pick(tuple(Validators)), meta_robots=original.meta_robots, absolute=True,
    )  # fmt: skip
    _tie(web, dice, copy.url)


def _near_duplicate(web: Web, index: int, dice: Dice) -> None:
    """A copy of a page with 1 to 5 % of its words changed."""
    original = _original(web, dice)
    host = original.host if index % 2 else dice.pick(_quick(web))
    copy = web.add(
        host, f"/like/{index}.html", twin=original, edits=dice.between(0.01, 0.05),
        language=original.language, absolute=True,
    )  # fmt: skip
    _tie(web, dice, copy.url)


def _missing(web: Web, index: int, dice: Dice) -> None:
    host = dice.pick(_quick(web))
    _tie(web, dice, web.url(host.name, f"/lost/{index}.html"), host)


def _gone(web: Web, index: int, dice: Dice) -> None:
    host = dice.pick(_quick(web))
    _tie(web, dice, web.add(host, f"/removed/{index}.html", Kind.ERROR, status=410).url, host)


def _error(web: Web, index: int, dice: Dice) -> None:
    host = dice.pick(_quick(web))
    status = (500, 503)[index % 2]
    made = web.add(host, f"/broken/{index}.html", Kind.ERROR, status=status)
    _tie(web, dice, made.url, host)


def _appearing(web: Web, index: int, dice: Dice) -> None:
    """A page born within 60 days: linked from the start (and 404 until then), or linked when it is born."""
    host = dice.pick(_quick(web))
    born = EPOCH + DAY // 2 + dice.below(60 * DAY)
    page = web.add(host, f"/new/{index}.html", born=born)
    _tie(web, dice, page.url, host, since=born if index % 2 else None)


def _vanishing(web: Web, index: int, dice: Dice) -> None:
    """A page that is 404, or 410, from some time within 60 days on."""
    host = dice.pick(_quick(web))
    dies = EPOCH + DAY // 2 + dice.below(60 * DAY)
    page = web.add(host, f"/old/{index}.html", dies=dies, status_dead=(404, 410)[index % 2])
    _tie(web, dice, page.url, host)


def _file(web: Web, index: int, dice: Dice) -> None:
    host = dice.pick(_quick(web))
    ending, media_type = (
        ("pdf", "application/pdf"), ("png", "image/png"), ("css", "text/css"), ("zip", "application/zip"),
    )[index % 4]  # fmt: skip
    made = web.add(host, f"/files/{index}.{ending}", Kind.FILE, media_type=media_type)
    if ending == "css":
        _tie(web, dice, made.url, host, via="link", rel="stylesheet")
    else:
        _tie(web, dice, made.url, host)


def _nofollow(web: Web, index: int, dice: Dice) -> None:
    page = web.add(dice.pick(_quick(web)), f"/sponsored/{index}.html")
    _tie(web, dice, page.url, rel="nofollow")


def _framed(web: Web, index: int, dice: Dice) -> None:
    """A page found only by area, iframe, refresh or link rel=next; one by a frameset."""
    host = dice.pick(_quick(web))
    via = ("area", "iframe", "refresh", "link", "frame")[index % 5 if index < 5 else (index - 5) % 4]
    page = web.add(host, f"/within/{index}.html")
    if via in ("refresh", "frame"):
        outer = web.add(host, f"/outer/{index}.html", frameset=via == "frame")
        outer.must.append(Must(target=page.url, via=via))
        _tie(web, dice, outer.url, host)
    else:
        _tie(web, dice, page.url, host, via=via, rel="next" if via == "link" else "")


def _long(web: Web, index: int, dice: Dice) -> None:
    host = dice.pick(_quick(web))
    path = f"/long/{index}/" + "-".join("abcdefghi" for _ in range((180, 300)[index % 2]))
    _tie(web, dice, web.add(host, path).url, host)


def _trap(web: Web) -> None:
    """The calendar: its months are not stored, `Web.find` makes them up."""
    host = calendar_host(web)
    web.home(host).must.append(Must(target=web.url(host.name, f"{CALENDAR}2026-01.html")))


def month(web: Web, url: str) -> Resource | None:
    """The calendar's page at a URL, made up on the spot: each month links to the next, without end."""
    host = calendar_host(web)
    found = _MONTH.fullmatch(url.removeprefix(web.origin(host.name)))
    if not web.features.trap or found is None or not 1 <= int(found[2]) <= 12:
        return None
    months = int(found[1]) * 12 + int(found[2])
    following = web.url(host.name, f"{CALENDAR}{months // 12:04}-{months % 12 + 1:02}.html")
    return Resource(
        url=url, path=found[0], host=host, kind=Kind.CALENDAR, must=[Must(target=following)], language="en",
        validators=Validators.NONE,
    )  # fmt: skip


def calendar_host(web: Web) -> Host:
    """The host that has the endless calendar, if the web has one."""
    return web.hosts[1 if len(web.hosts) > 1 and web.hosts[1].open else 0]


def _robots(web: Web, host: Host) -> None:
    plan = host.robots
    if plan.kind.value == "redirected":
        real = web.add(host, "/robots/real.txt", Kind.ROBOTS, media_type="text/plain")
        web.add(host, "/robots.txt", Kind.REDIRECT, status=301, location=real.url)
    else:
        web.add(host, "/robots.txt", Kind.ROBOTS, status=plan.status, media_type="text/plain")


def _sitemap(web: Web, host: Host) -> None:
    """A sitemap, named in robots.txt, with the host's pages and two that nothing links to."""
    web.add(host, "/sitemap.xml", Kind.SITEMAP, media_type="application/xml")
    for index in range(2):
        web.add(host, f"/unlinked/{index}.html")


def listed(web: Web, host: Host) -> Iterator[Resource]:
    """The pages in a host's sitemap."""
    yield from host.pages
    for index in range(2):
        yield web.resources[web.url(host.name, f"/unlinked/{index}.html")]


def _feed(web: Web, host: Host) -> None:
    """A feed, named by the home page, with some of the host's pages and one that nothing else names."""
    made = web.add(host, "/feed.xml", Kind.FEED, media_type="application/rss+xml")
    web.add(host, "/unlinked/news.html")
    host.pages[0].must.append(Must(target=made.url, via="link", rel="alternate"))


def news(web: Web, host: Host) -> Iterator[Resource]:
    """The pages in a host's feed."""
    yield from host.pages[:3]
    yield web.resources[web.url(host.name, "/unlinked/news.html")]
