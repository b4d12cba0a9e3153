"""What a URL is: serialisation, key form, domain."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawl.errors import UrlError
from crawl.policy import Identity
from crawl.url import (
    MAX_CHARS,
    bare_host,
    canonical,
    canonical_many,
    domain,
    host,
    is_public_suffix,
    key_form,
    origin,
    psl_hash,
    split_many,
)


def key(text: str) -> str:
    return key_form(canonical(text))


# --- canonical ---


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "url_invalid"),
        ("no url", "url_invalid"),
        ("http://", "url_invalid"),
        ("http://a b/", "url_invalid"),
        ("mailto:me@a.test", "url_scheme"),
        ("javascript:void(0)", "url_scheme"),
        ("ftp://a.test/", "url_scheme"),
        ("http://a.test/" + "x" * MAX_CHARS, "url_too_long"),
    ],
)
def test_what_cannot_be_fetched_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(UrlError) as caught:
        canonical(text)
    assert caught.value.reason == reason
    assert isinstance(caught.value, ValueError)


def test_a_relative_link_needs_a_base() -> None:
    assert canonical("../b", "http://a.test/x/y/z") == "http://a.test/x/b"
    with pytest.raises(UrlError):
        canonical("../b")


def test_user_info_is_kept_apart_from_the_origin() -> None:
    url = canonical("http://me:secret@a.test:8080/x")
    assert url == "http://me:secret@a.test:8080/x"
    assert (origin(url), host(url)) == ("http://a.test:8080", "a.test")


def test_a_query_in_iso_2022_jp_is_encoded_as_one_run() -> None:
    got = canonical("http://a.test/?q=日本", encoding="iso-2022-jp")
    assert got == "http://a.test/?q=%1B$BF|K\\%1B(B"


REFERENCES = st.one_of(
    st.text(alphabet="abAB09/.:?#%&=;@-_~ \t\\é'[]|^", max_size=24),
    st.sampled_from(
        [
            "",
            "#x",
            "?q",
            "a",
            "/a",
            "//h.test/x",
            "../a",
            "../../../../a",
            "./a",
            "a/../b",
            "/a/./b",
            "a:b",
            "/%2e%2e/b",
        ]
    ),
    st.builds(
        "{}{}{}".format,
        st.sampled_from(
            ["http://a.test", "https://a.test:443", "http://A.test", "http://1.2", "http:", "https:///"]
        ),
        st.sampled_from(["", "/", "/."]),
        st.text(alphabet="ab./%2e?#", max_size=10),
    ),
)
BASES = st.sampled_from(
    [
        "http://a.test/",
        "https://a.test:8443/x/y/z.html?q=1",
        "http://u@b.test/d/e/",
        "http://[::1]/x",
        "mailto:x",
        "nonsense",
        "data:,x",
    ]
)


@given(st.lists(REFERENCES, max_size=6), BASES)
@settings(max_examples=100)
@example(
    ["..", ".", "%2e%2e/x", "x/..", "a//b", "//b.test", "///x", "?a/../b", "http:a"], "http://a.test/x/y"
)
@example(["/"], "mailto:x")
def test_the_batch_answers_what_one_by_one_answers(texts: list[str], base: str) -> None:
    one_by_one: list[str | None] = []
    for text in texts:
        try:
            one_by_one.append(canonical(text, base))
        except UrlError:
            try:
                one_by_one.append(canonical(text) if base == "nonsense" else None)
            except UrlError:
                one_by_one.append(None)
    assert canonical_many(texts, base) == one_by_one


@given(st.text(max_size=40), st.sampled_from(["utf-8", "windows-1252", "shift_jis", "nonsense"]))
@settings(max_examples=100)
def test_any_text_gives_a_stable_ascii_url_or_a_url_error(text: str, encoding: str) -> None:
    try:
        url = canonical(text, "https://a.test/b/c?d", encoding)
    except UrlError:
        return
    assert url.isascii()
    assert "#" not in url
    assert canonical(url) == url
    assert key_form(key_form(url)) == key_form(url)


def test_lone_surrogates_become_replacement_characters() -> None:
    assert canonical("http://a.test/\ud800") == "http://a.test/%EF%BF%BD"
    assert canonical_many(["\udfff"], "http://a.test/") == ["http://a.test/%EF%BF%BD"]


# --- key form ---


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.test/?b=1&a=2", "http://a.test/?a=2&b=1"),
        ("http://a.test/x?utm_source=n&UTM_medium=m", "http://a.test/x"),
        ("http://a.test/x?id=7&gclid=zz", "http://a.test/x?id=7"),
        ("http://a.test/x?&&a=1&", "http://a.test/x?a=1"),
        ("http://a.test/%7eu/%41", "http://a.test/~u/A"),
    ],
)
def test_spellings_of_one_page_share_a_key_form(one: str, other: str) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.test/", "https://a.test/"),
        ("http://www.a.test/", "http://a.test/"),
        ("http://a.test/x/", "http://a.test/x"),
        ("http://a.test/?a=1&a=2", "http://a.test/?a=2&a=1"),
        ("http://a.test/?ref=x", "http://a.test/"),
        ("http://a.test/?", "http://a.test/"),
        ("http://a.test/?sid=1", "http://a.test/"),
    ],
)
def test_what_may_be_two_pages_keeps_two_key_forms(one: str, other: str) -> None:
    assert key(one) != key(other)


def test_a_broken_escape_never_makes_a_new_one() -> None:
    once = key("http://a.test/%%34%31")
    assert once == "http://a.test/%2541"
    assert key_form(once) == once


def test_the_operator_may_say_what_else_is_one() -> None:
    rules = Identity(
        tracking=("from", "a.test:tab"),
        strip_slash=("http://a.test",),
        strip_www=("b.test",),
        session=("sid",),
    )
    assert key_form("http://a.test/x/?from=1&tab=2&sid=3", rules) == "http://a.test/x"
    assert key_form("http://c.test/x/?tab=2", rules) == "http://c.test/x/?tab=2"
    assert key_form("http://a.test/", rules) == "http://a.test/"
    assert key_form("http://www.b.test/x/", rules) == "http://b.test/x/"
    assert key_form("http://www.c.test/", rules) == "http://www.c.test/"


# --- parts ---


def test_parts_of_many_urls_come_as_columns() -> None:
    urls = [
        "http://x.a.test/1",
        "https://x.a.test:8443/2",
        "http://127.0.0.1:80/",
        "http://[::1]:81/",
        "http://t.co.uk/",
    ]
    urls = [canonical(u) for u in urls]
    origins, hosts, domains = split_many(urls)
    assert origins == [
        "http://x.a.test",
        "https://x.a.test:8443",
        "http://127.0.0.1",
        "http://[::1]:81",
        "http://t.co.uk",
    ]
    assert hosts == ["x.a.test", "x.a.test", "127.0.0.1", "[::1]", "t.co.uk"]
    assert domains == ["a.test", "a.test", "127.0.0.1", "[::1]", "t.co.uk"]
    assert split_many([]) == ([], [], [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("python.test", "python.test"),
        ("a.b.python.test", "python.test"),
        ("localhost", "localhost"),
        ("com", "com"),
        ("foo.github.io", "foo.github.io"),
        ("github.io", "github.io"),
        ("127.0.0.1", "127.0.0.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
    ],
)
def test_every_host_has_a_domain(name: str, expected: str) -> None:
    assert domain(name) == expected


def test_the_suffix_list_is_named_by_its_hash() -> None:
    assert len(psl_hash()) == 64
    assert psl_hash() == psl_hash()


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("A.test", "a.test"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("a_b.test", "a_b.test"),
        ("[::1]", "[::1]"),
        ("127.0.0.1", "127.0.0.1"),
        *(
            (text, None)
            for text in ("", "http://a", "a/", "a:80", "a,b", "*.a", "a..b", "-a", "a b", "u@a", "%")
        ),
    ],
)
def test_a_bare_host_is_a_name_and_nothing_more(text: str, host: str | None) -> None:
    assert bare_host(text) == host


def test_a_public_suffix_is_one_by_the_list_alone() -> None:
    found = [
        name for name in ("com", "co.uk", "github.io", "test", "a.test", "a.co.uk") if is_public_suffix(name)
    ]
    assert found == ["com", "co.uk", "github.io"]


def test_what_stands_before_a_fragment_is_not_the_end_of_a_reference() -> None:
    for text in ("a #b", "a\x01#b", "a\t#", "a ", "a", " #b", "#", "?q #b"):
        assert canonical_many([text], "http://a.test/x/y") == [canonical(text, "http://a.test/x/y")]
    assert canonical("a #b", "http://a.test/") == "http://a.test/a%20"
