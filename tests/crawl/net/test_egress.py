import pytest

from crawl import policy
from crawl.net.egress import Guard, too_wide

NOWHERE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("ip", NOWHERE)
def test_what_is_not_on_the_public_internet_is_refused(ip: str) -> None:
    assert not Guard(policy.Egress()).permits(ip)
    assert not Guard(policy.Egress()).public(ip)


@pytest.mark.parametrize("text", ["", "example.com", "127.1", "0x7f000001", "1.2.3.4.5", "1.2.3.4 "])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert not Guard(policy.Egress(allow=("0.0.0.0/0",))).permits(text)


@pytest.mark.parametrize(
    "ip", ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are_permitted_and_called_public(ip: str) -> None:
    guard = Guard(policy.Egress())
    assert guard.permits(ip)
    assert guard.public(ip)


def test_a_listed_range_opens_itself_and_nothing_else() -> None:
    guard = Guard(policy.Egress(allow=("127.1.0.0/16",)))
    assert guard.permits("127.1.2.3")
    assert guard.permits("::ffff:127.1.2.3")
    assert not guard.public("127.1.2.3")
    assert not guard.permits("127.0.0.1")
    assert not guard.permits("10.0.0.1")
    assert guard.permits("8.8.8.8")


def test_ports_of_other_protocols_are_closed_on_public_hosts_unless_listed() -> None:
    guard = Guard(policy.Egress(allow=("127.0.0.0/8",), ports=(6667,)))
    assert [guard.permits_port("8.8.8.8", port) for port in (2049, 5060, 6000, 6697, 10080)] == [False] * 5
    assert guard.permits_port("8.8.8.8", 6667)
    assert guard.permits_port("127.0.0.1", 6000)


def test_privileged_ports_of_public_hosts_are_closed_unless_listed() -> None:
    guard = Guard(policy.Egress(allow=("127.0.0.0/8",), ports=(81,)))
    assert [guard.permits_port("8.8.8.8", port) for port in (80, 443, 81, 8080)] == [True] * 4
    assert not guard.permits_port("8.8.8.8", 25)
    assert guard.permits_port("127.0.0.1", 25)
    assert not guard.permits_port("10.0.0.1", 80)


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("0.0.0.0/0", True),
        ("8.0.0.0/7", True),
        ("8.0.0.0/8", False),
        ("224.0.0.0/4", False),
        ("2000::/15", True),
        ("2600::/16", False),
        ("fc00::/7", False),
        ("::ffff:8.0.0.0/103", True),
    ],
)
def test_a_range_is_too_wide_where_it_holds_more_of_the_internet_than_anybody_has(
    text: str, wide: bool
) -> None:
    assert too_wide(text) is wide
