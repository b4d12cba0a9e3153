"""Public addresses in a plan: which hosts share one, what it allows in a window, who keeps which part of it.

What always holds: hosts that are known to share an address get no more requests together than can start there
in the window, each robots.txt counted; the parts of the groups that ask at one address add up to its cap
(crawl.politeness.addresscap). What is known of an address are the last answers of name servers, and what the
operator listed; a host never resolved shares nothing yet. The same hosts in any order give the same plan.

Columns over hosts. It groups nothing (crawl.planning.packing does), resolves nothing and reads no clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from crawl.columns import Floats, Ints, ranks
from crawl.net.egress import Guard
from crawl.net.listed import Listed, literal
from crawl.planning.capacity import Clocks
from crawl.policy import Settings
from crawl.politeness import addresscap
from crawl.politeness.addresscap import Cap

__all__ = ["CAPS", "Spots", "beyond", "parts", "spots", "to_caps", "waits"]

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "address": pa.string(),
    "in_flight": pa.int32(),
    "delay_s": pa.float64(),
    "group": pa.int32(),
}
#: what each group may do at the public addresses of its hosts
CAPS: Final = pa.schema(_TYPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spots:
    """The public addresses of the hosts of a plan."""

    of_host: Ints  # each host's address; -1 where it has none that is capped and known
    addresses: tuple[str, ...]
    caps: tuple[Cap, ...]  # of the whole crawl

    def clocks(self, clock: Clocks) -> Clocks:
        """With what an address asks of all its hosts together."""
        spot = np.arange(len(self.of_host), dtype=np.int64)
        step = np.zeros(len(self.of_host))
        for number, members in self._crowded(clock.lanes).items():
            spot[members] = members[0]
            step[members] = self.caps[number].delay_s
        return replace(clock, spot=spot, spot_step_s=step)

    def _crowded(self, lanes: Ints) -> dict[int, Ints]:
        """The hosts of each address that has several, or one that may have several requests open."""
        placed = np.flatnonzero(self.of_host >= 0)
        by_address = placed[np.argsort(self.of_host[placed], kind="stable")]
        starts = np.flatnonzero(ranks(self.of_host[by_address]) == 0)[1:]
        found = np.split(by_address, starts)
        return {int(self.of_host[hosts[0]]): hosts for hosts in found if lanes[hosts].sum() > 1}


def spots(names: Sequence[str], hosts: pa.Table, settings: Settings) -> Spots:
    """Where the hosts in `names` are asked, as far as known; `hosts` (HOSTS) has all of their domains."""
    guard, listed = Guard(settings.egress), Listed(settings.dns)
    at: dict[str, str] = {}
    domains: dict[str, set[str]] = defaultdict(set)
    columns = (hosts[name].to_pylist() for name in ("host", "domain", "addresses"))
    for host, domain, known in zip(*columns, strict=True):
        own = literal(host) or listed.address(host)
        address = addresscap.pinned([own] if own else known or (), guard.permits)
        if address is not None and guard.public(address):
            at[host] = address
            domains[address].add(domain)
    used = sorted({at[name] for name in names if name in at})
    number = {address: i for i, address in enumerate(used)}
    return Spots(
        of_host=np.fromiter((number.get(at.get(name, ""), -1) for name in names), np.int64, len(names)),
        addresses=tuple(used),
        caps=tuple(addresscap.of(settings.politeness, len(domains[address])) for address in used),
    )


def beyond(clock: Clocks, host: Ints, asks: Ints, window_s: float) -> Ints:
    """Which rows (by address, the best first; given by their hosts) start too late at their address.

    `asks`: requests that each host spends on robots.txt before its first page.
    """
    spot, step = clock.spot[host], clock.spot_step_s[host]
    first = np.zeros(len(host), dtype=np.int64)
    first[np.unique(host, return_index=True)[1]] = 1
    cost = 1 + first * asks[host]
    total = np.cumsum(cost)
    before = np.concatenate([[0], total])[:-1][ranks(spot) == 0]
    so_far = total - np.repeat(before, np.bincount(np.cumsum(ranks(spot) == 0) - 1))
    late: Ints = np.flatnonzero((step > 0) & ((so_far - 1) * step >= window_s) & (ranks(spot) > 0))
    return late


def waits(clock: Clocks, host: Ints, asks: Ints, start_s: Floats) -> Floats:
    """When each row (given by its host) is asked, if its address comes upon it in the order of `start_s`."""
    spot = clock.spot[host]
    order = np.lexsort((np.arange(len(host)), start_s, spot))
    rank = np.empty(len(host), dtype=np.int64)
    rank[order] = ranks(spot[order])
    busy = np.zeros(len(clock.spot), dtype=np.int64)
    busy[np.unique(host)] = 1
    robots = np.bincount(clock.spot, asks * busy, len(clock.spot))
    started: Floats = np.maximum(start_s, (robots[spot] + rank) * clock.spot_step_s[host])
    return started


def parts(found: Spots, group: Ints) -> pa.Table:
    """CAPS of every address that is asked at, for each group that does; `group` of each host, -1 for none."""
    asked = np.flatnonzero((found.of_host >= 0) & (group >= 0))
    pairs = np.unique(np.stack([found.of_host[asked], group[asked]]), axis=1)
    sharing = np.bincount(pairs[0], minlength=len(found.addresses))
    rows = [
        (found.addresses[number], found.caps[number].divided(int(sharing[number])), owner)
        for number, owner in pairs.T.tolist()
    ]
    return pa.table(
        {
            "address": [address for address, _, _ in rows],
            "in_flight": [cap.in_flight for _, cap, _ in rows],
            "delay_s": [cap.delay_s for _, cap, _ in rows],
            "group": [owner for _, _, owner in rows],
        },
        schema=CAPS,
    )


def to_caps(rows: pa.Table) -> dict[str, Cap]:
    """One group's rows of CAPS as its gates take them."""
    columns = (rows[name].to_pylist() for name in ("address", "in_flight", "delay_s"))
    return {a: Cap(in_flight=n, delay_s=s) for a, n, s in zip(*columns, strict=True)}
