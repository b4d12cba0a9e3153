"""Redirect chains: targets, loops and limits, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from crawl.fetching.chains import Chains
from crawl.fetching.hostqueue import Ask
from crawl.keys import Keyer
from crawl.net.exchange import Answer
from crawl.outcomes import Outcome
from crawl.policy import Settings
from tests.crawl.fetching.test_robotswatch import record

KEYER = Keyer(b"0123456789abcdef")


def chains() -> Chains:
    return Chains(KEYER, Settings())


def ask(where: str, **changes: Any) -> Ask:
    values: dict[str, Any] = {"kind": "page", "url": where, "url_key": KEYER.url_key(where), "chain_id": 1}
    return Ask(**values | {"origin": "http://a.test", "host": "a.test", "domain": "a.test"} | changes)


def moved(*locations: str) -> Answer:
    headers = "\n".join(f"Location: {to}" for to in locations)
    return Answer(outcome=Outcome.REDIRECT, reason=None, began=0.0, ended=0.0, status=302, headers=headers)


def to(where: str, *locations: str) -> tuple[Outcome, str | None]:
    outcome, _, target = chains().judge(ask(where), moved(*locations))
    return outcome, target


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/new", "http://a.test/new"),
        ("new?x#part", "http://a.test/dir/new?x"),
        ("?q", "http://a.test/dir/page?q"),
        ("//B.test/x", "http://b.test/x"),
        (" /new ", "http://a.test/new"),
        ("/a b", "http://a.test/a%20b"),
        ("/caf\xc3\xa9", "http://a.test/caf%C3%A9"),  # octets of UTF-8, as header lines hold them
        ("/caf\xe9", "http://a.test/caf%E9"),  # octets of Latin-1
        ("http://b\xc3\xbccher.test/", "http://xn--bcher-kva.test/"),
        ("\\\\b.test\\x", "http://b.test/x"),
        ("https://a.test/dir/page", "https://a.test/dir/page"),
    ],
)
def test_a_location_leads_where_it_leads_a_browser(location: str, target: str) -> None:
    assert to("http://a.test/dir/page", location) == (Outcome.REDIRECT, target)


@pytest.mark.parametrize("location", ["mailto:x@a.test", "http://a.test:99999/", "file:///etc/passwd"])
def test_a_location_that_is_nothing_to_ask_is_a_bad_redirect(location: str) -> None:
    assert to("http://a.test/dir/page", location) == (Outcome.BAD_REDIRECT, None)


def test_several_locations_are_a_bad_redirect_unless_they_are_one() -> None:
    assert to("http://a.test/x", "/a", "/a") == (Outcome.REDIRECT, "http://a.test/a")
    assert to("http://a.test/x", "/a", "/b") == (Outcome.BAD_REDIRECT, None)


def test_without_a_location_there_is_no_target() -> None:
    assert to("http://a.test/x") == (Outcome.BAD_REDIRECT, None)


def test_the_same_page_is_a_loop_at_once_whatever_its_fragment() -> None:
    assert to("http://a.test/x", "#part") == (Outcome.REDIRECT_LOOP, "http://a.test/x")
    assert to("http://a.test/x", "") == (Outcome.REDIRECT_LOOP, "http://a.test/x")


def test_another_spelling_is_followed_once_and_a_key_that_was_left_is_a_loop() -> None:
    found = chains()
    first = ask("http://a.test/x?utm_source=1")
    assert found.judge(first, moved("/x"))[0] is Outcome.REDIRECT
    found.went(record(first, Outcome.REDIRECT, 302, "http://a.test/x"))
    same = ask("http://a.test/x", hop=1)
    assert found.judge(same, moved("/x?utm_source=1"))[0] is Outcome.REDIRECT_LOOP
    assert found.judge(same, moved("/y"))[0] is Outcome.REDIRECT
    found.went(record(same, Outcome.REDIRECT, 302, "http://a.test/y"))
    other = ask("http://a.test/y", hop=2)
    assert found.judge(other, moved("/x?utm_campaign=2"))[0] is Outcome.REDIRECT_LOOP
    assert found.judge(ask("http://a.test/y", chain_id=2), moved("/x"))[0] is Outcome.REDIRECT


def test_hops_of_earlier_rounds_count_towards_the_limit() -> None:
    most = Settings().limits.redirects
    found = chains()
    assert found.judge(ask("http://a.test/x", hop=most - 1), moved("/y"))[0] is Outcome.REDIRECT
    assert found.judge(ask("http://a.test/x", hop=most), moved("/y"))[0] is Outcome.TOO_MANY_REDIRECTS


def test_the_end_of_a_chain_is_its_last_target() -> None:
    found, here = chains(), ask("http://a.test/x")
    assert found.final_key(here, None) == here.url_key
    assert found.final_key(here, "http://b.test/") == KEYER.url_key("http://b.test/")
