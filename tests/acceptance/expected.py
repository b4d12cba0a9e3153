"""What a lake must hold after each visit of a grown web, reckoned from the web's truth alone.

A visit is a crawl until nothing is left, at one time of the web. What always holds: this imports nothing of
the crawler and reads no lake. It goes round by round, because a URL keeps the depth by which it was met
first, and a sitemap may name a page before links lead there. Its rules are those of the documents: what is
linked is asked in the next round, so is a redirect's target in another domain, and one in the same domain at
once; a sitemap is met when robots.txt is read; a redirect's target has the depth of its source; a page is
gone after three sightings of 404 or two of 410 over at least a day; what never answered and fails is retried;
robots.txt blocks, or makes wait when it cannot be read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from tests.web import render
from tests.web.grow import Web
from tests.web.model import DAY, Kind, Validators
from tests.web.truth import Fact, Fate, Rules, Truth

__all__ = ["ASKED", "FAILING", "LISTED", "Expected", "Row", "Visit", "looping"]

#: ways in which sitemaps and feeds name pages
LISTED = frozenset({"sitemap", "feed"})

#: fates that the server sees
ASKED = frozenset({Fate.OK, Fate.REDIRECT, Fate.NOT_FOUND, Fate.GONE, Fate.SERVER_ERROR})
#: outcomes after which a URL is tried again before its ordinary turn, 410 being the slowest
FAILING = frozenset({"NOT_FOUND", "SERVER_ERROR", "UNAVAILABLE", "ROBOTS_UNREACHABLE"})
_SIGHTINGS = {Fate.NOT_FOUND: 3, Fate.GONE: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A URL, by identity, as the lake must know it."""

    url: str
    depth: int
    found_by: frozenset[str]  #: more than one where paths of that depth are of several kinds
    fate: Fate | None = None
    state: str = "DISCOVERED"
    outcome: str | None = None
    status: int | None = None
    location: str = ""  #: of a redirect
    text: str | None = None  #: of its document; None: it has none
    title: str | None = None
    withheld: bool = False  #: its text is not kept
    shown: Hashable = None  #: names the content that was last seen there; None: none yet
    sightings: int = 0
    since: int = 0  #: the first of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a visit of the web gives."""

    asked: frozenset[str]  #: identities that the crawl decided about
    events: frozenset[tuple[str, str]]  #: kind and identity
    read: dict[
        str, frozenset[tuple[str, str]]
    ]  #: of each page whose links were read: target and kind, admitted
    redirects: dict[str, str]  #: targets of the redirects that were met


@dataclass(slots=True)
class Expected:
    """The lake as it must be, visit after visit."""

    web: Web
    rules: Rules = field(default_factory=lambda: Rules(via=Rules().via | {"sitemap"}))
    rows: dict[str, Row] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)  #: linked to, but out of the rules
    texts: set[str] = field(default_factory=set)  #: of all documents so far

    def visit(self, now: int, due: Iterable[str], at: int | None = None) -> Visit:
        """Ask for what is due (known or seeds), and for all that is found on the way.

        `now` is the web's time, `at` the crawl's where it is another.
        """
        truth = Truth(self.web, now, self.rules)
        told = _Told(now if at is None else at)
        wave = set(due)
        for url in wave - self.rows.keys():
            self.rows[url] = Row(url=url, depth=0, found_by=frozenset({"seed"}))
        while wave:
            fresh: set[str] = set()  # met in this round, so that their depth and origin are not settled yet
            for url in sorted(wave, key=lambda url: (self.rows[url].depth, url)):
                at_url: str | None = url
                while at_url is not None:
                    at_url = self._ask(at_url, truth, told, fresh)
            wave = fresh - told.asked
        return Visit(
            asked=frozenset(told.asked),
            events=frozenset(told.events),
            read=told.read,
            redirects=told.redirects,
        )

    def _ask(self, url: str, truth: Truth, told: _Told, fresh: set[str]) -> str | None:
        """One URL's turn; the target of its redirect if that is followed at once."""
        if url in told.asked:
            return None
        told.asked.add(url)
        row, fact = self.rows[url], truth.fact(url)
        after = self.rows[url] = _moved(row, fact, truth, told.at)
        told.events |= _events(row, after)
        if after.text is not None and not after.withheld:
            self.texts.add(after.text)
        if (sitemap := truth.sitemap(fact)) is not None:
            self._meet(sitemap, 0, "robots", fresh)
        if (fact.is_document or fact.is_list) and after.shown != row.shown:
            deeper = fact.is_list or row.depth < self.rules.max_depth
            told.read[url] = frozenset(self._within(link for link in truth.links(fact) if deeper))
            for target, via in told.read[url]:
                kind = via if via in LISTED else "link"
                self._meet(target, 1 if fact.is_list else row.depth + 1, kind, fresh)
        if fact.fate is not Fate.REDIRECT:
            return None
        told.redirects[url] = fact.location
        if not self.rules.admit(fact.location):
            return None
        self._meet(fact.location, row.depth, "redirect", fresh)
        near = _domain(self.web, url) == _domain(self.web, fact.location)
        return fact.location if near and fact.location in fresh else None

    def _within(self, links: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for target, via in links:
            if self.rules.admit(target):
                yield target, via
            else:
                self.refused.add(target)

    def _meet(self, url: str, depth: int, kind: str, fresh: set[str]) -> None:
        """A path to a URL. What was known before the round keeps its depth and origin."""
        row = self.rows.get(url)
        if row is None:
            self.rows[url] = Row(url=url, depth=depth, found_by=frozenset({kind}))
            fresh.add(url)
        elif url in fresh and depth < row.depth:
            self.rows[url] = replace(row, depth=depth, found_by=frozenset({kind}))
        elif url in fresh and depth == row.depth:
            self.rows[url] = replace(row, found_by=row.found_by | {kind})


@dataclass(slots=True)
class _Told:
    """What a visit has given so far. `at`: the crawl's time."""

    at: int
    asked: set[str] = field(default_factory=set)
    events: set[tuple[str, str]] = field(default_factory=set)
    read: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)


def _domain(web: Web, url: str) -> str:
    """Whose a URL is; of a host that is not there, its name."""
    name = urlsplit(url).hostname or ""
    host = web.by_name.get(name)
    return name if host is None else host.domain


def looping(rows: Mapping[str, Row], url: str) -> bool:
    """Whether the redirects from a URL lead back to it."""
    at = rows[url].location
    for _ in range(10):
        if at == url:
            return True
        at = rows[at].location if at in rows else ""
    return False


def _moved(row: Row, fact: Fact, truth: Truth, at: int) -> Row:
    """The row after its URL was decided about."""
    row = replace(row, fate=fact.fate)
    match fact.fate:
        case Fate.OK:
            return _answered(row, fact, truth)
        case Fate.REDIRECT:
            moved = replace(
                row, state="FETCHED", outcome="REDIRECT", status=fact.status, location=fact.location
            )
            return replace(moved, sightings=0)
        case Fate.NOT_FOUND | Fate.GONE:
            return _missed(row, fact, at)
        case Fate.SERVER_ERROR:
            outcome = "UNAVAILABLE" if fact.status == 503 else "SERVER_ERROR"
            state = row.state if row.state == "FETCHED" else "FAILED_RETRYABLE"
            return replace(row, state=state, outcome=outcome, status=fact.status)
        case Fate.ROBOTS_DENIED:
            return replace(row, state="BLOCKED", outcome="ROBOTS_DENIED")
        case _:  # without robots.txt nothing may be asked (RFC 9309, 2.3.1.4), whatever the reason
            return replace(row, outcome="ROBOTS_UNREACHABLE")


def _answered(row: Row, fact: Fact, truth: Truth) -> Row:
    made = fact.resource
    assert made is not None, "only what is there answers 200"
    shown = ("state", render.state(truth.web, made, truth.now))
    unmarked = (Kind.CALENDAR, Kind.SITEMAP, Kind.FEED)  # their answers carry no validators
    again = shown == row.shown and made.validators is not Validators.NONE and made.kind not in unmarked
    outcome = "OK" if fact.is_document or fact.is_list else "UNSUPPORTED_TYPE"
    text = truth.text(fact) if fact.is_document else None
    return replace(
        row,
        state="FETCHED",
        outcome="NOT_MODIFIED" if again else outcome,
        status=304 if again else 200,
        text=text,
        title=truth.title(fact) if fact.is_document else None,
        withheld=truth.withheld(fact),
        shown=shown,
        sightings=0,
    )


def _missed(row: Row, fact: Fact, now: int) -> Row:
    """404 or 410: absence is not evidence at once."""
    row = replace(
        row,
        outcome="NOT_FOUND" if fact.fate is Fate.NOT_FOUND else "GONE",
        status=fact.status,
        sightings=row.sightings + 1,
        since=row.since if row.sightings else now,
    )
    if row.sightings >= _SIGHTINGS[fact.fate] and now - row.since >= DAY:
        return replace(row, state="GONE", text=None, title=None, withheld=False, shown=None)
    return row if row.state == "FETCHED" else replace(row, state="FAILED_RETRYABLE")


def _events(before: Row, after: Row) -> set[tuple[str, str]]:
    was, is_ = (None if row.withheld else row.text for row in (before, after))
    if was == is_:
        return set()
    kind = "new" if was is None else "deleted" if is_ is None else "changed"
    return {(kind, after.url)}
