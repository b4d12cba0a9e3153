"""A fetch task against a real server and a real lake: one attempt at a time, and nothing is asked twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from crawl.errors import FenceLost
from crawl.fetching import journal
from crawl.records import Fetch, Skip
from cycles.session.context import Context
from cycles.session.holder import Heartbeat, Lock, Who
from cycles.tasks import claim as claims
from cycles.tasks import fetch_task, plan_task
from cycles.tasks.claim import Claim
from lake import files
from tests.crawl.rawserver import RawServer, Say, Seen, response
from tests.crawl.stages.fetching import SETTINGS
from tests.cycles import smallround
from tests.cycles.smallround import NOW, visit

PAGES = ["/1", "/2", "/3", "/4"]
#: no busy machine lets it lapse
LEASE = timedelta(seconds=30)


@dataclass
class Site:
    """A lake whose next round is planned on pages of a server, and the driver of that round."""

    lake: smallround.Lake
    server: RawServer
    context: Context
    plan: Mapping[str, Any]
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    on_part: Callable[[], Any] = lambda: None

    async def fetch(self, group: int = 0, window: float = 20.0, **context: Any) -> dict[str, Any]:
        """One attempt; the task runs in a thread, as on a worker."""
        return await asyncio.to_thread(
            fetch_task.fetch_group,
            replace(self.context, **context),
            group,
            window,
            self._announce,
        )

    def _announce(self, kind: str, value: Mapping[str, Any]) -> None:
        self.told.append((kind, value))
        if kind == "part":
            self.on_part()

    def records(self, done: Mapping[str, Any]) -> list[Fetch | Skip]:
        store = self.lake.store
        return [
            record
            for path, length in done["parts"]
            for record, _, _ in journal.decode(store.read(path)[:length])
        ]

    def asked(self) -> list[str]:
        """Pages that the server was asked for, in order."""
        return [path for path in self.server.paths() if path != "/robots.txt"]

    def announced(self) -> list[list[Any]]:
        """Parts that were handed on to be parsed."""
        return [[value["path"], value["length"]] for kind, value in self.told if kind == "part"]

    def forget_done(self) -> None:
        """As if the attempt had been killed just before it wrote its last object."""
        self.lake.store.delete([claims.folder(self.context.work, 0, "done.json")])

    def work_rows(self, name: str) -> list[dict[str, Any]]:
        return files.read_work(self.lake.store, claims.folder(self.context.work, 0, name)).to_pylist()


@contextmanager
def driver(context: Context) -> Iterator[Context]:
    """A driver that lives: its heartbeat goes on."""
    lock = Lock.take()
    heart = Heartbeat(context.work.store, Who.me(lock), context.settings.fetching.lease)
    heart.start()
    try:
        yield replace(context, token=lock.token)
    finally:
        heart.release()
        lock.drop()


def play(
    root: Path,
    test: Callable[[Site], Any],
    *,
    paths: Sequence[str] = PAGES,
    says: Mapping[str, bytes | Say] | None = None,
    delay: timedelta = timedelta(0),
    lease: timedelta = LEASE,
    known: Sequence[str] = (),
    groups: int = 1,
) -> None:
    """Plan a round on `paths` (of a.test, or host/path) and run the test beside the server.

    `known`: paths of a.test that an earlier round fetched, and that are not due again.
    """

    async def main() -> None:
        pages = {path: response(200, b"<p>page", "Content-Type: text/html") for path in PAGES}
        async with RawServer({"/robots.txt": response(200), **pages, **(says or {})}) as server:
            lake = smallround.new(root)
            lake.settings = replace(
                SETTINGS,
                politeness=replace(SETTINGS.politeness, min_delay=delay),
                fetching=replace(SETTINGS.fetching, lease=lease),
            )
            lake.groups = groups
            if known:
                lake.seed(*(server.url(path) for path in known))
                lake.play(([visit(server.url(path)) for path in known], []))
            hosts = [path.partition("/") for path in paths]
            lake.seed(*(server.url(f"/{path}", host or "a.test") for host, _, path in hosts))
            context = lake.context()
            plan = plan_task.make(context)
            with driver(context) as living:
                await test(Site(lake, server, living, plan))

    asyncio.run(main())


def test_a_group_is_fetched_and_its_done_object_lists_what_counts(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        done = await site.fetch()
        assert sorted(PAGES) == sorted(site.asked())
        pages = [r for r in site.records(done) if isinstance(r, Fetch) and r.kind == "page"]
        assert sorted(map(site.server.url, PAGES)) == sorted(page.url for page in pages)
        assert {"OK"} == {page.outcome for page in pages}
        assert [] == done["carried"]
        assert done["parts"] == site.announced()
        assert done == site.context.work.read("group-00000", "done.json")
        assert "progress" in {kind for kind, _ in site.told}

    play(tmp_path, test)


def test_clocks_and_robots_copies_are_left_for_the_merge(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        await site.fetch()
        (clock,) = site.work_rows("hosts.parquet")
        assert ("a.test", site.context.round) == (clock["host"], clock["round"])
        assert clock["next_allowed_at"] is not None
        (copy,) = site.work_rows("robots.parquet")
        assert (site.server.url("").rstrip("/"), site.context.round) == (copy["origin"], copy["round"])

    play(tmp_path, test)


def test_a_group_asks_for_its_own_list_alone(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        assert [0, 1] == site.plan["groups"]
        rows = {row["host"]: row["group"] for row in site.lake.planned(site.context)}
        for host, group in rows.items():
            await site.fetch(group)
            assert ["/robots.txt", "/1"] == site.server.paths(host)
        assert 2 == len(rows)

    play(tmp_path, test, paths=["a.test/1", "b.test/1"], groups=2)


def test_a_group_that_is_done_is_not_fetched_again(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        first = await site.fetch()
        before = site.lake.store.list("")
        assert first == await site.fetch()
        assert len(PAGES) == len(site.asked())
        heartbeats = "_work/drivers/"
        assert [s.path for s in before if not s.path.startswith(heartbeats)] == [
            s.path for s in site.lake.store.list("") if not s.path.startswith(heartbeats)
        ]

    play(tmp_path, test)


def test_a_later_attempt_takes_over_what_an_earlier_one_fetched_and_asks_nothing_again(
    tmp_path: Path,
) -> None:
    async def test(site: Site) -> None:
        first = await site.fetch()
        copies = site.work_rows("robots.parquet")
        site.forget_done()
        site.told.clear()
        second = await site.fetch()
        assert len(PAGES) == len(site.asked())
        assert 1 == site.server.paths().count("/robots.txt")
        assert first["parts"] == second["parts"] == site.announced()
        assert [Claim(0, 1, number).name for number in (1, 2)] == [first["claim"], second["claim"]]
        assert ["a.test"] == [clock["host"] for clock in site.work_rows("hosts.parquet")]
        assert copies == site.work_rows("robots.parquet")  # obtained by the first, handed on by the second

    play(tmp_path, test)


def test_what_a_killed_attempt_could_not_record_whole_is_asked_again_and_nothing_else(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        first = await site.fetch()
        ((path, length),) = first["parts"]
        *_, (last, _, offset) = journal.decode(site.lake.store.read(path))
        site.lake.store.write(path, site.lake.store.read(path)[: length - 1])
        site.forget_done()
        second = await site.fetch()
        assert [*PAGES, site.asked()[-1]] == sorted(site.asked()[:-1]) + site.asked()[-1:]
        assert last.url == site.server.url(site.asked()[-1])
        assert [path, offset] == second["parts"][0]
        pages = [r.url for r in site.records(second) if isinstance(r, Fetch) and r.kind == "page"]
        assert sorted(map(site.server.url, PAGES)) == sorted(pages)

    play(tmp_path, test)


def test_what_a_woken_attempt_appends_after_it_was_taken_over_does_not_count(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        ((path, length),) = (await site.fetch())["parts"]
        whole = site.lake.store.read(path)
        site.lake.store.write(path, whole[: length - 1])
        site.forget_done()
        site.on_part = lambda: site.lake.store.write(path, whole)  # between the taking over and the reading
        second = await site.fetch()
        site.forget_done()
        third = await site.fetch()
        assert 2 == site.asked().count(site.asked()[-1])
        assert len(PAGES) + 1 == len(site.asked())
        assert second["parts"] == third["parts"]
        pages = [r.url for r in site.records(third) if isinstance(r, Fetch) and r.kind == "page"]
        assert sorted(map(site.server.url, PAGES)) == sorted(pages)

    play(tmp_path, test)


def test_pages_that_the_window_leaves_no_time_for_are_carried_with_their_reason(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        done = await site.fetch(window=0.0)
        assert [["a.test", "window", len(PAGES)]] == done["carried"]
        assert [] == site.server.paths()
        assert [] == done["parts"]

    play(tmp_path, test)


def test_a_group_of_a_newer_driver_is_left_alone(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        newer = claims.folder(site.context.work, 0, Claim(0, 2, 1).name)
        site.lake.store.write(newer, b"{}")
        with pytest.raises(FenceLost, match="fence 2 > 1"):
            await site.fetch()
        assert [] == site.server.paths()
        assert None is site.context.work.read("group-00000", "done.json")

    play(tmp_path, test)


def test_without_a_living_driver_nothing_is_asked(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        short = replace(site.context.settings.fetching, lease=timedelta(seconds=0.1))
        settings = replace(site.context.settings, fetching=short)
        with pytest.raises(FenceLost, match="heartbeat"):
            await site.fetch(token="nobody", settings=settings)
        assert [] == site.server.paths()

    play(tmp_path, test)


def test_an_attempt_that_is_overtaken_stops_asking_and_leaves_what_it_recorded(tmp_path: Path) -> None:
    pages = [f"/{number}" for number in range(40)]
    mine, newer = Claim(0, 1, 1), Claim(0, 2, 2)

    async def test(site: Site) -> None:
        async def overtake(seen: Seen, writer: asyncio.StreamWriter) -> None:
            site.lake.store.write(claims.folder(site.context.work, 0, newer.name), b"{}")
            writer.write(response(200, b"<p>page", "Content-Type: text/html"))

        site.server.says.update(dict.fromkeys(pages, overtake))
        with pytest.raises(FenceLost, match=r"attempt 2\.2 owns group 0 now"):
            await site.fetch()
        assert 1 <= len(site.asked()) < len(pages)
        assert None is site.context.work.read("group-00000", "done.json")
        (path,) = claims.own_parts(site.context.work, mine)
        kept = [record.url for record, _, _ in journal.decode(site.lake.store.read(path))]
        assert set(map(site.server.url, site.asked()[:-1])) <= set(kept)
        assert site.lake.store.exists(claims.folder(site.context.work, 0, mine.name + ".released"))

    # looks for a newer claim every fifth of the lease
    play(tmp_path, test, paths=pages, delay=timedelta(milliseconds=25), lease=timedelta(seconds=0.75))


def test_an_attempt_that_is_overtaken_after_its_last_request_leaves_no_result(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        newer = claims.folder(site.context.work, 0, Claim(0, 2, 2).name)
        site.on_part = lambda: site.lake.store.write(newer, b"{}")  # as its only part is closed
        with pytest.raises(FenceLost, match=r"attempt 2\.2 owns group 0 now"):
            await site.fetch()
        assert sorted(PAGES) == sorted(site.asked())
        assert None is site.context.work.read("group-00000", "done.json")
        assert not site.lake.store.exists(claims.folder(site.context.work, 0, "hosts.parquet"))

    play(tmp_path, test)


def test_an_attempt_that_waited_for_an_older_one_takes_the_result_it_came_to(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        work, older, lock = site.context.work, Claim(0, 1, 1), Lock.take()
        who = json.dumps(Who.me(lock).plain()).encode()
        site.lake.store.write(claims.folder(work, 0, older.name), who)
        waiting = asyncio.create_task(site.fetch())
        while len([s for s in site.lake.store.list(claims.folder(work, 0)) if "claim-" in s.path]) < 2:
            await asyncio.sleep(0.01)
        ended = {"parts": [], "carried": [["a.test", "window", 3]]}
        work.once(ended, "group-00000", "done.json")
        lock.drop()
        site.lake.store.write(claims.folder(work, 0, older.name + ".released"), b"{}")
        assert ended == await waiting
        assert [] == site.server.paths()

    play(tmp_path, test)


def test_where_a_redirect_leads_is_looked_up_in_the_lake(tmp_path: Path) -> None:
    """A page that is known and not due is not asked; one that nobody knows is."""
    says = {
        "/to-known": response(301, b"", "Location: /1"),
        "/to-new": response(301, b"", "Location: /2"),
    }

    async def test(site: Site) -> None:
        done = await site.fetch()
        assert ["/2", "/to-known", "/to-new"] == sorted(site.asked())
        found = {r.url.rsplit("/")[-1]: r for r in site.records(done) if isinstance(r, Fetch)}
        assert {"to-known": "REDIRECT", "to-new": "REDIRECT", "2": "OK"} == {
            name: found[name].outcome for name in ("to-known", "to-new", "2")
        }
        assert (1, False) == (found["2"].hop, found["2"].planned)

    play(tmp_path, test, paths=["/to-known", "/to-new"], says=says, known=["/1"])


def test_a_redirect_in_a_lakes_first_round_is_followed(tmp_path: Path) -> None:
    """Nothing is known of any URL then: `seen` has no file to look into."""

    async def test(site: Site) -> None:
        done = await site.fetch()
        assert ["/2", "/moved"] == sorted(site.asked())
        found = {r.url.rsplit("/")[-1]: r.outcome for r in site.records(done) if isinstance(r, Fetch)}
        assert ("REDIRECT", "OK") == (found["moved"], found["2"])

    play(tmp_path, test, paths=["/moved"], says={"/moved": response(301, b"", "Location: /2")})


def test_a_page_fetched_before_is_asked_with_its_validators(tmp_path: Path) -> None:
    async def main() -> None:
        async with RawServer({"/robots.txt": response(200), "/1": response(304)}) as server:
            lake = smallround.new(tmp_path)
            lake.settings = SETTINGS
            url = server.url("/1")
            lake.seed(url)
            lake.play(([visit(url, etag='"v1"')], []))
            context = lake.context(NOW + timedelta(days=30))
            plan_task.make(context)
            with driver(context) as living:
                done = await asyncio.to_thread(
                    fetch_task.fetch_group, living, 0, 20.0, lambda kind, value: None
                )
            (page,) = (seen for seen in server.seen if seen.path == "/1")
            assert '"v1"' == page.header("if-none-match")
            records = Site(lake, server, living, {}).records(done)
            (record,) = (r for r in records if isinstance(r, Fetch) and r.kind == "page")
            assert ("NOT_MODIFIED", True, f"hash of {url}") == (
                record.outcome,
                record.parsed_before,
                record.known_hash,
            )

    asyncio.run(main())
