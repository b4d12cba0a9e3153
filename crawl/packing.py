"""Domains into host groups, longest first: no group is left with much more to do than another.

What always holds: the hosts of one domain share a group, and so do domains that an operator joined
(`politeness_group` of a host); the same hosts give the same groups, in whatever order they come. LPT (Graham
1969): the heaviest unit goes to the lightest group, at most 4/3 of the best makespan. Inside a group hosts
wait side by side, so what adds up is the work of their requests; the longest chain of waits bounds a group
from below wherever it lies, and only breaks ties.

Written by hand because a heap of numbers is shorter than any solver's call. It fetches nothing and knows no
clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["pack", "units"]


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
