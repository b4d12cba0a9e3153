"""What a visit does to a URL's row of `seen`: state, evidence, validators, counts, document and schedule.

What always holds: every column follows from the row before, the visit, the settings and the planning time. A
304 and a 200 with the same content move a row identically. What came from a host's fault counts against no
URL. A row is due again later than now. GONE forgets the content (hash, validators, document), so that a page
that returns is read anew; a parse that failed forgets hash and validators, so that it is tried on the whole
page again, and so does what lied about its type.

States move in `crawl.lifecycle`, dates in `crawl.recrawl`, scores in `crawl.priority`; here they are put
together, column by column. It reads no lake and knows nothing of URLs that were not visited.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl import lifecycle, priority, recrawl
from crawl.columns import (
    Bools,
    Column,
    Ints,
    among,
    choose,
    differ,
    equals,
    flags,
    floats,
    given,
    ints,
    make,
    same,
    take,
    texts,
)  # fmt: skip
from crawl.merging import withholding
from crawl.outcomes import TABLE, Outcome
from crawl.policy import Settings
from crawl.schema import SEEN
from crawl.sitemap import announced
from crawl.state import State

__all__ = ["HALF_LIFE", "after", "one_each", "retiring"]

#: a check counts half after this long in `checks_decayed`: two of the longest intervals
HALF_LIFE: Final = timedelta(days=180)

_TIME: Final = pa.timestamp("us", tz="UTC")
_OUTCOMES: Final = tuple(Outcome)


def _set(*members: Outcome) -> Bools:
    """Truth by place in the list of outcomes."""
    return np.array([outcome in members for outcome in _OUTCOMES])


#: it answered as it should, and its schedule goes on
_WELL: Final = _set(Outcome.OK, Outcome.NOT_MODIFIED, Outcome.REDIRECT, Outcome.UNSUPPORTED_TYPE)
#: content that can be compared arrived
_CONTENT: Final = _set(Outcome.OK, Outcome.UNSUPPORTED_TYPE)
#: what was known of the content still stands, or was replaced
_SAME: Final = _set(Outcome.OK, Outcome.NOT_MODIFIED)
#: an answer about the content, even if we could not handle it
_ANSWER: Final = _WELL | _set(Outcome.PARSE_FAILED, Outcome.TOO_LARGE, Outcome.TYPE_MISMATCH)
_ASKED: Final = np.array([TABLE[outcome].asked for outcome in _OUTCOMES])
#: states that explain themselves by the outcome that led to them
_SETTLED: Final = (State.FETCHED, State.GONE, State.TERMINAL, State.BLOCKED, State.QUARANTINED)
#: states in which a page counts as lost
_RETIRED: Final = (State.GONE, State.TERMINAL)
#: the state that each outcome can settle
_FINAL: Final = np.array([TABLE[outcome].final.value for outcome in _OUTCOMES], dtype=np.object_)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Rows before and their visits, with what many columns ask for."""

    rows: pa.Table
    visits: pa.Table
    page: Bools  # asked as a page; else as a sitemap or feed, of which there is no document
    outcome: Ints  # place in the list of outcomes
    moved: lifecycle.Moved
    state: Any  # text column: the state after
    held: Bools  # held back from GONE or TERMINAL by the guard
    well: Bools
    history: Bools  # it was answered, and read, before
    changed: Bools  # it differs from what was known; never true without history
    now: datetime
    now_us: int

    def was(self, *outcomes: Outcome) -> Bools:
        """Where the visit ended in one of these."""
        return _set(*outcomes)[self.outcome]

    def stands(self, *states: State) -> Bools:
        """Where the state after is one of these."""
        return among(self.state, [state.value for state in states]) >= 0


def after(
    rows: pa.Table,
    visits: pa.Table,
    *,
    held: Collection[str] = (),
    settings: Settings,
    policy_version: str,
    now: datetime,
    round: int,
) -> pa.Table:
    """Rows of `seen` (SEEN) after their visits (VISITS, same keys in the same order).

    `held` names hosts whose live pages no round may retire now (crawl.merging.retirement). Raises
    ValueError for an outcome or state that is none.
    """
    case = _case(rows, visits, held, settings, now)
    content = _content(case, settings.parsing.keep_noindex)
    schedule = _schedule(case, settings, content["unavailable_after"])
    columns: dict[str, Any] = {name: rows[name] for name in SEEN.names}
    columns |= _counts(case) | content | schedule
    columns |= {
        "state": case.state,
        "reason": _reason(case, content["document_key"], content["withheld"]),
        "policy_version": policy_version,
        "robots_version": pc.coalesce(visits["robots_version"], rows["robots_version"]),
        "last_outcome": visits["outcome"],
        "last_error": pc.if_else(pa.array(case.well), None, pc.coalesce(visits["reason"], visits["outcome"])),
        "chain_id": None,
        "chain_hop": None,
        "http_status": pc.coalesce(visits["http_status"], rows["http_status"]),
        "kind": _turned(case, settings),
        "visited_round": round,
        "round": round,
    }
    columns |= _anew(case, columns) | _worth(case, columns, settings)
    return make(SEEN, len(rows), **columns)


def _turned(case: _Case, settings: Settings) -> Any:
    """How a URL is to be read from now on."""
    asked = case.page & case.was(Outcome.UNSUPPORTED_TYPE)
    return announced.turned(case.rows, case.visits["sniffed_type"], asked, settings.sitemaps)


def _anew(case: _Case, columns: dict[str, Any]) -> dict[str, Any]:
    """What is found to be a list is read as one in the next round, whole: its date is the first there is."""
    was: Any = pc.coalesce(case.rows["kind"], pa.scalar("page"))
    turned = ~same(was, columns["kind"])
    due = np.where(turned, case.now_us + 1, ints(columns["next_fetch_at"]))
    forget = {name: pc.if_else(pa.array(turned), None, columns[name]) for name in ("etag", "last_modified")}
    return forget | {"next_fetch_at": _times(due), "eligible_since": _times(due)}


def one_each(visits: pa.Table) -> pa.Table:
    """One visit per URL, by key: a request before a decision not to ask, then the latest."""
    keys = ints(visits["url_key"])
    asked = _ASKED[among(visits["outcome"], [outcome.value for outcome in _OUTCOMES])]
    order = np.lexsort((ints(visits["fetched_at"]), asked, keys))
    last = np.diff(keys[order], append=keys[order[-1:]] + 1) != 0
    chosen = order[last]
    return visits if np.array_equal(chosen, np.arange(len(keys))) else take(visits, chosen)


def retiring(rows: pa.Table, visits: pa.Table, *, settings: Settings, now: datetime) -> Bools:
    """Which visits (rows and visits as in `after`) would make a live page GONE or TERMINAL."""
    case = _case(rows, visits, (), settings, now)
    return case.stands(*_RETIRED) & equals(rows["state"], State.FETCHED.value)


def _case(
    rows: pa.Table, visits: pa.Table, held: Collection[str], settings: Settings, now: datetime
) -> _Case:
    outcome = among(visits["outcome"], [str(outcome) for outcome in _OUTCOMES])
    checked = ints(rows["last_checked_at"], lifecycle.NEVER)
    history = checked != lifecycle.NEVER
    now_us = recrawl.micros(now)
    moved = lifecycle.next_states(
        rows["state"].combine_chunks(),
        visits["outcome"].combine_chunks(),
        last_outcomes=rows["last_outcome"].combine_chunks(),
        attempts=ints(rows["attempts"]).astype(np.int32),
        gone_sightings=ints(rows["gone_sightings"]).astype(np.int32),
        gone_since=ints(rows["gone_since"], lifecycle.NEVER),
        confirmed=np.where(history, checked, ints(rows["first_seen_at"])),
        now=now_us,
        retry=settings.retry,
        recrawl=settings.recrawl,
    )
    live = equals(rows["state"], State.FETCHED.value)
    ends = among(moved.states, [state.value for state in _RETIRED]) >= 0
    kept = live & ends & (among(rows["host"], sorted(held)) >= 0)
    redirected = _set(Outcome.REDIRECT)[outcome] & differ(rows["redirect_to_key"], visits["redirect_to_key"])
    # of what is not read nobody knows whether it changed, but a page that becomes such has
    unread = _set(Outcome.UNSUPPORTED_TYPE)[outcome] & given(rows["document_key"])
    well, history = _WELL[outcome], history & ~_first(rows, visits)
    return _Case(
        rows=rows,
        visits=visits,
        page=among(visits["kind"], ["sitemap", "feed"]) < 0,
        outcome=outcome,
        moved=moved,
        state=pc.if_else(pa.array(kept), State.FETCHED.value, moved.states),
        held=kept,
        well=well,
        history=history,
        changed=history & well & (_other(rows, visits) | redirected | unread),
        now=now,
        now_us=now_us,
    )


def _other(rows: pa.Table, visits: pa.Table) -> Bools:
    """Where other content came. (What is fetched whole for another reason may be as it was.)"""
    return flags(visits["changed"]) & ~same(rows["content_hash"], visits["content_hash"])


def _first(rows: pa.Table, visits: pa.Table) -> Bools:
    """What is read for the first time, or first as a list: of what was there before nobody knows."""
    first = ~given(rows["parsed_at"]) & ~given(rows["redirect_to_key"])
    first |= (among(visits["kind"], ["sitemap", "feed"]) >= 0) & given(rows["document_key"])
    return first & ~given(rows["content_hash"]) & equals(visits["outcome"], Outcome.OK.value)


def _counts(case: _Case) -> dict[str, Any]:
    """Attempts, evidence, and the rate state of the recrawl rule."""
    rows, now = case.rows, case.now_us
    waited = np.maximum(now - ints(rows["last_checked_at"]), 0) / 1e6
    counted = case.history & case.well
    faded = np.where(counted, np.exp2(-waited / HALF_LIFE.total_seconds()), 1.0)
    since = case.moved.gone_since
    return {
        "attempts": case.moved.attempts,
        "gone_sightings": case.moved.gone_sightings,
        "gone_since": _times(since, since != lifecycle.NEVER),
        "crawl_count": ints(rows["crawl_count"]) + given(case.visits["http_status"]),
        "change_count": ints(rows["change_count"]) + case.changed,
        "changed_exposure_s": floats(rows["changed_exposure_s"]) + np.where(case.changed, waited, 0.0),
        "unchanged_exposure_s": floats(rows["unchanged_exposure_s"])
        + np.where(counted & ~case.changed, waited, 0.0),
        "checks_decayed": floats(rows["checks_decayed"]) * faded + counted,
        "changes_decayed": floats(rows["changes_decayed"]) * faded + case.changed,
        "last_checked_at": _stamp(case, _ANSWER[case.outcome], "last_checked_at"),
        "last_changed_at": _stamp(case, case.changed, "last_changed_at"),
    }


def _content(case: _Case, keep_noindex: bool) -> dict[str, Any]:
    """What is known of the content, and the stages it passed."""
    rows, visits = case.rows, case.visits
    arrived = _CONTENT[case.outcome]
    failed = case.was(Outcome.PARSE_FAILED)
    gone = case.stands(State.GONE)
    unread = case.was(Outcome.UNSUPPORTED_TYPE)
    lied = case.was(Outcome.TYPE_MISMATCH)
    # what came of a page stands until it comes whole; what is too large never will
    part = flags(visits["truncated"]) & given(visits["document_key"])
    part &= ~given(rows["document_key"]) | case.was(Outcome.TOO_LARGE)
    forget = failed | gone | lied | part
    news = (_SAME[case.outcome] & given(visits["document_key"])) | part
    listed = ~case.page & case.was(Outcome.OK) & flags(visits["changed"])
    asked = withholding.after(
        rows, visits, came=_SAME[case.outcome], news=news, gone=unread | gone, keep=keep_noindex, now=case.now
    )
    none = unread | gone | asked.fallen
    document = choose(none, None, visits["document_key"], news, rows["document_key"])
    arrived_or_part = arrived | failed | part
    fetched = arrived_or_part | case.was(Outcome.NOT_MODIFIED)
    told = differ(
        withholding.published(rows["document_key"], rows["withheld"]),
        withholding.published(document, asked.withheld),
    )
    return {
        "withheld": asked.withheld,
        "unavailable_after": asked.unavailable_after,
        "header_robots": asked.header_robots,
        "etag": _validator(case, arrived, forget, "etag"),
        "last_modified": _validator(case, arrived, forget, "last_modified"),
        "content_hash": choose(
            forget,
            None,
            visits["content_hash"],
            unread | (arrived & given(visits["content_hash"])),
            rows["content_hash"],
        ),
        "content_length": choose(
            unread,
            visits["content_length"],
            pc.coalesce(visits["content_length"], rows["content_length"]),
            ~unread,
            None,
        ),
        "sniffed_type": pc.coalesce(visits["sniffed_type"], rows["sniffed_type"]),
        "document_key": document,
        "canonical_hint": pc.if_else(pa.array(news), visits["canonical_hint"], rows["canonical_hint"]),
        "redirect_to_key": choose(
            case.well & ~case.was(Outcome.REDIRECT),
            None,
            visits["redirect_to_key"],
            case.was(Outcome.REDIRECT, Outcome.REDIRECT_LOOP),
            rows["redirect_to_key"],
        ),
        "first_fetched_at": _stamp(
            case, arrived_or_part & ~given(rows["first_fetched_at"]), "first_fetched_at"
        ),
        "fetched_at": _stamp(case, fetched, "fetched_at"),
        "parsed_at": _stamp(case, news | listed, "parsed_at"),
        "stored_at": _stamp(case, (_SAME[case.outcome] | part) & given(document), "stored_at"),
        "index_ready_at": _stamp(case, told, "index_ready_at"),
    }


def _validator(case: _Case, arrived: Bools, forget: Bools, name: str) -> Any:
    """A 200 replaces a validator, a 304 may renew it; else it stays."""
    renewed = arrived | (case.was(Outcome.NOT_MODIFIED) & given(case.visits[name]))
    return choose(forget, None, case.visits[name], renewed, case.rows[name])


def _schedule(case: _Case, settings: Settings, until: Column) -> dict[str, Any]:
    """When it is due again: by the recrawl rule, by its failure's delay, or after a long rest; on the day
    `until` which it may be published.
    """
    keys, before = ints(case.rows["url_key"]), floats(case.rows["interval_s"])
    interval, regular = recrawl.schedule(
        url_key=keys,
        now=case.now,
        previous_interval_s=before,
        changed=case.changed,
        first=~case.history,
        policy=settings.recrawl,
    )
    delayed = recrawl.retries(
        url_key=keys,
        now=case.now,
        outcomes=[_OUTCOMES[i] for i in case.outcome.tolist()],
        attempts=case.moved.attempts,
        retry_after_ms=floats(case.visits["retry_after_ms"]),
        retry=settings.retry,
        recrawl=settings.recrawl,
    )
    resting = recrawl.resting(url_key=keys, now=case.now, policy=settings.recrawl)
    # what no retry is due for (denied, quarantined) rests as well, which `retries` knows
    rest = case.stands(State.GONE, State.TERMINAL) | (case.well & case.stands(State.QUARANTINED))
    regular = withholding.due(regular, until, case.now_us, settings.recrawl.floor)
    due = np.where(rest, resting, np.where(case.well, regular, delayed))
    return {
        "interval_s": np.where(case.well & ~rest, interval, before),
        "next_fetch_at": _times(due),
        "eligible_since": _times(due),
    }


def _reason(case: _Case, document: Column, withheld: Column) -> Any:
    """Why it is in its state; null where nothing is to be explained."""
    told: Any = pc.coalesce(case.visits["reason"], pc.ascii_lower(case.visits["outcome"]))
    before: Any = case.rows["reason"]
    empty = ~given(document) & case.page
    good = choose(
        _SAME[case.outcome] & empty,
        pc.coalesce(before, pa.scalar("no_content")),
        told,
        case.was(Outcome.UNSUPPORTED_TYPE),
        None,
    )
    stays = same(case.state, case.rows["state"]) & case.stands(*_SETTLED)
    stays &= ~same(case.state, texts(_FINAL[case.outcome]))
    bad = pc.if_else(pa.array(stays), before, told)
    good = pc.if_else(pa.array(_SAME[case.outcome]), pc.coalesce(withheld, good), good)
    return choose(case.held, "retire_guard", good, case.well, bad)


def _worth(case: _Case, columns: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Score and tier for the next turn, as they will be when it falls due."""
    rows = case.rows
    met = ints(rows["first_seen_at"])
    scores = priority.score(
        importance=floats(rows["importance"]),
        waited_s=np.zeros(len(rows)),
        interval_s=columns["interval_s"],
        changes=columns["changes_decayed"],
        checks=columns["checks_decayed"],
        depth=ints(rows["depth"]),
        age_s=(case.now_us - np.maximum(ints(columns["last_changed_at"], lifecycle.NEVER), met)) / 1e6,
        policy=settings.planning,
    )
    answered = given(columns["last_checked_at"])
    return {"score": scores, "tier": texts(priority.tier(scores, answered, settings.planning))}


def _stamp(case: _Case, mask: Bools, name: str) -> Any:
    """The planning time where the mask holds, else what the row says."""
    return pc.if_else(pa.array(mask), pa.scalar(case.now, _TIME), case.rows[name])


def _times(at: Ints, there: Bools | None = None) -> Any:
    return pa.array(at, mask=None if there is None else ~there).cast(_TIME)
