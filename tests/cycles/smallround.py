"""A lake whose rounds are played by hand: plan and merge as they are, fetch and parse made up by the test."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from crawl.keys import Keyer
from crawl.policy import Egress, Politeness, Settings
from crawl.schema import LINKS, SEEDS, VISITS
from crawl.url import canonical, psl_hash, split_many
from cycles.session.context import Context
from cycles.tasks import merge_task, plan_task
from lake import delta, files, identity, runs, snapshot
from lake.entries import FileEntry
from lake.store import Store
from lake.tables import SPECS
from tests.lake import lakes

SECRET = b"a secret of sixteen"
KEYER = Keyer(SECRET)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
REAL = datetime(2026, 1, 5, 9, tzinfo=UTC)
SETTINGS = Settings(
    egress=Egress(allow=("127.0.0.0/8",)),
    politeness=Politeness(min_delay=timedelta(milliseconds=20)),
)


def key(url: str) -> int:
    return int(KEYER.url_keys([url], split_many([url])[2])[0])


def visit(url: str, outcome: str = "OK", **columns: Any) -> dict[str, Any]:
    """A visit of a planned URL; a 200 by default, with a text of its own."""
    ok = {"http_status": 200, "changed": True, "content_hash": f"hash of {url}", "document_key": key(url) ^ 1}
    made = dict.fromkeys(VISITS.names) | {
        "url_key": key(url),
        "url": url,
        "host": split_many([url])[1][0],
        "depth": 0,
        "planned": True,
        "outcome": outcome,
        "fetched_at": REAL,
        "changed": False,
    }
    return made | (ok if outcome == "OK" else {}) | columns


def link(source: str, target: str, **columns: Any) -> dict[str, Any]:
    domains = split_many([source, target])[2]
    return {
        "source_key": key(source),
        "source_domain": domains[0],
        "target_key": key(target),
        "target_url": target,
        "target_domain": domains[1],
        "is_internal": domains[0] == domains[1],
        "anchor": None,
        "rel": None,
        "via": "a",
        "depth": 1,
        "first_parse": True,
        "admitted": True,
    } | columns


@dataclass
class Lake:
    """One lake and the number of its last round."""

    store: Store
    settings: Settings = SETTINGS
    groups: int = 2
    round: int = 0
    merged_through: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def seed(self, *urls: str, **columns: Any) -> None:
        rows = [
            dict.fromkeys(SEEDS.names)
            | {"url": url, "url_key": key(canonical(url)), "kind": "page", "priority": "medium"}
            | {"added_at": NOW, "added_by": "test", "verdict": "accepted"}
            | columns
            for url in urls
        ]
        lakes.put(self.store, "seeds", pa.Table.from_pylist(rows, SEEDS))

    def context(self, now: datetime = NOW, **columns: Any) -> Context:
        made = Context(
            root=self.store.root,
            round=self.round + 1,
            fence=1,
            token="t",
            opened_at=REAL,
            now=now,
            window_s=600.0,
            settings=self.settings,
            policy_version="p",
            versions=snapshot.latest(self.store).versions,
            groups=self.groups,
        )
        return replace(made, **columns)

    def planned(self, context: Context) -> list[dict[str, Any]]:
        return files.read_work(self.store, context.work.path("planned.parquet")).to_pylist()

    def fetched(
        self, context: Context, *parts: tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]
    ) -> Any:
        """What fetching and parsing leave: a parse task a part, given as (visits, links)."""
        parsed = []
        for number, (visits, links) in enumerate(parts):
            path = context.work.path("parsed", f"visits-{number}.parquet") if visits else None
            if path:
                rows = sorted(visits, key=lambda row: row["url_key"])
                files.write_work(self.store, path, pa.Table.from_pylist(rows, VISITS))
            entries = []
            if links:
                stamped = [row | {"day": context.day, "round": context.round} for row in links]
                table = pa.Table.from_pylist(stamped, LINKS).sort_by("target_key")
                entries.append(files.write(self.store, "links", table, day=context.day).to_dict())
            parsed.append({"visits": path, "links": entries})
        return {"groups": [], "parsed": parsed}

    def merge(
        self, context: Context, plan: Mapping[str, Any], fetched: Mapping[str, Any], *, links: bool = True
    ) -> dict[str, Any]:
        pinned = {"merge_links": links, "links_merged_through": self.merged_through}
        job = merge_task.prepare(context, pinned, plan, fetched)
        results = [merge_task.merge_range(context, job, lo, hi) for lo, hi in job.ranges]
        self.merged_through = context.round if links else self.merged_through
        return merge_task.conclude(context, job, results)

    def commit(self, context: Context, *contents: Mapping[str, Any], extra: Sequence[FileEntry] = ()) -> None:
        """Commit the files that steps left, and the round's row."""
        by_table: dict[str, list[FileEntry]] = {}
        entries = [FileEntry.from_dict(entry) for content in contents for entry in content["files"]]
        for entry in [*entries, *extra]:
            by_table.setdefault(entry.table, []).append(entry)
        for table, adds in by_table.items():
            delta.commit(self.store, table, app="round", app_version=context.round, adds=adds)
        versions = snapshot.heads(self.store, tuple(name for name in SPECS if name != "rounds"))
        lakes.add_entry(self.store, context.round, versions, now=context.now)
        self.round = context.round

    def play(
        self,
        *parts: tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]],
        now: datetime = NOW,
        merge_links: bool = True,
    ) -> dict[str, Any]:
        """One whole round; the counts of its merge."""
        context = self.context(now)
        plan = plan_task.make(context)
        fetched = self.fetched(context, *parts)
        merged = self.merge(context, plan, fetched, links=merge_links)
        links = {"files": [entry for one in fetched["parsed"] for entry in one["links"]]}
        self.commit(context, plan, merged, links)
        return json.loads(json.dumps(merged))

    def table(self, name: str, context: Context | None = None) -> list[dict[str, Any]]:
        """Rows of a table as committed."""
        entries = snapshot.latest(self.store).files(name)
        return [row for entry in entries for row in files.read(self.store, entry).to_pylist()]

    def seen(self) -> dict[str, dict[str, Any]]:
        """The newest row of every URL."""
        entries = snapshot.latest(self.store).files("seen")
        if not entries:
            return {}
        return {
            row["url"]: row for row in runs.newest_in(self.store, entries, -(2**63), 2**63 - 1).to_pylist()
        }


def new(root: object) -> Lake:
    store = lakes.new(root)
    identity.create(store, psl_hash(), 1, SECRET)
    return Lake(store)
