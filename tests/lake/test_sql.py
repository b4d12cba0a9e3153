from datetime import timedelta

import pyarrow as pa
import pytest

from crawl.errors import LakeError, UsageError
from crawl.schema import TABLES
from lake import delta, files, runs, snapshot, sql
from tests.lake import lakes, rows
from tests.lake.rows import NOW

HOUR = timedelta(hours=1)
#: a value for every parameter a named question may have
PARAMETERS = {
    "opened": NOW,
    "lo": -(2**63),
    "hi": 2**63 - 1,
    "round": 1,
    "merged": 1,
    "url_key": 1,
    "url": "http://d1.test/",
    "asked": "d1.test",
    "host": "d1.test",
    "domain": "d1.test",
    "origin": "http://d1.test:80",
    "origins": ["http://d1.test:80"],
    "denied": ["10.0.0.1"],
    "before": rows.DAY,
    "since": NOW,
    "hosts": ["d1.test"],
    "policy_version": "p",
    "types": ["text/html"],
    "manners": "[]",
    "delays": "[]",
    "lanes": "[]",
    "urls": ["http://d1.test/"],
}


def wanted(name):
    return {key: PARAMETERS[key] for key in sql.parameters(name)}


@pytest.fixture
def lake(tmp_path):
    return lakes.new(tmp_path / "lake")


def reader(store, *, now=NOW, leased=None, at=None):
    pinned = snapshot.latest(store) if at is None else snapshot.at(store, at)
    return sql.connect(store, pinned, now, leased=leased)


def test_an_empty_lake_has_all_views_with_the_types_of_their_tables(lake):
    with reader(lake) as r:
        for name, schema in TABLES.items():
            assert schema.remove_metadata().equals(r.ask(f'FROM "{name}"').schema), name
        for view in sql.VIEWS:
            assert 0 == r.ask(f"FROM {view}").table().num_rows


def test_views_have_the_same_types_when_there_are_rows(lake):
    lakes.commit_round(
        lake, 1, **{name: rows.table(name, **{schema.names[0]: [rows._FILLER[schema.types[0]]]})
                    for name, schema in TABLES.items() if name != "rounds"},
    )  # fmt: skip
    with reader(lake) as r:
        for name, schema in TABLES.items():
            answer = r.ask(f'FROM "{name}"')
            assert schema.remove_metadata().equals(answer.schema), name
            assert 1 == answer.table().num_rows, name


@pytest.mark.parametrize("filled", [False, True])
def test_every_named_question_asks_in_its_first_line_and_can_be_answered(lake, filled):
    if filled:
        lakes.commit_round(lake, 1, seen=rows.seen([1, 2], 1), fetches=rows.table("fetches", url_key=[1]))
    with reader(lake) as r:
        for name in sql.names():
            assert sql.text(name).startswith("-- "), name
            assert "?" in sql.question(name), name
            if not name.startswith("view-"):
                assert isinstance(r.query(name, **wanted(name)), pa.Table), name


def test_an_unknown_question_is_told_with_those_there_are(lake):
    with reader(lake) as r, pytest.raises(UsageError, match=r"no question 'dew'.*due"):
        r.query("dew")


def test_urls_shows_the_newest_row_of_each_url(lake):
    lakes.commit_round(lake, 1, seen=rows.seen([1, 2, 3], 1))
    lakes.commit_round(lake, 2, seen=rows.seen([2], 2, state=["FETCHED"]))
    lakes.commit_round(lake, 3, seen=rows.seen([2, 4], 3, state=["GONE", "DISCOVERED"]))
    with reader(lake) as r:
        found = r.ask("SELECT url_key, round, state FROM urls ORDER BY 1").table().to_pylist()
    assert [(1, 1, "DISCOVERED"), (2, 3, "GONE"), (3, 1, "DISCOVERED"), (4, 3, "DISCOVERED")] == [
        tuple(row.values()) for row in found
    ]


def test_urls_shows_the_newest_row_though_a_foreign_file_mixes_rounds(lake):
    mixed = pa.concat_tables([rows.seen([1], 1), rows.seen([1], 5), rows.seen([2], 1)]).sort_by("url_key")
    lakes.put(lake, "seen", mixed, file_name="part-0.parquet")
    lakes.commit_round(lake, 5, seen=rows.seen([2], 3))
    with reader(lake) as r:
        found = r.ask("SELECT url_key, round FROM urls ORDER BY 1").table().to_pylist()
    assert [(1, 5), (2, 3)] == [tuple(row.values()) for row in found]


def test_a_reader_sees_its_round_whatever_is_committed_meanwhile(lake):
    lakes.commit_round(lake, 1, seen=rows.seen([1], 1))
    with reader(lake) as r:
        lakes.commit_round(lake, 2, seen=rows.seen([2], 2))
        assert [{"n": 1}] == r.ask("SELECT count(*) AS n FROM urls").table().to_pylist()
    with reader(lake, at=1) as r:
        assert [{"n": 1}] == r.ask("SELECT count(*) AS n FROM urls").table().to_pylist()
        assert [{"round": 1}] == r.ask("SELECT round FROM rounds").table().to_pylist()


def test_rows_of_a_round_that_is_not_in_rounds_yet_are_not_seen(lake):
    lakes.commit_round(lake, 1, seen=rows.seen([1], 1))
    lakes.put(lake, "seen", rows.seen([2], 2))
    with reader(lake) as r:
        assert [{"url_key": 1}] == r.ask("SELECT url_key FROM seen").table().to_pylist()


@pytest.mark.parametrize(
    ("state", "wait", "due"),
    [
        ("DISCOVERED", -1, True),
        ("DISCOVERED", 0, True),
        ("FETCHED", -1, True),
        ("FETCHED", 1, False),
        ("FAILED_RETRYABLE", -1, True),
        ("BLOCKED", -1, True),
        ("QUARANTINED", 1, False),
        ("GONE", -1, True),
        ("GONE", 1, False),
        ("TERMINAL", -1, True),
    ],
)
def test_a_url_is_due_by_state_and_time(lake, state, wait, due):
    lakes.commit_round(lake, 1, seen=rows.seen([1], 1, state=[state], next_fetch_at=[NOW + wait * HOUR]))
    with reader(lake) as r:
        assert [1][:due] == r.due()["url_key"].to_pylist()
        status = r.ask("SELECT status FROM urls").table()["status"].to_pylist()
        assert ["ELIGIBLE" if due else state] == status
        assert due == r.query("due-count")["urls"][0].as_py()


@pytest.mark.parametrize(
    ("state", "verdict", "added", "back"),
    [
        ("GONE", "accepted", HOUR, True),
        ("TERMINAL", "accepted", HOUR, True),
        ("GONE", "accepted", 0 * HOUR, False),  # that is the seed it came from
        ("GONE", "refused", HOUR, False),
        ("FETCHED", "accepted", HOUR, True),
        ("FAILED_RETRYABLE", "accepted", HOUR, True),
        ("BLOCKED", "accepted", HOUR, True),
        ("FETCHED", "accepted", 3 * HOUR, False),  # of a time that planning has not reached
    ],
)
def test_what_is_given_as_a_seed_again_is_due_at_once_whatever_its_state(lake, state, verdict, added, back):
    rests = rows.seen([1], 1, state=[state], next_fetch_at=[NOW + 24 * HOUR])
    lakes.commit_round(lake, 1, now=NOW, seen=rests)
    seed = rows.table("seeds", url=["http://a.test/"], url_key=[1], verdict=[verdict], added_at=[NOW + added])
    lakes.commit_round(lake, 2, now=NOW + HOUR, seeds=seed)
    with reader(lake, now=NOW + 2 * HOUR) as r:
        assert [1][:back] == r.query("due-reseeded", opened=NOW)["url_key"].to_pylist()


def test_due_takes_its_time_from_the_caller_and_keeps_to_a_key_range(lake):
    lakes.commit_round(lake, 1, seen=rows.seen([-5, 1, 9], 1, next_fetch_at=[NOW + HOUR] * 3))
    with reader(lake, now=NOW) as r:
        assert 0 == r.due().num_rows
        assert NOW + HOUR == r.query("next-due")["next_due"][0].as_py()
    with reader(lake, now=NOW + HOUR) as r:
        assert [-5, 1, 9] == r.due()["url_key"].to_pylist()
        assert [1] == r.due(-4, 8)["url_key"].to_pylist()


def test_a_newer_row_that_is_not_due_hides_an_older_one_that_was(lake):
    lakes.commit_round(lake, 1, seen=rows.seen([1], 1))
    lakes.commit_round(lake, 2, seen=rows.seen([1], 2, next_fetch_at=[NOW + HOUR]))
    with reader(lake) as r:
        assert 0 == r.due().num_rows


@pytest.mark.parametrize("pattern", ["d1.test", "http://d1.test:80", "http://d1.test/"])
def test_what_is_held_back_is_not_due_until_it_is_withdrawn(lake, pattern):
    held = rows.table("suppressions", kind=["pause"], pattern=[pattern], requested_at=[NOW - 2 * HOUR])
    lakes.put(lake, "suppressions", held)
    lakes.commit_round(lake, 1, seen=rows.seen([1, 2], 1))
    with reader(lake) as r:
        assert [2] == r.due()["url_key"].to_pylist()
        assert [True, False] == r.ask("SELECT paused FROM urls ORDER BY url_key").table()[
            "paused"
        ].to_pylist()
        assert [("d1.test", 1)] == [(x["host"], x["count"]) for x in r.query("due-held").to_pylist()]
    lakes.put(
        lake,
        "suppressions",
        rows.table(
            "suppressions",
            kind=["pause"],
            pattern=[pattern],
            requested_at=[NOW - 2 * HOUR],
            withdrawn_at=[NOW],
        ),
    )
    with reader(lake) as r:
        assert [1, 2] == r.due()["url_key"].to_pylist()


def test_urls_in_the_open_rounds_plan_are_leased(lake):
    lakes.commit_round(lake, 1, seen=rows.seen([1, 2], 1))
    with reader(lake, leased=pa.table({"url_key": [2]})) as r:
        found = r.ask("SELECT status FROM urls ORDER BY url_key").table()["status"].to_pylist()
    assert ["ELIGIBLE", "LEASED"] == found


def test_pages_shows_the_current_document_of_each_url(lake):
    lakes.commit_round(
        lake,
        1,
        seen=rows.seen([1, 2, 3], 1, document_key=[7, 7, None]),
        documents=rows.table("documents", document_key=[7], title=["old"]),
    )
    lakes.commit_round(
        lake,
        2,
        seen=rows.seen([2], 2, document_key=[8]),
        documents=rows.table("documents", document_key=[7, 8], title=["again", "new"], round=[2, 2]),
    )
    with reader(lake) as r:
        found = r.ask("SELECT url_key, title FROM pages ORDER BY 1").table().to_pylist()
    assert [{"url_key": 1, "title": "old"}, {"url_key": 2, "title": "new"}] == found


def test_changes_names_the_url_of_every_event(lake):
    events = rows.table("outbox", event_id=["a"], kind=["new"], url_key=[1], round=[1])
    lakes.commit_round(lake, 1, seen=rows.seen([1], 1), outbox=events)
    with reader(lake) as r:
        found = r.ask("SELECT round, kind, url FROM changes").table().to_pylist()
    assert [{"round": 1, "kind": "new", "url": "http://d1.test/"}] == found


def test_host_health_counts_urls_and_requests_and_knows_what_is_paused(lake):
    lakes.put(
        lake,
        "suppressions",
        rows.table("suppressions", kind=["pause"], pattern=["d1.test"], requested_at=[NOW]),
    )
    hosts = rows.table("hosts", host_key=[11], host=["d1.test"], domain=["d1.test"], round=[1])
    fetches = rows.table("fetches", host=["d1.test"] * 2, outcome=["OK", "TIMEOUT"], round=[1, 1])
    lakes.commit_round(lake, 1, seen=rows.seen([1], 1), hosts=hosts, fetches=fetches)
    lakes.commit_round(lake, 2, hosts=hosts.set_column(hosts.num_columns - 1, "round", pa.array([2])))
    with reader(lake) as r:
        [found] = (
            r.ask("SELECT host, paused, urls, due, requests, failures, round FROM host_health")
            .table()
            .to_pylist()
        )
    expected = {
        "host": "d1.test",
        "paused": True,
        "urls": 1,
        "due": 1,
        "requests": 2,
        "failures": 1,
        "round": 2,
    }
    assert expected == found


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "ATTACH '/tmp/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET VARIABLE planning_now = NULL",
        "CREATE TABLE t (i INT)",
        "DROP VIEW urls",
        "INSERT INTO seen SELECT * FROM seen",
        "PRAGMA database_list",
        "EXPORT DATABASE '/tmp/x'",
        "CALL pragma_version()",
        "SELECT 1; SELECT 2",
        "",
        "SELEC 1",
        "SELECT no_such_column FROM urls",
        "FROM no_such_table",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_csv('/etc/hostname')",
        "FROM '/etc/hostname'",
        "SELECT * FROM glob('/etc/*')",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/out.csv'",
        "SELECT error('stop')",
        "SELECT url_key // 0 / 'x' FROM range(3) AS t(url_key)",
    ],
)
def test_a_user_can_only_read_the_tables(lake, statement):
    with reader(lake) as r, pytest.raises(UsageError):
        r.ask(statement).table()


def test_the_lakes_secret_cannot_be_read_by_sql(lake):
    lake.write("identity.json", b'{"secret": "c0ffee"}')
    with reader(lake) as r, pytest.raises(UsageError):
        r.ask(f"SELECT * FROM read_text('{lake.url('identity.json')}')").table()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "FROM urls",
        "WITH a AS (SELECT 1) FROM a",
        "DESCRIBE urls",
        "SHOW TABLES",
        "SUMMARIZE urls",
        "EXPLAIN SELECT * FROM urls",
        "VALUES (1)",
        "PIVOT urls ON state USING count(*)",
        "SELECT now() + INTERVAL 1 DAY",
    ],
)
def test_a_user_can_read_in_many_ways(lake, statement):
    lakes.commit_round(lake, 1, seen=rows.seen([1], 1))
    with reader(lake) as r:
        assert r.ask(statement).table().num_rows


def test_an_error_met_while_rows_come_is_told_like_any_other(lake):
    with reader(lake) as r:
        answer = r.ask("SELECT CASE WHEN i < 300000 THEN i ELSE error('late') END FROM range(400000) AS t(i)")
        with pytest.raises(UsageError, match="late"):
            answer.table()


def test_times_are_shown_in_utc(lake):
    lakes.commit_round(lake, 1, seen=rows.seen([1], 1))
    with reader(lake) as r:
        answer = r.ask("SELECT next_fetch_at, next_fetch_at::VARCHAR AS shown FROM urls").table()
    assert pa.timestamp("us", tz="UTC") == answer.schema.field(0).type
    assert ["2026-03-01 12:00:00+00"] == answer["shown"].to_pylist()


def test_the_table_of_files_tells_runs_and_days(lake):
    lakes.commit_round(lake, 3, seen=rows.seen([1], 3), fetches=rows.table("fetches", url_key=[1]))
    with reader(lake) as r:
        found = (
            r.ask("SELECT table_name, rows, day, level, last_round FROM files ORDER BY 1").table().to_pylist()
        )
    assert [
        {"table_name": "fetches", "rows": 1, "day": rows.DAY, "level": None, "last_round": None},
        {"table_name": "seen", "rows": 1, "day": None, "level": 0, "last_round": 3},
    ] == [row for row in found if row["table_name"] != "rounds"]


def test_a_missing_data_file_is_a_lake_error(lake):
    lakes.commit_round(lake, 1, seen=rows.seen([1], 1))
    (gone,) = (entry.location for entry in snapshot.latest(lake).files("seen"))
    lake.delete([gone])
    with pytest.raises(LakeError, match=f"the data file {gone} is missing; restore it"), reader(lake) as r:
        r.due()


def test_a_data_file_that_goes_missing_while_a_statement_is_read_is_no_mistake_of_the_user(lake):
    for number in (1, 2):
        lakes.commit_round(lake, number, links=rows.table("links", target_key=[number]))
    with reader(lake) as r:
        gone = [entry.location for entry in snapshot.latest(lake).files("links")]
        lake.delete(gone)
        with pytest.raises(LakeError, match=r"the data file links/.* and 1 more is missing"):
            r.ask("FROM links").table()


def test_a_mistake_looks_for_no_files(lake, monkeypatch):
    with reader(lake) as r:
        monkeypatch.setattr(sql._Place, "refuse_missing", lambda *_: pytest.fail("it looked"))
        for text, told in (("SELEC 1", "syntax"), ("SELECT x FROM links", "x"), ("", "no statement")):
            with pytest.raises(UsageError, match=told):
                r.ask(text)


def test_a_closed_reader_leaves_no_folder_behind(lake, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    with reader(lake) as r:
        assert set(tmp_path.iterdir()) > before
        r.due()
    assert before == set(tmp_path.iterdir())


def test_only_files_that_can_hold_newer_rows_are_searched_for_them():
    def newer(*paths):
        entries = [files.FileEntry(table="seen", path=path, size=1, rows=1) for path in paths]
        return {entry.path for entry in sql._newer(entries)}

    old, mid, new = runs.name(1, 0, 7), runs.name(0, 8, 8), runs.name(0, 9, 9)
    overlapping = runs.name(0, 7, 7)
    assert {mid, new} == newer(old, mid, new)
    assert set() == newer(old)
    assert {"foreign.parquet", old, mid} == newer("foreign.parquet", old, mid)
    assert {old, overlapping} == newer(old, overlapping)


def test_delta_log_and_sql_count_the_same_rows(lake):
    lakes.commit_round(lake, 1, seen=[rows.seen([1, 2], 1), rows.seen([3], 1)])
    with reader(lake) as r:
        assert sum(entry.rows for entry in delta.files(lake, "seen")) == r.ask("FROM seen").table().num_rows


def test_a_lake_on_s3_is_read_as_one_in_a_folder(s3_lake):
    store = lakes.new(s3_lake)
    store.write("identity.json", b'{"secret": "c0ffee"}')
    lakes.commit_round(
        store, 1, seen=rows.seen([1, 2], 1), fetches=rows.table("fetches", url_key=[1], round=[1])
    )
    lakes.commit_round(store, 2, seen=rows.seen([2], 2, state=["GONE"], next_fetch_at=[NOW + HOUR]))
    with reader(store) as r:
        assert [1] == r.due()["url_key"].to_pylist()
        found = r.ask("SELECT url_key, day FROM fetches").table().to_pylist()
        assert [{"url_key": 1, "day": rows.DAY}] == found
        with pytest.raises(UsageError):
            r.ask(f"SELECT * FROM read_text('{store.url('identity.json')}')").table()
        with pytest.raises(UsageError):
            r.ask(f"COPY (SELECT 1) TO '{store.url('x.csv')}'").table()
    with reader(store, at=1) as r:
        assert [1, 2] == r.due()["url_key"].to_pylist()


def test_look_ups_are_counted_from_memory_or_not_and_addresses_are_none(lake):
    names = {
        "dns_cached": [False, True, True, None, False],
        "dns_ms": [3.0, 0.0, 0.0, None, 9.0],
        "outcome": ["OK", "OK", "DNS_FAILURE", "OK", "DNS_TIMEOUT"],
        "kind": ["robots", "page", "robots", "page", "robots"],
        "url_key": [1, 2, 3, 4, 5],
    }
    fetches = rows.table("fetches", **names, round=[1] * 5)
    lakes.commit_round(lake, 1, fetches=fetches)
    with reader(lake) as r:
        [hits] = r.query("metric-dns-cache-hit-rate").to_pylist()
        [failures] = r.query("metric-dns-failure-rate").to_pylist()
    assert {"round": 1, "lookups": 4, "dns_cache_hit_rate": 0.5} == hits
    assert {"round": 1, "lookups": 4, "dns_failure_rate": 0.5} == failures
