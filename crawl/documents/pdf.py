"""Reads PDF: text, title, language, links and what its information dictionary says. One reader of many.

What always holds: what is read depends on the file alone (pages and characters are bounded, not seconds); a
page that cannot be read costs that page, a file of which none can be read raises. What a hostile file may
cost beyond that is the parse process's to bound. pypdf is known here only (docs/decisions/005-pdf.md).
Encryption without a password is undone where pypdf can by itself (AES needs the package `cryptography`).
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pypdf import PageObject, PdfReader
from pypdf.errors import PyPdfError

from crawl.documents.readers import Link, Reading

__all__ = ["read"]

#: pages read of one file: at the slowest seen (15 ms) they stay within the deadline of a parse
_PAGES: Final = 200
#: characters of text after which no further page is begun
_CHARS: Final = 2_000_000
_LINKS: Final = 10_000
#: what the information dictionary says (ISO 32000 14.3.3), as the column `metadata` names it
_INFO: Final = {
    "/Author": "author",
    "/Subject": "subject",
    "/Keywords": "keywords",
    "/Creator": "creator",
    "/Producer": "producer",
    "/CreationDate": "created",
    "/ModDate": "modified",
}
_INFO_CHARS: Final = 1_000

# It tells every oddity of every file, which nobody reads here.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def read(body: bytes, content_type: str | None, url: str) -> Reading:
    """Read a PDF. Raises whatever pypdf does where nothing of the file can be read."""
    reader = PdfReader(io.BytesIO(body), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise PyPdfError("a password is needed")
    count = len(reader.pages)
    texts: list[str] = []
    links: list[Link] = []
    failed: list[Exception] = []
    chars = 0
    for page in _pages(reader, count):
        if chars >= _CHARS:
            break
        try:
            texts.append(page.extract_text())
            chars += len(texts[-1])
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - what a broken page makes pypdf raise is anything
            failed.append(error)
        links += _uris(page)[: _LINKS - len(links)]
    if failed and not texts:
        raise failed[0]
    told: dict[str, Any] = {"pages": count, "pages_read": len(texts)} | _info(reader)
    if failed:
        told["pages_unreadable"] = len(failed)
    if reader.is_encrypted:
        told["encrypted"] = True
    return Reading(
        text="\n".join(texts),
        title=_said(_entries(reader.trailer.get("/Info")).get("/Title")) or "",
        language=_said(_entries(reader.trailer.get("/Root")).get("/Lang")),
        links=links,
        metadata=told,
    )


def _pages(reader: PdfReader, count: int) -> Iterator[PageObject]:
    for number in range(min(count, _PAGES)):
        yield reader.pages[number]


def _uris(page: PageObject) -> list[Link]:
    """Links of a page: its annotations with a URI action (ISO 32000 12.6.4.8)."""
    found = []
    try:
        for annotation in page.get("/Annots") or ():
            uri = _entries(_entries(annotation).get("/A")).get("/URI")
            if (told := _said(uri)) is not None:
                found.append(Link(told))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - as above; the links before it stand
        return found
    return found


def _info(reader: PdfReader) -> dict[str, str]:
    entries = _entries(reader.trailer.get("/Info"))
    return {name: told for key, name in _INFO.items() if (told := _said(entries.get(key))) is not None}


def _followed(value: Any) -> Any:
    """A value, followed to where it lies; None where nothing is."""
    try:
        return value.get_object() if hasattr(value, "get_object") else value
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - as above
        return None


def _entries(value: Any) -> Mapping[str, Any]:
    """A dictionary, followed to where it lies; an empty one where there is none."""
    found = _followed(value)
    return found if isinstance(found, Mapping) else {}


def _said(value: Any) -> str | None:
    """A text string; None where it is none or empty."""
    found = _followed(value)
    if isinstance(found, bytes):
        found = found.decode("latin-1")
    return (str(found).strip()[:_INFO_CHARS] or None) if isinstance(found, str) else None
