"""What PDFs say; and hostile ones, which say nothing but cost little."""

import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.documents import pdf
from crawl.documents.readers import Link
from tests.crawl.pdfs import catalog, document, one_page, stream, written

URL = "http://a.test/x.pdf"


def read(body: bytes) -> pdf.Reading:
    return pdf.read(body, "application/pdf", URL)


def tried(body: bytes) -> pdf.Reading | None:
    """What a file says; None where reading it raised, whatever that was but for want of memory."""
    try:
        return read(body)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - what matters is that it comes back
        return None


def test_a_file_tells_its_text_title_language_links_and_what_else_it_knows() -> None:
    body = written(
        ["Grüße vom See", "second page"],
        links=["http://b.test/y", "../z.pdf"],
        title="A title",
        author="Somebody",
        language="de-AT",
    )
    found = read(body)
    assert found.text.split() == ["Grüße", "vom", "See", "second", "page"]
    assert (found.title, found.language) == ("A title", "de-AT")
    assert found.links == [Link("http://b.test/y"), Link("../z.pdf")]
    assert found.metadata == {"pages": 2, "pages_read": 2, "author": "Somebody", "created": "D:20260101"}


def test_a_page_that_cannot_be_read_costs_that_page() -> None:
    body = written(["first", "second"])
    start = body.rindex(b"stream\n", 0, body.rindex(b"endstream"))  # the second page's content
    broken = body[: start + 9] + b"\xff" * 8 + body[start + 17 :]
    found = read(broken)
    assert found.text.startswith("first")
    assert found.metadata["pages"] == 2


def test_of_a_long_file_the_first_pages_are_read() -> None:
    found = read(written([f"page{number}" for number in range(230)]))
    assert (found.metadata["pages"], found.metadata["pages_read"]) == (230, 200)
    assert found.text.split()[-1] == "page199"


def test_a_file_that_is_locked_is_not_read() -> None:
    body = document(
        [catalog(), b"<< /Type /Pages /Count 0 /Kids [] >>"],
        b"/Encrypt << /Filter /Standard /V 1 /R 2 /O <%b> /U <%b> /P -1 >> /ID [<00> <00>]"
        % (b"41" * 32, b"42" * 32),
    )
    with pytest.raises(Exception, match="password"):
        read(body)


def _twice(content: bytes) -> bytes:
    packed = zlib.compress(zlib.compress(content, 9), 9)
    head = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n" % len(packed)
    return head + packed + b"\nendstream"


def _forms(depth: int) -> list[bytes]:
    """Forms that draw the next one ten times each."""
    entries = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X %d 0 R >> >>"
    return [stream(b"/X Do " * 10, entries % (7 + number)) for number in range(depth)]


DRAWS = b"<< /XObject << /X 6 0 R >> >>"
LOOP = stream(b"/X Do /X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources " + DRAWS)
NESTED = b"<< /A " * 20_000 + b" >>" * 20_000
CMAP = b"begincmap 1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange endcmap"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"%PDF-1.4\n",
        b"%PDF-1.4\n" + random.Random(1).randbytes(50_000),
        written(["words"])[:-200],
        written(["words"])[:300],
        one_page(stream(b"q " * 60_000_000)),
        one_page(_twice(b" " * 100_000_000)),
        one_page(stream(b"[" * 500_000)),
        one_page(b"<< /Length 99999999999 >>\nstream\nBT (a) Tj ET\nendstream"),
        one_page(stream(b"/X Do"), LOOP, resources=DRAWS),
        one_page(stream(b"/X Do " * 10), *_forms(10), resources=DRAWS),
        one_page(stream(b"BT /F1 1 Tf <0041> Tj ET"), stream(CMAP)).replace(
            b"/Subtype /Type1 /BaseFont /Helvetica", b"/Subtype /Type0 /BaseFont /X /ToUnicode 6 0 R", 1
        ),
        document([catalog(b"/X " + NESTED), b"<< /Type /Pages /Count 0 /Kids [] >>"]),
        document([catalog(), b"<< /Type /Pages /Count 9999999 /Kids [2 0 R 2 0 R] >>"]),
        document(
            [catalog(), b"<< /Type /Pages /Count 99999999 /Kids [" + b"3 0 R " * 200_000 + b"] >>", b"<< >>"]
        ),
        written(["words"]).replace(b"/Root", b"/Prev 9 /Root"),
        written(["words"]).replace(b"xref\n0 ", b"xref\n0 99999999", 1),
        b"%PDF-1.4\n" + b"".join(b"%d 0 obj << /A %d 0 R >> endobj\n" % (n, n + 1) for n in range(1, 20_000)),
    ],
    ids=[
        *("empty", "head", "noise", "cut", "short", "bomb", "bomb-twice", "brackets", "length", "loop"),
        *("million", "cmap", "nested", "pages-loop", "many-pages", "prev-loop", "xref", "objects"),
    ],
)
def test_a_hostile_file_ends_with_what_could_be_read_or_an_ordinary_error(body: bytes) -> None:
    found = tried(body)
    assert found is None or len(found.text) < 3_000_000


GOOD = written(["some words", "and more"], links=["http://b.test/"], title="T")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.binary(max_size=4)), min_size=1, max_size=12))
def test_a_damaged_file_comes_back(damages: list[tuple[int, bytes]]) -> None:
    body = bytearray(GOOD)
    for at, what in damages:
        body[at : at + len(what)] = what
    found = tried(bytes(body))
    assert found is None or found.metadata["pages"] >= found.metadata["pages_read"]
