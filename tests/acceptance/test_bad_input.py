"""What is wrong is told in one clear line with its exit code, and leaves nothing half-written behind.

A full and a read-only disk are made in a mount namespace of the command's own; where that is not allowed,
those tests are skipped with a message.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.processes import Ended, finished
from tests.acceptance.rehearsal import FIRST, SECOND, Rehearsal, checked, equal

#: a command that starts another one in a mount namespace of its own
_UNSHARE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of loopback on which nobody answers: bound, so that nobody else gets it, and not listened on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture(scope="module")
def namespaces() -> None:
    """Skip where no file system can be mounted."""
    try:
        subprocess.run(
            [*_UNSHARE, "mount", "-t", "tmpfs", "none", "/mnt"], check=True, capture_output=True, timeout=20
        )
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"no mount namespace can be made here ({error}): full and read-only disks are not tested")


def told(ended: Ended, code: int, *words: str) -> None:
    """It ended with that code, in few words that say all of this, and not in a traceback."""
    assert ended.code == code, str(ended)
    assert "Traceback" not in ended.said, str(ended)
    for word in words:
        assert word.lower() in ended.said.lower(), str(ended)


def files(lake: Path) -> dict[str, bytes]:
    return {str(path.relative_to(lake)): path.read_bytes() for path in lake.rglob("*") if path.is_file()}


# --- seeds and lakes ------------------------------------------------------------------------------------


def test_garbage_in_a_seed_file_is_told_by_line_and_the_rest_is_taken(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    lake = rehearsal.copy(rehearsal.seeded())
    seeds = tmp_path / "seeds.txt"
    good = [f"http://fresh{number}.test/" for number in range(3)]
    garbage = b"\xff\xfe\x00garbage"
    lines = [
        good[0].encode(),
        b"ftp://x.test/",
        b"http://",
        good[1].encode(),
        garbage,
        b"",
        b"# remark",
        good[2].encode(),
    ]
    seeds.write_bytes(b"\n".join(lines) + b"\n")
    ended = finished("seed", str(lake), "--file", str(seeds), "--now", SECOND)
    told(ended, 0, "2", "3", "5")
    assert "accepted 3" in ended.out
    for number in (2, 3, 5):
        assert any(f"line {number}" in line or f":{number}:" in line for line in ended.said.splitlines()), (
            str(ended)
        )
    question = "SELECT url FROM seeds WHERE url LIKE '%fresh%' ORDER BY url"
    rows = json.loads(finished("sql", str(lake), question, "--format", "json").out)
    assert [row["url"] for row in rows] == good
    checked(lake)


def test_a_seed_file_of_nothing_but_garbage_is_an_error(rehearsal: Rehearsal, tmp_path: Path) -> None:
    lake = rehearsal.copy(rehearsal.seeded())
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("nothing\nmailto:x@y.test\n", encoding="utf-8")
    told(finished("seed", str(lake), "--file", str(seeds)), 2, "no seed was accepted")
    before = files(lake)
    told(finished("seed", str(lake), "--file", str(tmp_path / "absent.txt")), 2, "absent.txt")
    assert files(lake) == before


@pytest.mark.parametrize(
    "command", [["run"], ["status"], ["check"], ["seed", "http://a.test/"], ["sql", "SELECT 1"]]
)
def test_a_lake_that_is_not_there_is_told_and_not_made(tmp_path: Path, command: list[str]) -> None:
    lake = tmp_path / "nowhere"
    told(finished(command[0], str(lake), *command[1:]), 4, "no lake", "crawl init")
    assert not lake.exists()


@pytest.mark.parametrize("command", [["run"], ["status"], ["seed", "http://a.test/"]])
def test_a_lake_of_a_newer_format_is_left_alone(rehearsal: Rehearsal, command: list[str]) -> None:
    lake = rehearsal.copy(rehearsal.seeded())
    identity = json.loads((lake / "identity.json").read_text())
    (lake / "identity.json").write_text(json.dumps({**identity, "format": identity["format"] + 1}))
    before = files(lake)
    told(finished(command[0], str(lake), *command[1:]), 4, "newer")
    assert files(lake) == before


def test_a_setting_that_is_mistyped_is_told_before_anything_starts(rehearsal: Rehearsal) -> None:
    lake = rehearsal.copy(rehearsal.seeded())
    settings = lake / "crawl.toml"
    settings.write_text(settings.read_text().replace("min_delay", "min_delai"))
    before = files(lake)
    told(finished("run", str(lake), "--now", FIRST), 2, "min_delai", "min_delay")
    assert files(lake) == before


# --- clusters and buckets that do not answer ----------------------------------------------------------------


def test_a_scheduler_that_does_not_answer_is_told_within_seconds(
    rehearsal: Rehearsal, closed_port: int
) -> None:
    lake = rehearsal.copy(rehearsal.seeded())
    before = files(lake)
    address = f"tcp://127.0.0.1:{closed_port}"
    began = time.monotonic()
    told(finished("run", str(lake), "--now", FIRST, "--scheduler", address), 5, address)
    assert time.monotonic() - began < 30
    assert files(lake) == before


def test_a_bucket_that_does_not_answer_is_told_within_seconds(closed_port: int) -> None:
    environ = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{closed_port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "canary-secret",
        "AWS_REGION": "us-east-1",
    }
    for command in (
        ["run", "s3://bucket/lake"],
        ["init", "s3://bucket/lake"],
        ["status", "s3://bucket/lake"],
    ):
        began = time.monotonic()
        ended = finished(*command, environ=environ)
        told(ended, 4, "s3://bucket/lake")
        assert "canary-secret" not in ended.said
        assert time.monotonic() - began < 30


# --- disks ------------------------------------------------------------------------------------------------


def confined(lake: Path, mount: str, *steps: str, timeout: float = 240) -> list[Ended]:
    """Run shell steps in a namespace in which `mount` was done first; each step's end.

    Steps see `$CRAWL` (the command) and `$LAKE`; what they print is kept apart.
    """
    results = []
    script = [f"LAKE={shlex.quote(str(lake))}", f'CRAWL="{sys.executable} -m cycles"', mount]
    for number, step in enumerate(steps):
        script.append(f"( {step} ) >$OUT/{number}.out 2>$OUT/{number}.err; echo $? >$OUT/{number}.code")
    out = lake.parent / f"{lake.name}-said"
    out.mkdir()
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "OUT": str(out)}
    done = subprocess.run(
        [*_UNSHARE, "sh", "-c", "\n".join(script)],
        env=environ,
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )
    for number in range(len(steps)):
        kept = [out / f"{number}.{kind}" for kind in ("code", "out", "err")]
        assert kept[0].exists(), done.stderr
        results.append(Ended(int(kept[0].read_text()), kept[1].read_text(), kept[2].read_text()))
    return results


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize(
    "room", [200, *(pytest.param(room, marks=pytest.mark.slow) for room in (0, 8, 60, 100, 300, 500))]
)
def test_a_full_disk_is_told_and_with_room_the_round_goes_on(
    rehearsal: Rehearsal, tmp_path: Path, room: int
) -> None:
    """`room`: KiB that are free when the round begins."""
    rehearsal.after(2)
    origin, lake, saved = rehearsal.copy(rehearsal.after(1)), tmp_path / "lake", tmp_path / "saved"
    lake.mkdir()
    rehearsal.served.control(now=SECOND)
    run = f"$CRAWL run $LAKE --now {SECOND} --workers 2"
    full, check, sql, more, rerun, save = confined(
        lake,
        f"mount -t tmpfs -o size=1g none $LAKE; cp -a {origin}/. $LAKE/;"
        f" mount -o remount,size=$(( $(df -k --output=used $LAKE | tail -1) + {room} ))k $LAKE",
        run,
        "$CRAWL check $LAKE",
        "$CRAWL sql $LAKE 'SELECT max(round) AS last FROM rounds' --format csv",
        "mount -o remount,size=1g $LAKE",
        run,
        f"cp -a $LAKE/. {saved}/",
    )
    told(full, 4, "full", "space")
    assert (check.code, sql.code) == (0, 0), f"{check}\n{sql}"
    assert sql.out.split()[-1] == "1"
    assert (more.code, rerun.code, save.code) == (0, 0, 0), f"{more}\n{rerun}\n{save}"
    equal(saved, rehearsal.after(2))
    shutil.rmtree(saved)


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("namespaces")
def test_a_read_only_lake_can_be_read_and_says_so_when_it_must_be_written(rehearsal: Rehearsal) -> None:
    lake = rehearsal.copy(rehearsal.after(1))
    before = files(lake)
    run, seed, check, status = confined(
        lake,
        "mount --bind $LAKE $LAKE; mount -o remount,ro,bind $LAKE",
        f"$CRAWL run $LAKE --now {SECOND} --workers 1",
        "$CRAWL seed $LAKE http://a.test/",
        "$CRAWL check $LAKE",
        "$CRAWL status $LAKE",
    )
    told(run, 4, "read-only")
    told(seed, 4, "read-only")
    assert (check.code, status.code) == (0, 0), f"{check}\n{status}"
    assert files(lake) == before
