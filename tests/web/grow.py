"""The web itself, as a pure description: which hosts, which pages, how they are linked and when they change.

What always holds: the same arguments give the same web; nothing depends on the clock or on what was asked
before; every ordinary page of an open host can be reached from the first home page by `a` links over pages
that stay. It serves nothing (`serve`), writes no HTML (`render`) and draws no conclusions (`truth`).
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from typing import Any
from urllib.parse import quote

from tests.web import links, specials
from tests.web.dice import Dice, number
from tests.web.hosts import dead_names, grow_hosts
from tests.web.model import DAY, EPOCH, Features, Host, Kind, Link, Must, Resource, Validators, address_of
from tests.web.words import phrase

__all__ = ["Web"]

_FANOUT = 8  # children of a page in the tree that makes every page reachable: 100 pages lie within 3 clicks
_RATES = (1 / 30, 1 / 7, 1 / 2, 1.0, 4.0)  # changes a day of the pages that change
_SECTIONS = ("docs", "blog", "news", "guide", "people", "archive/2025", "archive/2024/q3")
_VALIDATORS = (
    Validators.BOTH, Validators.BOTH, Validators.ETAG, Validators.MODIFIED, Validators.BOTH, Validators.NONE,
)  # fmt: skip


class Web:
    """A grown web. `resources` maps identity URLs to what answers there, `hosts` are the live ones."""

    def __init__(
        self,
        seed: int,
        hosts: int = 60,
        pages: int = 2500,
        *,
        features: Features | None = None,
        port: int = 0,
        agent: str = "rehearsal",
        network: str = "127.1.0.0/16",
        mean_bytes: int = 15_000,
    ) -> None:
        """Grow it: `pages` ordinary pages on `hosts` hosts, and what `features` adds to them.

        `port` is part of every URL (80: left out; 0: to be chosen by the server). `agent` is the crawler's
        robots name. Hosts are spread over `network`. Raises ValueError if there are fewer than three pages a
        host.
        """
        if hosts < 1 or pages < 3 * hosts:
            raise ValueError(f"{pages} pages are too few for {hosts} hosts: three a host at least")
        self.seed, self.page_count, self.port = seed, pages, port
        self.features = features or Features()
        self.agent, self.network, self.mean_bytes = agent, network, mean_bytes
        self.hosts = grow_hosts(seed, hosts, self.features, agent)
        self.by_name = {host.name: host for host in self.hosts}
        self.dead = dead_names(seed, self.features, self.hosts, network)
        self.unlisted = tuple(f"www.nowhere{at}.invalid" for at in range(self.features.unlisted_hosts))
        self.resources: dict[str, Resource] = {}
        self.spines: dict[int, list[Resource]] = {}  #: by host number: pages that stay, to hang others on
        self._changes: dict[str, list[int]] = {}
        self._links: dict[str, tuple[Link, ...]] = {}
        for host, size in zip(self.hosts, self._sizes(), strict=True):
            self._grow_pages(host, size)
        self._join_hosts()
        specials.grow(self)

    # --- what it was grown from -----------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """The arguments it was grown from, as JSON values."""
        return {
            "seed": self.seed, "hosts": len(self.hosts), "pages": self.page_count, "port": self.port,
            "agent": self.agent, "network": self.network, "mean_bytes": self.mean_bytes,
            "features": dataclasses.asdict(self.features),
        }  # fmt: skip

    @classmethod
    def from_spec(cls, spec: dict[str, Any], port: int | None = None) -> Web:
        """The web of a `spec()`, at another port if given."""
        given = dict(spec, features=Features(**spec["features"]))
        return cls(**(given if port is None else dict(given, port=port)))

    # --- names ----------------------------------------------------------------------------------------------

    def origin(self, host: str) -> str:
        """Scheme, host and port."""
        return f"http://{host}" if self.port == 80 else f"http://{host}:{self.port}"

    def url(self, host: str, path: str) -> str:
        """The identity of the URL with this (already escaped) path and query on this host."""
        return self.origin(host) + path

    def home(self, host: Host) -> Resource:
        """The page at `/` of a host."""
        return self.resources[self.url(host.name, "/")]

    def find(self, url: str) -> Resource | None:
        """What was ever, is or will be at an identity URL; None for nothing, or a host that is not there."""
        made = self.resources.get(url)
        return made if made is not None or specials.CALENDAR not in url else specials.month(self, url)

    def address(self, host: str) -> str:
        """The address at which a host is served, or would be if it lived."""
        return address_of(host, self.network)

    @property
    def seed_urls(self) -> list[str]:
        """The home pages of all hosts, in order."""
        return [self.url(host.name, "/") for host in self.hosts]

    # --- time -----------------------------------------------------------------------------------------------

    def origin_of(self, resource: Resource) -> Resource:
        """The page whose text this one shows: itself unless it is a duplicate."""
        return resource.twin or resource

    def first_modified(self, resource: Resource) -> int:
        """When the page's first version was written: its birth, or a time in the year before the web."""
        if resource.born is not None:
            return resource.born
        return EPOCH - 1 - number(self.seed, "written", *_key(self.origin_of(resource))) % (365 * DAY)

    def changes(self, resource: Resource, until: int) -> list[int]:
        """The times in (EPOCH, until] at which the page's content changes: a Poisson process of its rate, in
        whole seconds and no two alike, and the births of pages it then links to.
        """
        source = self.origin_of(resource)
        times = self._drawn(source, until) if source.rate else []
        times = times[: bisect_right(times, until)]
        late = {must.since for must in source.must if must.since is not None and must.since <= until}
        return sorted(late.union(times)) if late else times

    def version(self, resource: Resource, now: int) -> int:
        """How many times the page's own text has changed since the web began."""
        source = self.origin_of(resource)
        return bisect_right(self._drawn(source, now), now) if source.rate else 0

    def last_changed(self, resource: Resource, now: int) -> int:
        """When the content that is shown now was written."""
        times = self.changes(resource, now)
        return times[-1] if times else self.first_modified(resource)

    def alive(self, resource: Resource, now: int) -> bool:
        """Whether there is anything at its URL."""
        born = resource.born is None or resource.born <= now
        return born and (resource.dies is None or now < resource.dies)

    def _drawn(self, source: Resource, until: int) -> list[int]:
        """The process's times, drawn at least as far as `until`; kept, and drawn further when asked."""
        times = self._changes.get(source.url)
        if times and times[-1] > until:
            return times
        span = max(64, 2 * len(times or ()))
        while not times or times[-1] <= until:
            dice, at, times = Dice(self.seed, "changes", *_key(source)), float(EPOCH), []
            for _ in range(span):
                at = max(at + dice.gap(source.rate / DAY), (times[-1] if times else EPOCH) + 1.0)
                times.append(int(at))
            span *= 2
        self._changes[source.url] = times
        return times

    # --- links ----------------------------------------------------------------------------------------------

    def links(self, resource: Resource, now: int) -> tuple[Link, ...]:
        """The links of a page at a time, in document order."""
        if resource.kind is Kind.CALENDAR:
            return links.of(self, resource)
        known = self._links.get(resource.url)
        if known is None:
            known = self._links[resource.url] = links.of(self, resource)
        source = self.origin_of(resource)
        hidden = {must.target for must in source.must if must.since is not None and now < must.since}
        return tuple(link for link in known if link.target not in hidden) if hidden else known

    # --- growing --------------------------------------------------------------------------------------------

    def _sizes(self) -> list[int]:
        """Ordinary pages of each host: few where nothing may be fetched or fetching is slow, else a tail."""
        small = {h.number: 4 if not h.open else 8 for h in self.hosts if not h.open or h.latency_ms}
        average = self.page_count // len(self.hosts)
        small = {key: max(3, min(size, average)) for key, size in small.items()}
        weights = [0.0 if h.number in small else (h.number + 4) ** -0.5 for h in self.hosts]
        left = self.page_count - sum(small.values()) - 3 * (len(self.hosts) - len(small))
        sizes = [
            small.get(h.number, 3 + int(left * w / sum(weights)))
            for h, w in zip(self.hosts, weights, strict=True)
        ]
        sizes[0] += self.page_count - sum(sizes)
        return sizes

    def add(self, host: Host, path: str, kind: Kind = Kind.PAGE, **traits: Any) -> Resource:
        """Put something at a path of a host. Raises ValueError if there is something already."""
        url = self.url(host.name, path)
        if url in self.resources:
            raise ValueError(f"{url} is taken")
        traits.setdefault("language", host.language)
        self.resources[url] = made = Resource(url=url, path=path, host=host, kind=kind, **traits)
        return made

    def _grow_pages(self, host: Host, size: int) -> None:
        spine = self.spines[host.number] = [self.add(host, "/", rate=0.5 if self.features.changing else 0.0)]
        host.pages.append(spine[0])
        for index in range(1, size):
            dice = Dice(self.seed, "page", host.number, index)
            private = dice.chance(self.features.private)
            page = self.add(host, self._path(host, index, dice, private), **self._traits(dice, host, index))
            spine[(len(spine) - 1) // _FANOUT].must.append(Must(target=page.url))
            host.pages.append(page)
            if not private:
                spine.append(page)

    def _path(self, host: Host, index: int, dice: Dice, private: bool) -> str:
        slug = "-".join(phrase("en", 2, self.seed, "slug", host.number, index).lower().split())
        if private:
            return f"/private/{'open-' if dice.chance(0.3) else ''}{slug}-{index}.html"
        if dice.chance(self.features.unicode):
            word = phrase("de" if dice.chance(0.5) else "ru", 1, self.seed, "slug", host.number, index)
            return quote(f"/straße/{word.lower()}-{index}")
        ending = dice.pick((".html", ".html", "/", ""))
        section = dice.pick(_SECTIONS)
        if dice.chance(0.05):
            return f"/{section}/show?id={index}"
        return f"/{section}/{slug}-{index}{ending}"

    def _traits(self, dice: Dice, host: Host, index: int) -> dict[str, Any]:
        features = self.features
        traits: dict[str, Any] = {"validators": dice.pick(_VALIDATORS)}
        if dice.chance(0.1):
            traits["language"] = dice.pick(("en", "de", "fr", "ru"))
        if dice.chance(features.changing):
            traits["rate"] = dice.pick(_RATES)
        if dice.chance(features.charsets):
            latin = dice.chance(0.6)
            traits["charset"] = "iso-8859-1" if latin else dice.pick(("utf-16le", "utf-16be"))
            traits["language"] = dice.pick(("de", "fr") if latin else ("ru", "de"))
        elif dice.chance(features.bases):
            traits["base"] = self.url(host.name, dice.pick(("/docs/", "/", "/blog/deep/er/")))
        if dice.chance(features.noindex):
            traits["meta_robots"] = "noindex"
        return traits

    def _join_hosts(self) -> None:
        """Link every home page from an earlier open host's page, so that one seed reaches all."""
        for host in self.hosts[1:]:
            dice = Dice(self.seed, "join", host.number)
            earlier = [each for each in self.hosts[: host.number] if each.open and not each.latency_ms]
            parent = dice.early(earlier)
            self.spines[parent.number][dice.below(min(4, len(self.spines[parent.number])))].must.append(
                Must(target=self.url(host.name, "/"))
            )


def _key(resource: Resource) -> tuple[str, str]:
    """What chance about a page is keyed by: no port, so that the same web can be served anywhere."""
    return resource.host.name, resource.path
