"""Where requests may go: the public internet, and whatever ranges the operator listed.

What always holds: an address that is not globally routed, or that embeds one that is not (mapped, NAT64), is
refused unless the operator listed a range that holds it; so are tunnels (6to4, Teredo). What is no address at
all is always refused. Of public hosts only ports are asked that may carry HTTP: 80, 443, unprivileged ones
but for those of other protocols, and what the operator listed. It resolves no name: a name is judged by the
address it leads to, twice (before the connection is opened and again on the connection that is used).
"""

from __future__ import annotations

import ipaddress
from typing import Final

from crawl import policy

__all__ = ["Guard", "too_wide"]

_V4 = ipaddress.IPv4Address
_V6 = ipaddress.IPv6Address

#: IANA IPv4 Special-Purpose Address Registry, multicast, reserved; our own table, because Python's
#: `is_global` changed its mind between patch releases.
_NOT_PUBLIC_V4: Final = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT, and metadata of some clouds
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's host agent behind a public-looking address
        "169.254.0.0/16",  # link-local, metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, metadata
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, withdrawn
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")  # all that is handed out; everything else is refused
_NOT_PUBLIC_V6: Final = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address

#: unprivileged ports of other protocols, which a request could be made to speak (Fetch standard, "bad port")
_OTHER_PROTOCOLS: Final = frozenset(
    {
        *(1719, 1720, 1723),  # H.323, PPTP
        *(2049, 3659, 4045),  # NFS, Apple SASL, NPP
        *(4190, 5060, 5061),  # ManageSieve, SIP
        *(6000, 6566),  # X11, SANE
        *(6665, 6666, 6667, 6668, 6669, 6679, 6697),  # IRC
        10080,  # Amanda
    }
)
_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")  # RFC 4291 2.5.5.2: the same
#: nobody owns a wider public range: where one is listed, caps and floors for other people's hosts are lost
_WIDEST_V4: Final = 8
_WIDEST_V6: Final = 16
#: how many verdicts are remembered before they are forgotten all at once
_REMEMBERED: Final = 65_536


def _innermost(address: _V4 | _V6) -> _V4 | _V6:
    """The IPv4 address that a mapped or NAT64 address stands for; any other address itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _global(address: _V4 | _V6) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    return address in _GLOBAL_V6 and not any(address in network for network in _NOT_PUBLIC_V6)


def too_wide(text: str) -> bool:
    """Whether a range holds public addresses and is wider than anybody's own. Raises ValueError for no range.

    Public ranges of IPv4 may have /8 at the widest, those of IPv6 /16; what IPv6 embeds counts as IPv4.
    """
    network = ipaddress.ip_network(text, strict=False)
    if isinstance(network, ipaddress.IPv4Network):
        return network.prefixlen < _WIDEST_V4 and not any(network.subnet_of(n) for n in _NOT_PUBLIC_V4)
    for outer in (_MAPPED, _NAT64):
        if network.supernet_of(outer):
            return True
        if network.subnet_of(outer):
            inner = int(network.network_address) & 0xFFFF_FFFF
            return too_wide(f"{ipaddress.IPv4Address(inner)}/{network.prefixlen - outer.prefixlen}")
    return network.prefixlen < _WIDEST_V6 and network.overlaps(_GLOBAL_V6)


class Guard:
    """Judges addresses (and ports) by the operator's `[egress]`. Verdicts are remembered per address text."""

    def __init__(self, egress: policy.Egress) -> None:
        self._allowed = tuple(ipaddress.ip_network(text, strict=False) for text in egress.allow)
        self._ports = frozenset(egress.ports) | {80, 443}
        self._verdicts: dict[str, tuple[bool, bool]] = {}

    def permits(self, ip: str) -> bool:
        """Whether a connection to this address may be opened."""
        return self._verdict(ip)[0]

    def public(self, ip: str) -> bool:
        """Whether the address is on the public internet, where the floors of politeness hold.

        An address in a range the operator listed counts as the operator's own, whatever it is.
        """
        return self._verdict(ip)[1]

    def permits_port(self, ip: str, port: int) -> bool:
        """Whether this port may be asked: on public hosts 80, 443, unprivileged ones and those listed."""
        permitted, public = self._verdict(ip)
        if not permitted or not public or port in self._ports:
            return permitted
        return port >= 1024 and port not in _OTHER_PROTOCOLS

    def _verdict(self, ip: str) -> tuple[bool, bool]:
        known = self._verdicts.get(ip)
        if known is None:
            if len(self._verdicts) >= _REMEMBERED:
                self._verdicts.clear()
            known = self._verdicts[ip] = self._judge(ip)
        return known

    def _judge(self, ip: str) -> tuple[bool, bool]:
        try:
            given = ipaddress.ip_address(ip)
        except ValueError:
            return False, False
        inner = _innermost(given)
        for network in self._allowed:
            if given in network or inner in network:
                return True, False
        is_global = _global(inner)
        return is_global, is_global
