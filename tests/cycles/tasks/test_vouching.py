"""For which hosts planned sitemaps may speak."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crawl.records import Fetch
from crawl.schema import ROBOTS, SEEN
from cycles.tasks import vouching
from lake.snapshot import Snapshot
from tests.crawl.fetching.test_journal import fetch
from tests.crawl.urlrows import NOW, row
from tests.cycles import smallround
from tests.cycles.smallround import KEYER, key
from tests.lake import lakes

CDN, INDEX, PART = "http://cdn.test/s.xml", "http://a.test/index.xml", "http://cdn.test/part.xml"


@pytest.fixture
def lake(tmp_path: Path) -> smallround.Lake:
    return smallround.new(tmp_path / "lake")


def sitemap(url: str, **columns: Any) -> dict[str, Any]:
    return row(key(url), url=url, kind="sitemap", found_by="robots", first_referrer_key=None, **columns)


def robots(origin: str, *sitemaps: str, round_: int = 1) -> dict[str, Any]:
    made = {"origin": origin, "version": f"{origin}-{round_}", "text": "", "how": "fetched", "round": round_}
    return (
        dict.fromkeys(ROBOTS.names)
        | made
        | {"fetched_at": NOW, "valid_until": NOW, "sitemaps": list(sitemaps)}
    )


def vouching_of(
    lake: smallround.Lake, *planned: dict[str, Any], known: tuple[dict[str, Any], ...] = ()
) -> Any:
    if known:
        lakes.put(lake.store, "seen", pa.Table.from_pylist(sorted(known, key=lambda r: r["url_key"]), SEEN))
    context = replace(lake.context())
    table = pa.Table.from_pylist(list(planned), SEEN)
    vouching.write(context, table, Snapshot(lake.store, context.versions, lake.round))
    found = vouching.Vouching(context, KEYER)

    def hosts(url: str, chain: str | None = None, kind: str = "sitemap") -> tuple[str, ...]:
        record: Fetch = fetch(
            url=url, url_key=key(url), kind=kind, chain_id=KEYER.chain_id(key(chain or url), context.round)
        )
        return found.of(record)

    return hosts


def test_hosts_whose_newest_robots_names_a_sitemap_vouch_for_it(lake: smallround.Lake) -> None:
    rows = [
        robots("http://a.test", CDN),
        robots("https://b.test", INDEX, CDN),
        robots("http://c.test", CDN),
        robots("http://c.test", round_=2),
    ]
    lakes.put(lake.store, "robots", pa.Table.from_pylist(rows, ROBOTS))
    hosts = vouching_of(lake, sitemap(CDN), sitemap("http://d.test/s.xml"))
    assert hosts(CDN) == ("a.test", "b.test")
    assert hosts("http://d.test/s.xml") == ()
    assert hosts("http://cdn.test/moved.xml", chain=CDN) == ("a.test", "b.test")
    assert hosts(CDN, kind="page") == ()


def test_who_vouches_for_an_index_vouches_for_what_it_names(lake: smallround.Lake) -> None:
    lakes.put(lake.store, "robots", pa.Table.from_pylist([robots("http://a.test", INDEX)], ROBOTS))
    part = sitemap(PART) | {"found_by": "sitemap", "first_referrer_key": key(INDEX), "depth": 1}
    deep = sitemap("http://x.test/2.xml") | {
        "found_by": "sitemap",
        "first_referrer_key": key(PART),
        "depth": 2,
    }
    hosts = vouching_of(lake, part, deep, known=(sitemap(INDEX), part))
    assert hosts(PART) == ("a.test",)
    assert hosts("http://x.test/2.xml") == ("a.test",)


def test_indexes_that_name_each_other_end(lake: smallround.Lake) -> None:
    one = sitemap(INDEX) | {"found_by": "sitemap", "first_referrer_key": key(PART)}
    two = sitemap(PART) | {"found_by": "sitemap", "first_referrer_key": key(INDEX)}
    assert vouching_of(lake, one, known=(one, two))(INDEX) == ()


def test_a_seed_may_speak_for_its_whole_host(lake: smallround.Lake) -> None:
    lake.seed(CDN, kind="sitemap")
    assert vouching_of(lake, sitemap(CDN), known=(sitemap(CDN),))(CDN) == ("cdn.test",)
    new = sitemap("http://new.test/s.xml") | {"found_by": "seed"}
    assert vouching_of(lake, new)("http://new.test/s.xml") == ("new.test",)


def test_a_sitemap_with_a_new_voucher_is_read_anew_once(lake: smallround.Lake) -> None:
    rows = [
        robots("http://a.test", round_=1),
        robots("http://a.test", CDN, round_=3),
        robots("http://a.test", CDN, round_=5),
    ]
    lakes.put(lake.store, "robots", pa.Table.from_pylist(rows, ROBOTS))
    for visited, expected in ((None, False), (2, True), (3, True), (4, False)):
        checked = None if visited is None else NOW
        vouching_of(lake, sitemap(CDN, last_checked_at=checked, visited_round=visited))
        assert vouching.anew(lake.context()) == ({key(CDN)} if expected else set())
