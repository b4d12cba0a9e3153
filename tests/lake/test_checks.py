import json
from datetime import timedelta

import pytest

from lake import checks, delta, files, runs, snapshot, sql
from tests.lake import lakes, rows
from tests.lake.rows import NOW

MS = timedelta(milliseconds=1)
EVERYTHING = {
    "lo": -(2**63),
    "hi": 2**63 - 1,
    "merged": 1,
    "denied": ["10.0.0.1"],
    "manners": json.dumps(
        [{"policy": "p", "floor": 20.0, "factor": 2.0, "cap": 500.0, "backoff": 40.0, "longest": 900.0}]
    ),
    "delays": json.dumps([{"policy": "p", "origin": "http://slow.test", "version": "r", "delay": 300.0}]),
    "lanes": json.dumps([{"policy": "p", "host": host, "most": 2} for host in ("wide.test", "slow.test")]),
}


def fetches(**columns):
    count = len(next(iter(columns.values())))
    return {"fetches": rows.table("fetches", **{"kind": ["page"] * count, "round": [1] * count, **columns})}


def spaced(gap_ms, required_ms):
    """Two requests to one host, the second `gap_ms` after the first one's end."""
    return fetches(
        host=["a.test", "a.test"],
        attempt=[1, 2],
        started_at=[NOW, NOW + 100 * MS + gap_ms * MS],
        finished_at=[NOW + 100 * MS, NOW + 200 * MS + gap_ms * MS],
        required_gap_ms=[0.0, required_ms],
    )


def demanding(gap_ms, host="a.test", **first):
    """Two requests to one host, the first of 100 ms; the second records this gap."""
    before = {"status": 200, "outcome": "OK", "retry_after_ms": None, "robots_version": None, **first}
    return spaced(1000, gap_ms) | fetches(
        host=[host] * 2,
        origin=[f"http://{host}"] * 2,
        policy_version=["p", "p"],
        attempt=[1, 2],
        started_at=[NOW, NOW + 1100 * MS],
        finished_at=[NOW + 100 * MS, NOW + 1200 * MS],
        required_gap_ms=[0.0, gap_ms],
        **{name: [value, None if name != "outcome" else "OK"] for name, value in before.items()},
    )


def laned(*asked, host="wide.test", **columns):
    """Requests to a host of two lanes, as (lane, start, end) in ms; 20 ms are in force after each."""
    count = len(asked)
    given = {"required_gap_ms": [20.0] * count, "status": [200] * count, "outcome": ["OK"] * count, **columns}
    return fetches(
        host=[host] * count,
        origin=[f"http://{host}"] * count,
        policy_version=["p"] * count,
        url_key=list(range(count)),
        lane=[lane for lane, _, _ in asked],
        started_at=[NOW + start * MS for _, start, _ in asked],
        finished_at=[NOW + end * MS for _, _, end in asked],
        **given,
    )


def grouped(gap_ms, required_ms, group=("news", "news"), tasks=(1, 1)):
    """Two requests to two hosts of one group, the second `gap_ms` after the first one's end."""
    return fetches(
        host=["a.test", "b.test"],
        domain=["a.test", "b.test"],
        politeness_group=list(group),
        group=list(tasks),
        url_key=[1, 2],
        started_at=[NOW, NOW + 100 * MS + gap_ms * MS],
        finished_at=[NOW + 100 * MS, NOW + 200 * MS + gap_ms * MS],
        group_gap_ms=[0.0, required_ms],
    )


def crowded(*times, gap_ms=100.0, most=2):
    """Requests to hosts at one public address, as (start, end) in ms."""
    return fetches(
        host=[f"h{i}.test" for i in range(len(times))],
        url_key=list(range(len(times))),
        address=["93.184.216.34"] * len(times),
        address_gap_ms=[gap_ms] * len(times),
        address_in_flight=[most] * len(times),
        started_at=[NOW + start * MS for start, _ in times],
        finished_at=[NOW + end * MS for _, end in times],
    )


_PUSHED = ["RATE_LIMITED", "OK", "OK"]
#: check -> rounds that break it once: for each round the rows of its tables
BROKEN = {
    "states": [{"seen": rows.seen([1], 1, state=["ELIGIBLE"])}],
    "one-row-per-round": [{"seen": rows.seen([1, 1], 1)}],
    "one-newest-row": [{"seen": rows.seen([1, 1, 2], 1)}],
    "one-spelling-per-key": [
        {"seen": rows.seen([1], 1)},
        {"seen": rows.seen([1], 2, url=["http://other.test/"])},
    ],
    "politeness": [spaced(90, 100.0)],
    "politeness-groups": [grouped(90, 100.0)],
    "address-gap": [crowded((0, 10), (90, 95), (300, 310))],
    "address-open": [crowded((0, 500), (100, 600), (200, 700))],
    "one-owner-per-group": [grouped(100, 100.0, tasks=(1, 2))],
    "gap-recorded": [demanding(197.0)],
    "lanes-open": [laned((0, 0, 100), (1, 50, 150), (0, 90, 200))],
    "lanes-wait": [laned((0, 0, 10), (1, 0, 20), (1, 47, 60), status=[429, 200, 200], outcome=_PUSHED)],
    "requests-kept": [{**spaced(100, 100.0), "counts": {"requests": 3}}],
    "one-group-per-domain": [fetches(domain=["a.test", "a.test"], group=[1, 2], attempt=[1, 2])],
    "one-fetch": [fetches(url_key=[1, 1], attempt=[1, 1])],
    "planned-once": [{"frontier": rows.table("frontier", url_key=[1, 1], position=[0, 1], group=[0, 0])}],
    "document-or-reason": [{"seen": rows.seen([1], 1, state=["FETCHED"], fetched_at=[NOW])}],
    "one-document": [{"documents": rows.table("documents", document_key=[7, 7])}],
    "one-body": [{"bodies": rows.table("bodies", body_hash=["b", "b"])}],
    "document-kept": [{"seen": rows.seen([1], 1, state=["FETCHED"], document_key=[7])}],
    "next-fetch-ahead": [
        {"seen": rows.seen([1], 1, state=["FETCHED"], last_outcome=["OK"], next_fetch_at=[NOW])}
    ],
    "event-url": [{"outbox": rows.table("outbox", event_id=["e"], url_key=[9])}],
    "one-event": [{"seen": rows.seen([0], 1), "outbox": rows.table("outbox", event_id=["e", "e"])}],
    "links-known": [{"links": rows.table("links", target_key=[5], admitted=[True], round=[1])}],
    "egress": [fetches(address=["10.0.0.1"])],
    "fence-rises": [{"fence": 5}, {"fence": 4}],
    "round-once": [{"number": 1}, {"number": 1}],
}

#: check -> rounds that come close and do not break it
HOLDING = {
    "one-newest-row": [{"seen": rows.seen([1, 2], 1)}, {"seen": rows.seen([1], 2)}],
    "politeness": [spaced(98, 100.0)],
    "politeness-groups": [grouped(98, 100.0)],
    "address-gap": [crowded((0, 10), (98, 105), (300, 310))],
    "address-open": [crowded((0, 200), (100, 600), (200, 700))],
    "one-owner-per-group": [grouped(100, 100.0, group=("news", None), tasks=(1, 2))],
    "gap-recorded": [demanding(198.0)],
    "lanes-open": [laned((0, 0, 100), (1, 50, 150), (0, 100, 200))],
    "lanes-wait": [laned((0, 0, 10), (1, 0, 20), (1, 48, 60), status=[429, 200, 200], outcome=_PUSHED)],
    "requests-kept": [{**spaced(100, 100.0), "counts": {"requests": 2}}],
    "one-fetch": [fetches(url_key=[1, 1], attempt=[1, 1], hop=[0, 1])],
    "one-group-per-domain": [fetches(domain=["a.test", "b.test"], group=[1, 2], attempt=[1, 2])],
    "document-or-reason": [
        {"seen": rows.seen([1], 1, state=["FETCHED"], fetched_at=[NOW], reason=["unsupported_type"])}
    ],
    "document-kept": [{"seen": rows.seen([1], 1, state=["GONE"], document_key=[7])}],
    "next-fetch-ahead": [
        {
            "seen": rows.seen(
                [1, 2],
                1,
                state=["DISCOVERED", "GONE"],
                last_outcome=[None, "GONE"],
                next_fetch_at=[NOW, NOW + timedelta(days=90)],
            )
        }
    ],
    "links-known": [
        {"links": rows.table("links", target_key=[5, 6], admitted=[False, True], round=[1, 2])},
    ],
    "egress": [fetches(address=["127.0.0.1"])],
    "fence-rises": [{"fence": 5}, {"fence": 5}],
    "planned-once": [{"frontier": rows.table("frontier", url_key=[None, None], position=[-1, -1])}],
}


def violations(root, name, given):
    store = lakes.new(root)
    for number, tables in enumerate(given, 1):
        more = dict(tables)
        lakes.commit_round(
            store,
            more.pop("number", number),
            now=NOW,
            committed_at=NOW + number * MS,
            fence=more.pop("fence", 1),
            **more,
        )
    with sql.connect(store, snapshot.latest(store), NOW) as reader:
        name = f"check-{name}"
        return reader.query(name, **{key: EVERYTHING[key] for key in sql.parameters(name)}).num_rows


def test_every_check_has_a_case_that_breaks_it():
    assert {name.removeprefix("check-") for name in sql.names("check-")} == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_a_check_finds_what_breaks_it(tmp_path, name):
    assert 1 == violations(tmp_path, name, BROKEN[name])


@pytest.mark.parametrize("name", HOLDING)
def test_a_check_says_nothing_where_it_holds(tmp_path, name):
    assert 0 == violations(tmp_path, name, HOLDING[name])


@pytest.mark.parametrize(
    ("name", "found", "rounds"),
    [
        # each lane has its own clock …
        ("politeness", 0, [laned((0, 0, 100), (1, 10, 50), (1, 70, 90), (0, 120, 130))]),
        ("politeness", 1, [laned((0, 0, 100), (1, 10, 50), (1, 60, 90), (0, 120, 130))]),
        # … in a round: the next one begins after all lanes
        ("politeness", 0, [laned((0, 0, 10), (1, 0, 90)), laned((0, 110, 120), round=[2])]),
        ("politeness", 1, [laned((0, 0, 10), (1, 0, 90)), laned((0, 100, 120), round=[2])]),
        ("gap-recorded", 0, [laned((0, 0, 9), (1, 0, 100), (0, 40, 50))]),
        ("gap-recorded", 1, [laned((0, 0, 9), (1, 0, 100), (1, 300, 310))]),
        # more than are allowed; a lane that there is none of; another host, with one
        ("lanes-open", 1, [laned((0, 0, 100), (1, 0, 100), (2, 200, 300))]),
        ("lanes-open", 1, [laned((None, 0, 100), (None, 50, 90), host="a.test")]),
        # a Crawl-delay leaves one open, and is due to all
        ("lanes-open", 1, [laned((0, 0, 100), (1, 50, 150), host="slow.test", robots_version=["r", None])]),
        ("lanes-open", 0, [laned((0, 0, 100), (1, 50, 150), host="slow.test", robots_version=["q", None])]),
        ("lanes-wait", 1, [laned((0, 0, 100), (1, 390, 400), host="slow.test", robots_version=["r", "r"])]),
        ("lanes-wait", 0, [laned((0, 0, 100), (1, 400, 410), host="slow.test", robots_version=["r", "r"])]),
    ],
)
def test_a_host_with_lanes_is_judged_lane_by_lane_and_as_a_whole(tmp_path, name, found, rounds):
    assert violations(tmp_path, name, rounds) == found


@pytest.mark.parametrize(
    ("demanded", "before"),
    [
        (200.0, {}),  # twice its 100 ms
        (300.0, {"host": "slow.test", "robots_version": "r"}),
        (200.0, {"host": "slow.test", "robots_version": "an older one"}),
        (700.0, {"status": 429, "outcome": "RATE_LIMITED", "retry_after_ms": 700.0}),
        (900.0, {"status": 503, "outcome": "UNAVAILABLE", "retry_after_ms": 5000.0}),
        (200.0, {"status": 404, "outcome": "NOT_FOUND", "retry_after_ms": 700.0}),
    ],
)
def test_what_the_request_before_demanded_is_worked_out_anew(tmp_path, demanded, before):
    assert 0 == violations(tmp_path / "kept", "gap-recorded", [demanding(demanded - 2, **before)])
    assert 1 == violations(tmp_path / "short", "gap-recorded", [demanding(demanded - 3, **before)])


def test_a_file_out_of_order_is_found_and_a_foreign_one_is_not(tmp_path):
    store = lakes.new(tmp_path)
    lakes.commit_round(store, 1, seen=rows.seen([1, 5], 1))
    for name in (runs.name(0, 2, 2), "part-0.parquet"):
        files.write_work(store, f"seen/{name}", rows.seen([5, 1], 2))
        bounds = '{"minValues": {"url_key": 2}, "maxValues": {"url_key": 9}}' if "run" in name else "{}"
        entry = files.FileEntry(table="seen", path=name, size=1, rows=2, stats=bounds)
        delta.commit(store, "seen", app="test", adds=[entry])
    pinned = lakes.commit_round(store, 2)

    assert [
        "url_key does not ascend in row group 0",
        "url_key spans 1 to 5 in row group 0, the log says 2 to 9",
    ] == [fault["what"] for fault in checks.disordered(store, pinned)]


def test_runs_that_claim_the_same_rounds_are_found(tmp_path):
    store = lakes.new(tmp_path)
    lakes.put(store, "seen", rows.seen([1], 3), file_name=runs.name(1, 1, 3))
    lakes.put(store, "seen", rows.seen([2], 4), file_name=runs.name(0, 4, 4))
    pinned = lakes.commit_round(store, 4)
    assert [] == list(checks.overlapping(pinned))
    lakes.put(store, "seen", rows.seen([3], 3), file_name=runs.name(0, 3, 3))
    pinned = lakes.commit_round(store, 5)
    [found] = checks.overlapping(pinned)
    assert "seen" == found["table"]
