"""What a lake must hold after each visit of a grown web, reckoned from the web's truth alone.

A visit is a crawl until nothing is left, at one time of the web. What always holds: this imports nothing of
the crawler, knows no rounds and reads no lake. Its rules are those of the documents: a redirect's target has
the depth of its source; a page is gone after three sightings of 404 or two of 410 over at least a day; what
never answered and fails is retried; robots.txt blocks, or makes wait when it cannot be read.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tests.web import render
from tests.web.grow import Web
from tests.web.model import DAY, Kind, Validators
from tests.web.truth import Fact, Fate, Rules, Truth

__all__ = ["ASKED", "FAILING", "Expected", "Row", "Visit", "looping"]

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
    rules: Rules = field(default_factory=Rules)
    rows: dict[str, Row] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)  #: linked to, but out of the rules
    texts: set[str] = field(default_factory=set)  #: of all documents so far

    def visit(self, now: int, due: Iterable[str], at: int | None = None) -> Visit:
        """Ask for what is due (known or seeds), and for all that is found on the way.

        `now` is the web's time, `at` the crawl's where it is another.
        """
        truth = Truth(self.web, now, self.rules)
        asked: set[str] = set()
        events: set[tuple[str, str]] = set()
        read: dict[str, frozenset[tuple[str, str]]] = {}
        redirects: dict[str, str] = {}
        fresh = set(due) - self.rows.keys()
        for url in fresh:
            self.rows[url] = Row(url=url, depth=0, found_by=frozenset({"seed"}))
        heap = [(self.rows[url].depth, url) for url in due]
        heapq.heapify(heap)
        while heap:
            depth, url = heapq.heappop(heap)
            row = self.rows[url]
            if url in asked or depth > row.depth:
                continue
            asked.add(url)
            fact = truth.fact(url)
            after = self.rows[url] = _moved(row, fact, truth, now if at is None else at)
            events |= _events(row, after)
            if after.text is not None and not after.withheld:
                self.texts.add(after.text)
            if fact.is_document and after.shown != row.shown:
                deeper = row.depth < self.rules.max_depth
                read[url] = frozenset(self._within(link for link in truth.links(fact) if deeper))
            if fact.fate is Fate.REDIRECT:
                redirects[url] = fact.location
            for target, depth_there, kind in _onward(after, read.get(url, frozenset()), self.rules):
                if self._meet(target, depth_there, kind, fresh):
                    heapq.heappush(heap, (depth_there, target))
        return Visit(asked=frozenset(asked), events=frozenset(events), read=read, redirects=redirects)

    def _within(self, links: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for target, via in links:
            if self.rules.admit(target):
                yield target, via
            else:
                self.refused.add(target)

    def _meet(self, url: str, depth: int, kind: str, fresh: set[str]) -> bool:
        """A path to a URL; whether it is to be asked because of it."""
        row = self.rows.get(url)
        if row is None or (url in fresh and depth < row.depth):
            self.rows[url] = Row(url=url, depth=depth, found_by=frozenset({kind}))
            fresh.add(url)
            return True
        if url in fresh and depth == row.depth and row.found_by != {"seed"}:
            self.rows[url] = replace(row, found_by=row.found_by | {kind})
        return False


def looping(rows: Mapping[str, Row], url: str) -> bool:
    """Whether the redirects from a URL lead back to it."""
    at = rows[url].location
    for _ in range(10):
        if at == url:
            return True
        at = rows[at].location if at in rows else ""
    return False


def _onward(row: Row, links: Iterable[tuple[str, str]], rules: Rules) -> Iterator[tuple[str, int, str]]:
    if row.fate is Fate.REDIRECT and rules.admit(row.location):
        yield row.location, row.depth, "redirect"
    for target, _ in links:
        yield target, row.depth + 1, "link"


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
    again = shown == row.shown and made.validators is not Validators.NONE and made.kind is not Kind.CALENDAR
    outcome = "OK" if fact.is_document else "UNSUPPORTED_TYPE"
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
