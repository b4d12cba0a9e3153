"""A parse task: journal parts in, files out; and that spreading leaves no trace."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from crawl import rejects
from crawl.keys import Keyer
from crawl.policy import Fetching, Parsing, Scope, Settings
from crawl.records import Fetch, Skip
from crawl.url import psl_hash
from cycles.session.context import Context
from cycles.tasks import parse_task
from cycles.tasks.child import ParseChild
from cycles.tasks.claim import Part
from cycles.tasks.parse_task import BODY_INDEX, ParsedFiles, parse_parts
from lake import files, identity
from lake.journal import PartWriter
from lake.store import connect

SECRET = bytes(range(32))
KEYER = Keyer(SECRET)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SETTINGS = Settings(scope=Scope(domains=("a.test",)), parsing=Parsing(deadline=timedelta(seconds=0.4)))


def fetched(path: str, body: bytes | None, **given: object) -> tuple[Fetch, bytes | None]:
    url = f"http://a.test/{path}"
    record = Fetch(
        kind="page",
        url=url,
        url_key=KEYER.url_key(url),
        origin="http://a.test",
        host="a.test",
        domain="a.test",
        attempt=1,
        chain_id=1,
        hop=0,
        started_at=NOW,
        finished_at=NOW,
        required_gap_ms=0.0,
        gap_rule="none",
        total_ms=1.0,
        outcome="OK",
        policy_version="p",
        status=200,
        content_type="text/html",
        bytes=len(body or b""),
        body_hash=hashlib.sha256(body).hexdigest() if body is not None else None,
        depth=1,
    )
    return replace(record, **given), body  # type: ignore[arg-type]


RECORDS: list[tuple[Fetch | Skip, bytes | None]] = [
    fetched("1", b"<p>one<a href=/2>two</a><a href=http://out.test/>out</a>"),
    fetched("2", b"<p>same text"),
    fetched("3", b"<div>same <b>text</b></div>", depth=0),
    fetched("robots.txt", b"User-agent: *", kind="robots", content_type="text/plain"),
    fetched("4", b"%PDF", content_type="application/pdf"),
    fetched("5", None, status=301, outcome="REDIRECT", next_url="http://a.test/1", body_hash=None),
    fetched("6", None, status=301, outcome="REDIRECT", next_url="http://out.test/", body_hash=None),
    fetched("7", None, status=304, outcome="NOT_MODIFIED", body_hash=None),
    fetched("8", b"<div>" * 50_000),
    fetched("9", b"<!doctype html>untyped<a href=/2>two</a>", content_type=None, parsed_before=True),
    (
        Skip(
            url_key=KEYER.url_key("http://a.test/10"),
            url="http://a.test/10",
            host="a.test",
            depth=1,
            outcome="ROBOTS_DENIED",
            reason="robots",
            decided_at=NOW,
        ),
        None,
    ),
]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    identity.create(connect(str(tmp_path)), psl_hash(), 1, SECRET)
    return Context(
        root=str(tmp_path),
        round=3,
        fence=1,
        token="t",
        opened_at=NOW,
        now=NOW,
        window_s=60.0,
        settings=SETTINGS,
        policy_version="p",
        versions={},
        groups=2,
    )


@pytest.fixture
def parser(context: Context) -> Iterator[ParseChild]:
    with ParseChild(context.root, SETTINGS) as child:
        yield child


def written(context: Context, group: int, records: list[tuple[Fetch | Skip, bytes | None]]) -> list[Part]:
    """Journal parts of one attempt, a record or two each."""
    folder = context.work.path(f"group-{group:05d}", "000001.0001")
    writer = PartWriter(context.work.store, folder, Fetching(part_bytes=300))
    for record, body in records:
        writer.append(record, body)
    writer.close()
    return [Part(path, length) for path, length in writer.finished()]


def read(context: Context, *paths: str | None) -> pa.Table:
    tables = [files.read_work(context.work.store, path) for path in paths if path]
    return pa.concat_tables(tables)


def locations(found: list[ParsedFiles], kind: str) -> list[str]:
    return [entry.location for one in found for entry in getattr(one, kind)]


def contents(context: Context, found: list[ParsedFiles]) -> dict[str, list]:
    """All rows, without what names a file or an order."""
    tables = {kind: read(context, *locations(found, kind)) for kind in ("fetches", "links")}
    tables["visits"] = read(context, *(one.visits for one in found))
    tables["documents"] = read(context, *(path for one in found for path in one.documents))
    tables["bodies"] = read(context, *(one.bodies for one in found)).drop_columns(["part", "offset"])
    rows = {name: sorted(map(repr, table.to_pylist())) for name, table in tables.items()}
    total = rejects.total(read(context, one.rejects) for one in found if one.rejects)
    return {**rows, "rejects": total.to_pylist()}


def test_every_request_and_decision_has_its_rows(context: Context, parser: ParseChild) -> None:
    found = parse_parts(context, written(context, 1, RECORDS), parser)
    fetches = read(context, *locations([found], "fetches"))
    assert fetches.num_rows == 10
    assert set(fetches["group"].to_pylist()) == {1}
    visits = {row["url"].rpartition("/")[2]: row for row in read(context, found.visits).to_pylist()}
    assert {path: row["outcome"] for path, row in visits.items()} == {
        "1": "OK", "2": "OK", "3": "OK", "4": "UNSUPPORTED_TYPE", "5": "REDIRECT", "6": "REDIRECT",
        "7": "NOT_MODIFIED", "8": "PARSE_FAILED", "9": "OK", "10": "ROBOTS_DENIED",
    }  # fmt: skip
    assert visits["2"]["document_key"] == visits["3"]["document_key"] == KEYER.document_key("same text")
    assert (visits["4"]["document_key"], visits["4"]["changed"]) == (None, True)
    assert visits["8"]["reason"] == "parse_deadline"
    assert found.counts == {"requests": 10, "skips": 1, "bodies": 6, "parsed": 4, "failed": 1, "links": 5}


def test_links_and_redirects_are_rows_sorted_by_target(context: Context, parser: ParseChild) -> None:
    found = parse_parts(context, written(context, 1, RECORDS), parser)
    links = read(context, *locations([found], "links"))
    assert links["target_key"].to_pylist() == sorted(links["target_key"].to_pylist())
    rows = {
        (row["source_key"], row["target_url"], row["via"], row["depth"], row["admitted"], row["first_parse"])
        for row in links.to_pylist()
    }
    key = {path: KEYER.url_key(f"http://a.test/{path}") for path in ("1", "5", "6", "9")}
    assert rows == {
        (key["1"], "http://a.test/2", "a", 2, True, True),
        (key["1"], "http://out.test/", "a", 2, False, True),
        (key["5"], "http://a.test/1", "redirect", 1, True, True),
        (key["6"], "http://out.test/", "redirect", 1, False, True),
        (key["9"], "http://a.test/2", "a", 2, True, False),
    }
    refused = read(context, found.rejects).to_pylist()
    assert [(row["stage"], row["reason"], row["host"], row["count"], row["example"]) for row in refused] == [
        ("parse", "parse_deadline", "a.test", 1, "http://a.test/8"),
        ("parse", "scope_host", "out.test", 2, "http://out.test/"),
    ]


def test_documents_are_one_a_text_and_bodies_can_be_found_again(context: Context, parser: ParseChild) -> None:
    found = parse_parts(context, written(context, 1, RECORDS), parser)
    documents = read(context, *found.documents)
    assert sorted(zip(documents["text"].to_pylist(), documents["url"].to_pylist(), strict=True)) == [
        ("onetwoout", "http://a.test/1"),
        ("same text", "http://a.test/3"),
        ("untypedtwo", "http://a.test/9"),
    ]
    assert documents["document_key"].to_pylist() == sorted(documents["document_key"].to_pylist())
    index = read(context, found.bodies)
    assert index.schema == BODY_INDEX
    assert index["hash_key"].to_pylist() == sorted(index["hash_key"].to_pylist())
    assert set(index["media_type"].to_pylist()) == {"text/html", "application/pdf", ""}


def test_rows_do_not_depend_on_how_parts_are_spread_over_tasks(
    context: Context, parser: ParseChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = written(context, 1, RECORDS)
    assert len(parts) > 3
    # the document of a text is elected over all tasks, later: here each text comes once
    whole = contents(context, [parse_parts(context, parts, parser)])
    monkeypatch.setattr(parse_task, "_BATCH_PAGES", 1)
    monkeypatch.setattr(parse_task, "_LINK_ROWS", 1)
    monkeypatch.setattr(parse_task, "_DOCUMENT_BYTES", 1)
    spread = contents(context, [parse_parts(context, [part], parser) for part in reversed(parts)])
    documents = whole.pop("documents"), spread.pop("documents")
    assert set(documents[0]) <= set(documents[1])
    assert whole == spread


def test_bytes_beyond_a_parts_length_do_not_count(context: Context, parser: ParseChild) -> None:
    parts = written(context, 1, [RECORDS[0], RECORDS[1]])
    (first, *_) = parts
    path = Path(context.root, first.path)
    path.write_bytes(path.read_bytes() + Path(context.root, parts[-1].path).read_bytes() + b"\0\0")
    found = parse_parts(context, [first], parser)
    assert read(context, found.visits).num_rows == found.counts["requests"]


def test_parts_without_requests_give_no_files_and_the_result_survives_json(
    context: Context, parser: ParseChild
) -> None:
    found = parse_parts(context, written(context, 2, [RECORDS[-1]]), parser)
    assert (found.fetches, found.links, found.documents, found.bodies, found.rejects) == (
        (),
        (),
        (),
        None,
        None,
    )
    assert read(context, found.visits).num_rows == 1
    whole = parse_parts(context, written(context, 1, RECORDS[:2]), parser)
    assert ParsedFiles.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole


def test_without_a_parser_of_ones_own_the_workers_is_used(context: Context) -> None:
    parts = written(context, 1, RECORDS[:2])
    assert parse_parts(context, parts).counts["parsed"] == 2
