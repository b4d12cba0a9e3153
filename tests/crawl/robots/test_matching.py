"""The rule that decides about a path: matching by hand and against a slow one that tries everything."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.robots.grammar import Line
from crawl.robots.matching import Group, path_of, spelt


def group(*rules: str) -> Group:
    """`+/a` allows, `-/a` disallows; the line is the place."""
    return Group(Line(number, rule[0] == "+", rule[1:]) for number, rule in enumerate(rules, 1))


def decided(found: Group, path: str) -> int | None:
    line = found.deciding(path_of("http://a.test" + path))
    return None if line is None else line.number


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/", "/x", True),
        ("/fish", "/fishheads/y", True),
        ("/fish", "/Fish", False),
        ("/fish/", "/fish", False),
        ("/*.php$", "/folder/any.php", True),
        ("/*.php$", "/any.php?p=1", False),
        ("/*.php$", "/.php.php", True),
        ("/a*b*c$", "/abxbc", True),
        ("/a*b*c$", "/abcb", False),
        ("*", "/", True),
        ("/a**b", "/axb", True),
        ("/x$", "/x", True),
        ("/x$", "/xy", False),
        ("/x*$", "/xy", True),
        ("/a$b", "/a$b", True),  # `$` ends a rule only at its end
        ("/a%24", "/a$", True),
        ("/a%2A", "/a*b", True),
        ("/a%2Ab", "/axb", False),
        ("/%7Eu", "/~u", True),
        ("/a%2fb", "/a%2Fb", True),
        ("/a%2fb", "/a/b", False),  # an escaped slash is data
        ("/ツ", "/%E3%83%84", True),
        ("/%e3%83%84", "/ツ", True),
        ("/a?b=c", "/a?b=c&d", True),
        ("/a?b", "/a", False),
        ("fish", "/fish", False),
        ("/", "", True),
    ],
)
def test_a_pattern_matches_from_the_start_of_the_path(pattern: str, path: str, matches: bool) -> None:
    assert (decided(group("-" + pattern), path) == 1) is matches


def test_the_longest_rule_decides_and_allow_on_a_tie() -> None:
    assert decided(group("-/a", "+/a/b", "-/a/b/c"), "/a/b/d") == 2
    assert decided(group("-/a", "+/a"), "/a") == 2
    assert decided(group("-/*.html", "+/page"), "/page.html") == 1
    assert decided(group("-/page", "+/*.htm"), "/page.htm") == 2
    assert decided(group("-/a", "-/a"), "/a") == 1


def test_an_escape_counts_as_one_octet_where_it_is_ascii_and_as_written_where_not() -> None:
    assert decided(group("+/wro/", "-/*?*"), "/wro/?x") == 1
    assert decided(group("-/%3F%3F", "+/??abc"), "/??abc") == 2


def test_an_allowed_index_page_allows_its_folder() -> None:
    rules = group("-/d", "+/d/index.html")
    assert [decided(rules, path) for path in ("/d/index.html", "/d/", "/d/x", "/d")] == [2, 2, 1, 1]
    assert decided(group("-/d", "-/d/index.html"), "/d/") == 1


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://a.test", "/"),
        ("http://a.test?q", "/%3Fq"),
        ("https://a.test:8/b#c?d", "/b"),
        ("/only/path", "/only/path"),
        ("", "/"),
        ("http://[bad/x", "/x"),
        ("//a/b", "//a/b"),
    ],
)
def test_a_path_is_what_follows_the_authority(url: str, path: str) -> None:
    assert path_of(url) == path


@given(st.text(max_size=30))
@settings(max_examples=100)
def test_a_spelling_is_stable_and_ascii(text: str) -> None:
    once = spelt(text)
    assert once.isascii()
    assert spelt(once) == once


_PART = st.sampled_from(["/", "a", "b", "*", "$", "%61", "?", "é"])


@given(
    st.lists(st.tuples(st.booleans(), st.lists(_PART, max_size=6).map("".join)), max_size=5),
    st.lists(st.sampled_from(["/", "a", "b", "$", "?", "é"]), max_size=7).map("".join),
)
@settings(max_examples=100)
def test_it_decides_as_trying_every_rule_does(rules: list[tuple[bool, str]], rest: str) -> None:
    lines = [Line(n, allow, "/" + path) for n, (allow, path) in enumerate(rules, 1)]
    path = path_of("/" + rest)
    found = Group(lines).deciding(path)
    matching = [line for line in lines if re.match(_regex(line.path), path)]
    assert (found is None) == (not matching)
    if found is not None:
        assert found in matching
        assert _rank(found) == max(map(_rank, matching))


def _regex(path: str) -> str:
    body, end = (path[:-1], "$") if path.endswith("$") else (path, "")
    return ".*".join(re.escape(spelt(part)) for part in body.split("*")) + end


def _rank(line: Line) -> tuple[int, bool]:
    body = re.sub(r"\*+", "*", line.path.removesuffix("$")).replace("%61", "a").replace("é", "%C3%A9")
    return len(body) + line.path.endswith("$"), line.allow


def test_rules_made_to_be_slow_are_matched_by_looking_ahead_only() -> None:
    rules = [f"-/{'*a' * 20}*b{n}" for n in range(2_000)] + ["-/" + "*a" * 50_000 + "b"]
    assert decided(group(*rules), "/" + "a" * 2_000) is None
