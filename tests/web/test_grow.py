"""The web is a function of its seed, and has what its features promise."""

from __future__ import annotations

import re
from urllib.parse import urldefrag, urljoin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.web import render
from tests.web.grow import Web
from tests.web.links import relative
from tests.web.model import DAY, EPOCH, Features, Kind, Robots, address_of
from tests.web.server import identity_path

WEB = Web(7, hosts=36, pages=500, port=8000)


def bodies(web: Web, now: int) -> list[tuple[str, bytes]]:
    return [(url, render.answer(web, made, now).body) for url, made in web.resources.items()]


def test_the_same_seed_gives_the_same_bytes_whatever_was_asked_before() -> None:
    fresh = Web(7, hosts=36, pages=500, port=8000)
    later = bodies(fresh, EPOCH + 40 * DAY)
    assert bodies(WEB, EPOCH) == bodies(fresh, EPOCH)
    assert later == bodies(WEB, EPOCH + 40 * DAY)


def test_a_spec_carries_everything() -> None:
    assert bodies(Web.from_spec(WEB.spec()), EPOCH) == bodies(WEB, EPOCH)


def test_another_seed_gives_another_web() -> None:
    assert not {url for url, _ in bodies(Web(8, hosts=36, pages=500, port=8000), EPOCH)} & set(WEB.resources)


def test_the_port_changes_nothing_but_the_urls() -> None:
    other = Web(7, hosts=36, pages=500, port=9000)
    moved = [
        (url.replace(":9000", ":8000"), body.replace(b":9000", b":8000"))
        for url, body in bodies(other, EPOCH)
    ]
    plain = [each for each in moved if "utf-16" not in WEB.resources[each[0]].charset]
    assert [each for each in bodies(WEB, EPOCH) if "utf-16" not in WEB.resources[each[0]].charset] == plain
    assert [w.changes(p, EPOCH + 90 * DAY) for w in (WEB, other) for p in list(w.resources.values())[:50]][
        :50
    ] == [other.changes(page, EPOCH + 90 * DAY) for page in list(other.resources.values())[:50]]


def test_every_feature_leaves_something_and_nothing_when_off() -> None:
    plain = Web(7, hosts=36, pages=500, port=8000, features=Features.only())
    assert {made.kind for made in plain.resources.values()} == {Kind.PAGE, Kind.ROBOTS}
    assert len(plain.resources) == 500 + 36
    assert not plain.dead
    assert not any(made.rate for made in plain.resources.values())
    assert {made.kind for made in WEB.resources.values()} == set(Kind) - {Kind.CALENDAR}
    assert {host.robots.kind for host in WEB.hosts} == set(Robots)
    assert {made.status for made in WEB.resources.values()} >= {
        200,
        301,
        302,
        307,
        308,
        403,
        404,
        410,
        500,
        503,
    }
    vias = {link.via for made in WEB.resources.values() for link in WEB.links(made, EPOCH)}
    assert vias == {"a", "area", "frame", "iframe", "link", "refresh"}
    assert {made.charset for made in WEB.resources.values()} >= {"utf-8", "iso-8859-1"}


def test_an_unknown_feature_is_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="no such feature: magic"):
        Features().without("magic")


def test_too_few_pages_are_refused() -> None:
    with pytest.raises(ValueError, match="three a host"):
        Web(1, hosts=10, pages=20)


def test_every_href_resolves_to_its_target() -> None:
    """RFC 3986 resolution by the standard library, then the identity rules."""
    for made in WEB.resources.values():
        for link in WEB.links(made, EPOCH + 90 * DAY):
            found = urldefrag(urljoin(made.base or made.url, link.href)).url
            scheme, _, rest = found.partition("://")
            authority, _, path = rest.partition("/")
            # once more by the path alone: urljoin leaves dot segments in where the reference names a host
            path = urljoin("http://h/", "/" + path).removeprefix("http://h")
            assert f"{scheme.lower()}://{authority.lower()}{identity_path(path)}" == link.target, link.href


@settings(max_examples=100)
@given(
    *[st.lists(st.sampled_from(["a", "b", "c.html"]), max_size=4).map(lambda parts: "/" + "/".join(parts))]
    * 2,
    st.booleans(),
)
def test_a_relative_path_leads_back(base: str, path: str, folder: bool) -> None:
    path = path + "/" if folder and path != "/" else path
    assert urljoin("http://h" + base, relative(base, path)) == "http://h" + path


def test_changes_come_at_their_rate_and_only_then() -> None:
    days = 400
    total = expected = 0.0
    for made in WEB.resources.values():
        if made.rate and made.twin is None:
            times = WEB.changes(made, EPOCH + days * DAY)
            assert times == sorted(set(times))
            births = sum(must.since is not None for must in made.must)
            total, expected = total + len(times) - births, expected + made.rate * days
    assert abs(total / expected - 1) < 0.02


def test_a_page_changes_its_text_exactly_at_its_times() -> None:
    page = next(made for made in WEB.resources.values() if made.rate == 1.0 and made.twin is None)
    for moment in WEB.changes(page, EPOCH + 20 * DAY):
        before, after = (render.answer(WEB, page, at) for at in (moment - 1, moment))
        assert before.body != after.body
        assert before.etag != after.etag or not after.etag
        assert after.modified in (None, moment)


def test_copies_have_the_text_of_their_originals_and_near_copies_nearly() -> None:
    copies = [made for made in WEB.resources.values() if made.twin is not None]
    assert {(made.same_bytes, bool(made.edits)) for made in copies} == {
        (True, False),
        (False, False),
        (False, True),
    }
    for made in copies:
        assert made.twin is not None
        for now in (EPOCH, EPOCH + 50 * DAY):
            mine, its = (render.content(WEB, each, now).text for each in (made, made.twin))
            bytes_equal = render.answer(WEB, made, now).body == render.answer(WEB, made.twin, now).body
            assert bytes_equal is made.same_bytes
            if made.edits:
                pairs = list(zip(mine.split(), its.split(), strict=True))
                assert 0 < sum(a != b for a, b in pairs) / len(pairs) < 0.12
            else:
                assert mine == its


def test_different_pages_have_different_texts() -> None:
    texts = [
        render.content(WEB, m, EPOCH).text
        for m in WEB.resources.values()
        if m.kind is Kind.PAGE and not m.twin
    ]
    assert len(set(texts)) == len(texts)


def test_the_visible_text_is_what_the_markup_shows() -> None:
    for made in WEB.resources.values():
        if made.kind is Kind.PAGE and not made.frameset:
            markup = render.page(WEB, made, EPOCH).decode(made.charset).lstrip("\ufeff").split("<body")[1]
            bare = re.sub(r"(?s)<!--.*?-->|<[^>]*>", " ", "<body" + markup)
            bare = bare.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            assert bare.split() == render.content(WEB, made, EPOCH).text.split()


def test_the_calendar_never_ends() -> None:
    start = next(
        link.target
        for host in WEB.hosts
        for link in WEB.links(WEB.home(host), EPOCH)
        if "/cal" in link.target
    )
    url = start
    for _ in range(30):
        month = WEB.find(url)
        assert month is not None
        (url,) = (link.target for link in WEB.links(month, EPOCH))
    assert url.endswith("2028-07.html")
    assert WEB.find(url.replace("-07", "-13")) is None


def test_hosts_spread_over_the_network_and_dead_ones_lie_apart() -> None:
    addresses = {WEB.address(host.name) for host in WEB.hosts}
    assert all(address.startswith("127.1.") for address in addresses)
    assert len(WEB.dead) == 2
    assert not addresses & {WEB.address(name) for name in WEB.dead}
    assert address_of("any.test", "127.0.0.1") == "127.0.0.1"


def test_a_page_is_about_as_large_as_asked() -> None:
    sizes = [len(render.page(WEB, made, EPOCH)) for made in WEB.resources.values() if made.kind is Kind.PAGE]
    assert 12_000 < sum(sizes) / len(sizes) < 19_000
    assert max(sizes) > 30_000
