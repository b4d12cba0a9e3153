"""A URL's story in words, from the facts of `crawl explain`: found, decided, asked, and what is next.

What always holds: it says only what the facts say; numbers come with their units; texts of strangers are
shown without control characters. It reads no lake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any, Final

from cycles.words import foundwords, listwords, robotswords
from cycles.words.causewords import cause, denied, once
from cycles.words.output import safe, shown
from cycles.words.typewords import read_as, unread
from cycles.words.wording import CARRIED, LEFT_OUT, SCOPE, SEED, SKIPPED, UNFOLLOWED, WITHHELD, said

__all__ = ["told"]

Facts = Mapping[str, Any]

#: rounds and requests a story tells one by one; of more, the last ones
_LAST: Final = 20
#: pages named that link to it
_SOURCES: Final = 5

#: why a seed was refused, in words
_REFUSED: Final = {**SCOPE, **SEED}
#: why a link's target became no candidate, in words
_NOT_ADMITTED: Final = {**SCOPE, **UNFOLLOWED}
#: why a URL was planned (crawl.stages.plan), in words
_WHY_NOW: Final = {
    "new": "never fetched",
    "retry": "another attempt after a failure",
    "recheck": "what kept it from being read has changed",
    "given": "given as a seed again",
    "revisit": "one more look at what counts as gone or given up",
    "canary": "the one request that a failing host gets",
    "due": "its time had come",
}


def told(facts: Facts) -> str:
    """The story, a few lines a chapter."""
    lines = [safe(facts["url"])]
    if facts["url"] != facts["asked"]:
        lines.append(f"  given as {safe(facts['asked'])}")
    lines.append(f"  key {facts['url_key']}, host {facts['host']}, domain {facts['domain']}")
    if facts["row"] is None:
        return "\n".join([*lines, "", *_unknown(facts)])
    chapters = (
        ("Now", _now(facts)),
        ("Found", _found(facts)),
        ("Decided", [*_decided(facts["decisions"]), *_in_open_round(facts["open"])]),
        ("Asked (times of the real clock)", _asked(facts)),
        ("Next", _next(facts)),
    )
    for heading, chapter in chapters:
        lines += ["", heading, *(f"  {line}" for line in chapter)]
    return "\n".join(lines)


def _unknown(facts: Facts) -> Iterator[str]:
    """Why the lake does not know it."""
    if facts["url"] == f"{facts['origin']}/robots.txt" and (facts["robots_newest"] or facts["robots_asked"]):
        yield from robotswords.itself(facts["robots_newest"], facts["robots_asked"])
        return
    yield "This URL is not known."
    for seed in facts["seeds"][-_SOURCES:]:
        given = f"given as a seed by {safe(seed['added_by'])} on {shown(seed['added_at'])}"
        yield f"  It was {given}{_taken(seed)}."
    yield from (f"  {line}." for line in _in_open_round(facts["open"]))
    admitted = [link for link in facts["links"] if link["admitted"]]
    if admitted:
        waits = any(link["round"] > facts["merged_through"] for link in admitted)
        yield f"  {foundwords.source(admitted[0])}" + (" The link waits to be merged." if waits else "")
    if facts["scope"] is not None:
        yield f"  Rejected by scope ({facts['scope']}): {SCOPE.get(facts['scope'], 'see crawl.scope')}."
        refused = [link for link in facts["links"] if not link["admitted"]]
        yield (
            f"  {foundwords.source(refused[0])}"
            if refused
            else "  No page that is kept in the lake links to it."
        )
    elif not admitted and not any(seed["verdict"] == "accepted" for seed in facts["seeds"]):
        given = "it is no seed" if facts["seeds"] else "it was never given as a seed"
        yield f"  Not discovered: {given}, and no page kept in the lake links to it."
        if facts["links"]:
            leads = foundwords.source(facts["links"][0])
            yield f"  {leads} Then it was out of scope; the settings have changed since."
    yield from _refused_links(facts)
    if facts["host_state"] is None:
        yield f"  No URL of its host {facts['host']} was ever asked."


def _refused_links(facts: Facts) -> Iterator[str]:
    """What became of links to its host that were not admitted: it may have been among them."""
    links = [row for row in facts["rejects"] if row["reason"] in _NOT_ADMITTED]
    for refused in sorted(links, key=lambda row: -row["count"])[:3]:
        yield (
            f"  Of links to its host, {refused['count']:,} were not admitted in round {refused['round']}"
            f" ({refused['reason']}: {_NOT_ADMITTED[refused['reason']]}), such as to"
            f" {safe(refused['example'])}."
        )


def _taken(seed: Mapping[str, Any]) -> str:
    """What came of a seed."""
    if seed["verdict"] == "refused":
        return f", and refused: {said(seed['reason'], _REFUSED)}"
    return ": the next round takes it in"


def _in_open_round(found: Mapping[str, Any] | None) -> Iterator[str]:
    if found is not None:
        place = f"group {found['group']} position {found['position']}"
        yield f"round {found['round']} (open, at its stage {found['stage']}): in its plan, {place}"


def _now(facts: Facts) -> Iterator[str]:
    row = facts["row"]
    yield f"{row['status']}" + (f" (stored as {row['state']})" if row["status"] != row["state"] else "")
    yield from _because(facts)
    if facts["paused_by"]:
        yield f"held back by {safe(facts['paused_by'])}"
    if row["last_outcome"]:
        yield _last(row, facts["rounds"])
        yield from _still_live(row, facts["absence"])
    if row["crawl_count"]:
        yield f"answered {_times(row['crawl_count'])}, {_changes(row)}"
        yield from listwords.named(row, facts["listed"], facts["rejects"])
    page = facts["page"]
    if page is not None:
        title = f" {safe(page['title'])!r}" if page["title"] else ""
        same = (
            "" if page["first_url_key"] == facts["url_key"] else f", first found at {safe(page['first_url'])}"
        )
        chars = f"{page['text_chars']:,} characters"
        yield f"document {page['document_key']}{title}, {chars}{read_as(page)}{same}"
    if facts["redirects_to"] or row["redirect_to_key"]:
        yield f"redirects to {safe(facts['redirects_to'] or 'URL ' + str(row['redirect_to_key']))}"
    if facts["robots_copy"] is not None:
        yield robotswords.copied(facts["robots_copy"])
    if facts["robots_newest"] is not None:
        yield f"the newest {robotswords.copied(facts['robots_newest'])}"
    yield f"tier {row['tier']}, score {row['score']:.3f}, importance {row['importance']:.2f}"
    for event in facts["events"][-3:]:
        yield f"event {event['kind']} in round {event['round']}"


def _because(facts: Facts) -> Iterator[str]:
    """Why it stands so, where there is more to say than the state does."""
    row = facts["row"]
    if row["withheld"]:
        yield f"its text is neither kept nor published ({row['withheld']}): {WITHHELD[row['withheld']]}"
    elif (why := listwords.unlisted(row) or unread(row, facts["fetches"])) is not None:
        yield why
    elif row["last_outcome"] == "ROBOTS_UNREACHABLE":
        yield f"because {robotswords.waiting(row, facts['robots_asked'])}"
    elif row["last_outcome"] == "EGRESS_DENIED":
        yield f"because {denied(row['reason'])}"
    elif _says_more(row["reason"], row["last_outcome"]):
        yield f"because {_forbids(row)}{safe(row['reason'])}"


def _last(row: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]]) -> str:
    """The last outcome and when that was; and when the content was last confirmed, if that was earlier."""
    asked = row["last_outcome"] not in SKIPPED
    status = f", HTTP {row['http_status']}" if row["http_status"] and asked else ""
    more = _says_more(row["last_error"], row["last_outcome"], row["reason"])
    error = f": {cause(row['last_outcome'], row['last_error'])}" if more else ""
    at = next((round_["now"] for round_ in rounds if round_["round"] == row["round"]), None)
    when = f", in round {row['round']}" + (f" ({shown(at)})" if at else "")
    checked = row["last_checked_at"]
    confirmed = f"; last confirmed {shown(checked)}" if checked and checked != at else ""
    return f"last outcome {row['last_outcome']}{status}{error}{when}{confirmed}"


def _still_live(row: Mapping[str, Any], absence: Mapping[str, Any]) -> Iterator[str]:
    """Why a page that was not there last time is not given up."""
    if row["state"] != "FETCHED" or not (row["attempts"] or row["gone_sightings"]):
        return
    if row["gone_sightings"] and row["last_outcome"] in absence:
        since = f" since {shown(row['gone_since'])}" if row["gone_since"] else ""
        needed, over = absence[row["last_outcome"]], _interval(absence["over_s"])
        yield (
            f"answered {row['http_status']} {_times(row['gone_sightings'])} in a row{since}; still counted as"
            f" live, because it takes {needed} of them over {over} to be gone"
        )
    else:
        yield f"failed {_times(row['attempts'])} in a row; still counted as live, its last content stands"


def _says_more(text: str | None, *others: str | None) -> bool:
    """Whether a reason adds to what is said already; some are the outcome's name in small letters."""
    return bool(text) and all(not other or str(text).lower() != other.lower() for other in others)


def _forbids(row: Mapping[str, Any]) -> str:
    return "robots.txt forbids it: " if row["last_outcome"] == "ROBOTS_DENIED" else ""


def _changes(row: Mapping[str, Any]) -> str:
    """How often its content changed; nothing is compared before an answer brings some that is kept."""
    if row["change_count"]:
        return f"seen to have changed {_times(row['change_count'])}, last {shown(row['last_changed_at'])}"
    if row["content_hash"] is None and row["last_outcome"] not in ("OK", "NOT_MODIFIED"):
        return "never with content that is kept"
    return "never seen to change"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _found(facts: Facts) -> Iterator[str]:
    row = facts["row"]
    yield from foundwords.origin(row, facts["referrer"], facts.get("announcer"))
    if row["discovered_url"] != row["url"]:
        yield f"first spelled {safe(row['discovered_url'])}"
    for seed in facts["seeds"][:5]:
        by = f"seed of {seed['added_by']}, {shown(seed['added_at'])}"
        yield f"{by}, priority {seed['priority']}: {seed['verdict']}"
    if facts["signals"]:
        signals = facts["signals"]
        links = "1 link leads" if signals["in_links"] == 1 else f"{signals['in_links']:,} links lead"
        yield f"{links} to it, the shortest way from a seed has {signals['best_depth']}"
    sources = {link["source_key"]: link for link in reversed(facts["links"])}  # the first link of each page
    for link in sorted(sources.values(), key=lambda link: (link["round"], link["depth"]))[:_SOURCES]:
        yield foundwords.source(link)


def _decided(decisions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not decisions:
        yield "nothing yet"
    if len(decisions) > _LAST:
        yield f"… {len(decisions) - _LAST} earlier rounds"
    for quiet, some in groupby(decisions[-_LAST:], key=lambda d: d["decision"] == "not_due"):
        group = list(some)
        if quiet and len(group) > 1:  # rounds that passed it by are told together
            until = shown(group[-1]["until"])
            yield f"rounds {group[0]['round']} to {group[-1]['round']}: not due before {until}"
        else:
            for decision in group:
                yield f"round {decision['round']} ({shown(decision['now'])}): {_decision(decision)}"


def _decision(found: Mapping[str, Any]) -> str:
    decision, reason = found["decision"], found["reason"]
    if decision == "planned":
        start = f", to start after {found['predicted_start_ms'] / 1000:,.1f} s"
        why = f"planned as {found['tier']} ({_WHY_NOW.get(reason, reason)}), score {found['score']:.3f}"
        return f"{why}, group {found['group']} position {found['position']}{start}; {_outcome(found)}"
    if decision == "discovered":
        return f"discovered; {_outcome(found)}" if found["asked"] else "discovered"
    if decision == "hop":
        return f"asked because another URL redirected to it; {_outcome(found)}"
    if decision == "left_out":
        return _left_out(found)
    if decision == "not_due":
        return f"not due before {shown(found['until'])}"
    if decision == "paused":
        return f"held back by {safe(reason)}"
    return "not planned; what it was then is no longer kept"


def _outcome(found: Mapping[str, Any]) -> str:
    outcome = found.get("last_outcome")
    error = safe(once(found["last_error"])) if _says_more(found.get("last_error"), outcome) else ""
    ended = f"{outcome} ({error})" if error else outcome
    if found["state"] is None or "carried" in found:
        if found["asked"]:
            return f"asked: {ended}"
        carried = found["carried"]
        why = f" ({carried}: {CARRIED.get(carried, 'see table rejects')})" if carried else ""
        return f"not reached within the window: carried over{why}"
    more = _says_more(found["state_reason"], outcome, found["last_error"])
    why = f", {safe(found['state_reason'])}" if more else ""
    return f"{ended} → {found['state']}{why}" if ended else f"{found['state']}{why}"


def _left_out(found: Mapping[str, Any]) -> str:
    reason = found["reason"]
    if reason is None:
        return "due, and not planned; the round's cuts are no longer kept"
    why = LEFT_OUT.get(reason, "see table frontier")
    text = f"left out ({reason}: {why}), with {found['cut_with']:,} of its host"
    text += f"; {found['host_planned']:,} were planned"
    if found["short_by"] is None:
        return text
    score, cut_off = found["score"], found["cut_off"]
    if found["short_by"] > 0:
        return f"{text}; its score {score:.3f} was {found['short_by']:.3f} below the cut-off {cut_off:.3f}"
    return f"{text}; its score {score:.3f} reached the cut-off {cut_off:.3f}, but others came before it"


def _asked(facts: Facts) -> Iterator[str]:
    fetches: Sequence[Mapping[str, Any]] = facts["fetches"]
    if not fetches:
        barred = facts["row"]["last_outcome"] in ("ROBOTS_DENIED", "ROBOTS_UNREACHABLE")
        yield "never: no request goes out before robots.txt allows it" if barred else "never"
        if facts["row"]["last_outcome"] == "ROBOTS_UNREACHABLE":
            yield from robotswords.requests(facts["robots_asked"])
    if len(fetches) > _LAST:
        yield f"… {len(fetches) - _LAST} earlier requests"
    followed = {(fetch["round"], fetch["chain_id"], fetch["hop"] - 1) for fetch in fetches}
    for fetch in fetches[-_LAST:]:
        status = f" {fetch['status']}" if fetch["status"] else ""
        reason = f" ({cause(fetch['outcome'], fetch['reason'])})" if fetch["reason"] else ""
        hop = f", hop {fetch['hop']}" if fetch["hop"] else ""
        yield (
            f"round {fetch['round']}, {shown(fetch['started_at'])}: GET {safe(fetch['url'])} →"
            f"{status} {fetch['outcome']}{reason}{hop}"
        )
        yield f"    {_phases(fetch)}"
        if fetch["next_url"]:
            here = (fetch["round"], fetch["chain_id"], fetch["hop"]) in followed
            yield f"    leads to {safe(fetch['next_url'])}" + (
                "" if here else ", which was not asked at once"
            )


def _phases(fetch: Mapping[str, Any]) -> str:
    """Waited, resolved, connected, answered, read."""
    gap = f"gap {fetch['required_gap_ms']:,.0f} ms ({fetch['gap_rule']})"
    names = (("dns_ms", "dns"), ("connect_ms", "connect"), ("tls_ms", "tls"), ("first_byte_ms", "first byte"))
    address = fetch["address_wait_ms"]
    room = f"; stood in line for its address for {address:,.0f} ms" if address else ""
    unused = f"; of its name's answer: {safe(fetch['dns_note'])}" if fetch["dns_note"] else ""
    phases = [f"{name} {fetch[key]:,.1f} ms" for key, name in names if fetch[key] is not None]
    kept = ", kept connection" if fetch["conn_reused"] else ""
    asked = ", conditional" if fetch["request_validators"] else ""
    robots = f"; allowed by robots {fetch['robots_version']}" if fetch["robots_version"] else ""
    return (
        f"{gap}{room}; {', '.join(phases)}, in all {fetch['total_ms']:,.1f} ms{kept}{asked};"
        f" {fetch['wire_bytes']:,} bytes{', not all of it' if fetch['truncated'] else ''}"
        f"{f' from {a}' if (a := fetch['address']) else ''}{unused}{robots}"
    )


def _next(facts: Facts) -> Iterator[str]:
    row = facts["row"]
    due = "due since" if row["due"] else "due"
    yield f"{due} {shown(row['next_fetch_at'])}: {_why_then(row, facts['history'], facts['absence'])}"
    if row["paused"]:
        yield "held back until somebody says `crawl resume`"
    if facts["scope"] is not None:
        yield f"out of scope by today's settings ({facts['scope']})"
    yield from facts["held_back"]


def _why_then(
    row: Mapping[str, Any], history: Sequence[Mapping[str, Any]], absence: Mapping[str, Any]
) -> str:
    state = row["state"]
    if state in ("GONE", "TERMINAL"):
        return "looked at once more then, or as soon as it is given as a seed again"
    if state == "DISCOVERED" and not row["attempts"]:
        return "never fetched, as soon as a plan has room for it"
    if row["gone_sightings"] and row["last_outcome"] in absence:
        needed, over = absence[row["last_outcome"]], _interval(absence["over_s"])
        since = f" since {shown(row['gone_since'])}" if row["gone_since"] else ""
        missed = f"missed {_times(row['gone_sightings'])}{since}"
        return f"{missed}; missed {_times(needed)} over {over} it counts as gone"
    if row["attempts"]:
        return f"attempt {row['attempts'] + 1} after {row['last_outcome']}"
    if state in ("BLOCKED", "QUARANTINED"):
        what = "robots.txt changes" if row["last_outcome"] == "ROBOTS_DENIED" else "the settings change"
        return f"judged anew then, or as soon as {what}"
    interval = _interval(row["interval_s"])
    earlier = [r for r in history if r["round"] < row["round"] and r["interval_s"] > 0]
    if not earlier and row["crawl_count"] <= 1:
        return f"{interval} after the first answer"
    changed = "had" if row["last_changed_at"] == row["last_checked_at"] else "had not"
    before = f"{_interval(earlier[-1]['interval_s'])} before; " if earlier else ""
    return f"{interval} after the last check ({before}it {changed} changed)"


def _interval(seconds: float) -> str:
    """A length of time in its two largest units."""
    rest, parts = round(timedelta(seconds=seconds).total_seconds()), []
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if rest >= size:
            parts.append(f"{rest // size} {name}")
            rest %= size
    return " ".join(parts[:2]) or "0 s"
