from hashlib import blake2b
from ipaddress import ip_address, ip_network

import pytest

from crawl import policy
from crawl.errors import SettingsError
from crawl.net.listed import Listed, literal


def local(host: str, hosts: dict[str, str]) -> str | None:
    return Listed(policy.Dns(hosts=hosts)).address(host)


def test_listed_names_win_exact_before_the_longest_suffix() -> None:
    hosts = {"*.test": "127.0.0.1", "*.b.test": "127.0.0.2", "a.b.test": "127.0.0.3"}
    assert local("x.test", hosts) == "127.0.0.1"
    assert local("x.y.test", hosts) == "127.0.0.1"
    assert local("x.b.test", hosts) == "127.0.0.2"
    assert local("a.b.test", hosts) == "127.0.0.3"
    assert local("test", hosts) is None
    assert local("x.other", hosts) is None


def test_a_range_spreads_hosts_by_a_fixed_hash() -> None:
    hosts = {"*.test": "127.1.0.0/16"}
    seen = {local(f"h{i}.test", hosts) for i in range(200)}
    assert len(seen) > 190
    assert all(ip_address(a) in ip_network("127.1.0.0/16") for a in seen if a)
    number = int.from_bytes(blake2b(b"a.test", digest_size=8).digest()[:4], "big")
    assert local("a.test", hosts) == str(ip_network("127.1.0.0/16")[1 + number % 65_534])


def test_localhost_is_this_machine_unless_the_operator_says_otherwise() -> None:
    assert local("localhost", {}) == local("a.localhost", {}) == "127.0.0.1"
    assert local("localhost", {"localhost": "127.0.0.2"}) == "127.0.0.2"


@pytest.mark.parametrize(
    ("host", "address"),
    [("192.0.2.7", "192.0.2.7"), ("[::1]", "::1"), ("a.test", None), ("127.1", None), ("", None)],
)
def test_only_an_address_is_one_by_itself(host: str, address: str | None) -> None:
    assert literal(host) == address


def test_what_is_no_address_or_range_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"'a\.test' leads to 'nowhere'"):
        Listed(policy.Dns(hosts={"a.test": "nowhere"}))
