"""Domains into host groups, longest first: no group is left with much more to do than another.

What always holds: the hosts of one domain share a group, and so do domains that an operator joined
(`politeness_group` of a host); domains at one public address share one too while they are no more than a
group's share of all work, else they are spread over as few as will do; the same hosts give the same groups,
in whatever order they come. LPT (Graham 1969): the heaviest unit goes to the lightest group, at most 4/3 of
the best makespan. Inside a group hosts wait side by side, so what adds up is the work of their requests; the
longest chain of waits bounds a group from below wherever it lies, and only breaks ties.

Written by hand because a heap of numbers is shorter than any solver's call. It fetches nothing and knows no
clock.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["bundle", "pack", "units"]


def units(domains: Sequence[str], joined: Sequence[str | None]) -> npt.NDArray[np.int64]:
    """The unit of each host: its domain's, with domains united that share an operator's group.

    Both sequences run over hosts. Units are numbered by the smallest domain they hold.
    """
    parent = {name: name for name in domains}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    first: dict[str, str] = {}
    for domain, group in zip(domains, joined, strict=True):
        if group is not None:
            low, high = sorted((root(first.setdefault(group, domain)), root(domain)))
            parent[high] = low
    number = {name: i for i, name in enumerate(sorted({root(name) for name in parent}))}
    return np.fromiter((number[root(name)] for name in domains), np.int64, len(domains))


def bundle(
    unit: npt.NDArray[np.int64],
    address: npt.NDArray[np.int64],
    work: npt.NDArray[np.float64],
    most: Sequence[int],
    groups: int,
) -> npt.NDArray[np.int64]:
    """What is packed as one: the bundle of each unit, units of one address together.

    The first three run over hosts (`address` -1: none that counts). A unit goes where most of its work is. A
    bundle that is more than a group's share is cut into even parts, `most` (given by address) at most: the
    cap of an address is divided by the groups that ask there, and each needs a request of its own.
    """
    count = int(unit.max()) + 1 if len(unit) else 0
    whole = np.bincount(unit, work, count).astype(np.float64)
    main = _main(unit, address, work, count)
    share = whole.sum() / groups
    bundles = np.arange(count, dtype=np.int64)
    for number in np.unique(main[main >= 0]).tolist():
        members = np.flatnonzero(main == number)
        load = whole[members]
        cuts = min(groups, most[number], max(1, math.ceil(load.sum() / share - 1e-9)) if share else 1)
        part = pack(load, np.zeros(len(members)), cuts)
        first = np.full(cuts, -1, dtype=np.int64)
        for i in range(len(members) - 1, -1, -1):
            first[part[i]] = members[i]
        bundles[members] = first[part]
    return bundles


def _main(
    unit: npt.NDArray[np.int64], address: npt.NDArray[np.int64], work: npt.NDArray[np.float64], count: int
) -> npt.NDArray[np.int64]:
    """The address at which each unit has most to do; the lowest of several, -1 where it has none."""
    main = np.full(count, -1, dtype=np.int64)
    at = np.flatnonzero(address >= 0)
    if len(at):
        pairs, which = np.unique(np.stack([unit[at], address[at]]), axis=1, return_inverse=True)
        load = np.bincount(which.ravel(), work[at])
        order = np.lexsort((-pairs[1], load, pairs[0]))  # the last of each unit is the one
        main[pairs[0][order]] = pairs[1][order]
    return main


def pack(work: npt.NDArray[np.float64], chain: npt.NDArray[np.float64], groups: int) -> npt.NDArray[np.int64]:
    """Group (0 to groups - 1) of each unit: `work` is what adds up, `chain` its longest wait, both in
    seconds.
    """
    if groups < 1:
        raise ValueError(f"there must be at least one group, not {groups}")
    place = np.zeros(len(work), dtype=np.int64)
    heap = [(0.0, 0.0, group) for group in range(groups)]
    for unit in np.lexsort((np.arange(len(work)), -chain, -work)).tolist():
        busy, waits, group = heap[0]
        place[unit] = group
        heapq.heapreplace(heap, (busy + float(work[unit]), waits + float(chain[unit]), group))
    return place
