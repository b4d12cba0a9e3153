"""The facts of one URL's story: where it was found, what each round decided and why, what was asked.

What always holds: every fact is a row of the lake, or follows from one by the very rule that a round uses
(scope, the cut-off of a plan); nothing is asked of the web. `story` tells them in words (cycles.words.story).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from crawl import url as urls
from crawl.errors import UrlError, UsageError
from crawl.policy import Recrawl
from crawl.robots.copies import RobotsCopy
from crawl.scope import allowed
from cycles.session import reading
from cycles.session.setup import Lake
from cycles.words.hostwords import held_back
from cycles.words.wording import SEED, said
from lake import sql

__all__ = ["decisions", "explain"]

#: cuts that no score decides: nothing of the host could be asked, or but one URL to try whether it answers
_WITHOUT_CUT_OFF: Final = frozenset({"blocked", "paused", "host_delay", "host_backoff", "circuit_open"})
#: part of the facts → question
_PARTS: Final[Mapping[str, str]] = {
    "seeds": "explain-seeds",
    "links": "explain-links",
    "listed": "explain-listed",
    "history": "explain-history",
    "frontier": "explain-frontier",
    "fetches": "explain-fetches",
    "events": "explain-events",
    "robots": "explain-robots",
    "robots_asked": "explain-robots-asked",
    "suppressions": "explain-suppressions",
    "rejects": "explain-rejects",
}
#: the same, for questions that one row answers
_SINGLE: Final[Mapping[str, str]] = {
    "row": "explain-url",
    "signals": "explain-signals",
    "page": "explain-page",
    "host_state": "explain-host",
}


def explain(lake: Lake, text: str, now: datetime) -> dict[str, Any]:
    """All that the lake knows of a URL, as plain values. Raises UsageError for a text that is none."""
    try:
        url = urls.canonical(text)
    except UrlError as exc:
        raise UsageError(
            f"{text!r} is no URL that this crawler could fetch: {said(exc.reason, SEED)}"
        ) from exc
    key = lake.keyer().url_key(url)
    with reading.reader(lake.store, now) as reader:
        stored = _url_of(reader, key)  # in the spelling that was met first
        asked = {**_place(stored or url), "url_key": key, "asked": text.strip()}
        found: dict[str, Any] = {**asked, "asked": text, "now": now}
        for part, question in _PARTS.items():
            found[part] = reading.query(reader, question, **asked)
        for part, question in _SINGLE.items():
            found[part] = next(iter(reading.query(reader, question, **asked)), None)
        found["rounds"] = reading.query(reader, "rounds-at")
        found["referrer"] = _name_of(reader, (found["row"] or {}).get("first_referrer_key"))
        found["announcer"] = _name_of(reader, (found["row"] or {}).get("announced_by"))
        found["redirects_to"] = _name_of(reader, (found["row"] or {}).get("redirect_to_key"))
    agent = lake.settings.agent.name
    found["robots_copy"] = _copy(found["robots"], found["row"], found["url"], agent)
    found["robots_newest"] = _newest(found["robots"], found["robots_copy"], found["url"], agent)
    found["open"] = reading.leased_at(lake.store, key)
    found["paused_by"] = (
        _paused_by(found["suppressions"]) if found["row"] and found["row"]["paused"] else None
    )
    found["held_back"] = list(held_back(found["host_state"], lake.settings.politeness))
    found["absence"] = _absence(lake.settings.recrawl)
    found["merged_through"] = reading.merged_through(lake.store)
    found["scope"] = allowed(
        found["url"],
        found["host"],
        found["domain"],
        _depth(found),
        lake.settings.scope,
        lake.settings.limits,
    )
    found["decisions"] = decisions(found)
    return found


def _place(url: str) -> dict[str, str]:
    origins, hosts, domains = urls.split_many([url])
    return {"url": url, "origin": origins[0], "host": hosts[0], "domain": domains[0]}


def _paused_by(words: Sequence[Mapping[str, Any]]) -> str | None:
    """The operator's word in force, in words."""
    return next((_word(word) for word in reversed(words) if word["withdrawn_at"] is None), None)


def _url_of(reader: sql.Reader, key: int | None) -> str | None:
    if key is None:
        return None
    return next((str(row["url"]) for row in reading.query(reader, "explain-url", url_key=key)), None)


def _name_of(reader: sql.Reader, key: int | None) -> str | None:
    """The URL of a key, also of what is no candidate: a robots.txt, a target that is out of scope."""
    known = _url_of(reader, key)
    if key is None or known is not None:
        return known
    return next((str(row["url"]) for row in reading.query(reader, "explain-name", url_key=key)), None)


def _copy(
    copies: Sequence[Mapping[str, Any]], row: Mapping[str, Any] | None, url: str, agent: str
) -> Mapping[str, Any] | None:
    """The robots.txt copy that decided last on the URL; None where none did, or is kept."""
    version = row["robots_version"] if row else None
    decided = next((copy for copy in reversed(copies) if copy["version"] == version), None)
    return decided and _judged(decided, url, agent)


def _newest(
    copies: Sequence[Mapping[str, Any]], decided: Mapping[str, Any] | None, url: str, agent: str
) -> Mapping[str, Any] | None:
    """The origin's newest robots.txt copy, where it is not the one that decided."""
    newest = copies[-1] if copies else None
    if newest is None or (decided is not None and newest["version"] == decided["version"]):
        return None
    return _judged(newest, url, agent)


def _judged(copy: Mapping[str, Any], url: str, agent: str) -> dict[str, Any]:
    """A copy without its text, with what it says of the URL: allowed, rule and line."""
    verdict = RobotsCopy.from_row(copy).verdict(agent, url)
    told = {name: value for name, value in copy.items() if name != "text"}
    return {**told, "allowed": verdict.allowed, "rule": verdict.rule, "line": verdict.line}


def _absence(recrawl: Recrawl) -> dict[str, Any]:
    """After how many sightings, over how many seconds, a page that is not there counts as gone."""
    return {
        "NOT_FOUND": recrawl.gone_404,
        "GONE": recrawl.gone_410,
        "over_s": recrawl.gone_over.total_seconds(),
    }


def _depth(found: Mapping[str, Any]) -> int:
    """Links from a seed: of the URL if known, else by the shortest link that leads to it, else a seed's."""
    if found["row"] is not None:
        return int(found["row"]["depth"])
    return min((int(link["depth"]) for link in found["links"]), default=0)


def decisions(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What each round decided about the URL, oldest first: round, now, decision, reason, and its details.

    `decision` is discovered, planned, hop (asked because another URL redirected to it), left_out, not_due,
    paused, or lost: not planned, and the row it had then was merged away by upkeep.
    """
    history: Sequence[Mapping[str, Any]] = found["history"]
    if not history and found["row"] is None:
        return []
    first = int((found["row"] or history[0])["first_seen_round"])
    told = []
    for round_ in found["rounds"]:
        if round_["round"] >= first:
            told.append({"round": round_["round"], "now": round_["now"], **_decision(found, round_)})
    return told


def _decision(found: Mapping[str, Any], round_: Mapping[str, Any]) -> dict[str, Any]:
    number = round_["round"]
    rows = [row for row in found["frontier"] if row["round"] == number]
    after = next((row for row in found["history"] if row["round"] == number), None)
    planned = next((row for row in rows if row["position"] >= 0 and row["url_key"] == found["url_key"]), None)
    if planned is not None:
        names = ("reason", "group", "position", "tier", "score", "predicted_start_ms")
        return {
            "decision": "planned",
            **{name: planned[name] for name in names},
            **_became(found, after, number),
        }
    before = next((row for row in reversed(found["history"]) if row["round"] < number), None)
    if before is None:
        return _first(found, rows, after, number)
    became = _became(found, after, number)
    if became["asked"]:
        return {"decision": "hop", "reason": None, **became}
    if before["next_fetch_at"] > round_["now"]:
        return {"decision": "not_due", "reason": None, "until": before["next_fetch_at"]}
    held = _held(found["suppressions"], round_)
    if held is not None:
        return {"decision": "paused", "reason": held}
    return {"decision": "left_out", "score": before["score"], "tier": before["tier"], **_cut(rows, before)}


def _first(
    found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], after: Mapping[str, Any] | None, number: int
) -> dict[str, Any]:
    """A round before which no row is kept: it discovered the URL, or upkeep has merged its rows since."""
    row = after or found["row"]
    if row is None or number > row["first_seen_round"]:
        return {"decision": "lost", "reason": None, **_became(found, after, number)}
    became = _became(found, after, number)
    if row["found_by"] == "seed" and not became["asked"] and rows:  # a seed is weighed in its first round
        return {"decision": "left_out", "score": row["score"], "tier": row["tier"], **_cut(rows, row)}
    return {"decision": "discovered", "reason": None, **became}


def _became(found: Mapping[str, Any], after: Mapping[str, Any] | None, number: int) -> dict[str, Any]:
    """What the round made of the URL; what was asked is told by `fetches`."""
    asked = [f for f in found["fetches"] if f["round"] == number and f["url_key"] == found["url_key"]]
    if after is not None and (asked or after["last_outcome"] is not None):
        names = ("state", "last_outcome", "last_error", "next_fetch_at", "interval_s")
        return {
            **{name: after[name] for name in names},
            "state_reason": after["reason"],
            "asked": bool(asked),
        }
    carried = [r for r in found["rejects"] if r["round"] == number and r["stage"] == "fetch"]
    return {
        "state": after and after["state"],
        "last_outcome": asked[-1]["outcome"] if asked else None,
        "last_error": asked[-1]["reason"] if asked else None,
        "asked": bool(asked),
        "carried": None if asked or not carried else max(carried, key=lambda r: r["count"])["reason"],
    }


def _held(words: Sequence[Mapping[str, Any]], round_: Mapping[str, Any]) -> str | None:
    """Who held the URL back when the round was opened, and why."""
    opened = round_["opened_at"]
    ends = {
        (w["kind"], w["pattern"], w["requested_at"]): w["withdrawn_at"] for w in words if w["withdrawn_at"]
    }
    for word in words:
        ended = ends.get((word["kind"], word["pattern"], word["requested_at"]))
        if word["requested_at"] <= opened and (ended is None or ended > opened):
            return _word(word)
    return None


def _word(word: Mapping[str, Any]) -> str:
    return f"{word['kind']} of {word['pattern']}" + (f": {word['reason']}" if word["reason"] else "")


def _cut(rows: Sequence[Mapping[str, Any]], before: Mapping[str, Any]) -> dict[str, Any]:
    """Why the plan left the URL out, and how far it was from the cut-off.

    A plan cuts by host and reason; a URL that is blocked falls under `blocked`, any other under the rest.
    """
    cuts = [row for row in rows if row["position"] < 0]
    mine = [row for row in cuts if (row["reason"] == "blocked") == (before["state"] == "BLOCKED")] or cuts
    if not mine:
        return {"reason": None}
    cut = max(mine, key=lambda row: row["count"])
    short = None if cut["reason"] in _WITHOUT_CUT_OFF else cut["score"] - before["score"]
    return {
        "reason": cut["reason"],
        "cut_off": None if short is None else cut["score"],
        "short_by": short,
        "cut_with": cut["count"],
        "host_planned": cut["host_planned"],
    }
