"""A journal keeps what was finished, whatever ends the task."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from crawl.errors import LakeError, UsageError
from crawl.fetching import journal as frames
from crawl.policy import Fetching
from crawl.records import Skip
from lake.journal import PartWriter, read_part
from lake.store import Store, connect
from tests.lake.rows import NOW

ROOT = Path(__file__).resolve().parents[2]


def skip(key: int) -> Skip:
    return Skip(
        url_key=key,
        url=f"http://a.test/{key}",
        host="a.test",
        depth=0,
        outcome="ROBOTS_DENIED",
        reason="robots",
        decided_at=NOW,
    )


class Hands:
    """A clock moved by hand."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return connect(request.getfixturevalue("s3_lake") if request.param == "s3" else tmp_path / "lake")


def keys(store: Store, parts: list[tuple[str, int]]) -> list[int]:
    return [record.url_key for path, size in parts for record, _, _ in read_part(store, path, size)]


def test_what_is_appended_is_read_back_in_order(store: Store) -> None:
    told: list[tuple[str, int]] = []
    writer = PartWriter(
        store, "_work/g/1.1", Fetching(part_bytes=1_000), on_part=lambda p, n: told.append((p, n))
    )
    for i in range(50):
        writer.append(skip(i), b"body" if i % 2 else None)
        writer.flush()
    writer.close()
    parts = writer.finished()
    assert len(parts) >= 2
    assert parts == told == [(s.path, s.size) for s in store.list("_work")]
    assert parts[0][0] == "_work/g/1.1/part-00000.jrnl"
    assert keys(store, parts) == list(range(50))
    bodies = [body for path, _ in parts for _, body, _ in read_part(store, path)]
    assert bodies[1] is not None
    assert bodies[1].raw() == b"body"
    assert bodies[0] is None


def test_a_body_that_came_in_very_many_pieces_is_read_back_whole(store: Store) -> None:
    writer = PartWriter(store, "j", Fetching())
    pieces = tuple(bytes([i % 256]) for i in range(5_000))
    for i in range(3):
        writer.append(skip(i), pieces)
    writer.close()
    ((path, size),) = writer.finished()
    bodies = [body for _, body, _ in read_part(store, path, size)]
    assert [body and body.raw() for body in bodies] == [b"".join(pieces)] * 3


def test_what_waits_for_an_upload_is_held_in_one_piece_each(s3_lake: str, repo_root: Path) -> None:
    """One byte in a piece of its own takes forty: a server that drips would fill the memory."""
    program = """
import sys, tracemalloc
from crawl.policy import Fetching
from lake.journal import PartWriter
from lake.store import connect
from tests.lake.test_journal import Hands, skip

writer = PartWriter(connect(sys.argv[1]), "j", Fetching(flush_bytes=50_000_000), Hands())
tracemalloc.start()
writer.append(skip(1), tuple(bytes([i % 256]) + b"x" for i in range(500_000)))
held = tracemalloc.get_traced_memory()[0]
writer.close()
print(held)
"""
    run = subprocess.run(
        [sys.executable, "-c", program, s3_lake], cwd=repo_root, capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 4_000_000


def test_an_empty_journal_has_no_part_and_a_closed_one_takes_nothing(store: Store) -> None:
    writer = PartWriter(store, "j", Fetching())
    writer.close()
    writer.close()
    writer.abandon()
    assert writer.finished() == []
    assert store.list("j") == []
    with pytest.raises(UsageError, match="closed"):
        writer.append(skip(1), None)


def test_on_s3_a_record_waits_for_one_flush(s3_lake: str) -> None:
    store = connect(s3_lake)
    writer = PartWriter(store, "j", Fetching(flush_interval=timedelta(milliseconds=50)))
    writer.append(skip(1), None)
    for _ in range(200):
        if writer.finished():
            break
        time.sleep(0.02)
    assert keys(store, writer.finished()) == [1]
    writer.append(skip(2), None)
    writer.close()
    assert keys(store, writer.finished()) == [1, 2]


def test_on_s3_nothing_is_flushed_before_its_time(s3_lake: str) -> None:
    store, clock = connect(s3_lake), Hands()
    writer = PartWriter(store, "j", Fetching(flush_interval=timedelta(seconds=0.4)), clock)
    writer.append(skip(1), None)
    time.sleep(0.5)
    assert store.list("j") == []
    writer.close()
    assert len(store.list("j")) == 1


def test_on_s3_a_failed_upload_is_told_by_the_next_call(
    s3_lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = connect(s3_lake)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    writer = PartWriter(store, "j", replace(Fetching(), flush_bytes=1))
    writer.append(skip(1), None)
    with pytest.raises(LakeError, match="endpoint"):
        writer.close()
    with pytest.raises(UsageError, match="closed"):
        writer.append(skip(2), None)
    writer.abandon()
    assert writer.finished() == []


def test_after_a_kill_everything_flushed_is_there(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import os, signal, sys
        from crawl.policy import Fetching
        from lake.journal import PartWriter
        from lake.store import connect
        from tests.lake.test_journal import skip
        writer = PartWriter(connect(sys.argv[1]), "j", Fetching())
        for i in range(20):
            writer.append(skip(i), None)
            writer.flush()
        writer.append(skip(20), None)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=False)
    store = connect(tmp_path)
    assert keys(store, [(s.path, s.size) for s in store.list("j")]) == list(range(20))


def test_a_torn_tail_hides_nothing_before_it(tmp_path: Path) -> None:
    store = connect(tmp_path)
    whole = b"".join(b"".join(frames.frame(skip(i), b"x" * 100)) for i in range(3))
    for cut in range(len(whole)):
        store.write("p", whole[:cut])
        found = keys(store, [("p", cut)])
        assert found == list(range(len(found)))
        assert len(found) == whole[:cut].count(b"http://a.test/") - (0 if cut == 0 else _open(whole, cut))


def _open(whole: bytes, cut: int) -> int:
    """Frames that the cut left incomplete but for which the URL is already there."""
    valid = frames.valid_length(whole[:cut])
    return whole[valid:cut].count(b"http://a.test/")


def test_a_folder_that_cannot_be_made_is_a_lake_error(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("in the way")
    writer = PartWriter(connect(tmp_path), "j/deeper", Fetching())
    writer.append(skip(1), None)
    with pytest.raises(LakeError, match=r"start j/deeper/part-00000\.jrnl"):
        writer.flush()
