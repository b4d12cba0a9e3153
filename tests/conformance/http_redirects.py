"""The redirect rows of `http/behaviours.jsonl`: a real answer, judged by the stage's ledger, then followed.

A row's URL is one of the web's (port 80, hosts like example.com), so its answer comes from a server on
loopback and is judged as that URL's.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from crawl import policy, url
from crawl.fetching.hostqueue import Ask
from crawl.fetching.ledger import Ledger
from crawl.net.egress import Guard
from crawl.net.exchange import Answer, Request
from crawl.net.transport import Transport
from crawl.outcomes import TABLE, Outcome
from tests.conformance.http_servers import PATIENT, Site, crawl_rows
from tests.conformance.report import Row
from tests.crawl.rawserver import RawServer, response
from tests.crawl.stages.fetching import KEYER, NOW, plan_of

__all__ = ["check"]

REDIRECTED = (301, 302, 303, 307, 308)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the ledger made of an answer."""

    outcome: Outcome
    reason: str | None
    target: str | None

    @property
    def failed(self) -> bool:
        return self.outcome not in (Outcome.OK, Outcome.REDIRECT, Outcome.NOT_MODIFIED)


def _answer(said: bytes) -> Answer:
    async def main() -> Answer:
        transport = Transport(Guard(PATIENT.egress), PATIENT.limits, PATIENT.agent)
        async with RawServer({"/": said}) as server, transport:
            return await transport.get(Request(url=server.url("/"), pin="127.0.0.1"))

    return asyncio.run(main())


def judged(row: Row) -> Judged:
    sends = row["server_sends"]
    lines = [f"{name}: {value}" for name, value in sends["headers"].items()]
    said = response(sends["status"], b"", *lines)
    if "location_octets" in row or "location_octets" in sends:
        octets = bytes.fromhex(row.get("location_octets") or sends["location_octets"])
        said = response(sends["status"], b"", "Location: \x00").replace(b"\x00", octets)
    asked = url.canonical(sends["request_url"])
    (item,) = plan_of([asked])
    ledger = Ledger(
        [item],
        hosts={},
        robots={},
        known=lambda key: None,
        settings=PATIENT,
        keyer=KEYER,
        guard=Guard(PATIENT.egress),
        round_=7,
        now=NOW,
    )
    ask = ledger.next(ledger.queue(item.host, item.domain))
    assert isinstance(ask, Ask)
    outcome, reason, target = ledger.judge(ask, _answer(said))
    return Judged(outcome=outcome, reason=reason, target=target)


def _next(row: Row) -> str | None:
    """Rows that tell the next URL, or that there is none."""
    expected = row["expected"]
    found = judged(row)
    wanted = expected.get("next") or expected.get("next_equiv")
    if wanted is not None:
        if found.outcome is not Outcome.REDIRECT or found.target is None:
            return f"{found.outcome} {found.reason}"
        if "next_equiv" in expected:
            same = url.key_form(found.target) == url.key_form(wanted)
            return None if same else f"{found.target}: another key"
        return None if found.target == wanted else found.target
    if expected.get("followed") is False and found.target is not None:
        return f"leads to {found.target}"
    told = str(expected.get("outcome", ""))
    if told == "fetched":
        return None if found.outcome is Outcome.OK else str(found.outcome)
    if "failed" in told and "followed" not in told:
        return None if found.failed and found.outcome in TABLE else str(found.outcome)
    return None


# --- rows whose point is what is asked afterwards -----------------------------------------------------------


def _crawled(
    says: Mapping[str, bytes], *paths: str, settings: policy.Settings = PATIENT, host: str = "a.test"
) -> Any:
    return crawl_rows({host: Site(says=says, paths=paths or ("/a",))}, settings)[host]


def _to(target: str, status: int = 302) -> bytes:
    return response(status, b"", f"Location: {target}")


def _loop(_: Row) -> str | None:
    found = _crawled({"/a": _to("/b"), "/b": _to("/a")})
    last = found.pages()[-1]
    asked = len(found.pages())
    return None if last.outcome == "REDIRECT_LOOP" and asked <= 20 else f"{last.outcome} after {asked}"


def _growing(_: Row) -> str | None:
    says = {"/a" * n: _to("/a" * (n + 1)) for n in range(1, 40)}
    found = _crawled(says)
    ended = found.pages()[-1].outcome
    most = PATIENT.limits.redirects + 1
    bounded = len(found.pages()) <= most and found.times_asked("/a" * (most + 1)) == 0
    return None if bounded else f"{ended} after {len(found.pages())}"


def _shared_target(_: Row) -> str | None:
    found = _crawled({"/a": _to("/c"), "/b": _to("/c"), "/c": response(200, b"c")}, "/a", "/b")
    asked = found.times_asked("/c")
    return None if asked == 1 else f"asked {asked} times"


def _inward(row: Row) -> str | None:
    """The redirect is told; its target is not followed in this round, and denied when its turn comes."""
    target = row["server_sends"]["headers"]["Location"]
    settings = replace(
        PATIENT,
        egress=policy.Egress(allow=("127.0.0.2/32",)),
        dns=policy.Dns(hosts={"*.test": "127.0.0.2", "rebind.example": "127.0.0.1"}),
    )
    asked = crawl_rows({"a.test": Site(says={"/": _to(target)})}, settings, address="127.0.0.2")["a.test"]
    if [page.outcome for page in asked.pages()] != ["REDIRECT"]:
        return f"{[page.outcome for page in asked.pages()]}"
    skips = _denied(asked.pages()[0].next_url or "", settings)
    return None if skips == ["EGRESS_DENIED"] else f"the target ended as {skips}"


def _denied(target: str, settings: policy.Settings) -> list[str]:
    from tests.crawl.stages.fetching import fetch_group

    async def main() -> list[str]:
        async with RawServer({}, address="127.0.0.2") as server:
            result = await fetch_group(server, plan_of([target]), settings=settings)
            assert server.seen == []
            return [record.outcome for record, _ in result.entries]

    return asyncio.run(main())


def _no_credentials(_: Row) -> str | None:
    """None are sent at all, at either place."""
    says = {"a.test": Site(says={"/": response(302, b"", "Location: /b", "Set-Cookie: a=b")})}
    (seen,) = [s for s in crawl_rows(says, PATIENT)["a.test"].seen if s.path == "/b"]
    sent = [name for name in ("authorization", "cookie", "referer") if seen.header(name) is not None]
    return None if not sent else f"sent {sent}"


def _robots_first(row: Row) -> str | None:
    """The target has its own round, host and robots.txt: nothing of it is asked before that is read."""
    wrong = _next(row)
    if wrong is not None:
        return wrong
    asked = crawl_rows(
        {
            "a.test": Site(says={"/": _to("http://other.test/a")}),
            "other.test": Site(says={"/a": response(200, b"x")}, paths=("/a",)),
        },
        PATIENT,
    )
    paths = [seen.path for seen in asked["other.test"].seen]
    return None if paths == ["/robots.txt", "/a"] else f"{paths}"


_BEHAVIOUR = {
    "http-rd-loop2": _loop,
    "http-rd-growing": _growing,
    "http-rd-dup-target": _shared_target,
    "http-rd-hdr-drop": _no_credentials,
    "http-rd-abs": _robots_first,
    "http-rd-dns-private": _inward,
}


def check(row: Row) -> str | None:
    """None where the row is met."""
    if row["id"] in _BEHAVIOUR:
        return _BEHAVIOUR[row["id"]](row)
    if "ssrf" in row["id"]:
        return _inward(row)
    return _next(row)
