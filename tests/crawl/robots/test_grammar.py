"""Lines of robots.txt in groups: the grammar, and what is met in its place (verdicts: test_robots)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.robots.grammar import TOKEN, Line, Reader, decode


def read(text: str, base: str | None = None) -> Reader:
    reader = Reader(base)
    reader.read(text)
    return reader


def paths(text: str) -> dict[str, list[str]]:
    reader = read(text)
    return {agent: [line.path for line in reader.rules(agent)] for agent in reader.agents}


def delays(reader: Reader) -> dict[str, float]:
    found = {agent: reader.delay(agent) for agent in reader.agents}
    return {agent: seconds for agent, seconds in found.items() if seconds is not None}


def test_agents_in_a_row_share_the_rules_that_follow() -> None:
    assert {"a": ["/1", "/2"], "b": ["/1", "/2"], "c": ["/3"]} == paths(
        "User-agent: A\nuser-agent: b\nDisallow: /1\n\nAllow: /2\nUser-agent: c\nDisallow: /3"
    )


def test_groups_of_one_agent_are_added_up_in_order() -> None:
    assert {"a": ["/1", "/2"], "b": []} == paths(
        "User-agent: a\nDisallow: /1\nUser-agent: a\nDisallow: /2\nUser-agent: b"
    )


def test_rules_before_any_agent_are_nobodys() -> None:
    assert {"a": []} == paths("Disallow: /\nUser-agent: a\n")


@pytest.mark.parametrize(
    "between", ["", "# note", "Host: x", "Sitemap: http://a.test/s", "Crawl-delay: 1", "%"]
)
def test_no_other_line_ends_a_group(between: str) -> None:
    """RFC 9309 2.2.4: other records must not interfere with the groups."""
    assert {"a": ["/1"], "b": ["/1"]} == paths(f"User-agent: a\n{between}\nUser-agent: b\nDisallow: /1")
    assert {"a": ["/1", "/2"]} == paths(f"User-agent: a\nDisallow: /1\n{between}\nDisallow: /2")


@pytest.mark.parametrize(
    ("line", "agent"),
    [
        ("User-agent: Bot", "bot"),
        ("  USER-AGENT :bot/2.1 (x)", "bot"),  # the product token alone counts
        ("user agent: bot", "bot"),
        ("User-agent bot", "bot"),
        ("User-agent: *", "*"),
        ("User-agent: * # all", "*"),
        ("User-agent: *bot", "bot"),
        ("Useragent: my_bot-2", "my_bot-2"),
    ],
)
def test_an_agent_is_read_as_peers_read_it(line: str, agent: str) -> None:
    assert {agent: ["/"]} == paths(f"{line}\nDisallow: /")


def test_an_agent_line_without_an_agent_is_passed_over() -> None:
    assert {"a": ["/"]} == paths("User-agent: a\nUser-agent:\nUser-agent: (x)\nDisallow: /")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_rule_knows_its_line_whatever_ends_it(end: str) -> None:
    text = end.join(["# one", "User-agent: *", "", "Disallow: /a # why", "Allow:"])
    assert [Line(4, False, "/a"), Line(5, True, "")] == read(text).rules("*")
    assert "Disallow: /a" == read(text).rules("*")[0].text()


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_what_only_unicode_calls_a_line_end_ends_no_line(odd: str) -> None:
    assert {"*": ["/a Allow: /"]} == paths(f"User-agent: *\nDisallow: /a{odd}Allow: /")


@pytest.mark.parametrize("word", ["Disalow", "dissallow", "diasllow", "DISALLOW"])
def test_misspellings_forbid_as_they_were_meant(word: str) -> None:
    assert {"*": ["/x"]} == paths(f"User-agent: *\n{word}: /x")


@pytest.mark.parametrize("word", ["Disallowed", "Noindex", "x-disallow", "No Disallow"])
def test_words_that_are_no_field_are_no_rule(word: str) -> None:
    assert {"*": []} == paths(f"User-agent: *\n{word}: /x")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("5", 5.0), ("0.5", 0.5), (".5", 0.5), ("10 seconds", 10.0), ("3<br>", 3.0), ("5s", None), ("-1", None)],
)
def test_a_delay_is_a_number_or_none(value: str, seconds: float | None) -> None:
    assert seconds == read(f"User-agent: *\nCrawl-delay: {value}").delay("*")


def test_a_delay_between_agents_is_of_those_above_it_alone() -> None:
    reader = read("User-agent: a\nCrawl-delay: 3\nUser-agent: b\nDisallow: /x")
    assert {"a": 3.0} == delays(reader)
    assert {"a": 3.0, "b": 5.0} == delays(
        read("User-agent: a\nCrawl-delay: 3\nUser-agent: b\nCrawl-delay: 5")
    )
    assert {"a", "b"} == {agent for agent in reader.agents if reader.rules(agent)}


def test_a_rule_does_not_part_a_delay_from_its_agents() -> None:
    assert {"a": 7.0, "b": 7.0} == delays(read("User-agent: a\nUser-agent: b\nAllow: /\nCrawl-delay: 7"))


def test_sitemaps_belong_to_no_group_are_resolved_and_named_once() -> None:
    reader = read(
        "Sitemap: /s.xml\nUser-agent: *\nSitemap: http://b.test/t\nsitemap: http://a.test/s.xml\nSitemap: ftp://x/",
        "http://a.test/robots.txt",
    )
    assert ["http://a.test/s.xml", "http://b.test/t"] == list(reader.sitemaps)
    assert [] == list(read("Sitemap: /s.xml").sitemaps)


def test_a_byte_order_mark_hides_no_first_line() -> None:
    assert "User-agent: *" == decode(b"\xef\xbb\xbfUser-agent: *", 100)
    assert "User-agent: *" == decode(b"\xef\xbbUser-agent: *", 100)


def test_a_file_in_utf_16_is_read() -> None:
    assert {"*": ["/a"]} == paths(decode("\ufeffUser-agent: *\nDisallow: /a".encode("utf-16-le"), 1000))
    assert {"*": ["/a"]} == paths(decode("\ufeffUser-agent: *\nDisallow: /a".encode("utf-16-be"), 1000))


def test_octets_that_are_no_utf_8_stand_as_escapes() -> None:
    assert "/caf%E9" == decode(b"/caf\xe9", 100)
    assert "a%FF%FEb" == decode(b"a\xff\xfeb", 100)


@pytest.mark.parametrize(
    ("body", "limit", "text"),
    [
        (b"ab\ncd\n", 6, "ab\ncd\n"),
        (b"ab\ncd\nef", 7, "ab\ncd\n"),
        (b"ab\ncd\n", 5, "ab\ncd\n"),  # the line is whole, though its end lies at the limit
        (b"ab\ncd\n", 4, "ab\n"),
        (b"ab\rcd\r", 4, "ab\r"),
        (b"abcdef", 4, ""),
    ],
)
def test_a_body_is_cut_after_its_last_whole_line(body: bytes, limit: int, text: str) -> None:
    assert text == decode(body, limit)


@settings(max_examples=100)
@given(
    st.lists(
        st.sampled_from(
            [
                "User-agent: a",
                "User-agent: *",
                "Disallow: /",
                "Allow: /b",
                "Crawl-delay: 2",
                "Sitemap: /s",
                "x:",
            ]
        )
        | st.text(max_size=12),
        max_size=12,
    )
)
def test_any_lines_give_rules_of_named_agents_in_the_order_of_their_lines(lines: list[str]) -> None:
    reader = read("\n".join(lines), "http://a.test/robots.txt")
    for agent in reader.agents:
        rules = reader.rules(agent)
        assert agent == "*" or TOKEN.fullmatch(agent)
        assert agent == agent.lower()
        numbers = [rule.number for rule in rules]
        assert numbers == sorted(set(numbers))
