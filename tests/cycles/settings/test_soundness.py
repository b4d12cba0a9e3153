"""Settings that would break a crawl are refused, and the message says what to write instead."""

from __future__ import annotations

import pytest

from crawl.errors import SettingsError
from crawl.policy import Parsing, Settings, Tls
from crawl.schema import TABLES
from cycles.settings import config, soundness


def told(text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        config.load(text, {}, "crawl.toml")
    return str(caught.value)


def test_the_defaults_are_sound() -> None:
    soundness.check(Settings(), "here")


@pytest.mark.parametrize(("key", "value", "most"), [("valid", "25h", "24h"), ("last_good", "31d", "720h")])
def test_a_robots_txt_is_not_obeyed_in_an_older_copy(key: str, value: str, most: str) -> None:
    assert f"robots.{key} must be at most {most}" in told(f'[robots]\n{key} = "{value}"')


@pytest.mark.parametrize("key", ["hosts", "domains"])
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("http://a.test", 'write "a.test"'),
        ("https://a.test:8077/x/y", 'write "a.test"'),
        ("a.test/x", 'write "a.test"'),
        ("a.test:80", 'write "a.test"'),
        ("a.test,b.test", 'write "a.test", "b.test"'),
        ("a.test b.test", 'write "a.test", "b.test"'),
        ("*.a.test", 'write "a.test"'),
        (".a.test", 'write "a.test"'),
        ("", "or [] for none"),
        ("me@a.test", "like www.example.org"),
        ("A.test", "'a.test'"),
        ("bücher.example", "'xn--bcher-kva.example'"),
    ],
)
def test_a_scope_is_named_by_bare_names(key: str, name: str, write: str) -> None:
    text = told(f'[scope]\n{key} = ["ok.test", "{name}"]')
    assert text.startswith(f"crawl.toml: scope.{key}: {name!r} ")
    assert write in text


@pytest.mark.parametrize(
    ("groups", "write"),
    [
        ("{ n = [] }", "n has no hosts"),
        ('{ n = ["a.test"], m = ["a.test"] }', "a.test is in n and in m"),
        ('{ n = ["*.b.test"], m = ["x.b.test"] }', "x.b.test is in m and in n"),
        ('{ n = ["*.b.test"], m = ["*.x.b.test"] }', "*.x.b.test is in m and in n"),
        ('{ n = ["*.b.test"], m = ["b.test"] }', "b.test is in n and in m"),
        ('{ n = ["http://a.test/"] }', "like www.example.org"),
        ('{ n = ["*"] }', "like *.example.org"),
        ('{ n = ["*.1.2.3.4"] }', "like *.example.org"),
        ('{ n = ["A.test"] }', "'a.test'"),
        ('{ n = "a.test" }', 'like { "name" = ["x", "y"] }'),
    ],
)
def test_a_host_obeys_one_clock(groups: str, write: str) -> None:
    assert write in told(f"[politeness]\ngroups = {groups}")


def test_a_name_may_stand_twice_in_one_group() -> None:
    text = '[politeness]\ngroups = { n = ["a.test", "*.a.test", "127.0.0.1"], m = ["xa.test"] }'
    assert len(config.load(text, {}).politeness.groups["n"]) == 3


@pytest.mark.parametrize(
    "name", ["a.test", "localhost", "127.0.0.1", "[::1]", "xn--bcher-kva.example", "a_b.c"]
)
def test_names_and_addresses_are_a_scope(name: str) -> None:
    assert (name,) == config.load(f'[scope]\nhosts = ["{name}"]\ndomains = ["{name}"]', {}).scope.domains


@pytest.mark.parametrize("name", ["com", "co.uk", "github.io"])
def test_a_public_suffix_is_no_domain_but_may_be_a_host(name: str) -> None:
    assert f"example.{name}" in told(f'[scope]\ndomains = ["{name}"]')
    assert (name,) == config.load(f'[scope]\nhosts = ["{name}"]', {}).scope.hosts


IN_FLIGHT = "[politeness]\nin_flight ="


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[planning]\ncuts = [0.3, 0.5, 0.7]", ["planning.cuts", "descend"]),
        ("[planning]\ncuts = [1.5, 0.5, 0.3]", ["planning.cuts", "1 at most"]),
        ("[planning]\nweights = [1.0, -0.1, 0.0, 0.0, 0.0]", ["planning.weights", "negative"]),
        ("[planning]\nweights = [0.0, 0.0, 0.0, 0.0, 0.0]", ["planning.weights", "all of them 0"]),
        ("[planning]\nurls = 0", ["planning.urls = 0", "at least 1"]),
        ("[recrawl]\nfloor = '2d'\nceiling = '1d'", ["recrawl.floor", "recrawl.ceiling"]),
        ("[recrawl]\nretire_share = 20.0", ["recrawl.retire_share", "from 0 to 1"]),
        ("[parsing]\nvia = ['a', 'img']", ["parsing.via", "'img'", "iframe"]),
        ("[parsing]\ndeadline = '0s'", ["parsing.deadline", "longer than nothing"]),
        ("[fetching]\nlease = '20ms'", ["fetching.lease", "at least 1s"]),
        ("[egress]\nports = [70000]", ["egress.ports", "65535"]),
        ('[dns]\nservers = ["localhost:53"]', ["dns.servers", "'localhost:53'", "127.0.0.1:5353"]),
        ('[dns]\nservers = ["127.0.0.1:x"]', ["dns.servers", "127.0.0.1:5353"]),
        ('[dns]\nservers = ["[::1]:99999"]', ["dns.servers", "99999 is no port"]),
        ('[dns]\nservers = ["127.0.0.1:53,127.0.0.2:53"]', ["dns.servers", "127.0.0.1:5353"]),
        ("[dns]\nin_flight = 0", ["dns.in_flight", "at least 1"]),
        ("[dns]\nin_flight = 9", ["dns.prefetch", "more than dns.in_flight = 9"]),
        (f"{IN_FLIGHT} {{ 'a.test' = 0 }}", ["politeness.in_flight", "a.test = 0", "from 1 to 64"]),
        (f"{IN_FLIGHT} {{ 'a.test' = 65 }}", ["politeness.in_flight", "a.test = 65", "from 1 to 64"]),
        (f"{IN_FLIGHT} {{ 'a.test' = -4 }}", ["politeness.in_flight", "a.test = -4", "from 1 to 64"]),
        (f"{IN_FLIGHT} {{ '*.a.test' = 4 }}", ["politeness.in_flight", "'*.a.test' is no host"]),
        (f"{IN_FLIGHT} {{ 'http://a.test' = 4 }}", ["'http://a.test' is no host", "www.example.org"]),
        (f"{IN_FLIGHT} {{ 'A.test' = 4 }}", ["'A.test' is written 'a.test' in URLs"]),
        (
            f"{IN_FLIGHT} {{ 'b.a.test' = 4 }}\ngroups = {{ news = ['*.a.test'] }}",
            ["politeness.in_flight", "b.a.test is in the group news", "one clock"],
        ),
        ("[storage]\ntier_ratio = 1", ["storage.tier_ratio", "at least 2"]),
        ("[content]\ntypes = []", ["content.types", "at least text/html"]),
        ("[content]\ntypes = ['image/*']", ["content.types", "'image/*' is no media type", "wildcards"]),
        ("[content]\ntypes = ['Text/HTML']", ["content.types", "lower case"]),
        ("[content]\ntypes = ['text/html; charset=utf-8']", ["content.types", "without parameters"]),
        ("[content]\nreaders = { 'x' = 'a:b' }", ["content.readers", "'x' is no media type"]),
        ("[content]\nreaders = { 'x/y' = 'a.b' }", ["content.readers", "x/y", "write module:function"]),
    ],
)
def test_what_would_break_a_crawl_is_refused(text: str, words: list[str]) -> None:
    found = told(text)
    assert [] == [word for word in words if word not in found], found


def test_known_links_are_those_that_tables_tell_of() -> None:
    comment = (TABLES["links"].field("via").metadata or {})[b"comment"].decode()
    assert set(soundness.VIAS) == set(comment.partition(" or ")[0].split(", "))
    assert set(Parsing().via) <= set(soundness.VIAS)


@pytest.mark.parametrize(
    "server", ["127.0.0.1", "127.0.0.1:5353", "::1", "2001:db8::53", "[2001:db8::53]", "[::1]:5353"]
)
def test_name_servers_are_addresses_with_or_without_a_port(server: str) -> None:
    assert config.load(f'[dns]\nservers = ["{server}"]', {}).dns.servers == (server,)


def test_a_file_of_authorities_is_named_by_its_whole_path() -> None:
    assert "tls.ca_file = 'ca.pem' must be an absolute path" in told('[tls]\nca_file = "ca.pem"')
    config.load(
        '[tls]\nca_file = "/nowhere/ca.pem"', {}, "crawl.toml"
    )  # a reader of the lake may not have it
    with pytest.raises(
        SettingsError, match=r"^here: tls\.ca_file = '/nowhere/ca\.pem' cannot be read: No such"
    ):
        soundness.check_files(Settings(tls=Tls(ca_file="/nowhere/ca.pem")), "here")


def test_readers_are_looked_for_only_where_rounds_are_run() -> None:
    """Who reads a lake needs none of them."""
    settings = config.load("[content]\ntypes = ['text/html', 'x/y']\n", {})
    with pytest.raises(SettingsError, match=r"^here: content\.types: nothing here reads x/y: install"):
        soundness.check_files(settings, "here")
    known = config.load("[content]\ntypes = ['text/html', 'application/pdf']\n", {})
    soundness.check_files(known, "here")


@pytest.mark.parametrize(
    "given",
    ["0.0.0.0/0", "::/0", "128.0.0.0/1", "8.0.0.0/7", "2000::/3", "::ffff:0:0/96", "::/64", "64:ff9b::/97"],
)
def test_the_internet_is_no_range_of_ones_own(given: str) -> None:
    assert "like 10.0.0.0/8 (public ones up to /8, of IPv6 up to /16)" in told(
        f'[egress]\nallow = ["{given}"]'
    )


@pytest.mark.parametrize(
    "given", ["10.0.0.0/8", "240.0.0.0/4", "fc00::/7", "8.0.0.0/8", "::ffff:10.0.0.0/104"]
)
def test_ranges_of_ones_own_may_be_listed(given: str) -> None:
    assert config.load(f'[egress]\nallow = ["{given}"]', {}).egress.allow == (given,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[egress]\nallow = [""]', ["like 10.0.0.7 or 10.0.0.0/8", "[] for none"]),
        ('[egress]\nallow = ["10.0.0.0/33"]', ["like 10.0.0.7 or 10.0.0.0/8"]),
        ('[dns]\nservers = [""]', ["[] for the system's"]),
        ("[robots]\nvalid = '1m'", ["robots.valid must be at least 10m"]),
        ('[agent]\ncontact = "http://x"', ["https://", "mailto:you@example.org"]),
        ('[agent]\ncontact = "mailto:me"', ["mailto:you@example.org"]),
    ],
)
def test_refusals_say_what_to_write(text: str, words: list[str]) -> None:
    found = told(text)
    assert [] == [word for word in words if word not in found], found


def test_hosts_of_ones_own_may_have_several_requests_open() -> None:
    text = (
        f"{IN_FLIGHT} {{ 'docs.a.test' = 4, '127.0.0.1' = 64, 'b.test' = 1 }}\ngroups = {{ x = ['b.test'] }}"
    )
    assert config.load(text, {}).politeness.in_flight == {"docs.a.test": 4, "127.0.0.1": 64, "b.test": 1}
