"""PDF files made by hand: good ones, and such as no writer would make."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

__all__ = ["catalog", "document", "one_page", "stream", "written"]

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def document(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """A file of these objects, numbered from 1; the first is the catalog."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R %b >>\n" % (len(objects) + 1, trailer)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def stream(content: bytes, entries: bytes = b"") -> bytes:
    """A stream object, compressed."""
    packed = zlib.compress(content, 9)
    return b"<< /Length %d /Filter /FlateDecode %b >>\nstream\n%b\nendstream" % (len(packed), entries, packed)


def catalog(entries: bytes = b"") -> bytes:
    """The catalog of a file whose second object is its tree of pages."""
    return b"<< /Type /Catalog /Pages 2 0 R %b >>" % entries


def one_page(content: bytes, *more: bytes, resources: bytes = b"<< /Font << /F1 3 0 R >> >>") -> bytes:
    """A file with one page of this content (a stream object, number 4); further objects from 6 on."""
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources %b /Contents 4 0 R >>" % resources
    )
    pages = b"<< /Type /Pages /Count 1 /Kids [5 0 R] >>"
    return document([catalog(), pages, FONT, content, page, *more])


def written(
    pages: Sequence[str],
    *,
    links: Sequence[str] = (),
    title: str = "",
    author: str = "",
    language: str = "",
) -> bytes:
    """A file as a word processor would write it: a text a page (Latin-1), links on the first."""
    made: list[bytes] = [catalog(b"/Lang (%b)" % language.encode() if language else b""), b"", FONT]
    kids = []
    notes = []
    for link in links:
        action = b"<< /S /URI /URI (%b) >>" % link.encode()
        made.append(b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A %b >>" % action)
        notes.append(b"%d 0 R" % len(made))
    for number, text in enumerate(pages):
        made.append(stream(b"BT /F1 12 Tf 72 720 Td (%b) Tj ET" % text.encode("latin-1")))
        annotations = b"/Annots [%b]" % b" ".join(notes) if number == 0 and notes else b""
        made.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            b" /Contents %d 0 R %b >>" % (len(made), annotations)
        )
        kids.append(b"%d 0 R" % len(made))
    made[1] = b"<< /Type /Pages /Count %d /Kids [%b] >>" % (len(kids), b" ".join(kids))
    made.append(
        b"<< /Title (%b) /Author (%b) /CreationDate (D:20260101) >>" % (title.encode(), author.encode())
    )
    return document(made, b"/Info %d 0 R" % len(made))
