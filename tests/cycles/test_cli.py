"""The commands as people type them: what they print, what they end with, and what they leave behind."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from cycles import cli
from cycles.commands import status
from cycles.session.setup import Lake, open_lake
from cycles.words.output import FORMATS
from lake import delta, identity
from tests.lake import lakes, rows

COMMANDS = (
    "init",
    "seed",
    "plan",
    "run",
    "status",
    "report",
    "explain",
    "sql",
    "check",
    "pause",
    "resume",
    "config",
)


def crawl(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(cli.command, [str(a) for a in arguments])


def process(repo_root: Path, *arguments: object, **environ: str) -> subprocess.Popen[str]:
    """Start a command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "cycles", *map(str, arguments)],
        cwd=repo_root,
        env={**os.environ, "PYTHONPATH": str(repo_root), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(started: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = started.communicate(timeout=60)
    return started.returncode, out, err


@pytest.fixture
def grown(lake: Lake, place: Path) -> Path:
    """A lake with a round in it."""
    lakes.commit_round(lake.store, 1, seen=rows.seen([1, 2, 3], 1, state=["DISCOVERED", "FETCHED", "GONE"]))
    return place


# --- help and usage ----------------------------------------------------------------------------------------


def test_help_is_told_at_once_and_names_every_command(repo_root: Path) -> None:
    code = (
        "import sys; from cycles.cli import command\n"
        "try: command.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pyarrow', 'numpy', 'duckdb', 'deltalake', 'distributed', 'dask', 'pycurl', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo_root, capture_output=True, text=True, check=True
    )
    assert [] == [name for name in (*COMMANDS, "upkeep") if f"\n  {name} " not in done.stdout]
    assert "[]" == done.stderr.strip()


@pytest.mark.parametrize("name", [*COMMANDS, "upkeep"])
def test_every_command_has_help(name: str) -> None:
    done = crawl(name, "--help")
    assert 0 == done.exit_code
    assert "LAKE" in done.output


def test_dask_finds_the_commands_under_their_name() -> None:
    assert "crawl" == cli.command.name


def test_the_keys_of_status_are_told_in_its_help() -> None:
    text = " ".join(crawl("status", "--help").output.split())
    assert [] == [key for key in status.KEYS if not re.search(rf"\b{key}\b", text)]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["run"],
        ["seed", "LAKE"],
        ["seed", "LAKE", "https://a.test/", "--priority", "urgent"],
        ["run", "LAKE", "--rounds", "0"],
        ["run", "LAKE", "--rounds", "1", "--until-idle"],
        ["run", "LAKE", "--every", "1h", "--now", "2026-01-01"],
        ["run", "LAKE", "--every", "often"],
        ["run", "LAKE", "--window", "0s"],
        ["run", "LAKE", "--now", "yesterday"],
        ["run", "LAKE", "--scheduler", "tcp://x:1", "--workers", "2"],
        ["sql", "LAKE", "SELECT 1", "--format", "xml"],
        ["report", "LAKE", "zero"],
        ["pause", "LAKE", "https://a.test/"],
        ["config", "LAKE", "set", "round.window"],
        ["config", "LAKE", "explain", "round.window", "1s"],
        ["config", "LAKE", "show", "round.window", "1s"],
    ],
)
def test_what_makes_no_sense_ends_in_2(arguments: Sequence[str]) -> None:
    assert 2 == crawl(*arguments).exit_code


# --- init, seed, config ------------------------------------------------------------------------------------


def test_init_makes_a_lake_and_says_what_comes_next(tmp_path: Path) -> None:
    done = crawl("init", tmp_path / "lake")
    assert 0 == done.exit_code
    assert f"made a lake at {tmp_path / 'lake'}\n" == done.stdout
    assert "crawl.toml" in done.stderr
    assert open_lake(str(tmp_path / "lake"), {})


def test_init_again_says_so_and_changes_nothing(place: Path) -> None:
    done = crawl("init", place)
    assert 2 == done.exit_code
    assert "nothing was changed" in done.stderr


def test_seeds_are_taken_from_arguments_and_a_file(place: Path, tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_bytes(b"https://b.test/\n\xff\xff\nhttps://c.test/\n")
    done = crawl("seed", place, "https://a.test/", "--file", tmp_path / "seeds.txt", "--priority", "high")
    assert 0 == done.exit_code
    assert "accepted 3, refused 1\n" == done.stdout
    assert f"{tmp_path / 'seeds.txt'}, line 2: not_utf8" in done.stderr
    found = json.loads(
        crawl("sql", place, "SELECT url, priority, verdict FROM seeds", "--format", "json").stdout
    )
    assert {("https://a.test/", "high", "accepted")} <= {tuple(row.values()) for row in found}
    assert 4 == len(found)


def test_a_flood_of_garbage_is_told_shortly(place: Path, tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("garbage\n" * 1000 + "https://a.test/\n")
    done = crawl("seed", place, "--file", tmp_path / "seeds.txt")
    assert 0 == done.exit_code
    assert "accepted 1, refused 1,000\n" == done.stdout
    assert "… and 980 more" in done.stderr
    assert 21 == len(done.stderr.splitlines())


def test_when_no_seed_is_accepted_that_is_a_failure(place: Path) -> None:
    done = crawl("seed", place, "nonsense")
    assert 2 == done.exit_code
    assert "url_invalid: nonsense" in done.stderr


def test_a_seed_file_that_is_not_there_leaves_the_lake_as_it_was(place: Path, lake: Lake) -> None:
    done = crawl("seed", place, "https://a.test/", "--file", "/no/such/file.csv")
    assert 2 == done.exit_code
    assert "/no/such/file.csv" in done.stderr
    assert [] == delta.files(lake.store, "seeds")


def test_config_shows_explains_and_sets(place: Path) -> None:
    assert "round.window" in crawl("config", place).stdout
    assert "how long a round may fetch" in crawl("config", place, "explain", "round.window").stdout
    assert 'round.window = "5m"' in crawl("config", place, "set", "round.window", "5m").stdout
    assert {"value": "5m", "from": "file"} == json.loads(crawl("config", place, "--format", "json").stdout)[
        "round.window"
    ]


def test_config_shows_and_explains_one_key_or_a_section_and_takes_lists_with_commas(place: Path) -> None:
    assert "scope.hosts" in crawl("config", place, "set", "scope.hosts", "a.test,b.test").stdout
    shown = json.loads(crawl("config", place, "show", "scope.hosts", "--format", "json").stdout)
    assert {"scope.hosts": {"value": ["a.test", "b.test"], "from": "file"}} == shown
    told = crawl("config", place, "explain", "scope").stdout
    assert [1, 1, 1] == [told.count(f"scope.{name}: ") for name in ("hosts", "domains", "exclude")]
    assert 'in force: ["a.test", "b.test"] (from crawl.toml)' in told


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["set", "round.windw", "1s"], "round.window"),
        (["set", "round.window", "soon"], "round.window"),
        (["set", "round.window", "-1s"], "a number with a unit"),
        (["set", "scope.hosts", "http://a.test/"], 'write "a.test"'),
        (["explain", "agent.nam"], "agent.name"),
        (["explain", "min_delay"], "'politeness.min_delay'"),
        (["show", "min_delay"], "'politeness.min_delay'"),
    ],
)
def test_an_unknown_or_ill_typed_setting_ends_in_2_and_names_the_nearest(
    place: Path, arguments: Sequence[str], near: str
) -> None:
    done = crawl("config", place, *arguments)
    assert 2 == done.exit_code
    assert near in done.stderr


@pytest.mark.parametrize("name", ["plan", "run", "status", "check"])
def test_a_wrong_key_in_the_file_stops_every_command(place: Path, name: str) -> None:
    (place / "crawl.toml").write_text("[politeness]\nmin_dely = '1s'\n")
    done = crawl(name, place)
    assert 2 == done.exit_code
    assert "politeness.min_delay" in done.stderr


# --- asking the lake ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_sql_answers_in_every_format(grown: Path, form: str, tmp_path: Path) -> None:
    done = crawl("sql", grown, "SELECT url_key, state FROM urls ORDER BY 1", "--format", form)
    assert 0 == done.exit_code
    asked = ("sql", grown, "SELECT url_key, state FROM urls ORDER BY 1", "--format", form)
    assert 0 == crawl(*asked, "--output", tmp_path / "out").exit_code
    assert done.stdout_bytes == (tmp_path / "out").read_bytes() or form == "parquet"
    if form != "table":
        named = tmp_path / f"out.{form}"
        assert 0 == crawl(*asked[:3], "--output", named).exit_code
        assert done.stdout_bytes == named.read_bytes() or b"PAR1" == named.read_bytes()[:4]
    states = {
        "json": lambda: [row["state"] for row in json.loads(done.stdout)],
        "csv": lambda: [line.split(",")[1] for line in done.stdout.splitlines()[1:]],
        "table": lambda: [line.split()[1] for line in done.stdout.splitlines()[2:]],
        "parquet": lambda: pq.read_table(io.BytesIO(done.stdout_bytes))["state"].to_pylist(),
    }[form]()
    assert ["DISCOVERED", "FETCHED", "GONE"] == states


def test_sql_shows_the_lake_as_a_round_left_it(grown: Path, lake: Lake) -> None:
    lakes.commit_round(lake.store, 2, seen=rows.seen([4], 2))
    counts = [
        json.loads(crawl("sql", grown, "SELECT count(*) AS n FROM urls", "--format", "json", *more).stdout)[
            0
        ]["n"]
        for more in ([], ["--round", 1], ["--round", 2])
    ]
    assert [4, 3, 4] == counts
    done = crawl("sql", grown, "SELECT 1", "--round", 9)
    assert 2 == done.exit_code
    assert "the newest is 2" in done.stderr


@pytest.mark.parametrize("statement", ["DROP TABLE seen", "SELEC 1", "SELECT 1; SELECT 2", "SELECT nonsense"])
def test_a_statement_that_is_wrong_or_writes_ends_in_2(grown: Path, statement: str) -> None:
    done = crawl("sql", grown, statement)
    assert 2 == done.exit_code
    assert "Error: " in done.stderr
    assert "" == done.stdout


def test_a_reader_that_has_enough_ends_the_command_quietly(repo_root: Path, place: Path) -> None:
    started = process(repo_root, "sql", place, "SELECT * FROM range(1000000)", "--format", "csv")
    assert started.stdout is not None
    started.stdout.readline()
    started.stdout.close()
    assert started.stderr is not None
    assert "" == started.stderr.read()
    assert 1 == started.wait(60)
    started.stderr.close()


def test_status_report_and_explain_speak_text_and_json(grown: Path) -> None:
    for name, more in (("status", []), ("report", []), ("report", [1]), ("explain", ["http://d1.test/"])):
        text, plain = crawl(name, grown, *more), crawl(name, grown, *more, "--format", "json")
        assert (0, 0) == (text.exit_code, plain.exit_code), text.output
        assert isinstance(json.loads(plain.stdout), dict)
        assert text.stdout.strip()


def test_explaining_what_is_no_url_ends_in_2(grown: Path) -> None:
    assert 2 == crawl("explain", grown, "nonsense").exit_code


def test_check_prints_a_line_a_check_and_ends_in_1_when_one_fails(grown: Path, lake: Lake) -> None:
    good = crawl("check", grown)
    assert 0 == good.exit_code, good.output
    *lines, last = good.stdout.splitlines()
    assert {"ok"} == {line.split()[0] for line in lines}
    assert f"{len(lines)} checks hold" == last
    lakes.commit_round(lake.store, 2, seen=rows.seen([5], 2, state=["NONSENSE"]))
    bad = crawl("check", grown)
    assert 1 == bad.exit_code
    assert "FAIL  states" in bad.stdout
    assert "url_key=5" in bad.stdout
    assert f"1 of {len(lines)} checks failed" in bad.stderr
    assert 0 == crawl("check", grown, "--round", 1).exit_code


def test_hosts_are_paused_and_resumed(grown: Path) -> None:
    done = crawl("pause", grown, "D1.test", "--reason", "asked")
    assert ("d1.test is paused\n", "1 known URL\n") == (done.stdout, done.stderr)
    assert "no known URL" in crawl("pause", grown, "mistyped.test").stderr
    assert "mistyped.test goes on\n" == crawl("resume", grown, "mistyped.test").stdout
    assert "d1.test was paused already\n" == crawl("pause", grown, "d1.test").stdout
    assert ["d1.test"] == [
        row["pattern"] for row in json.loads(crawl("status", grown, "--format", "json").stdout)["paused"]
    ]
    assert "d1.test goes on\n" == crawl("resume", grown, "d1.test").stdout
    assert "d1.test was not paused\n" == crawl("resume", grown, "d1.test").stdout


# --- what goes wrong ---------------------------------------------------------------------------------------

NEED_A_LAKE = [
    ["seed", "https://a.test/"],
    ["plan"],
    ["run"],
    ["status"],
    ["report"],
    ["explain", "https://a.test/"],
    ["sql", "SELECT 1"],
    ["check"],
    ["pause", "a.test"],
    ["resume", "a.test"],
    ["config"],
    ["upkeep"],
]


@pytest.mark.parametrize("command", NEED_A_LAKE, ids=lambda command: command[0])
def test_a_lake_that_does_not_exist_ends_in_4_and_is_not_made(tmp_path: Path, command: Sequence[str]) -> None:
    done = crawl(command[0], tmp_path / "none", *command[1:])
    assert 4 == done.exit_code, done.output
    assert "crawl init" in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", NEED_A_LAKE, ids=lambda command: command[0])
def test_a_lake_of_a_newer_format_ends_in_4(place: Path, command: Sequence[str]) -> None:
    path = place / identity.PATH
    path.write_text(path.read_text().replace(f'"format": {identity.FORMAT}', '"format": 99'))
    done = crawl(command[0], place, *command[1:])
    assert 4 == done.exit_code, done.output
    assert "newer version" in done.stderr


@pytest.mark.parametrize("root", ["gs://bucket/lake", "s3://"])
def test_a_place_that_is_none_ends_in_2(root: str) -> None:
    assert 2 == crawl("status", root).exit_code


def test_an_unreachable_s3_endpoint_ends_in_4_and_names_it(repo_root: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_ENDPOINT_URL": endpoint}
        code, out, err = ended(process(repo_root, "status", "s3://bucket/lake", **keys))
    assert (4, "") == (code, out), err
    assert endpoint in err
    assert "canary" not in err
    assert "Traceback" not in err


def test_an_unreachable_scheduler_ends_in_5(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cycles.dask.cluster._ANSWER", 1)
    done = crawl("run", place, "--scheduler", "tcp://127.0.0.1:9")
    assert 5 == done.exit_code, done.output
    assert "tcp://127.0.0.1:9" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_lake_that_may_not_be_written_ends_in_4(place: Path) -> None:
    for folder in (place, *(path for path in place.rglob("*") if path.is_dir())):
        folder.chmod(0o555)
    done = crawl("seed", place, "https://a.test/")
    for folder in (place, *(path for path in place.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    assert 4 == done.exit_code
    assert "permission denied" in done.stderr


def test_public_hosts_without_a_name_end_in_2_before_any_is_asked(place: Path) -> None:
    crawl("seed", place, "https://www.example.org/")
    done = crawl("run", place)
    assert 2 == done.exit_code, done.output
    assert "www.example.org may be a public host" in done.stderr
    assert "agent.contact" in done.stderr


def test_what_nobody_expected_is_shown_whole_and_ends_in_1(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(*_: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("cycles.commands.status.overview", breaks)
    monkeypatch.setattr(sys, "argv", ["crawl", "status", str(place)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert 1 == caught.value.code
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "unexpected KeyError" in shown


def test_main_ends_with_the_errors_exit_code(repo_root: Path, tmp_path: Path) -> None:
    code, out, err = ended(process(repo_root, "status", tmp_path / "none"))
    assert (4, "") == (code, out)
    assert err.startswith("Error: there is no lake")
    assert 1 == len(err.splitlines())


# --- a round that is stopped -------------------------------------------------------------------------------


@contextmanager
def silent_host() -> Iterator[int]:
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def rehearsed(place: Path, port: int) -> None:
    """Settings and a seed of a crawl that waits for a host on loopback."""
    (place / "crawl.toml").write_text(
        '[egress]\nallow = ["127.0.0.0/8"]\n[dns]\nhosts = { "*.test" = "127.0.0.1" }\n'
    )
    assert 0 == crawl("seed", place, f"http://www.a.test:{port}/").exit_code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_round_that_is_stopped_says_how_it_goes_on(
    repo_root: Path, place: Path, number: signal.Signals, code: int
) -> None:
    with silent_host() as port:
        rehearsed(place, port)
        started = process(repo_root, "run", place, "--workers", 1)
        assert started.stderr is not None
        while "fetch" not in (line := started.stderr.readline()):
            assert line, "it ended too early"
        time.sleep(2)  # until it waits for the host; any moment must do
        if number is signal.SIGINT:
            os.killpg(started.pid, number)  # Ctrl-C reaches the workers as well
        else:
            started.send_signal(number)
        ended_with, _, err = ended(started)
    assert code == ended_with, err
    assert f"`crawl run {place}` goes on where this stopped" in err
    assert "Traceback" not in err
    found = json.loads(crawl("status", place, "--format", "json").stdout)
    assert "fetch" == found["open_round"]["stage"]
    assert "released" == found["holder"]["state"]


# --- the same on S3 ----------------------------------------------------------------------------------------


def test_commands_do_the_same_on_s3(s3_lake: str) -> None:
    assert 0 == crawl("init", s3_lake).exit_code
    assert 2 == crawl("init", s3_lake).exit_code
    assert "accepted 1" in crawl("seed", s3_lake, "https://a.test/").stdout
    assert 'agent.name = "bot"' in crawl("config", s3_lake, "set", "agent.name", "bot").stdout
    assert "a.test is paused\n" == crawl("pause", s3_lake, "a.test").stdout
    found = json.loads(crawl("status", s3_lake, "--format", "json").stdout)
    assert (1, ["a.test"]) == (found["waiting"]["seeds"], [row["pattern"] for row in found["paused"]])
    rows_of = json.loads(crawl("sql", s3_lake, "SELECT url FROM seeds", "--format", "json").stdout)
    assert [{"url": "https://a.test/"}] == rows_of
    checked = crawl("check", s3_lake)
    assert 0 == checked.exit_code, checked.output


def test_a_bucket_that_is_not_there_ends_in_4(s3_lake: str) -> None:
    done = crawl("init", "s3://no-such-bucket-here/lake")
    assert 4 == done.exit_code, done.output
    assert "no-such-bucket-here" in done.stderr
