"""The parse process, a real one: what pages and signals do to it, and what comes back all the same."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawl.errors import ClusterError, LakeError
from crawl.fetching.journal import Body
from crawl.keys import Keyer
from crawl.policy import Parsing, Settings, Sitemaps
from crawl.records import Fetch
from crawl.url import psl_hash
from cycles.tasks import child
from cycles.tasks.child import ParseChild, lent, page
from lake import identity
from lake.store import connect

SECRET = bytes(range(32))
NOW = datetime(2026, 3, 1, tzinfo=UTC)
#: lexbor takes time quadratic in nesting: seconds of CPU in a small file
EXPENSIVE = b"<div>" * 60_000


@pytest.fixture
def root(tmp_path: Path) -> str:
    identity.create(connect(str(tmp_path)), psl_hash(), 1, SECRET)
    return str(tmp_path)


@pytest.fixture
def parser(root: str) -> Iterator[ParseChild]:
    with ParseChild(root, Settings()) as made:
        yield made


def pages(*bodies: bytes) -> list[tuple]:
    return [
        page(
            Fetch(
                kind="page",
                url=f"http://a.test/{number}",
                url_key=number,
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
            ),
            Body(body, zstd=False),
        )
        for number, body in enumerate(bodies)
    ]


def texts(parsed: child.Parsed) -> list[str]:
    return sorted(text for extract in parsed.extracts for text in extract.documents["text"].to_pylist())


def test_a_batch_comes_back_with_keys_made_by_the_lakes_secret(parser: ParseChild) -> None:
    parsed = parser.parse(pages(b"<p>one<a href=x>x</a>", b"<p>two"))
    assert texts(parsed) == ["onex", "two"]
    (extract,) = parsed.extracts
    keyer = Keyer(SECRET)
    assert extract.documents["document_key"].to_pylist() == [
        keyer.document_key("onex"),
        keyer.document_key("two"),
    ]
    assert extract.links["target_key"].to_pylist() == [keyer.url_key("http://a.test/x")]
    assert parsed.failed == {}
    assert parser.parse([]).extracts == []


def test_the_process_is_reused_and_ends_with_its_parents_end(parser: ParseChild) -> None:
    parser.parse(pages(b"<p>one"))
    first = parser.pid
    parser.parse(pages(b"<p>two"))
    assert parser.pid == first
    parser.close()
    assert parser.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(first or 0, 0)


def test_a_page_that_takes_too_long_is_given_up_and_its_batch_goes_on(root: str) -> None:
    settings = Settings(parsing=Parsing(deadline=timedelta(seconds=0.5)))
    with ParseChild(root, settings) as parser:
        parsed = parser.parse(pages(b"<p>before", EXPENSIVE, b"<p>after"))
    assert texts(parsed) == ["after", "before"]
    assert parsed.failed == {1: "parse_deadline"}


def test_a_page_that_takes_too_much_memory_is_given_up_and_its_batch_goes_on(root: str) -> None:
    settings = Settings(parsing=Parsing(memory_bytes=150_000_000))
    with ParseChild(root, settings) as parser:
        parsed = parser.parse(pages(b"<p>before", b"<p>x" * 1_000_000, b"<p>after"))
    assert texts(parsed) == ["after", "before"]
    assert parsed.failed.keys() == {1}
    assert parsed.failed[1] in {"parse_memory", "parse_killed"}


def test_a_process_killed_in_the_middle_of_a_batch_loses_no_page(root: str) -> None:
    slow = b"<div>" * 12_000  # tens of milliseconds each
    with ParseChild(root, Settings()) as parser:
        parser.parse(pages(b"<p>warm"))
        victims = []

        def kill() -> None:
            time.sleep(0.15)
            victims.append(parser.pid)
            os.kill(parser.pid or 0, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        parsed = parser.parse(pages(*[slow + b"<p>%d" % number for number in range(12)]))
        killer.join()
        assert parser.pid not in victims
    assert texts(parsed) == sorted(str(number) for number in range(12))
    assert parsed.failed == {}


def test_a_process_killed_while_idle_is_started_again(parser: ParseChild) -> None:
    parser.parse(pages(b"<p>one"))
    os.kill(parser.pid or 0, signal.SIGKILL)
    time.sleep(0.05)
    assert texts(parser.parse(pages(b"<p>one", b"<p>two"))) == ["one", "two"]
    os.kill(parser.pid or 0, signal.SIGKILL)
    assert texts(parser.parse(pages(b"<p>one"))) == ["one"]


def test_a_stopped_process_is_not_waited_for_forever(root: str) -> None:
    settings = Settings(parsing=Parsing(deadline=timedelta(seconds=0.2)))
    with ParseChild(root, settings) as parser:
        parser.parse(pages(b"<p>warm"))
        os.kill(parser.pid or 0, signal.SIGSTOP)
        assert texts(parser.parse(pages(b"<p>one", b"<p>two"))) == ["one", "two"]


def test_a_process_ends_when_its_parents_pipe_does(parser: ParseChild) -> None:
    parser.parse(pages(b"<p>one"))
    process = parser._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(10) == 0


def test_a_process_whose_parent_dies_in_the_middle_of_a_batch_ends_quietly(
    parser: ParseChild, capfd: pytest.CaptureFixture[str]
) -> None:
    parser.parse(pages(b"<p>one"))
    process, pipe = parser._process, parser._pipe
    assert process is not None
    assert process.stdin is not None
    assert process.stdout is not None
    assert pipe is not None
    pipe.send(pages(*[b"<div>" * 8_000] * 5), 5)
    process.stdin.close()
    process.stdout.close()
    assert process.wait(20) == 0
    assert capfd.readouterr().err == ""


def test_a_lake_that_cannot_be_read_is_an_error_of_storage_and_not_the_pages_fault(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        ParseChild(str(tmp_path / "none"), Settings()) as parser,
        pytest.raises(LakeError, match="there is no lake at"),
    ):
        parser.parse(pages(b"<p>one"))
    assert capfd.readouterr().err == ""


def test_a_process_that_does_not_start_is_told(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with ParseChild(root, Settings()) as parser, pytest.raises(ClusterError, match="does not start"):
        parser.parse(pages(b"<p>one"))


def test_a_process_that_is_killed_while_it_starts_is_started_again(parser: ParseChild) -> None:
    def kill_the_first() -> None:
        while parser.pid is None:
            time.sleep(0.001)
        killed.append(parser.pid)
        os.kill(parser.pid, signal.SIGKILL)

    killed: list[int] = []
    killer = threading.Thread(target=kill_the_first)
    killer.start()
    parsed = parser.parse(pages(b"<p>one"))
    killer.join()
    assert texts(parsed) == ["one"]
    assert parsed.failed == {}
    assert parser.pid not in (None, *killed)


def test_no_secret_is_in_what_a_process_is_given(parser: ParseChild) -> None:
    parser.parse(pages(b"<p>one"))
    for name in ("cmdline", "environ"):
        data = Path(f"/proc/{parser.pid}/{name}").read_bytes()
        assert SECRET not in data
        assert SECRET.hex().encode() not in data
    assert SECRET not in pickle.dumps(parser._setup)
    assert SECRET.hex().encode() not in pickle.dumps(parser._setup)


def test_tasks_of_one_worker_share_a_process_while_their_settings_are_the_same(root: str) -> None:
    one = lent(root, Settings())
    one.parse(pages(b"<p>one"))
    assert lent(root, Settings()) is one
    assert one.pid is not None
    changed = lent(root, replace(Settings(), parsing=Parsing(links=1)))
    assert changed is not one
    assert one.pid is None  # of settings that are no longer in force
    child._close_all()


def test_batches_of_two_threads_take_turns_and_each_gets_its_own_answer(root: str) -> None:
    found: dict[int, list[str]] = {}

    def work(number: int) -> None:
        bodies = [b"<p>%d %d" % (number, page) for page in range(30)]
        found[number] = sorted(
            text
            for batch in (bodies[:10], bodies[10:])
            for text in texts(lent(root, Settings()).parse(pages(*batch)))
        )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: sorted(f"{n} {page}" for page in range(30)) for n in range(2)}
    child._close_all()


def test_a_process_with_a_batch_under_way_is_not_taken_from_it(root: str) -> None:
    busy = lent(root, Settings())
    with busy._turn:
        other = lent(root, replace(Settings(), parsing=Parsing(links=1)))
        assert other is not busy
        assert not busy.close_if_idle()
    assert busy.close_if_idle()
    child._close_all()


def test_a_list_has_more_time_than_a_page(root: str) -> None:
    settings = Settings(
        parsing=Parsing(deadline=timedelta(seconds=0.05)), sitemaps=Sitemaps(deadline=timedelta(minutes=1))
    )
    body = b"<urlset>" + b"".join(b"<url><loc>http://a.test/%d</loc></url>" % n for n in range(40_000))
    [page] = pages(body)
    with ParseChild(root, settings) as parser:
        parser.parse(pages(b""))
        parsed = parser.parse([(*page[:12], "sitemap", (), *page[14:])])
    assert parsed.failed == {}
    assert sum(len(extract.links) for extract in parsed.extracts) == 40_000
