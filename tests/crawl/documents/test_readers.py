"""Readers: where they come from, and what is made of what they give."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, PngImagePlugin

from crawl import html
from crawl.documents import pdf, readers
from crawl.documents.readers import Link, Reading, load, named, page_of
from crawl.errors import SettingsError
from crawl.policy import Content

URL = "http://a.test/dir/x.bin"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Make packages that offer readers, as if they were installed."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, points: dict[str, str], *modules: Path) -> None:
        info = tmp_path / f"{name.replace('-', '_')}-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
        lines = "\n".join(f"{kind} = {at}" for kind, at in points.items())
        (info / "entry_points.txt").write_text(f"[{readers.GROUP}]\n{lines}\n")
        for module in modules:
            shutil.copy(module, tmp_path)

    return make


def test_pages_and_pdfs_are_read_without_any_plug_in() -> None:
    found = load(Content(types=("text/html", "application/xhtml+xml", "application/pdf")))
    assert found == {
        "text/html": html.read,
        "application/xhtml+xml": html.read,
        "application/pdf": pdf.read,
    }


def test_a_type_that_nobody_reads_is_told_with_what_to_do() -> None:
    with pytest.raises(SettingsError, match=r"nothing here reads image/png: install a package .*plugins\.md"):
        load(Content(types=("text/html", "image/png")))


def test_a_function_named_in_the_settings_goes_before_all_others(install: Install) -> None:
    install("offers", {"text/html": "elsewhere:read", "x/y": "elsewhere:read"})
    content = Content(types=("text/html", "x/y"), readers={"x/y": "crawl.documents.pdf:read"})
    assert named(content) == {"text/html": "crawl.html:read", "x/y": "crawl.documents.pdf:read"}
    assert load(content)["x/y"] is pdf.read


def test_an_installed_package_is_found_by_its_entry_point(install: Install) -> None:
    install("offers", {"x/y": "crawl.documents.pdf:read"})
    assert named(Content(types=("x/y",))) == {"x/y": "crawl.documents.pdf:read"}


def test_of_two_packages_for_one_type_the_settings_must_choose(install: Install) -> None:
    install("one", {"x/y": "one:read"})
    install("other", {"x/y": "other:read"})
    with pytest.raises(SettingsError) as caught:
        named(Content(types=("x/y",)))
    assert "x/y has several readers: one:read (one) and other:read (other); say which" in str(caught.value)


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ("no_such_module:read", "ModuleNotFoundError"),
        ("crawl.documents.pdf:no_such", "AttributeError"),
        ("crawl.documents.pdf", "write module:function"),
        ("crawl.documents.pdf:_CHARS", "is no function"),
        ("broken:read", "ZeroDivisionError"),
    ],
)
def test_a_reader_that_cannot_be_loaded_is_named(at: str, why: str, install: Install, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(SettingsError) as caught:
        load(Content(types=("x/y",), readers={"x/y": at}))
    assert f"the reader of x/y, {at}, " in str(caught.value)
    assert why in str(caught.value)


# --- what is made of a reading ------------------------------------------------------------------------------


def test_a_reading_becomes_a_page() -> None:
    reading = Reading(
        text="  Ein Satz\n\tauf zwei   Zeilen ",
        title=" A  title",
        language="de_AT",
        links=[
            Link("http://b.test/y#part"),
            Link(" ../z ", " some\nwords "),
            Link("../z", "some words"),
            Link("mailto:x@y.test"),
            Link("http://"),
            Link(""),
        ],
        metadata={"b": [1, 2.5, None], "a": "ä"},
    )
    page, metadata = page_of(reading, URL, 100)
    assert (page.text, page.title, page.language) == ("Ein Satz auf zwei Zeilen", "A title", "de-AT")
    assert list(page.links) == [
        ("http://b.test/y", None, None, "a"),
        ("http://a.test/z", "some words", None, "a"),
    ]
    assert (page.base, page.charset, page.robots, page.refresh) == (URL, "", (), None)
    assert metadata == '{"a": "ä", "b": [1, 2.5, null]}'


def test_what_is_no_language_is_none() -> None:
    assert page_of(Reading(text="x", language="no language at all"), URL, 9)[0].language is None
    assert page_of(Reading(text="x"), URL, 9) == (page_of(Reading(text="x"), URL, 9)[0], None)


def test_links_beyond_the_limit_are_counted() -> None:
    page, _ = page_of(Reading(links=[Link(f"/{number}") for number in range(30)]), URL, 10)
    assert (len(page.links), page.links.cut) == (10, 20)


def test_what_no_table_could_hold_is_left_out() -> None:
    reading = Reading(
        text="half \ud800 of a pair, and \0 none",
        title="\udfff",
        metadata={"x": "\ud800"},
        links=[Link("/\ud83d")],
    )
    page, metadata = page_of(reading, URL, 9)
    assert (page.text, page.title) == ("half ? of a pair, and none", "?")
    assert metadata is not None
    (metadata + page.text + page.title + page.links.url[0]).encode()


@pytest.mark.parametrize(
    "reading",
    [
        None,
        "text",
        {"text": "x"},
        Reading(text=b"x"),  # type: ignore[arg-type]
        Reading(title=None),  # type: ignore[arg-type]
        Reading(links=["/x"]),  # type: ignore[list-item]
        Reading(links=None),  # type: ignore[arg-type]
        Reading(metadata={"x": object()}),
        Reading(metadata={"x": math.nan}),
        Reading(metadata={"x": "y" * 100_000}),
        Reading(metadata=[1]),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_reading_is_refused(reading: object) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)):
        page_of(reading, URL, 9)


# --- the example --------------------------------------------------------------------------------------------


def test_the_example_reads_pictures_once_it_is_installed(install: Install, repo_root: Path) -> None:
    folder = repo_root / "examples" / "images"
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    install(project["name"], project["entry-points"][readers.GROUP], folder / "crawl_cycles_images.py")
    types = tuple(project["entry-points"][readers.GROUP])
    read = load(Content(types=types))

    texts = PngImagePlugin.PngInfo()
    texts.add_text("Title", "A red square")
    texts.add_text("Description", "It is red")
    out = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(out, "PNG", pnginfo=texts)
    page, metadata = page_of(read["image/png"](out.getvalue(), "image/png", URL), URL, 9)
    assert (page.title, page.text) == ("A red square", "It is red")
    assert json.loads(metadata or "") == {
        "format": "PNG",
        "width": 40,
        "height": 30,
        "mode": "RGB",
        "animated": False,
        "description": "It is red",
    }

    exif = Image.Exif()
    exif[271], exif[270], exif[34853] = "A maker", "Ein Bild", {1: "N"}
    out = io.BytesIO()
    Image.new("L", (8, 8)).save(out, "JPEG", exif=exif)
    page, metadata = page_of(read["image/jpeg"](out.getvalue(), None, URL), URL, 9)
    told = json.loads(metadata or "")
    assert (told["camera_make"], told["description"], told["format"]) == ("A maker", "Ein Bild", "JPEG")
    assert not [name for name in told if "gps" in name.lower()]

    for body in (b"", b"\x89PNG\r\n\x1a\n", out.getvalue()[:50], b"<svg>", b"GIF89a"):
        with pytest.raises(Exception, match=r".*"):
            read["image/png"](body, None, URL)


def test_a_picture_of_a_billion_pixels_costs_the_example_nothing(install: Install, repo_root: Path) -> None:
    import struct
    import zlib

    folder = repo_root / "examples" / "images"
    install("images", {"image/png": "crawl_cycles_images:read"}, folder / "crawl_cycles_images.py")
    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    body = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    data = b"IDAT" + zlib.compress(bytes(1_000_000), 9)
    body += struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))
    reading = load(Content(types=("image/png",)))["image/png"](body, None, URL)
    assert isinstance(reading, Reading)
    assert reading.metadata["width"] == 60_000


@pytest.mark.slow
def test_the_example_can_be_installed_and_is_found(tmp_path: Path, repo_root: Path) -> None:
    """By pip, from its folder, without asking any index."""
    # 70.1 is the first that builds wheels by itself
    pytest.importorskip("setuptools", "70.1", reason="setuptools is too old to build the example")
    source = tmp_path / "source"
    shutil.copytree(repo_root / "examples" / "images", source)
    there = tmp_path / "there"
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(there)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True, timeout=100)
    program = (
        "from crawl.documents.readers import load\nfrom crawl.policy import Content\n"
        "types = ('image/png', 'image/jpeg', 'image/gif', 'image/tiff', 'image/webp')\n"
        "print({function.__module__ for function in load(Content(types=types)).values()})\n"
    )
    path = os.pathsep.join([str(there), str(repo_root)])
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert told.stdout.strip() == "{'crawl_cycles_images'}"
