"""Hosts that share a public address, from the plan to the requests of several groups."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from crawl.planning.addressplan import to_caps
from crawl.policy import Dns, Politeness, Settings
from crawl.records import Fetch
from crawl.stages import plan
from tests.crawl.rawserver import RawServer, response
from tests.crawl.stages.fetching import NO_RULES, fetch_group, plan_of, polite
from tests.crawl.stages.test_fetch_gates import PublicLoopback, open_at_once, records
from tests.crawl.stages.test_plan import cuts, due_row, host_row, planned, select

HERE, THERE = "93.184.216.34", "1.1.1.1"
QUICK = Settings(politeness=Politeness(min_delay=timedelta(seconds=0.2), factor=0.0))


def at(address: str, *names: str) -> list[dict[str, Any]]:
    return [host_row(name, domain=name, addresses=[address]) for name in names]


def due(names: Sequence[str], each: int = 1) -> list[dict[str, Any]]:
    return [due_row(100 * i + n, name) for i, name in enumerate(names) for n in range(each)]


def groups_of(made: plan.Plan) -> dict[str, int]:
    return {row["host"]: row["group"] for row in planned(made)}


def caps_of(made: plan.Plan) -> list[tuple[str, int, float, int]]:
    return [tuple(row.values()) for row in made.caps.to_pylist()]  # type: ignore[misc]


def test_hosts_at_one_address_share_a_group_and_its_whole_cap() -> None:
    names = [f"h{i}.test" for i in range(8)]
    hosts = at(HERE, *names[:2]) + at(THERE, names[2]) + [host_row(name, domain=name) for name in names[3:]]
    made = select(due(names), hosts, settings=QUICK)
    groups = groups_of(made)
    assert groups["h0.test"] == groups["h1.test"]
    assert Counter(groups.values()) == {0: 4, 1: 4}
    assert sorted(caps_of(made)) == [
        (THERE, 4, 0.25, groups["h2.test"]),
        (HERE, 4, 0.25, groups["h0.test"]),
    ]


def test_an_address_with_more_than_a_groups_share_is_divided_with_its_cap() -> None:
    names = [f"h{i:02}.test" for i in range(32)]
    made = select(due(names), at(HERE, *names), settings=QUICK, groups=8)
    groups = Counter(groups_of(made).values())
    assert sorted(groups.values()) == [8] * 4, "as few as four requests at once allow"
    assert {(address, most, delay) for address, most, delay, _ in caps_of(made)} == {(HERE, 1, 1.0)}
    assert {group for *_, group in caps_of(made)} == set(groups)


def test_what_cannot_start_at_the_address_in_the_window_waits_the_best_goes() -> None:
    names = [f"h{i}.test" for i in range(10)]
    rows = [row | {"score": 0.9 - row["url_key"] / 10_000} for row in due(names, 5)]
    made = select(rows, at(HERE, *names), settings=QUICK, window_s=5.0, groups=1)
    assert len(planned(made)) == 20, "four a second"
    assert {row["host"] for row in planned(made)} == set(names[:4])
    assert sum(count for (_, why), (count, _) in cuts(made).items() if why == "address_capacity") == 30
    assert made.predicted.cap == "address"
    assert made.predicted.seconds == pytest.approx(19 * 0.25, abs=0.01)
    starts = [row["predicted_start_ms"] for row in planned(made)]
    assert min(b - a for a, b in pairwise(starts)) >= 250.0


def test_robots_txt_of_each_host_takes_its_place_at_the_address() -> None:
    names = [f"h{i}.test" for i in range(10)]
    made = select(due(names, 5), at(HERE, *names), [], settings=QUICK, window_s=5.0, groups=1)
    asked = {row["host"] for row in planned(made)}
    assert len(planned(made)) + len(asked) == 20


@hypothesis(max_examples=25, deadline=None)
@given(
    hosts=st.lists(st.sampled_from([HERE, THERE, "", "127.0.0.1"]), min_size=1, max_size=12),
    groups=st.integers(1, 5),
    order=st.randoms(use_true_random=False),
)
def test_whatever_the_order_the_parts_of_an_address_add_up_to_its_cap(
    hosts: list[str], groups: int, order: Any
) -> None:
    names = [f"h{i}.test" for i in range(len(hosts))]
    known = [row for name, address in zip(names, hosts, strict=True) for row in at(address, name)]
    rows = due(names, 2)
    made = select(rows, known, settings=QUICK, groups=groups)
    order.shuffle(rows)
    order.shuffle(known)
    again = select(rows, known, settings=QUICK, groups=groups)
    assert again.caps.equals(made.caps)
    assert again.frontier.equals(made.frontier)
    for address in {HERE, THERE} & set(hosts):
        parts = [(most, delay) for where, most, delay, _ in caps_of(made) if where == address]
        assert sum(1 / delay for _, delay in parts) == pytest.approx(4.0)
        assert sum(most for most, _ in parts) <= 4
    assert {address for address, *_ in caps_of(made)} <= {HERE, THERE}


def test_two_groups_at_one_address_keep_to_its_cap_together() -> None:
    """The plan's own figures, with this machine in the place of the address."""
    names = [f"h{i}.d{i}.test" for i in range(8)]
    settings = polite(address_in_flight=2, address_delay=timedelta(seconds=0.05))
    domains = {name: ".".join(name.split(".")[-2:]) for name in names}
    hosts = [host_row(name, domain=domain, addresses=[HERE]) for name, domain in domains.items()]
    made = select(due(names), hosts, settings=replace(settings, dns=Dns()))
    assert len(set(groups_of(made).values())) == 2

    async def slowly(seen: object, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(response(200, b"x"))

    async def main() -> list[Fetch]:
        async with RawServer({"/robots.txt": NO_RULES, "/1": slowly}) as server:
            guard = PublicLoopback(settings.egress)

            async def group(number: int) -> list[Fetch]:
                mine = [name for name, owner in groups_of(made).items() if owner == number]
                part = to_caps(made.caps.filter(pa.array([owner == number for *_, owner in caps_of(made)])))
                assert list(part) == [HERE]
                return records(
                    await fetch_group(
                        server,
                        plan_of(server.url("/1", name) for name in mine),
                        settings=settings,
                        guard=guard,
                        caps={"127.0.0.1": part[HERE]},
                        groups=2,
                    )
                )

            both = await asyncio.gather(group(0), group(1))
            return sorted((r for part in both for r in part), key=lambda record: record.started_at)

    asked = asyncio.run(main())
    assert {record.outcome for record in asked} == {"OK"}
    assert len(asked) == 16
    assert open_at_once(asked) <= 2
    whole = asked[-1].started_at - asked[0].started_at
    assert whole >= timedelta(seconds=0.05) * (len(asked) - 2)
