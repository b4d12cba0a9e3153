"""Names that need no name server: addresses themselves, `localhost`, and what `[dns] hosts` lists.

What always holds: the same host gets the same address on every machine; exact names win over the longest
`*.suffix`. A range is spread over hosts by a fixed hash, its first and last address left out. It judges no
address and asks nobody.
"""

from __future__ import annotations

import ipaddress
from hashlib import blake2b
from typing import Final

from crawl import policy
from crawl.errors import SettingsError

__all__ = ["Listed", "literal"]

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_LOOPBACK: Final = ipaddress.ip_network("127.0.0.1")


def literal(host: str) -> str | None:
    """The address that a host is by itself (`192.0.2.1`, `[2001:db8::1]`); None for a name."""
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        return None


class Listed:
    """What the operator says where names lead, like /etc/hosts, with wildcards and ranges."""

    def __init__(self, dns: policy.Dns) -> None:
        """Raises SettingsError for an address or range in `[dns] hosts` that is none."""
        self._exact: dict[str, _Network] = {}
        self._suffixes: dict[str, _Network] = {}
        for name, text in dns.hosts.items():
            try:
                network = ipaddress.ip_network(text, strict=False)
            except ValueError:
                raise SettingsError(f"[dns] hosts: {name!r} leads to {text!r}, no address or range") from None
            if name.startswith("*."):
                self._suffixes[name[2:].lower()] = network
            else:
                self._exact[name.lower()] = network

    def address(self, host: str) -> str | None:
        """Where a listed name leads; None for one that a name server must be asked about."""
        found = self._exact.get(host)
        name = host
        while found is None and (dot := name.find(".")) >= 0:
            name = name[dot + 1 :]
            found = self._suffixes.get(name)
        if found is None and (host == "localhost" or host.endswith(".localhost")):
            found = _LOOPBACK  # RFC 6761 6.3: never asked of a name server
        return None if found is None else _spread(host, found)


def _spread(host: str, network: _Network) -> str:
    """The host's own address in the range."""
    room = network.num_addresses - 2
    if room <= 0:
        return str(network.network_address)
    place = int.from_bytes(blake2b(host.encode(), digest_size=8).digest()[:4], "big") % room
    return str(network.network_address + 1 + place)
