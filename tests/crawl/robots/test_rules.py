"""The rules of a robots.txt: which line decides for which agent."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.robots.rules import Verdict, parse


def test_a_verdict_names_the_deciding_line() -> None:
    star = b"# hello\nUser-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /*.pdf$\n"
    rules = parse(star + b"\nUser-agent: x\nDisallow: /x\n")
    assert rules.verdict("bot", "http://a.test/a/c") == Verdict(False, "Disallow: /a", 3)
    assert rules.verdict("bot", "http://a.test/a/b/c") == Verdict(True, "Allow: /a/b", 4)
    assert rules.verdict("bot", "http://a.test/z.pdf") == Verdict(False, "Disallow: /*.pdf$", 5)
    assert rules.verdict("bot", "http://a.test/") == Verdict(True)
    assert rules.verdict("X/1.0", "http://a.test/a") == Verdict(True)
    assert rules.verdict("x", "http://a.test/x?y") == Verdict(False, "Disallow: /x", 8)


def test_escapes_in_rule_and_url_are_compared_in_one_spelling() -> None:
    rules = parse("User-agent: *\nDisallow: /%7eu\nDisallow: /é\n".encode())
    assert rules.verdict("b", "http://a.test/~u/x") == Verdict(False, "Disallow: /%7eu", 2)
    assert rules.verdict("b", "http://a.test/%C3%A9") == Verdict(False, "Disallow: /é", 3)


def test_an_agents_own_group_hides_the_star_group() -> None:
    rules = parse(b"User-agent: *\nDisallow: /\nCrawl-delay: 9\n\nUser-agent: Mine\nDisallow:\n")
    assert rules.verdict("mine", "http://a.test/x").allowed
    assert not rules.verdict("minelayer", "http://a.test/x").allowed
    assert rules.crawl_delay("mine") is None
    assert rules.crawl_delay("other") == 9.0


def test_a_line_cut_by_the_limit_is_not_read() -> None:
    text = b"User-agent: *\nDisallow: /private\n"
    assert parse(text, limit=len(text) - 8).verdict("b", "http://a.test/pub").allowed
    assert not parse(text + b"#", limit=len(text)).verdict("b", "http://a.test/private").allowed


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_reading_never_fails(data: bytes) -> None:
    rules = parse(data)
    rules.verdict("bot", "http://a.test/x%zz?é")
    rules.crawl_delay("bot")
    assert all(s.startswith("http") for s in rules.sitemaps)


_LINES = st.sampled_from(
    [
        "User-agent: *",
        "User-agent: b",
        "Disallow: /",
        "Allow: /a",
        "Disallow: /a*c$",
        "Disallow:",
        "Crawl-delay: 2",
        "x",
        "",
    ]
)


@given(st.lists(_LINES, max_size=12), st.sampled_from(["/", "/a", "/abc", "/b?a=c"]))
@settings(max_examples=100)
def test_a_denial_always_names_its_line(lines: list[str], path: str) -> None:
    verdict = parse("\n".join(lines).encode()).verdict("b", "http://a.test" + path)
    if not verdict.allowed:
        assert verdict.line is not None
        assert lines[verdict.line - 1] == verdict.rule
