from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from crawl import policy
from crawl.planning.addressplan import CAPS, Spots, beyond, parts, spots, to_caps, waits
from crawl.planning.capacity import Clocks, clocks, rows_of
from crawl.politeness.addresscap import Cap
from crawl.politeness.clock import HostState
from crawl.schema import HOSTS

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HERE, THERE = "93.184.216.34", "1.1.1.1"
CAP = Cap(in_flight=4, delay_s=0.25)


def hosts(**addresses: list[str]) -> pa.Table:
    """Hosts by name (with `_` for dots), with the addresses last known."""
    rows = []
    for name, known in addresses.items():
        host = name.replace("_", ".")
        domain = ".".join(host.split(".")[-2:])
        rows.append(HostState.new(host, domain, 1).to_row(1) | {"addresses": known})
    return pa.Table.from_pylist(rows, schema=HOSTS)


def found(known: pa.Table, settings: policy.Settings | None = None, *also: str) -> dict[str, str]:
    names = sorted({*known["host"].to_pylist(), *also})
    made = spots(names, known, settings or policy.Settings())
    return {
        name: made.addresses[at] for name, at in zip(names, made.of_host.tolist(), strict=True) if at >= 0
    }


def clock_of(known: pa.Table, names: list[str]) -> Clocks:
    made: Any = clocks(
        names,
        rows_of(names, known),
        robots_requests=np.zeros(len(names), dtype=np.int64),
        settings=policy.Settings(),
        now=NOW,
        started_at=NOW,
        window_s=600.0,
    )
    return made


def test_a_host_is_at_the_first_of_its_addresses_that_may_be_asked_and_is_public() -> None:
    known = hosts(a_test=["10.0.0.1", HERE, THERE], b_test=["10.0.0.1"], c_test=[], d_test=[THERE])
    assert found(known, None, "new.test") == {"a.test": HERE, "d.test": THERE}


def test_what_the_operator_lists_or_allows_is_known_and_an_address_is_its_own() -> None:
    settings = policy.Settings(
        egress=policy.Egress(allow=("127.0.0.0/8",)),
        dns=policy.Dns(hosts={"a.test": HERE, "b.test": "127.0.0.1"}),
    )
    known = hosts(a_test=[THERE], b_test=[THERE], c_test=["127.0.0.9"])
    own = pa.Table.from_pylist([HostState.new(HERE, HERE, 1).to_row(1)], schema=HOSTS)
    assert found(pa.concat_tables([known, own]), settings) == {"a.test": HERE, HERE: HERE}


def test_an_address_of_many_domains_may_carry_more_but_not_one_of_many_hosts() -> None:
    many = {f"d{i}_test": [HERE] for i in range(300)} | {f"h{i}_e_test": [THERE] for i in range(300)}
    made = spots(["d0.test", "h0.e.test"], hosts(**many), policy.Settings())
    assert dict(zip(made.addresses, made.caps, strict=True)) == {
        HERE: Cap(in_flight=12, delay_s=0.25 / 3),
        THERE: CAP,
    }


def test_hosts_at_one_address_are_one_spot_and_who_is_alone_is_none() -> None:
    known = hosts(a_test=[HERE], b_test=[THERE], c_test=[HERE], d_test=[])
    names = ["a.test", "b.test", "c.test", "d.test"]
    made = spots(names, known, policy.Settings()).clocks(clock_of(known, names))
    assert made.spot.tolist() == [0, 1, 0, 3]
    assert made.spot_step_s.tolist() == [0.25, 0.0, 0.25, 0.0]


@pytest.fixture
def crowded() -> Clocks:
    """Two hosts at one address, one alone; a start every quarter of a second there."""
    known = hosts(a_test=[HERE], b_test=[HERE], c_test=[THERE])
    names = ["a.test", "b.test", "c.test"]
    return spots(names, known, policy.Settings()).clocks(clock_of(known, names))


def test_what_would_start_at_its_address_after_the_window_is_beyond(crowded: Clocks) -> None:
    rows = np.array([0, 1, 0, 1, 0, 1, 2, 2, 2, 2, 2, 2, 2])  # the best first
    none = np.zeros(3, dtype=np.int64)
    assert beyond(crowded, rows, none, 1.0).tolist() == [4, 5], "starts at 0, 0.25, 0.5, 0.75 are within"
    assert beyond(crowded, rows, none, 10.0).tolist() == []
    asks = np.array([1, 1, 1])
    assert beyond(crowded, rows, asks, 1.0).tolist() == [2, 3, 4, 5], "two robots.txt come before"
    assert beyond(crowded, rows, asks, 0.1).tolist() == [1, 2, 3, 4, 5], "one is asked in any case"


def test_starts_at_one_address_are_apart_and_after_the_robots_txt_of_all(crowded: Clocks) -> None:
    rows, start = np.array([0, 0, 1, 2]), np.array([0.0, 9.0, 0.0, 0.0])
    none, one = np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64)
    assert waits(crowded, rows, none, start).tolist() == [0.0, 9.0, 0.25, 0.0]
    assert waits(crowded, rows, one, start).tolist() == [0.5, 9.0, 0.75, 0.0]


def test_groups_that_share_an_address_share_its_cap() -> None:
    made = Spots(
        of_host=np.array([0, 0, 0, 1, -1, 0]),
        addresses=(HERE, THERE),
        caps=(CAP, CAP),
    )
    rows = parts(made, np.array([0, 0, 1, 1, 0, -1]))
    assert rows.schema == CAPS
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        (HERE, 2, 0.5, 0),
        (HERE, 2, 0.5, 1),
        (THERE, 4, 0.25, 1),
    ]
    second = rows.filter(pa.array([False, True, True]))
    assert to_caps(second) == {HERE: Cap(in_flight=2, delay_s=0.5), THERE: CAP}
    assert len(parts(made, np.full(6, -1))) == 0


def test_a_host_alone_at_its_address_but_with_lanes_is_held_to_what_the_address_allows() -> None:
    known = hosts(a_test=[HERE], b_test=[THERE])
    lanes = replace(clock_of(known, ["a.test", "b.test"]), lanes=np.array([1, 8]))
    made = spots(["a.test", "b.test"], known, policy.Settings()).clocks(lanes)
    assert made.spot_step_s.tolist() == [0.0, 0.25]
