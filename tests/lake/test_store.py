"""Storage: files appear whole, one creator wins, failures say what to do, credentials stay outside."""

from __future__ import annotations

import pickle
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crawl.errors import LakeError, UsageError
from lake.places import TEMPORARY
from lake.store import Store, connect
from tests import s3

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "s3":
        return connect(request.getfixturevalue("s3_lake"))
    return connect(tmp_path / "lake")


def test_what_is_written_is_read_listed_and_deleted(store: Store) -> None:
    store.write("a/b/one", b"1")
    store.write("a/two", b"22")
    store.write("a/two", b"333")
    assert store.read("a/two") == b"333"
    assert [(s.path, s.size) for s in store.list("a")] == [("a/b/one", 1), ("a/two", 3)]
    assert store.exists("a/two")
    assert not store.exists("a/b")
    store.delete(["a/two", "never"])
    assert store.get("a/two") is None
    assert [s.path for s in store.list("a/")] == ["a/b/one"]
    assert store.list("nowhere") == []


def test_a_missing_file_is_none_for_get_and_an_error_for_read(store: Store) -> None:
    assert store.get("nothing") is None
    with pytest.raises(LakeError, match="not there"):
        store.read("nothing")
    with pytest.raises(LakeError):
        store.open_read("nothing").read()


def test_of_several_creators_one_wins(store: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda i: store.create("claim", b"by %d" % i), range(4)))
    assert won.count(True) == 1
    assert store.read("claim") == b"by %d" % won.index(True)
    assert not store.create("claim", b"later")


def test_an_object_of_ours_whose_answer_was_lost_counts_as_created(s3_lake: str) -> None:
    store = connect(s3_lake)
    assert store.create("claim", b"mine 1")
    assert store.create("claim", b"mine 1")


def test_a_streamed_file_appears_only_when_committed(store: Store) -> None:
    output = store.open_write("big/file")
    output.sink.write(b"x" * 1000)
    assert store.get("big/file") is None
    output.commit()
    assert store.read("big/file") == b"x" * 1000
    dropped = store.open_write("big/other")
    dropped.sink.write(b"y")
    dropped.abort()
    assert [s.path for s in store.list("")] == ["big/file"]


def test_random_access_reads_what_lies_there(store: Store) -> None:
    store.write("f", bytes(range(200)))
    with store.open_read("f") as file:
        file.seek(100)
        assert file.read(3) == bytes([100, 101, 102])
        assert file.size() == 200


def test_a_store_travels_as_its_root_alone(store: Store) -> None:
    store.write("f", b"1")
    raw = pickle.dumps(store)
    assert pickle.loads(raw) == store
    assert pickle.loads(raw).read("f") == b"1"
    assert s3.CANARY.encode() not in raw
    assert s3.CANARY not in repr(store)


def test_s3_options_hold_no_credentials(s3_lake: str) -> None:
    from lake.store import s3_options

    store = connect(s3_lake)
    store.write("f", b"1")
    assert s3.CANARY not in str(s3_options())
    assert s3.CANARY not in store.filesystem().to_json()
    assert s3.CANARY.encode() not in pickle.dumps(store.filesystem())


def test_a_killed_write_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    code = "import os, signal, sys; from lake.store import connect\n" + textwrap.dedent("""
        output = connect(sys.argv[1]).open_write("t/file")
        output.sink.write(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=False)
    names = [s.path for s in connect(tmp_path).list("")]
    assert len(names) == 1
    assert names[0].startswith(TEMPORARY)


def test_an_unknown_scheme_or_an_empty_bucket_is_refused() -> None:
    with pytest.raises(UsageError, match="folder or s3"):
        connect("gs://bucket/lake")
    with pytest.raises(UsageError, match="bucket"):
        connect("s3://")


def test_s3_without_credentials_says_which_variables_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in s3.environment(""):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LakeError, match="AWS_ACCESS_KEY_ID"):
        connect("s3://bucket/lake")


@pytest.mark.parametrize("kind", ["refused", pytest.param("silent", marks=pytest.mark.slow)])
def test_an_unreachable_endpoint_is_told_soon(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`silent`: the queue of a listening socket is full, so that connecting hangs as behind a firewall."""
    from lake import delta

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    waiting = []
    if kind == "silent":
        listener.listen(0)
        for _ in range(4):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(listener.getsockname())
    for name, value in s3.environment(f"http://127.0.0.1:{listener.getsockname()[1]}").items():
        monkeypatch.setenv(name, value)
    store = connect("s3://bucket/lake")
    try:
        for work in (lambda: store.read("x"), lambda: delta.version(store, "seen")):
            began = time.monotonic()
            with pytest.raises(LakeError, match=r"endpoint \(http://127.0.0.1"):
                work()
            assert time.monotonic() - began < 30  # twice what is promised: the machine may be busy
    finally:
        for one in (*waiting, listener):
            one.close()


def test_a_file_in_the_way_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    with pytest.raises(LakeError, match="file lies where a folder should be"):
        connect(tmp_path / "lake").write("x", b"1")


_MOUNTED = """
import random, sys
from crawl.errors import LakeError
from lake import delta, files, tables
from lake.store import connect
from tests.lake import rows

store = connect(sys.argv[1])
wanted = sys.argv[2]

def refused(work):
    try:
        work()
    except LakeError as error:
        assert wanted in str(error), error
    else:
        raise AssertionError("not refused")

if wanted == "disk is full":
    tables.create_all(store)
    noise = [random.Random(i).randbytes(5000).hex() for i in range(1000)]
    big = rows.table("documents", document_key=list(range(1000)), text=noise)
    before = {s.path for s in store.list("")}
    refused(lambda: store.write("x", bytes(4 << 20)))
    refused(lambda: store.create("x", bytes(4 << 20)))
    refused(lambda: files.write(store, "documents", big))
    refused(lambda: files.write_work(store, "_work/w.parquet", big))
    assert {s.path for s in store.list("")} == before, "something half-written is visible"
    free = 0
    while True:  # to the last byte
        try:
            store.write(f"fill/{free}", bytes(4096))
            free += 1
        except LakeError:
            break
    refused(lambda: delta.commit(store, "seeds", app="seeds"))
    assert delta.version(store, "seeds") == 0
    store.delete([s.path for s in store.list("fill")])
    assert delta.commit(store, "seeds", app="seeds") == 1
else:
    refused(lambda: store.write("x", b"1"))
    refused(lambda: store.create("x", b"1"))
    refused(lambda: delta.create(store, "seeds", tables.spec("seeds").schema))
print("DONE")
"""


@pytest.mark.parametrize(
    ("options", "told"), [("size=3m", "disk is full"), ("size=1m,ro", "mount it writable")]
)
def test_a_full_and_a_read_only_disk_say_so_and_leave_nothing(
    tmp_path: Path, options: str, told: str
) -> None:
    unshare = shutil.which("unshare")
    probe = [unshare or "unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if unshare is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a small disk in a user namespace of their own")
    script = f'mount -t tmpfs -o {options} none "$1" && exec "$2" -c "$3" "$1" "{told}"'
    command = [unshare, "-rm", "sh", "-c", script, "sh", str(tmp_path), sys.executable, _MOUNTED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("DONE\n"), done.stderr
