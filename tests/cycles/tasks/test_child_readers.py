"""Strangers' readers in a real parse process: whatever one does costs the page it was at."""

import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from crawl.errors import SettingsError
from crawl.keys import Keyer
from crawl.policy import Content, Parsing, Settings
from crawl.url import psl_hash
from cycles.tasks.child import ParseChild, Parsed
from lake import identity
from lake.store import connect
from tests.cycles.tasks.test_child import SECRET, pages

#: what readers of the type x/NAME do with a body
ODD = """
import ctypes, os, socket, subprocess, sys, threading, time, urllib.request
from crawl.documents.readers import Link, Reading

def good(body, content_type, url):
    print("a library that talks")
    return Reading(text=body.decode(), links=[Link("/on")], metadata={"type": content_type, "url": url})

def silent(body, content_type, url):
    return Reading(metadata={"size": len(body)})

def raising(body, content_type, url):
    raise KeyError(body)

def leaving(body, content_type, url):
    sys.exit(0)

def wrong(body, content_type, url):
    return {"text": "x"}

def deep(body, content_type, url):
    return deep(body, content_type, url)

def hanging(body, content_type, url):
    while True:
        pass

def eating(body, content_type, url):
    return Reading(text="x" * 2_000_000_000)

def dying(body, content_type, url):
    os._exit(9)

def crashing(body, content_type, url):
    ctypes.string_at(0)

def asking(body, content_type, url):
    urllib.request.urlopen("http://127.0.0.1:%s/" % body.decode())

def connecting(body, content_type, url):
    socket.create_connection(("127.0.0.1", int(body)))

def starting(body, content_type, url):
    subprocess.run(["true"])
"""
NAMES = [line.split()[1].partition("(")[0] for line in ODD.splitlines() if line.startswith("def ")]


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ParseChild]:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd_readers.py").write_text(ODD)
    root = folder / "lake"
    identity.create(connect(str(root)), psl_hash(), 1, SECRET)
    readers = {f"x/{name}": f"odd_readers:{name}" for name in NAMES}
    settings = Settings(
        content=Content(types=("text/html", *readers), readers=readers),
        parsing=Parsing(deadline=timedelta(seconds=0.5), memory_bytes=300_000_000),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        with ParseChild(str(root), settings) as made:
            yield made


def of_types(*given: tuple[str, bytes]) -> list[tuple[Any, ...]]:
    """A batch of bodies of types x/NAME."""
    made = pages(*[body for _, body in given])
    at = made[0].index("text/html")
    kind = at + 3  # content type, headers, truncated, sniffed type
    batch = []
    for (name, _), values in zip(given, made, strict=True):
        fields = list(values)
        fields[at] = fields[kind] = f"x/{name}"
        batch.append(tuple(fields))
    return batch


def documents(parsed: Parsed) -> dict[str, dict[str, Any]]:
    rows = [row for extract in parsed.extracts for row in extract.documents.to_pylist()]
    return {row["url"].rpartition("/")[2]: row for row in rows}


def test_a_reader_gives_a_document_and_links(parser: ParseChild) -> None:
    parsed = parser.parse(of_types(("good", b"some words")))
    (document,) = documents(parsed).values()
    assert (document["text"], document["sniffed_type"], document["charset"]) == ("some words", "x/good", None)
    assert document["metadata"] == '{"type": "x/good", "url": "http://a.test/0"}'
    (link,) = [row for extract in parsed.extracts for row in extract.links.to_pylist()]
    assert (link["target_url"], link["via"], link["depth"]) == ("http://a.test/on", "a", 1)


def test_what_has_no_text_is_a_document_of_its_own_body(parser: ParseChild) -> None:
    bodies = [b"one", b"two", b"one"]
    parsed = parser.parse(of_types(*[("silent", body) for body in bodies]))
    assert parsed.failed == {}
    keys = [row["document_key"] for extract in parsed.extracts for row in extract.parsed.to_pylist()]
    assert keys[0] == keys[2] != keys[1]
    assert Keyer(SECRET).document_key("") not in keys


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raising", "reader_failed (KeyError)"),
        ("leaving", "reader_failed (SystemExit)"),
        ("wrong", "reader_failed (TypeError)"),
        ("deep", "reader_failed (RecursionError)"),
        ("starting", "reader_failed (PermissionError)"),
        ("hanging", "parse_deadline"),
        ("eating", "parse_memory"),
        pytest.param("dying", "parse_killed", marks=pytest.mark.slow),
        ("crashing", "parse_killed"),
    ],
)
def test_whatever_a_reader_does_costs_its_page_only(parser: ParseChild, name: str, reason: str) -> None:
    parsed = parser.parse(of_types(("good", b"before"), (name, b"x"), ("good", b"after")))
    assert parsed.failed == {1: reason}
    assert {row["text"] for row in documents(parsed).values()} == {"before", "after"}


def test_a_reader_that_fails_by_itself_costs_no_process(parser: ParseChild) -> None:
    parser.parse(of_types(("good", b"x")))
    before = parser.pid
    parser.parse(of_types(("raising", b"x"), ("leaving", b"x"), ("wrong", b"x")))
    assert parser.pid == before


@pytest.mark.parametrize(("name", "reason"), [("asking", "URLError"), ("connecting", "PermissionError")])
def test_a_reader_reaches_nobody(parser: ParseChild, name: str, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = str(server.getsockname()[1]).encode()
        parsed = parser.parse(of_types((name, port)))
        with pytest.raises(TimeoutError):
            server.accept()
    assert parsed.failed == {0: f"reader_failed ({reason})"}


def test_a_reader_that_this_machine_has_not_is_named(tmp_path: Path) -> None:
    identity.create(connect(str(tmp_path)), psl_hash(), 1, SECRET)
    content = Content(types=("x/y",), readers={"x/y": "no_such_module:read"})
    with (
        ParseChild(str(tmp_path), Settings(content=content)) as parser,
        pytest.raises(SettingsError, match="the reader of x/y, no_such_module:read, cannot be loaded"),
    ):
        parser.parse(pages(b"<p>x"))
