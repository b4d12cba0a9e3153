"""What a crawl of the grown web must find, computed from the web's description alone.

What it assumes:

- A URL is known by its identity: WHATWG canonical, without fragment, unreserved escapes decoded, without
  `utm_*`. A crawl may have fetched it in the spelling it met first (with `utm_*`); compare identities.
- Robots: the group of the web's agent name, or else of `*`; longest match wins, Allow on a tie (RFC 9309).
  404 and 403 for robots.txt open the host, 503 closes it, a redirect is followed. `/private/` and the like
  mean URLs are *blocked*.
- Scope is checked first, then whether the host lives, then robots, then the URL is asked.
- Links are followed from pages that answer 200 with HTML, at one given time; `via` says which kinds. A
  redirect is followed like a link of the same depth. `rel=nofollow` links are followed unless the rules say
  otherwise. The text of a page that says `noindex` is withheld: it is no document, its links count.
- Depth is the smallest number of links from a seed; a sitemap has depth 0, and what a sitemap or feed names
  has 1. Nothing is deeper than `max_depth`, which is also what ends the calendar.
- With `sitemap` among `via`, the sitemaps that the robots.txt of the hosts met name are read, and feeds that
  pages name.
- A page's text is all that is visible in its body, blocks separated by a space; two pages have the same text
  exactly if one is a copy of the other. The one frameset page has no text.

It never asks the server, and knows nothing of rounds, retries or states: `Fate` says what the web does to a
request.
"""

from __future__ import annotations

import enum
import heapq
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from tests.web import render, specials
from tests.web.grow import Web
from tests.web.model import Host, Kind, Link, Resource, Robots, Validators, seconds

__all__ = ["Fact", "Fate", "Recheck", "Rules", "Truth", "rechecks"]

_FOLLOWED = frozenset({"a", "area", "frame", "iframe", "link", "refresh", "redirect"})


class Fate(enum.StrEnum):
    """What becomes of a URL that a crawl gets to know."""

    OK = "ok"
    REDIRECT = "redirect"
    NOT_FOUND = "not_found"
    GONE = "gone"
    SERVER_ERROR = "server_error"
    ROBOTS_DENIED = "robots_denied"  #: never asked
    ROBOTS_UNREACHABLE = "robots_unreachable"  #: never asked: robots.txt answers 503
    NO_ADDRESS = "no_address"  #: its name has none
    REFUSED = "refused"  #: nothing listens at the host's address
    OUT_OF_SCOPE = "out_of_scope"  #: never asked


class Recheck(enum.StrEnum):
    """What a second, conditional request for a URL that was 200 before gives."""

    NOT_MODIFIED = "not_modified"  #: 304
    EQUAL = "equal"  #: 200 with the same bytes, for want of validators
    CHANGED = "changed"  #: 200 with other bytes
    LOST = "lost"  #: no longer 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the crawl follows. Empty `domains` and `hosts`: anywhere. `exclude`: globs of the path."""

    domains: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    via: frozenset[str] = _FOLLOWED  #: of a, area, frame, iframe, refresh, redirect, link, sitemap
    rels: frozenset[str] = frozenset({"next"})  #: of `link` elements that are followed
    nofollow: bool = True  #: whether rel=nofollow links are followed
    max_url_length: int = 2048
    max_depth: int = 20

    def admit(self, url: str) -> bool:
        """Whether a URL is in scope."""
        parts = urlsplit(url)
        name = parts.hostname or ""
        within = any(name == domain or name.endswith(f".{domain}") for domain in self.domains)
        inside = not (self.domains or self.hosts) or within or name in self.hosts
        return (
            inside
            and len(url) <= self.max_url_length
            and not any(fnmatchcase(parts.path, pattern) for pattern in self.exclude)
        )

    def follow(self, link: Link) -> bool:
        """Whether a link of a page is followed."""
        if link.via == "link" and link.rel == "alternate":  # the web has none but feeds
            return self.lists
        if link.via not in self.via or (link.via == "link" and link.rel not in self.rels):
            return False
        return self.nofollow or "nofollow" not in link.rel

    @property
    def lists(self) -> bool:
        """Whether sitemaps and feeds are read."""
        return "sitemap" in self.via


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What is true of one URL at one time."""

    url: str
    depth: int
    via: str  #: seed, known, or how it was found at this depth
    fate: Fate
    status: int | None = None  #: None: never answered
    location: str = ""  #: redirects: where to
    resource: Resource | None = None  #: None: there is nothing at this URL

    @property
    def is_document(self) -> bool:
        """Whether a crawl makes a document of it: 200 and HTML."""
        return self.fate is Fate.OK and self.resource is not None and _is_html(self.resource)

    @property
    def is_list(self) -> bool:
        """Whether it is a sitemap or feed that can be read."""
        return self.fate is Fate.OK and self.resource is not None and _lists(self.resource)


def _lists(resource: Resource) -> bool:
    return resource.kind in (Kind.SITEMAP, Kind.FEED)


def _is_html(resource: Resource) -> bool:
    return resource.kind in (Kind.PAGE, Kind.CALENDAR)


class Truth:
    """What is true of a web at one time, under the rules of a crawl."""

    def __init__(self, web: Web, now: datetime | str | int, rules: Rules | None = None) -> None:
        self.web, self.now, self.rules = web, seconds(now), rules or Rules()
        self._dead = frozenset(web.dead)

    def allowed(self, url: str) -> bool:
        """Whether robots.txt lets our agent ask for a URL of a live host."""
        host = self._host(url)
        return host is not None and _allowed(host, url.removeprefix(self.web.origin(host.name)), self.now)

    def fact(self, url: str, depth: int = 0, via: str = "seed") -> Fact:
        """What becomes of one identity URL."""
        resource = self.web.find(url)
        fate, status = self._fate(url, resource)
        location = resource.location if resource is not None and fate is Fate.REDIRECT else ""
        return Fact(
            url=url, depth=depth, via=via, fate=fate, status=status, location=location, resource=resource
        )

    def reach(self, seeds: Iterable[str] | None = None, known: Iterable[str] = ()) -> dict[str, Fact]:
        """All URLs that a crawl gets to know, until nothing is left, by identity.

        Without `seeds` it starts at all home pages. `known` are URLs known from earlier crawls, asked as
        well.
        """
        facts: dict[str, Fact] = {}
        starts = self.web.seed_urls if seeds is None else list(seeds)
        # by depth, then redirects before links, then in the order met
        queue = [(0, 1, at, url, "seed") for at, url in enumerate(starts)]
        queue += [(0, 1, len(starts) + at, url, "known") for at, url in enumerate(known)]
        heapq.heapify(queue)
        order = itertools.count(len(queue))
        while queue:
            depth, _, _, url, via = heapq.heappop(queue)
            if url in facts:
                continue
            fact = facts[url] = self.fact(url, depth, via)
            for target, kind in self._onward(fact):
                if kind == "redirect":
                    heapq.heappush(queue, (depth, 0, next(order), target, kind))
                elif fact.is_list:
                    heapq.heappush(queue, (1, 1, next(order), target, kind))
                elif depth < self.rules.max_depth:
                    heapq.heappush(queue, (depth + 1, 1, next(order), target, kind))
            listing = self.sitemap(fact)
            if listing is not None:
                heapq.heappush(queue, (0, 1, next(order), listing, "robots"))
        return facts

    def sitemap(self, fact: Fact) -> str | None:
        """The sitemap that the robots.txt names which must be read to ask for a URL; None without one."""
        host = None if fact.fate is Fate.OUT_OF_SCOPE or not self.rules.lists else self._host(fact.url)
        return self.web.url(host.name, "/sitemap.xml") if host is not None and host.sitemap else None

    def links(self, fact: Fact) -> Iterator[tuple[str, str]]:
        """(identity, via) of every link of a page at this time that the rules follow, repeats included."""
        if fact.is_list and fact.resource is not None and self.rules.lists:
            feed = fact.resource.kind is Kind.FEED
            for made in (specials.news if feed else specials.listed)(self.web, fact.resource.host):
                yield made.url, "feed" if feed else "sitemap"
        if not fact.is_document or fact.resource is None:
            return
        for link in self.web.links(fact.resource, self.now):
            if self.rules.follow(link):
                yield link.target, link.rel if link.rel == "alternate" else link.via

    def text(self, fact: Fact) -> str:
        """The visible text of a document."""
        return self._content(fact).text if fact.resource is None or not fact.resource.frameset else ""

    def withheld(self, fact: Fact) -> bool:
        """Whether a page asks not to be indexed."""
        made = fact.resource
        if made is None or not fact.is_document:
            return False
        return "noindex" in (self.web.origin_of(made) if made.same_bytes else made).meta_robots

    def title(self, fact: Fact) -> str:
        """The title of a document."""
        return self._content(fact).title

    def documents(self, facts: dict[str, Fact]) -> dict[str, list[str]]:
        """The distinct texts of the documents, each with its URLs: the exact-duplicate classes."""
        classes: dict[str, list[str]] = {}
        for url, fact in facts.items():
            if fact.is_document and not self.withheld(fact):
                classes.setdefault(self.text(fact), []).append(url)
        return classes

    def near_duplicates(self, facts: dict[str, Fact]) -> list[tuple[str, str, float]]:
        """(URL, URL it is like, share of words that differ) of the near duplicates made on purpose."""
        pairs = []
        for url, fact in facts.items():
            made = fact.resource
            if fact.is_document and made is not None and made.twin is not None and made.edits:
                pairs.append((url, made.twin.url, made.edits))
        return pairs

    def counts(self, facts: dict[str, Fact]) -> Counter[Fate]:
        """How many URLs meet each fate."""
        return Counter(fact.fate for fact in facts.values())

    def robots_asked(self, facts: dict[str, Fact]) -> set[str]:
        """The live hosts whose robots.txt a crawl must have asked for."""
        hosts = (self._host(url) for url, fact in facts.items() if fact.fate is not Fate.OUT_OF_SCOPE)
        return {host.name for host in hosts if host is not None}

    # --- private --------------------------------------------------------------------------------------------

    def _host(self, url: str) -> Host | None:
        return self.web.by_name.get(urlsplit(url).hostname or "")

    def _fate(self, url: str, resource: Resource | None) -> tuple[Fate, int | None]:
        host, name = self._host(url), urlsplit(url).hostname or ""
        if not self.rules.admit(url):
            return Fate.OUT_OF_SCOPE, None
        if host is None:
            return (Fate.REFUSED if name.endswith(".test") else Fate.NO_ADDRESS), None
        if host.robots.kind is Robots.FAILING:
            return Fate.ROBOTS_UNREACHABLE, None
        if not self.allowed(url):
            return Fate.ROBOTS_DENIED, None
        status = _status(self.web, resource, self.now)
        by_status = {404: Fate.NOT_FOUND, 410: Fate.GONE}
        if status >= 500:
            return Fate.SERVER_ERROR, status
        return by_status.get(status, Fate.REDIRECT if 300 <= status < 400 else Fate.OK), status

    def _onward(self, fact: Fact) -> Iterator[tuple[str, str]]:
        if fact.fate is Fate.REDIRECT and "redirect" in self.rules.via:
            yield fact.location, "redirect"
        yield from self.links(fact)

    def _content(self, fact: Fact) -> render.Content:
        if fact.resource is None or not fact.is_document:
            raise ValueError(f"{fact.url} is no document but {fact.fate}")
        return render.content(self.web, fact.resource, self.now)


def rechecks(before: Truth, after: Truth, facts: dict[str, Fact]) -> dict[str, Recheck]:
    """What asking again gives, for every URL in `facts` (of the time `before`) that was 200 then."""
    found: dict[str, Recheck] = {}
    for url, fact in facts.items():
        made = fact.resource
        if fact.fate is not Fate.OK or made is None:
            continue
        if after.fact(url).fate is not Fate.OK:
            found[url] = Recheck.LOST
        elif render.state(before.web, made, before.now) != render.state(after.web, made, after.now):
            found[url] = Recheck.CHANGED
        else:
            found[url] = Recheck.EQUAL if made.validators is Validators.NONE else Recheck.NOT_MODIFIED
    return found


def _status(web: Web, resource: Resource | None, now: int) -> int:
    if resource is None or (resource.born is not None and now < resource.born):
        return 404
    if resource.dies is not None and now >= resource.dies:
        return resource.status_dead
    return resource.status


def _allowed(host: Host, path: str, now: int) -> bool:
    """The longest matching rule decides; without one the path is allowed."""
    plan = host.robots
    if path == "/robots.txt" or (plan.opens_at is not None and now >= plan.opens_at):
        return True
    matching = [(len(pattern), allowed) for allowed, pattern in plan.rules if _matches(pattern, path)]
    return max(matching, default=(0, True))[1]


def _matches(pattern: str, path: str) -> bool:
    """Robots matching: a prefix, with * for anything and a final $ for the end."""
    parts = [re.escape(part) for part in pattern.removesuffix("$").split("*")]
    return re.match(".*".join(parts) + ("$" if pattern.endswith("$") else ""), path) is not None
