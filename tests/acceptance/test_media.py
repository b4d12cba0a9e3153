"""A site with more than pages: what is read as what, what is left alone and why, in the lake and in words.

Rounds: with pages alone; then, by settings, with PDF and pictures, whose reader is the example's; then what
they led to; then all that is due two weeks later.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from cycles.cli import command
from tests.acceptance.clusters import cluster
from tests.acceptance.handmade import Crawl, Reply, Site, page, serving
from tests.crawl.pdfs import one_page, stream, written
from tests.crawls import crawl
from tests.web.serve import toml

START = datetime(2026, 2, 1, 6, tzinfo=UTC)
SECOND = START + timedelta(hours=1)
THIRD = START + timedelta(days=15)
HOST = "www.site.test"

ZIP = b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(range(256)) * 20
EXE = b"MZ\x90\0\3\0\0\0\4\0\0\0\xff\xff" + bytes(2_000)
HUGE = 3_000_000


def picture(kind: str, size: tuple[int, int], **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, kind, **options)
    return out.getvalue()


def exif() -> Image.Exif:
    made = Image.Exif()
    made[270], made[272] = "A lake in the morning", "Camera 1"
    return made


def typed(content_type: str | None, body: bytes, **headers: str) -> Reply:
    declared = {} if content_type is None else {"Content-Type": content_type}
    return Reply(body=body, headers=declared | headers, etag=f'"{len(body)}"')


PAPER = written(["Water in lakes"], links=["/from-pdf"], title="On lakes", author="A. Writer")
FILES: dict[str, Reply] = {
    "/paper.pdf": typed("application/pdf", PAPER),
    "/twin.pdf": typed("application/pdf", PAPER + b"% of the same text\n"),
    "/photo.jpg": typed("image/jpeg", picture("JPEG", (40, 30), exif=exif())),
    "/a.png": typed("image/png", picture("PNG", (8, 8))),
    "/b.png": typed("image/png", picture("PNG", (9, 9))),
    "/mislabelled.png": typed("image/png", picture("JPEG", (5, 5))),
    "/archive.html": typed("text/html", ZIP),
    "/program.html": typed("text/html; charset=utf-8", EXE),
    "/noise.html": typed("text/html", bytes(range(256)) * 40),
    "/error.pdf": typed("application/pdf", b"<!doctype html><title>Not here</title>"),
    "/broken.pdf": typed("application/pdf", b"%PDF-1.4\n" + b"x" * 3_000),
    "/bomb.pdf": typed("application/pdf", one_page(stream(b"q " * 60_000_000))),
    "/cut.png": typed("image/png", picture("PNG", (8, 8))[:20]),
    "/latin.html": typed("text/html; charset=utf-8", "<p>Gr\xfc\xdfe aus der Zukunft".encode("latin-1")),
    "/text.html": typed("text/plain", b"<!doctype html><p>shown as text"),
    "/typeless": typed(None, b"<!doctype html><p>without a type"),
    "/typeless-nosniff": typed(None, b"<!doctype html><p>x", **{"X-Content-Type-Options": "nosniff"}),
    "/data.json": typed("application/json", b'{"a": 1}'),
    "/disc.iso": typed("application/x-iso9660-image", bytes(HUGE)),
    "/film.mp4": typed("video/mp4", bytes(HUGE)),
    "/nothing": typed("text/html", b""),
}
PAGES = {"/latin.html", "/typeless", "/nothing", "/from-pdf"}
LIES = {
    "/archive.html": "application/zip",
    "/program.html": "application/vnd.microsoft.portable-executable",
    "/noise.html": "application/octet-stream",
}
ALONE = {
    "/text.html": "text/plain",
    "/typeless-nosniff": "text/plain",
    "/data.json": "application/json",
    "/disc.iso": "application/x-iso9660-image",
    "/film.mp4": "video/mp4",
}


@dataclass(slots=True, kw_only=True)
class Told:
    """The crawled site, and what was asked of it in each round."""

    site: Site
    crawl: Crawl
    asked: list[set[str]]

    def rows(self, statement: str, round_: int | None = None) -> dict[str, dict[str, Any]]:
        """Rows of a statement by the path of their URL."""
        return {
            row["url"].partition(".test:")[2].partition("/")[2]: row for row in self._sql(statement, round_)
        }

    def _sql(self, statement: str, round_: int | None) -> list[dict[str, Any]]:
        return self.crawl.sql(statement, round_)

    def states(self, round_: int) -> dict[str, tuple[str, str | None, str | None, str | None]]:
        """State, outcome, reason and type of each path after a round."""
        rows = self.rows("SELECT url, state, last_outcome, reason, sniffed_type FROM urls", round_)
        names = ("state", "last_outcome", "reason", "sniffed_type")
        return {f"/{path}": tuple(row[name] for name in names) for path, row in rows.items()}  # type: ignore[misc]


def tried(*words: str) -> Result:
    """A command, whatever comes of it."""
    return CliRunner().invoke(command, words)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, workers: str) -> Iterator[Told]:
    with serving() as site:
        for path, reply in FILES.items():
            site.put(HOST, path, reply)
        site.put(HOST, "/from-pdf", page("From a PDF", "linked by papers alone"))
        settings: dict[str, dict[str, Any]] = {
            "agent": {"name": "Reader", "contact": "mailto:reader@example.org"},
            "egress": {"allow": ["127.0.0.0/8"]},
            "dns": {"hosts": {"*.test": "127.0.0.1"}},
            "politeness": {"min_delay": "0s", "factor": 0.0},
            "scope": {"hosts": [HOST]},
        }
        crawl = Crawl(tmp_path_factory.mktemp("media") / "lake", workers, settings)
        crawl.seed(*(site.url(HOST, path) for path in FILES), now=START)
        asked = []
        for number, now in enumerate((START, SECOND, SECOND, THIRD), 1):
            since = len(site.log)
            if number == 2:
                _read_more(crawl)
            crawl.round(now)
            asked.append({one.path for one in site.log[since:]})
        yield Told(site=site, crawl=crawl, asked=asked)


def _read_more(crawl: Crawl) -> None:
    """Have PDF and pictures read from now on."""
    at = "examples.images.crawl_cycles_images:read"
    root = str(crawl.root)
    crawl.command(
        "config", root, "set", "content.readers", f'{{ "image/png" = "{at}", "image/jpeg" = "{at}" }}'
    )
    kinds = "text/html,application/xhtml+xml,application/pdf,image/png,image/jpeg"
    crawl.command("config", root, "set", "content.types", kinds)


def test_pages_alone_are_read_at_first(told: Told) -> None:
    found = told.states(1)
    for path in ("/latin.html", "/typeless", "/nothing"):
        assert found[path] == ("FETCHED", "OK", None, "text/html")
    for path, kind in ALONE.items():
        assert found[path] == ("FETCHED", "UNSUPPORTED_TYPE", "unsupported_type", kind)
    for path, reply in FILES.items():
        kind = reply.headers.get("Content-Type", "").partition(";")[0]
        if kind == "application/pdf" or kind.startswith("image/"):
            assert found[path] == ("FETCHED", "UNSUPPORTED_TYPE", "unsupported_type", kind)


def test_what_lies_about_itself_is_quarantined_with_what_it_is(told: Told) -> None:
    found = told.states(1)
    for path, kind in LIES.items():
        assert found[path] == ("QUARANTINED", "TYPE_MISMATCH", "type_mismatch", kind)


def test_of_what_nobody_reads_few_bytes_are_taken_and_none_kept(told: Told) -> None:
    fetches = told.rows(
        "SELECT url, outcome, reason, content_type, sniffed_type, wire_bytes, bytes, body_hash, truncated"
        " FROM fetches WHERE kind = 'page' AND round = 1"
    )
    disc = fetches["disc.iso"]
    assert disc["wire_bytes"] + disc["bytes"] == 0
    assert (disc["outcome"], disc["reason"], disc["truncated"]) == (
        "UNSUPPORTED_TYPE",
        "unsupported_type",
        False,
    )
    lie = fetches["archive.html"]
    assert (lie["content_type"], lie["sniffed_type"]) == ("text/html", "application/zip")
    kept = {path for path, fetch in fetches.items() if fetch["body_hash"] is not None}
    assert kept == {"latin.html", "typeless", "nothing"}
    kinds = {row["sniffed_type"] for row in told.crawl.sql("SELECT sniffed_type FROM bodies", 1)}
    assert kinds == {"text/html"}


def test_a_type_that_is_read_by_now_is_asked_for_at_once_and_in_full(told: Told) -> None:
    """What was blocked by settings is looked at again as well: they have changed."""
    again = {
        path
        for path, reply in FILES.items()
        if reply.headers.get("Content-Type", "")[:5] in ("appli", "image")
    }
    again -= {"/data.json", "/disc.iso"}
    assert told.asked[1] - {"/robots.txt"} == again | LIES.keys()
    late = [one for one in told.site.log if one.path == "/paper.pdf"]
    assert ["If-None-Match" in one.headers for one in late] == [False, False, True]
    assert [one.status for one in late] == [200, 200, 304]


def test_pdfs_and_pictures_become_documents(told: Told) -> None:
    pages = told.rows(
        "SELECT url, title, text, charset, content_type, sniffed_type, metadata, document_key FROM pages"
    )
    assert {f"/{path}" for path in pages} == PAGES | {
        *("/paper.pdf", "/twin.pdf", "/photo.jpg", "/a.png", "/b.png", "/mislabelled.png"),
    }
    paper = pages["paper.pdf"]
    assert (paper["title"], paper["text"], paper["charset"]) == ("On lakes", "Water in lakes", None)
    assert (paper["content_type"], paper["sniffed_type"]) == ("application/pdf", "application/pdf")
    assert json.loads(paper["metadata"])["author"] == "A. Writer"
    assert pages["twin.pdf"]["document_key"] == paper["document_key"]
    photo = pages["photo.jpg"]
    assert photo["text"] == "A lake in the morning"
    assert json.loads(photo["metadata"]) == {
        "animated": False,
        "camera_model": "Camera 1",
        "description": "A lake in the morning",
        "format": "JPEG",
        "height": 30,
        "mode": "RGB",
        "width": 40,
    }
    sizes = {
        path: json.loads(pages[path]["metadata"])["width"] for path in ("a.png", "b.png", "mislabelled.png")
    }
    assert sizes == {"a.png": 8, "b.png": 9, "mislabelled.png": 5}
    assert pages["mislabelled.png"]["sniffed_type"] == "image/jpeg"
    assert pages["latin.html"]["text"].endswith("aus der Zukunft")


def test_a_link_in_a_pdf_leads_on(told: Told) -> None:
    (row,) = told.crawl.sql("SELECT found_by, depth, state FROM urls WHERE url LIKE '%/from-pdf'")
    assert (row["found_by"], row["depth"], row["state"]) == ("link", 1, "FETCHED")
    links = told.crawl.sql("SELECT via, rel FROM links WHERE target_url LIKE '%/from-pdf'")
    assert {(link["via"], link["rel"]) for link in links} == {("a", None)}
    assert "/from-pdf" in told.asked[2]


def test_what_no_reader_can_read_costs_itself_only(told: Told) -> None:
    found = told.states(3)
    assert found["/error.pdf"] == ("QUARANTINED", "TYPE_MISMATCH", "type_mismatch", "text/html")
    for path, kind in (
        ("/broken.pdf", "application/pdf"),
        ("/bomb.pdf", "application/pdf"),
        ("/cut.png", "image/png"),
    ):
        state, outcome, reason, sniffed = found[path]
        assert (state, outcome, sniffed) == ("QUARANTINED", "PARSE_FAILED", kind), path
        assert reason is not None
        assert reason.startswith("reader_failed ("), path
    (refused,) = told.crawl.sql("SELECT sum(count) AS count FROM rejects WHERE reason = 'reader_failed'", 3)
    assert refused["count"] == 3


def test_the_story_says_why_something_was_not_read(told: Told) -> None:
    def story(path: str) -> str:
        return told.crawl.explain(told.site.url(HOST, path), THIRD)

    disc, lie, broken = story("/disc.iso"), story("/archive.html"), story("/broken.pdf")
    assert (
        "not read: it is application/x-iso9660-image, which is none of content.types; nothing of it" in disc
    )
    assert "→ 200 UNSUPPORTED_TYPE" in disc
    assert "QUARANTINED" in lie
    assert "not read: it says text/html, but its first bytes are those of application/zip" in lie
    assert "judged anew then, or as soon as the settings change" in lie
    assert "the reader of application/pdf could make nothing of it" in broken
    assert "14 characters, read as application/pdf" in story("/paper.pdf")


def test_all_invariants_hold(told: Told) -> None:
    told.crawl.command("check", str(told.crawl.root))


def test_a_reader_that_is_not_installed_is_named_before_anything_is_done(told: Told) -> None:
    root = str(told.crawl.root)
    rounds = told.crawl.sql("SELECT max(round) AS last FROM rounds")
    refused = tried("config", root, "set", "content.types", "text/html,application/msword")
    assert refused.exit_code == 2
    assert "nothing here reads application/msword" in refused.output
    toml = told.crawl.root / "crawl.toml"
    before = toml.read_text()
    try:
        toml.write_text(before.replace('"application/pdf"', '"application/msword"'))
        shown = told.crawl.command("config", root)
        assert "no round can run with these on this machine: " in shown
        assert "nothing here reads application/msword" in shown
        run = tried("run", root)
        assert run.exit_code == 2
        assert "nothing here reads application/msword" in run.output
    finally:
        toml.write_text(before)
    assert told.crawl.sql("SELECT max(round) AS last FROM rounds") == rounds


@pytest.mark.slow
def test_a_reader_that_the_workers_have_not_is_told_before_anything_is_asked(
    tmp_path: Path, repo_root: Path
) -> None:
    root, here = str(tmp_path / "lake"), str(repo_root)
    driver = {"PYTHONPATH": os.pathsep.join([here, str(repo_root / "examples" / "images")])}
    with serving() as site, cluster(tmp_path / "cluster", 1, {"PYTHONPATH": here}) as workers:
        site.put(HOST, "/", page("Home", "words"))
        asked = ("run", root, "--scheduler", workers.address)
        assert crawl("init", root).returncode == 0
        settings = {
            "agent": {"name": "Reader", "contact": "mailto:reader@example.org"},
            "egress": {"allow": ["127.0.0.0/8"]},
            "dns": {"hosts": {"*.test": "127.0.0.1"}},
            "content": {
                "types": ["text/html", "image/png"],
                "readers": {"image/png": "crawl_cycles_images:read"},
            },
        }
        (tmp_path / "lake" / "crawl.toml").write_text(toml(settings))
        assert crawl("seed", root, site.url(HOST), environ=driver).returncode == 0
        refused = crawl(*asked, environ=driver)
        assert refused.returncode == 2
        assert (
            "on a worker: content.types: the reader of image/png, crawl_cycles_images:read" in refused.stderr
        )
        assert site.log == []
        assert crawl("config", root, "set", "content.types", "text/html", environ=driver).returncode == 0
        assert crawl(*asked, environ=driver).returncode == 0
        assert len(site.asked(HOST, "/")) == 1
