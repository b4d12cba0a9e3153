"""What a body is: by its header, by its first bytes, and whether the two contradict each other.

The subset of WHATWG MIME Sniffing that a crawler needs (sections are those of its review draft of July 2026).
What always holds: only the first `HEADER` bytes are looked at, so that a type does not depend on how a body
arrived; nothing raises; text never becomes a page, nor anything else that could carry scripts, by its bytes
alone (section 7, "privilege escalation"): only what came without a type may. What is added to the standard's
tables are types of their own that it has no pattern for.
It knows no settings: which types are read is crawl.documents.screen's.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from crawl.html import markup

__all__ = ["HEADER", "computed", "contradiction", "family", "signature", "supplied"]

#: 5.2: a resource header
HEADER: Final = 1445

#: 5.1: values by which an old Apache says that it does not know
_APACHE: Final = frozenset(
    {
        "text/plain",
        "text/plain; charset=ISO-8859-1",
        "text/plain; charset=iso-8859-1",
        "text/plain; charset=UTF-8",
    }
)
#: 7, step 2: types that say nothing
_UNKNOWN: Final = frozenset({"", "unknown/unknown", "application/unknown", "*/*"})
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+")

#: 3: bytes that no text holds
_BINARY: Final = bytes([*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])
#: more of them than one in this many bytes are no accident (of random bytes it is one in 9.5)
_NOISE: Final = 20
_SPACE: Final = b"\t\n\f\r "
_BOMS: Final = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")

#: 7.1, first table: what begins a page. As in browsers a tag ends at any white space, not at spaces alone,
#: and a comment needs nothing behind it
_HTML: Final = re.compile(
    rb"[\t\n\f\r ]*+<(?:!--|(?:!DOCTYPE[\t\n\f\r ]+HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE"
    rb"|TITLE|B|BODY|BR|P)[\t\n\f\r />])",
    re.IGNORECASE,
)
_XML: Final = re.compile(rb"[\t\n\f\r ]*<\?xml")
#: what follows the declaration, comments, instructions and document type of XML (not in the standard): of a
#: type that says only XML, the root tells which
_ROOT: Final = re.compile(
    rb"[\t\n\f\r ]*+(?:(?><\?.{0,400}?\?>|<!--.{0,800}?-->)[\t\n\f\r ]*+)*+"
    rb"(?:(<!DOCTYPE\s+html\b)|<(?:[A-Za-z]\w{0,20}:)?(html|rss|feed|RDF)[\s/>])",
    re.DOTALL,
)
_ROOTS: Final = {
    b"html": "application/xhtml+xml",
    b"rss": "application/rss+xml",
    b"feed": "application/atom+xml",
    b"RDF": "application/rdf+xml",
}

#: 6.1, 6.2, 6.4 and 7.1, and behind the blank line what they lack: first bytes (`.` is any) and their type
_PATTERNS: Final = rb"""
\x00\x00[\x01\x02]\x00 image/x-icon
BM image/bmp
GIF8[79]a image/gif
RIFF....WEBPVP image/webp
\x89PNG\r\n\x1a\n image/png
\xff\xd8\xff image/jpeg
FORM....AIFF audio/aiff
ID3 audio/mpeg
OggS\x00 application/ogg
MThd\x00\x00\x00\x06 audio/midi
RIFF....AVI[ ] video/avi
RIFF....WAVE audio/wave
\x1f\x8b\x08 application/x-gzip
PK\x03\x04 application/zip
Rar!\x1a\x07\x00 application/x-rar-compressed
%PDF- application/pdf
%!PS-Adobe- application/postscript

II\*\x00 image/tiff
MM\x00\* image/tiff
....ftypavi[fs] image/avif
....ftyp(?:hei[cx]|mif1) image/heic
....ftyp video/mp4
\x1a\x45\xdf\xa3 video/webm
fLaC audio/flac
\xff[\xfa\xfb\xf2\xf3][\x10-\xeb] audio/mpeg
wOFF font/woff
wOF2 font/woff2
OTTO font/otf
\x00\x01\x00\x00\x00 font/ttf
PK\x05\x06 application/zip
Rar!\x1a\x07\x01 application/x-rar-compressed
7z\xbc\xaf\x27\x1c application/x-7z-compressed
\xfd7zXZ\x00 application/x-xz
BZh[1-9]1AY&SY application/x-bzip2
\x28\xb5\x2f\xfd application/zstd
MSCF\x00\x00\x00\x00 application/vnd.ms-cab-compressed
!<arch>\n application/x-archive
.{257}ustar application/x-tar
MZ application/vnd.microsoft.portable-executable
\x7fELF application/x-elf
\xfe\xed\xfa[\xce\xcf] application/x-mach-binary
[\xce\xcf]\xfa\xed\xfe application/x-mach-binary
\xca\xfe\xba\xbe application/java-vm
\x00asm application/wasm
dex\n0 application/x-dex
[FCZ]WS[\x01-\x40] application/x-shockwave-flash
\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 application/x-ole-storage
SQLite[ ]format[ ]3\x00 application/vnd.sqlite3
"""


def _table() -> tuple[re.Pattern[bytes], tuple[str, ...]]:
    """One expression whose groups are the patterns in their order, and the type of each."""
    rows = [line.rsplit(b" ", 1) for line in _PATTERNS.split(b"\n") if line]
    return re.compile(b"|".join(b"(%b)" % row[0] for row in rows), re.DOTALL), tuple(
        row[1].decode() for row in rows
    )


_SIGNATURE, _TYPES = _table()
_EXECUTABLE: Final = frozenset(
    {
        "application/vnd.microsoft.portable-executable",
        *("application/x-elf", "application/x-mach-binary", "application/java-vm", "application/wasm"),
        *("application/x-dex", "application/x-shockwave-flash"),
    }
)
#: images that always begin with their pattern
_KNOWN_IMAGES: Final = frozenset(kind for kind in _TYPES if kind.startswith("image/")) | {
    "image/jpg",
    "image/pjpeg",
    "image/x-png",
    "image/vnd.microsoft.icon",
}
#: ISO 32000, annex on implementations: readers find the header anywhere within these bytes
_PDF_WITHIN: Final = 1024


def supplied(content_type: str | None) -> str:
    """5.1: the type a header declares, without parameters, in lower case; empty where it declares none."""
    return _supplied(content_type[:1_000]) if content_type else ""


@lru_cache(maxsize=4096)  # of their beginnings: what is remembered of strangers' headers is short
def _supplied(content_type: str) -> str:
    essence = markup.media_type(content_type)
    return essence if _TOKEN.fullmatch(essence) else ""


def family(media_type: str) -> str:
    """`text` (4.6: also XML and JSON), or what stands before the slash."""
    main, _, sub = media_type.partition("/")
    textual = main == "text" or sub.endswith(("+xml", "+json")) or sub in ("xml", "json", "javascript")
    return "text" if textual else main


def signature(head: bytes) -> str | None:
    """6 and the second table of 7.1: the type whose pattern a body begins with; None where there is none."""
    if head[:1] == b"<":  # as most pages do
        return None
    found = _SIGNATURE.match(head)
    return None if found is None else _TYPES[(found.lastindex or 1) - 1]


def computed(content_type: str | None, body: bytes, *, nosniff: bool = False) -> str:
    """7: the media type of a body. `content_type`: the header's value; `nosniff`: as the server asked."""
    essence = supplied(content_type)
    if essence in _UNKNOWN:
        return _identified(body[:HEADER], scriptable=not nosniff)
    if essence in ("text/xml", "application/xml"):
        return _root(body[:HEADER]) or essence
    if nosniff or essence == "text/html" or essence.endswith("+xml"):
        return essence
    if content_type in _APACHE:
        return _text_or_binary(body[:HEADER])
    main = essence.partition("/")[0]
    if main in ("image", "audio", "video") or essence == "application/ogg":
        found = signature(body[:HEADER])
        if found is not None and (found.startswith("image/") if main == "image" else _is_media(found)):
            return found
    return essence


def _is_media(media_type: str) -> bool:
    return media_type.startswith(("audio/", "video/")) or media_type == "application/ogg"


def _identified(head: bytes, *, scriptable: bool) -> str:
    """7.1: the type of a resource that came without one. An empty one is text."""
    if scriptable:
        # By the standard a page behind a UTF-8 mark is text; browsers look behind it, and so do we.
        start = head[3:] if head.startswith(b"\xef\xbb\xbf") else head
        if _HTML.match(start):
            return "text/html"
        if _XML.match(start):
            return _root(start) or "text/xml"
    if head.startswith(_BOMS):
        return "text/plain"
    found = signature(head)
    if found is not None and (scriptable or found != "application/pdf"):
        return found
    return "application/octet-stream" if _binary_bytes(head) else "text/plain"


def _text_or_binary(head: bytes) -> str:
    """7.2: of what an old Apache calls text."""
    plain = head.startswith(_BOMS) or not _binary_bytes(head)
    return "text/plain" if plain else "application/octet-stream"


def _binary_bytes(head: bytes) -> int:
    return len(head) - len(head.translate(None, _BINARY))


def _root(head: bytes) -> str | None:
    """Which XML it is, by its root; None where that tells nothing."""
    found = _ROOT.match(head[3:] if head.startswith(b"\xef\xbb\xbf") else head)
    if found is None:
        return None
    return _ROOTS[b"html" if found[1] else found[2]]


def contradiction(media_type: str, body: bytes) -> str | None:
    """What a body really is where its first bytes rule out its (computed) type; None where they do not.

    An empty body contradicts nothing. A page that begins like an archive or a program lies, and so does noise
    that nobody could read as text; a picture or a PDF has its mark; of other types it is known only that no
    page and no program is one.
    """
    head = body[:HEADER]
    if not head:
        return None
    kind = family(media_type)
    if kind == "text":
        return _no_text(head)
    found = signature(head)
    if media_type == "application/pdf":
        return None if b"%PDF-" in head[:_PDF_WITHIN] else found or _identified(head, scriptable=True)
    if kind == "image" and (media_type in _KNOWN_IMAGES or found is not None):
        real = found or _identified(head, scriptable=True)
        return None if real.startswith("image/") else real
    if found in _EXECUTABLE and _binary_bytes(head):
        return None if media_type in _EXECUTABLE or media_type == "application/octet-stream" else found
    return "text/html" if _HTML.match(head) else None


def _no_text(head: bytes) -> str | None:
    """What it is that cannot be text."""
    if head.lstrip(_SPACE)[:1] == b"<" or head.startswith(_BOMS):
        return None
    odd = _binary_bytes(head)
    if not odd:  # of all that is no text only these begin with text
        return signature(head) if head.startswith((b"%PDF-", b"%!PS-Adobe-")) else None
    found = signature(head)
    if found is not None:
        return found
    noise = odd * _NOISE > len(head) and len(head) >= _NOISE and not _wide(head)
    return "application/octet-stream" if noise else None


def _wide(head: bytes) -> bool:
    """Text of two bytes a character without a mark: every second byte of what is Latin in it is NUL."""
    return max(head[::2].count(0), head[1::2].count(0)) * 3 > len(head)
