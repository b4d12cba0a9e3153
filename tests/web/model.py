"""The records of the grown web: hosts, what answers at a URL, links, and what can be switched.

What always holds: URLs in these records are identities, that is WHATWG canonical, without fragment and
without `utm_*`; times are whole seconds since 1970 UTC; rates are changes a day. There is no behaviour here
beyond small derived values.
"""

from __future__ import annotations

import dataclasses
import enum
import ipaddress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b

__all__ = [
    "DAY", "EPOCH", "Features", "Host", "Kind", "Link", "Must", "Resource", "Robots", "RobotsPlan",
    "Validators", "address_of", "seconds", "when",
]  # fmt: skip

DAY = 86_400
EPOCH = 1_767_225_600  #: 2026-01-01T00:00:00Z, when the web's own time begins


def seconds(moment: datetime | str | int) -> int:
    """Whole seconds since 1970 UTC of a time, an ISO text (without zone: UTC) or such a number.

    Raises ValueError for a text that is no ISO time.
    """
    if isinstance(moment, int):
        return moment
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def when(moment: int) -> datetime:
    """The UTC time of a number of seconds since 1970."""
    return datetime.fromtimestamp(moment, UTC)


def address_of(host: str, network: str) -> str:
    """The address at which `host` is served: its hash spreads it over the network (one address: that one)."""
    net = ipaddress.ip_network(network)
    if net.num_addresses <= 2:
        return str(net.network_address)
    digest = blake2b(host.encode(), digest_size=8).digest()
    offset = int.from_bytes(digest[:4], "big") % (net.num_addresses - 2)
    return str(net.network_address + 1 + offset)


class Kind(enum.Enum):
    """What answers at a URL."""

    PAGE = "page"
    REDIRECT = "redirect"
    ERROR = "error"  #: always the same status from 400 up
    FILE = "file"  #: not HTML
    CALENDAR = "calendar"  #: one month of the endless calendar
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    FEED = "feed"


class Validators(enum.Enum):
    """Which validators a page's answers carry."""

    BOTH = "both"
    ETAG = "etag"
    MODIFIED = "last-modified"
    NONE = "none"


class Robots(enum.Enum):
    """The ways in which a host's robots.txt may look."""

    MISSING = "missing"  #: 404: all is allowed
    ALLOW = "allow"  #: an empty Disallow
    FOLDER = "folder"  #: /private/ is closed
    AGENT = "agent"  #: everything is closed but for our agent, which may not enter /private/
    DELAY = "delay"  #: Crawl-delay, nothing closed
    REDIRECTED = "redirected"  #: answered by a redirect to a file that closes /private/
    PATTERN = "pattern"  #: closes /*.pdf$ and /private/, opens /private/open-*
    OPENING = "opening"  #: closes /private/ until a given time
    FORBIDDEN = "forbidden"  #: 403: all is allowed (RFC 9309, 2.3.1.3)
    SHUT = "shut"  #: our agent may not come in at all
    FAILING = "failing"  #: 503: nothing may be fetched (RFC 9309, 2.3.1.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsPlan:
    """A host's robots.txt over time. `rules` are (allowed, pattern) for our agent, longest match wins."""

    kind: Robots
    status: int
    text: str
    rules: tuple[tuple[bool, str], ...] = ()
    delay: float | None = None  #: Crawl-delay in seconds
    opens_at: int | None = None  #: from this time on there are no rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link of a page: where it leads and how it is written."""

    target: str  #: identity of the URL it leads to
    href: str  #: as written in the page
    via: str  #: a, area, frame, iframe, link, refresh
    anchor: str = ""
    rel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Must:
    """A link that a page is bound to have, so that its target can be found."""

    target: str
    via: str = "a"
    rel: str = ""
    since: int | None = None  #: the link is there only from this time on


@dataclass(slots=True, kw_only=True, eq=False)
class Host:
    """A host: its name (ASCII), the domain it belongs to, its manners and its pages."""

    name: str
    domain: str
    number: int
    robots: RobotsPlan
    language: str = "en"
    latency_ms: int = 0
    gzip: bool = False
    chunked: bool = False
    sitemap: bool = False
    feed: bool = False  #: its home page names one
    #: ordinary pages, home first, that any page may link to
    pages: list[Resource] = field(default_factory=list)

    @property
    def open(self) -> bool:
        """Whether its pages other than /private/ may be fetched by our agent."""
        return self.robots.kind not in (Robots.SHUT, Robots.FAILING)


@dataclass(slots=True, kw_only=True, eq=False)
class Resource:
    """What answers at one URL."""

    url: str
    path: str  #: path and query
    host: Host
    kind: Kind
    status: int = 200
    location: str = ""  #: redirects: identity of the target
    media_type: str = "text/html"
    charset: str = "utf-8"
    language: str = "en"
    validators: Validators = Validators.BOTH
    rate: float = 0.0  #: changes a day
    born: int | None = None  #: 404 before this time
    dies: int | None = None  #: `status_dead` from this time on
    status_dead: int = 404
    must: list[Must] = field(default_factory=list)
    twin: Resource | None = None  #: its text is that of this other page
    same_bytes: bool = False  #: its body is byte for byte that of its twin
    edits: float = 0.0  #: share of the twin's words that differ (near duplicate); 0: equal text
    absolute: bool = False  #: all its links are written with scheme and host
    base: str = ""  #: href of its <base>, a folder of the same host
    meta_robots: str = ""
    frameset: bool = False
    retry_after: int | None = None

    @property
    def leaf(self) -> bool:
        """Whether it may fail to be there, so that nothing may depend on it to be found."""
        return self.kind is not Kind.PAGE or self.born is not None or self.dies is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What the web has. Shares are of the number of pages unless said otherwise; 0 or False: without."""

    robots: bool = True  #: False: every host answers 404 for it
    crawl_delay: float = 0.1  #: seconds, on one host in twelve
    redirects: float = 0.03
    duplicates: float = 0.03
    near_duplicates: float = 0.02
    missing: float = 0.015  #: links to nothing
    gone: float = 0.004  #: 410
    errors: float = 0.004  #: 500 and 503
    dead_hosts: int = 2  #: names whose address refuses connections
    unlisted_hosts: int = 1  #: names that have no address
    slow_hosts: int = 1
    latency_ms: int = 200  #: of a slow host
    changing: float = 0.4
    appearing: float = 0.02
    vanishing: float = 0.02
    trap: bool = True  #: the endless calendar
    files: float = 0.02  #: pdf, png, css, txt
    charsets: float = 0.01  #: latin-1 and utf-16
    bases: float = 0.01
    nofollow: float = 0.01  #: pages found only by rel=nofollow
    frames: float = 0.01  #: pages found only by area, iframe, frame, meta refresh
    noindex: float = 0.005
    private: float = 0.06  #: pages under /private/
    tracking: float = 0.04  #: share of links that carry utm_*
    spellings: float = 0.15  #: share of links written unusually: fragments, dots, case, escapes
    unicode: float = 0.02
    long_urls: int = 2  #: one of about 1,900 characters, one of about 3,000
    sitemaps: float = 0.15  #: share of hosts; each lists pages that nothing links to
    gzip: float = 0.1  #: share of hosts
    chunked: float = 0.05  #: share of hosts

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all features."""
        return tuple(each.name for each in dataclasses.fields(cls))

    def without(self, *names: str) -> Features:
        """The same but for these features. Raises ValueError for an unknown name."""
        unknown = sorted(set(names) - set(self.names()))
        if unknown:
            raise ValueError(f"no such feature: {', '.join(unknown)}; there are {', '.join(self.names())}")
        return dataclasses.replace(self, **{name: type(getattr(self, name))(0) for name in names})

    @classmethod
    def only(cls, *names: str) -> Features:
        """Nothing but these features, at their usual strength. Raises ValueError for an unknown name."""
        cls().without(*names)
        return cls().without(*(name for name in cls.names() if name not in names and name != "latency_ms"))
