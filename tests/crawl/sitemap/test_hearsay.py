"""How well a host's sitemaps tell which pages changed."""

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from crawl.politeness.clock import HostState
from crawl.schema import HOSTS, SEEN
from crawl.sitemap import hearsay
from tests.crawl.urlrows import NOW, fetched, host_of, row

DAY = timedelta(days=1)


def listed(key: int, *, announced: bool, **columns: Any) -> dict[str, Any]:
    """A page that a sitemap names, checked ten days ago."""
    date = NOW - (5 if announced else 20) * DAY
    return fetched(key, announced_by=60, lastmod=date, **columns)


def seen(before: dict[str, Any], *, changed: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    after = before | {"last_checked_at": NOW, "change_count": before["change_count"] + changed}
    return before, after


def evidence(*pairs: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    before, after = (pa.Table.from_pylist([pair[at] for pair in pairs], SEEN) for at in (0, 1))
    found = hearsay.evidence(before, after).to_pylist()
    return {row["host"]: (row["looked"], row["right"], row["changed"]) for row in found}


def host(name: str, **columns: Any) -> dict[str, Any]:
    return HostState.new(name, name, 1).to_row(3) | columns


def test_visits_tell_whether_an_announcement_was_right_and_a_change_announced() -> None:
    assert evidence(
        seen(listed(1, announced=True), changed=True),
        seen(listed(4, announced=True), changed=False),
        seen(listed(7, announced=False), changed=True),
        seen(listed(10, announced=False), changed=False),
        seen(listed(2, announced=True), changed=False),
    ) == {host_of(1): (2, 1, 2), host_of(2): (1, 0, 0)}


def test_what_no_list_names_what_was_never_seen_before_and_lists_themselves_tell_nothing() -> None:
    assert (
        evidence(
            seen(fetched(1), changed=True),
            seen(row(2, announced_by=60, lastmod=NOW), changed=False),
            seen(listed(3, announced=True, kind="sitemap"), changed=True),
            (listed(4, announced=True), listed(4, announced=True)),  # its host was down
        )
        == {}
    )


def test_precision_and_recall_are_shares_over_all_rounds() -> None:
    hosts = pa.Table.from_pylist([host("a.test"), host("b.test")], HOSTS)
    found = [{"host": "a.test", "looked": 4, "right": 1, "changed": 2}]
    for _ in range(2):
        hosts = hearsay.learnt(hosts, pa.Table.from_pylist(found, hearsay.EVIDENCE))
    one, other = hosts.to_pylist()
    assert (one["lastmod_precision"], one["lastmod_recall"]) == (0.25, 0.5)
    assert (one["lastmod_looked"], one["lastmod_changed"]) == (8.0, 4.0)
    assert other == host("b.test")


def test_old_evidence_gives_way_to_new() -> None:
    liar = host("a.test", lastmod_precision=0.0, lastmod_looked=100_000.0)
    found = pa.table({"host": ["a.test"], "looked": [500], "right": [500], "changed": [500]})
    [told] = hearsay.learnt(pa.Table.from_pylist([liar], HOSTS), found.cast(hearsay.EVIDENCE)).to_pylist()
    assert told["lastmod_precision"] == pytest.approx(0.5)


def test_a_host_is_believed_until_enough_of_what_it_announced_was_none() -> None:
    rows = [
        host("new.test"),
        host("few.test", lastmod_precision=0.0, lastmod_looked=9.0),
        host("liar.test", lastmod_precision=0.1, lastmod_looked=10.0),
        host("fair.test", lastmod_precision=0.3, lastmod_looked=400.0),
    ]
    assert hearsay.unbelieved(pa.Table.from_pylist(rows, HOSTS)) == {"liar.test"}
    assert hearsay.unbelieved(HOSTS.empty_table()) == frozenset()
