"""Which URLs belong to the crawl."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.errors import UrlError
from crawl.policy import Limits, Scope
from crawl.scope import admit, allowed
from crawl.url import canonical, split_many

ANYWHERE = Scope()
LIMITS = Limits()


def reason(url: str, scope: Scope = ANYWHERE, *, depth: int = 0, limits: Limits = LIMITS) -> str | None:
    _, hosts, domains = split_many([url])
    return allowed(url, hosts[0], domains[0], depth, scope, limits)


def test_an_empty_scope_is_anywhere() -> None:
    assert reason("http://a.test/x") is None


def test_a_domain_holds_its_hosts_and_a_host_only_itself() -> None:
    scope = Scope(domains=("python.test",), hosts=("www.b.test",))
    assert reason("http://python.test/", scope) is None
    assert reason("http://docs.python.test/", scope) is None
    assert reason("http://notpython.test/", scope) == "scope_host"
    assert reason("http://www.b.test/", scope) is None
    assert reason("http://b.test/", scope) == "scope_host"


def test_a_scope_below_the_registrable_domain_holds_what_is_below_it() -> None:
    scope = Scope(domains=("docs.python.test",))
    assert reason("http://x.docs.python.test/", scope) is None
    assert reason("http://python.test/", scope) == "scope_host"


@pytest.mark.parametrize(
    ("pattern", "path", "out"),
    [
        ("/private/*", "/private/x?y=1", True),
        ("/private/*", "/private", False),
        ("/private/*", "/public/?p=/private/x", False),
        ("*.pdf", "/a/b.pdf", True),
        ("*.pdf", "/a/b.pdfx", False),
        ("/v?/x", "/v1/x", True),
        ("/v?/x", "/v12/x", False),
        ("/a.b", "/aXb", False),
        ("/search", "/search?q=1", True),
    ],
)
def test_patterns_exclude_paths(pattern: str, path: str, out: bool) -> None:
    got = reason("http://a.test" + path, Scope(exclude=("/never", pattern)))
    assert got == ("scope_excluded" if out else None)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://me:secret@a.test/", "url_credentials"),
        ("http://a.test/me@b", None),
        ("http://a.test/" + "x" * 2_034, None),
        ("http://a.test/" + "x" * 2_035, "url_too_long"),
        ("http://a.test" + "".join(f"/{i}" for i in range(20)) + "/", None),
        ("http://a.test" + "".join(f"/{i}" for i in range(21)), "too_many_segments"),
        ("http://a.test/?" + "&".join(f"p{i}" for i in range(12)), None),
        ("http://a.test/?" + "&".join(f"p{i}" for i in range(13)), "too_many_parameters"),
        ("http://a.test/a/b/a/b/a/b", None),
        ("http://a.test/a/b/a/b/a/b/a", "repeated_segment"),
        ("http://a.test/?x=/a/a/a/a/a/a/", None),
    ],
)
def test_odd_shapes_are_refused_with_their_reason(url: str, code: str | None) -> None:
    assert reason(url) == code


def test_depth_is_bounded() -> None:
    assert reason("http://a.test/", depth=20) is None
    assert reason("http://a.test/", depth=21) == "depth"


_PIECES = st.sampled_from(["a", "b", "/", "/a", "/a/a", "?", "&p", "&p&q&r", "@", ".pdf", "x" * 30])
_HOSTS = st.sampled_from(["a.test", "b.test", "x.a.test", "u@a.test"])


@given(
    st.lists(
        st.builds("http://{}/{}".format, _HOSTS, st.lists(_PIECES, max_size=9).map("".join)), max_size=6
    ),
    st.integers(0, 4),
    st.sampled_from([ANYWHERE, Scope(domains=("a.test",)), Scope(hosts=("b.test",), exclude=("/a*",))]),
)
@settings(max_examples=100)
def test_many_at_once_get_what_each_alone_gets(texts: list[str], depth: int, scope: Scope) -> None:
    limits = Limits(url_chars=60, depth=3, segments=4, parameters=3, repeated_segment=2)
    urls = []
    for text in texts:
        try:
            urls.append(str(canonical(text)))
        except UrlError:
            continue
    _, hosts, domains = split_many(urls)
    mask, reasons = admit(urls, hosts, domains, depth, scope, limits)
    alone = [allowed(*row, depth, scope, limits) for row in zip(urls, hosts, domains, strict=True)]
    assert reasons == alone
    assert mask.tolist() == [r is None for r in alone]


def test_nothing_is_admitted_from_nothing() -> None:
    mask, reasons = admit([], [], [], 0, ANYWHERE, LIMITS)
    assert (mask.tolist(), reasons) == ([], [])
