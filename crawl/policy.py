"""What the operator may decide, as frozen values; each default with its reason.

Read from `crawl.toml` and the environment by `cycles.settings.config` alone, which refuses unknown keys.
Durations are `timedelta`, sizes say bytes. Manners are not configurable away: robots has no switch, and
delays to public addresses have a floor in code (`PUBLIC_FLOOR`). A rule takes the part it obeys, never the
whole `Settings`. The comment beside each field is what `crawl config explain` prints, so each has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

__all__ = [
    "PUBLIC_FLOOR",
    "Agent",
    "Content",
    "Dns",
    "Egress",
    "Fetching",
    "Identity",
    "Limits",
    "Parsing",
    "Planning",
    "Politeness",
    "Recrawl",
    "Retention",
    "Retry",
    "Robots",
    "Round",
    "Scope",
    "Settings",
    "Sitemaps",
    "Storage",
    "Tls",
]

#: no setting brings the gap between two requests to a public host below this
PUBLIC_FLOOR: Final = timedelta(milliseconds=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Who we say we are. Name and contact are required before any public host is asked."""

    name: str = ""  # the product name in the User-Agent and in robots.txt groups
    contact: str = ""  # https://… or mailto:…
    version: str = "1.0"  # the version in the User-Agent

    def header(self) -> str:
        """The User-Agent line: product/version (+contact)."""
        product = f"{self.name or 'crawl-cycles'}/{self.version}"
        return f"{product} (+{self.contact})" if self.contact else product


@dataclass(frozen=True, slots=True, kw_only=True)
class Egress:
    """Where requests may go beyond the public internet."""

    allow: tuple[str, ...] = ()  # CIDR ranges, e.g. 127.0.0.0/8
    #: further ports of public hosts: privileged ones, and those of other protocols (docs/egress.md)
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Whom to believe on https. Certificates are always verified: there is no switch."""

    ca_file: str = ""  # absolute path of a PEM file, trusted besides the system's wherever requests are made


@dataclass(frozen=True, slots=True, kw_only=True)
class Dns:
    """How names become addresses."""

    hosts: Mapping[str, str] = field(default_factory=dict)  # name or *.suffix -> address or range
    servers: tuple[str, ...] = ()  # host:port; empty = the system's
    timeout: timedelta = timedelta(seconds=5)  # how long one name may take to resolve
    negative_ttl: timedelta = timedelta(seconds=60)  # how long a failed name is remembered
    in_flight: int = 250  # questions a task may have open that are not older than a second
    prefetch: int = 50  # of these, names asked for before their host's turn comes


@dataclass(frozen=True, slots=True, kw_only=True)
class Politeness:
    """The gap a host is left alone after a request: max(floor, Crawl-delay, factor x last duration)."""

    min_delay: timedelta = timedelta(seconds=1)  # least gap between two requests to a host
    factor: float = 10.0  # Mercator's: ten times as long as the last download took
    factor_cap: timedelta = timedelta(seconds=60)  # longest gap that the factor makes
    slow_latency: timedelta = timedelta(seconds=5)  # above this moving average: one request per slow_delay
    slow_delay: timedelta = timedelta(seconds=5)  # gap for a slow host
    backoff_base: timedelta = timedelta(seconds=1)  # 2^n of it after n errors in a row
    backoff_max: timedelta = timedelta(hours=1)  # longest back-off of a host
    circuit_after: int = 3  # host-level errors in a row that open the circuit
    retry_after_max: timedelta = timedelta(hours=24)  # longest Retry-After that is honoured
    long_crawl_delay: timedelta = timedelta(seconds=60)  # above: kept in full, but no round waits for it
    address_in_flight: int = 4  # requests open at one public address, whatever hosts it carries
    address_delay: timedelta = timedelta(milliseconds=250)  # least time between two starts there
    #: domains that one such cap is for: an address of more (shared hosting) may carry proportionally more
    address_domains: int = 100
    address_shares: int = 8  # up to so many caps: 32 open and 32 a second at most, as these settings stand
    #: requests that may be open at once at a host of your own, each with a clock; like { "docs.a.test" = 4 }
    in_flight: Mapping[str, int] = field(default_factory=dict)
    #: hosts with one clock: group -> hosts, *.suffix for all below; like { news = ["a.test", "*.b.test"] }
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which URLs belong to the crawl; all empty = anywhere."""

    domains: tuple[str, ...] = ()  # a domain and every host below it
    hosts: tuple[str, ...] = ()  # exactly these hosts
    exclude: tuple[str, ...] = ()  # path patterns with * and ?


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """How long a round fetches and how often links are merged."""

    window: timedelta = timedelta(minutes=10)  # how long a round may fetch
    merge_every: int = 1  # rounds after which waiting links are merged


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what one URL, answer or page may cost (every hit leaves a reason)."""

    request_deadline: timedelta = timedelta(seconds=60)  # one request, from resolving to the last byte
    connect_timeout: timedelta = timedelta(seconds=10)  # TCP and TLS
    idle: timedelta = timedelta(seconds=15)  # without a byte
    keep_alive: timedelta = timedelta(seconds=60)  # a kept connection unused for longer is not used again
    header_bytes: int = 64 * 1024  # response header bytes
    header_lines: int = 200  # response header lines
    wire_bytes: int = 10_000_000  # body bytes as received
    decoded_bytes: int = 20_000_000  # body bytes decoded
    redirects: int = 5  # hops of one chain
    url_chars: int = 2_048  # characters of a URL
    depth: int = 20  # links from a seed
    segments: int = 20  # path segments of a URL
    parameters: int = 12  # query parameters of a URL
    repeated_segment: int = 3  # times the same path segment may occur


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsing:
    """What reading one page may cost, and which links count."""

    parsed_bytes: int = 5_000_000  # bytes of a page that are parsed
    links: int = 5_000  # links taken from a page
    deadline: timedelta = timedelta(seconds=5)  # time to parse one page
    memory_bytes: int = 512_000_000  # memory the parser may add
    #: kinds of links that are followed
    via: tuple[str, ...] = ("a", "area", "frame", "iframe", "refresh", "redirect", "link", "header")
    follow_nofollow: bool = True  # nofollow (rel, meta, header) is stored; by default a link is a link
    keep_noindex: bool = False  # store and publish what asks not to be indexed (docs/directives.md)
    keep_noarchive: bool = False  # store the bodies of pages that ask not to be archived


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is read, by media type (docs/plugins.md). A body of any other type is left where it is."""

    #: media types that are read; each needs a reader: HTML and PDF are there, others plug in
    types: tuple[str, ...] = ("text/html", "application/xhtml+xml")
    #: media type -> module:function that reads it, before what installed packages offer
    readers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Robots:
    """RFC 9309."""

    bytes: int = 500 * 1024  # RFC 9309 2.5: at least 500 KiB
    redirects: int = 5  # RFC 9309 2.3.1.2: at least five
    valid: timedelta = timedelta(hours=24)  # RFC 9309 2.4
    last_good: timedelta = timedelta(days=30)  # how long that copy serves while the file is unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """How a task runs."""

    in_flight: int = 1_000  # requests a task may have open
    in_flight_bytes: int = 256_000_000  # body bytes a task may hold
    flush_interval: timedelta = timedelta(seconds=2)  # object stores only
    flush_bytes: int = 8_000_000  # journal bytes before a flush; object stores only
    part_bytes: int = 8_000_000  # a journal part is closed at this size, so that parsing can start
    lease: timedelta = timedelta(seconds=15)  # L: work without proof that the hosts are still ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """delay(n) = min(cap, base x 2^n) +- jitter, never below Retry-After (bases: crawl.outcomes)."""

    cap: timedelta = timedelta(minutes=32)  # longest wait before a retry
    jitter: float = 0.25  # spread of a retry, as a share of it
    attempts: int = 5  # failed attempts in a row before a URL is given up
    #: how long a group that has nothing else to do waits for a connection's second try in the same round
    patience: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recrawl:
    """Halve on change, double on none."""

    first: timedelta = timedelta(days=7)  # interval after the first fetch
    floor: timedelta = timedelta(hours=1)  # shortest interval between two checks
    ceiling: timedelta = timedelta(days=90)  # longest interval between two checks
    jitter: float = 0.10  # spread of an interval, as a share of it
    gone_404: int = 3  # sightings, one a round
    gone_410: int = 2  # the same for answers 410
    gone_over: timedelta = timedelta(days=1)  # least time from the first sighting to the last
    retire_share: float = 0.20  # a round that would retire more of a host's live pages holds them back
    retire_least: int = 20  # and at least this many, before they are held back


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """How a round chooses."""

    #: authority, staleness, change, depth, recency
    weights: tuple[float, float, float, float, float] = (0.3, 0.25, 0.2, 0.15, 0.1)
    cuts: tuple[float, float, float] = (0.7, 0.5, 0.3)  # critical, high, medium; below: low
    host_budget: int = 50_000  # page requests a day
    urls: int = 2_000_000  # a round plans at most this many


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What makes two URLs one (a change applies to URLs met afterwards)."""

    tracking: tuple[str, ...] = ()  # further tracking parameters, as `name` or `host:name`
    strip_slash: tuple[str, ...] = ()  # origins for which /a/ and /a are one
    strip_www: tuple[str, ...] = ()  # domains for which www.x and x are one
    session: tuple[str, ...] = ()  # session parameters, as `name` or `host:name`
    accept_suffixes: tuple[str, ...] = ()  # SHA-256 of other Public Suffix Lists that may be used with a lake


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitemaps:
    """Lists of URLs that sites publish: sitemaps, and feeds. Fetched like any page (docs/sitemaps.md)."""

    follow: bool = True  # take the sitemaps that robots.txt names; seeds of kind sitemap are always read
    feeds: bool = True  # take the feeds that pages name (link rel=alternate)
    #: ask each origin whose robots.txt names no sitemap for /sitemap.xml; off, as most have none there, and
    #: who wants one read says so in robots.txt
    well_known: bool = False
    bytes: int = 52_428_800  # of one, as received and unpacked; sitemaps.org: 50 MB
    urls: int = 50_000  # entries read of one; sitemaps.org
    nesting: int = 3  # indexes in one another
    hosts: int = 100  # hosts whose sitemaps one index may name
    deadline: timedelta = timedelta(seconds=30)  # time to read one: 50 MB take 3 s where nothing else runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long rows are kept after their last confirmation."""

    bodies: timedelta = timedelta(days=5)  # bodies
    documents: timedelta = timedelta(days=30)  # documents
    links: timedelta = timedelta(days=30)  # links
    fetches: timedelta = timedelta(days=90)  # requests
    frontier: timedelta = timedelta(days=30)  # fetch lists and rejects
    robots: timedelta = timedelta(days=365)  # robots copies
    outbox: timedelta = timedelta(days=7)  # events, after delivery
    rounds: timedelta = timedelta(days=365)  # entries about rounds
    keep_versions: int = 10  # rounds that stay readable as they were


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """How tables are laid out."""

    merge_rows: int = 2_000_000  # rows a merge range may hold
    upkeep: bool = True  # after the rounds of a run; false: only `crawl upkeep`
    tier_ratio: int = 8  # runs of one size that are merged into the next
    row_group: int = 131_072  # rows in a row group
    target_bytes: int = 256_000_000  # size of a compacted file


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator decides, as one value: what a round pins. Rules take the section they obey."""

    agent: Agent = Agent()
    egress: Egress = Egress()
    tls: Tls = Tls()
    dns: Dns = field(default_factory=Dns)
    politeness: Politeness = field(default_factory=Politeness)
    scope: Scope = Scope()
    round: Round = Round()
    limits: Limits = Limits()
    parsing: Parsing = Parsing()
    content: Content = field(default_factory=Content)
    robots: Robots = Robots()
    fetching: Fetching = Fetching()
    retry: Retry = Retry()
    recrawl: Recrawl = Recrawl()
    planning: Planning = Planning()
    identity: Identity = Identity()
    sitemaps: Sitemaps = Sitemaps()
    retention: Retention = Retention()
    storage: Storage = Storage()
