"""Dedup over a round: one document a text, one body a hash, nothing that the lake has already."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from crawl.fetching import journal
from crawl.keys import Keyer
from crawl.url import psl_hash
from cycles.session.context import Context
from cycles.tasks import dedup_task
from cycles.tasks.child import ParseChild
from cycles.tasks.dedup_task import plan_dedup, store_bundle
from cycles.tasks.parse_task import ParsedFiles, parse_parts
from lake import delta, files, identity, snapshot
from lake.entries import FileEntry
from lake.store import connect
from lake.tables import create_all
from tests.cycles.tasks.test_parse_task import NOW, SECRET, SETTINGS, fetched, written

KEYER = Keyer(SECRET)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    store = connect(str(tmp_path))
    identity.create(store, psl_hash(), 1, SECRET)
    create_all(store)
    return Context(
        root=str(tmp_path),
        round=1,
        fence=1,
        token="t",
        opened_at=NOW,
        now=NOW,
        window_s=60.0,
        settings=SETTINGS,
        policy_version="p",
        versions=snapshot.heads(store),
        groups=2,
    )


def page(path: str, text: str, depth: int = 1, media_type: str = "text/html") -> tuple:
    return fetched(path, text.encode(), depth=depth, content_type=media_type)


def parsed(context: Context, groups: Sequence[Sequence[tuple]], first: int = 0) -> list[ParsedFiles]:
    with ParseChild(context.root, SETTINGS) as child:
        return [
            parse_parts(context, written(context, number, list(group)), child)
            for number, group in enumerate(groups, first)
        ]


def stored(context: Context, found: list[ParsedFiles]) -> dict[str, list[FileEntry]]:
    entries: dict[str, list[FileEntry]] = {"documents": [], "bodies": []}
    for bundle in plan_dedup(context, found):
        entries[bundle.kind] += store_bundle(context, bundle)
    return entries


def rows(context: Context, entries: Sequence[FileEntry]) -> list[dict]:
    return [row for entry in entries for row in files.read(context.work.store, entry).to_pylist()]


def commit(context: Context, entries: dict[str, list[FileEntry]]) -> Context:
    """The next round, with these files in the lake."""
    store = context.work.store
    for table, added in entries.items():
        if added:
            delta.commit(store, table, app="round", app_version=context.round, adds=added)
    return replace(context, round=context.round + 1, versions=snapshot.heads(store))


GROUPS = [
    [page("1", "<p>same", 2), page("2", "<p>other"), page("3", "%PDF", media_type="application/pdf")],
    [page("4", "<div>same</div>", 1), page("5", "<p>other", 0), page("6", "<p>third")],
]


def test_a_text_and_a_body_met_twice_are_stored_once_for_the_shallowest(context: Context) -> None:
    found = stored(context, parsed(context, GROUPS))
    documents = {row["text"]: row for row in rows(context, found["documents"])}
    assert {text: row["url"] for text, row in documents.items()} == {
        "same": "http://a.test/4",
        "other": "http://a.test/5",
        "third": "http://a.test/6",
    }
    assert documents["same"]["first_url_key"] == KEYER.url_key("http://a.test/4")
    assert {row["round"] for row in documents.values()} == {1}
    bodies = rows(context, found["bodies"])
    texts = sorted(journal.decompress(row["bytes"]).decode() for row in bodies)
    assert texts == ["%PDF", "<div>same</div>", "<p>other", "<p>same", "<p>third"]
    for row in bodies:
        body = journal.decompress(row["bytes"])
        assert row["body_hash"] == hashlib.sha256(body).hexdigest()
        assert row["length"] == len(body)
    other = next(row for row in bodies if row["body_hash"] == hashlib.sha256(b"<p>other").hexdigest())
    assert other["first_url_key"] == KEYER.url_key("http://a.test/5")


def test_documents_are_sorted_in_each_file(context: Context) -> None:
    for entry in stored(context, parsed(context, GROUPS))["documents"]:
        keys = files.read(context.work.store, entry)["document_key"].to_pylist()
        assert keys == sorted(keys)


def test_what_the_lake_has_is_not_stored_again(context: Context) -> None:
    later = commit(context, stored(context, parsed(context, GROUPS)))
    again = parsed(later, [[*GROUPS[0], page("7", "<p>new"), page("8", "<b>third</b>")]])
    found = stored(later, again)
    assert [row["text"] for row in rows(later, found["documents"])] == ["new"]
    texts = sorted(journal.decompress(row["bytes"]) for row in rows(later, found["bodies"]))
    assert texts == [b"<b>third</b>", b"<p>new"]
    assert stored(commit(later, found), again) == {"documents": [], "bodies": []}


def test_the_outcome_does_not_depend_on_ranges_bundles_or_the_spread_of_work(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(row: dict) -> str:
        return repr(sorted((name, value) for name, value in row.items()))

    once = stored(context, parsed(context, GROUPS))
    monkeypatch.setattr(dedup_task, "_CLAIMS", 1)
    monkeypatch.setattr(dedup_task, "_BUNDLE", 1)
    monkeypatch.setattr(dedup_task, "_HELD", 1)
    spread = stored(
        context, parsed(context, [GROUPS[1][2:], GROUPS[1][:2], GROUPS[0][2:], GROUPS[0][:2]], 10)
    )
    assert len(spread["documents"]) > len(once["documents"])
    for kind in ("documents", "bodies"):
        assert sorted(map(key, rows(context, once[kind]))) == sorted(map(key, rows(context, spread[kind])))


def test_a_round_without_new_content_stores_nothing(context: Context) -> None:
    assert plan_dedup(context, []) == []
    found = parsed(context, [[fetched("1", None, status=304, outcome="NOT_MODIFIED", body_hash=None)]])
    assert plan_dedup(context, found) == []


def test_a_bundle_names_rows_of_work_files(context: Context) -> None:
    bundles = plan_dedup(context, parsed(context, GROUPS))
    assert [bundle.kind for bundle in bundles] == ["documents", "bodies"]
    chosen = files.read_work(context.work.store, bundles[0].chosen)
    assert chosen.schema.names == ["source", "row"]
    assert pa.types.is_int64(chosen.schema.field("row").type)
