"""Which encoding a page is written in, and its markup as UTF-8.

What always holds: nothing here raises on any input; only WHATWG labels are known (a Python codec that is
none, such as rot13 or zip, is never reached); the answer depends on the bytes and the header alone. Order of
evidence: byte order mark · charset of Content-Type · a `meta` in the markup (the standard's prescan) · an XML
declaration · UTF-8, if the bytes are it but for a few · what Firefox's detector says (chardetng, without its
hint by domain, so that one text is read alike wherever it stands) · windows-1252.

Sources: WHATWG HTML 13.2.3 (determining the character encoding), WHATWG Encoding 4, WHATWG MIME Sniffing 4.4.
The choice of the detector: docs/decisions/022-charset-and-language.md.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import webencodings
from chardetng_py.detector import EncodingDetector

from crawl.html import decoders

__all__ = ["FALLBACK", "SCAN_BYTES", "from_content_type", "sniff", "to_utf8"]

#: what a page is read as that declares nothing and is no valid UTF-8: the web's own default for western
#: locales
FALLBACK: Final = "windows-1252"
#: how far a declaration is looked for. The standard's prescan reads 1,024 bytes, and a browser that meets a
#: later `meta` while parsing starts over with it: reading further at once comes to the same.
SCAN_BYTES: Final = 65_536

#: characters of a Content-Type that are read
_HEADER: Final = 4_096
#: what a detector reads of a body, from shortly before the first octet that is not ASCII
_DETECTED_BYTES: Final = 262_144
#: fewer octets beyond ASCII are signs of punctuation, which every guess fits
_TELLING_OCTETS: Final = 4
#: characters of UTF-8 for each octet that is none, in a body that counts as UTF-8 in spite of it
_MOSTLY: Final = 20

_HIGH: Final = bytes(range(0x80, 0x100))
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_SPACE: Final = b"\t\n\f\r "
#: one attribute's name and, if it has one, the start of its value (13.2.3.3, get an attribute)
_NAME: Final = re.compile(rb"[\t\n\f\r /]*([^\t\n\f\r />][^\t\n\f\r =/>]*)[\t\n\f\r ]*(=?)[\t\n\f\r ]*")
_BARE: Final = re.compile(rb"[^\t\n\f\r >]*")
_TAG: Final = re.compile(rb"</?[A-Za-z][^\t\n\f\r >]*")
_META: Final = re.compile(rb"<meta(?=[\t\n\f\r /])", re.IGNORECASE)
_IN_CONTENT: Final = re.compile(
    rb"charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\f\r ;\"'][^\t\n\f\r ;]*))",
    re.IGNORECASE,
)
_XML: Final = re.compile(rb"<\?xml[^>]*?\bencoding[\t\n\r ]*=[\t\n\r ]*(?:\"([^\">]*)\"|'([^'>]*)')")
_PARAMETER: Final = re.compile(r";[\t\n\r ]*([^;=\"]*)(?:=(?:\"((?:[^\"\\]|\\.)*)\"([^;]*)|([^;]*)))?")


def to_utf8(body: bytes, content_type: str | None) -> tuple[str, bytes]:
    """The encoding's WHATWG name and the markup in UTF-8, without its byte order mark.

    What cannot be decoded becomes U+FFFD. A body that is valid UTF-8 is handed back as it is, not copied.
    """
    name, mark = sniff(body, content_type)
    if mark:
        body = body[mark:]
    if name == "utf-8":
        return name, body if _valid(body) else body.decode("utf-8", "replace").encode()
    if name == "replacement":  # Encoding 14.1: not decoded at all, so that no markup can hide in it
        return name, "�".encode() if body else b""
    return name, decoders.decode(body, name).encode()


def sniff(body: bytes, content_type: str | None) -> tuple[str, int]:
    """The encoding's WHATWG name and the length of the byte order mark that told it (0 where none did)."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return name, len(mark)
    declared = from_content_type(content_type) if content_type else None
    return declared or _prescan(body[:SCAN_BYTES]) or _xml(body) or _undeclared(body), 0


def from_content_type(value: str) -> str | None:
    """WHATWG name of a Content-Type's charset; None when it has none or one that is no label.

    The first parameter named charset that names an encoding counts; a quoted value must be the parameter's
    whole value, and what follows a comma belongs to a second header that a proxy joined on.
    """
    return _from_content_type(value[:_HEADER])


@lru_cache(maxsize=1024)  # a site sends one header for all its pages; of long ones the beginning is kept
def _from_content_type(value: str) -> str | None:
    for found in _PARAMETER.finditer(value):
        name, quoted, after, bare = found.groups()
        if name.strip().lower() != "charset":
            continue
        if quoted is not None:
            label = quoted if not after.split(",", 1)[0].strip() else None
        else:
            label = (bare or "").split(",", 1)[0].strip()
        if label and (known := _name(label)):
            return known
    return None


def _name(label: str | bytes) -> str | None:
    """The encoding a label means, as Encoding 4.2 has it."""
    if isinstance(label, bytes):
        label = label.decode("ascii", "replace")
    found = webencodings.lookup(label)
    return str(found.name) if found is not None else None


def _in_markup(label: bytes) -> str | None:
    """As `_name`, for a declaration read as ASCII: such a page cannot be in UTF-16 (HTML 13.2.3.2)."""
    name = _name(label)
    if name in {"utf-16le", "utf-16be"}:
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


def _prescan(head: bytes) -> str | None:
    """Prescan a byte stream to determine its encoding (HTML 13.2.3.2)."""
    if b"charset" not in head.lower():  # most pages that declare nothing end here
        return None
    at = head.find(b"<")
    while at >= 0:
        if head.startswith(b"<!--", at):
            end = head.find(b"-->", at + 2)  # the dashes of `<!-->` may be the same two
            if end < 0:
                return None
            at = end + 3
        elif _META.match(head, at):
            attributes, at = _attributes(head, at + 5)
            if attributes is None:
                return None
            if name := _from_meta(attributes):
                return name
        elif tag := _TAG.match(head, at):
            _, at = _attributes(head, tag.end())
        elif head[at + 1 : at + 2] in (b"!", b"/", b"?"):
            at = head.find(b">", at + 1)
        else:
            at += 1
        if at < 0:
            return None
        at = head.find(b"<", at)
    return None


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes] | None, int]:
    """Attributes of a tag (the first of a name counts), where it ends; (None, -1) if the bytes end first."""
    found: dict[bytes, bytes] = {}
    while token := _NAME.match(head, at):
        name, has_value, at = token[1].lower(), token[2], token.end()
        value = b""
        if has_value and (quote := head[at : at + 1]) in (b'"', b"'"):
            end = head.find(quote, at + 1)
            if end < 0:
                return None, -1
            value, at = head[at + 1 : end], end + 1
        elif has_value and (bare := _BARE.match(head, at)):
            value, at = bare[0], bare.end()
        if at >= len(head):
            return None, -1
        found.setdefault(name, value)
    while head[at : at + 1] and head[at : at + 1] != b">":
        at += 1
    return (found, at) if at < len(head) else (None, -1)


def _from_meta(attributes: dict[bytes, bytes]) -> str | None:
    """What one `meta` declares: its charset, else the charset in the content of a Content-Type pragma."""
    if b"charset" in attributes:
        return _in_markup(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    found = _IN_CONTENT.search(attributes.get(b"content", b""))
    return _in_markup(found[1] or found[2] or found[3] or b"") if found else None


def _xml(body: bytes) -> str | None:
    """The encoding of an XML declaration, which XHTML pages carry."""
    found = _XML.match(body, 0, 1024)
    return _in_markup(found[1] or found[2] or b"") if found else None


def _undeclared(body: bytes) -> str:
    """UTF-8 if the bytes are (pure ASCII and nothing at all count), else what they look like."""
    if _valid(body, cut=True):
        # ISO-2022-JP is ASCII to the eye: only its escapes tell
        return _detected(body, 0) if b"\x1b$" in body and body.isascii() else "utf-8"
    text = body.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    if len(text) - bad - len(text.encode("ascii", "ignore")) >= _MOSTLY * bad:
        return "utf-8"  # a stray octet or two do not make a page of another age
    first = _BEYOND_ASCII.search(body)
    start = first.start() if first else 0
    few = len(body) - len(body.translate(None, _HIGH)) < _TELLING_OCTETS
    return FALLBACK if few else _detected(body, max(0, start - 1_024))


def _detected(body: bytes, start: int) -> str:
    """What Firefox would read a page as that says nothing."""
    detector = EncodingDetector()
    detector.feed(body[start : start + _DETECTED_BYTES], last=True)
    guess = detector.guess(tld=None, allow_utf8=False)
    return _name("windows-874" if guess == "cp874" else guess) or ("utf-8" if body.isascii() else FALLBACK)


def _valid(body: bytes, *, cut: bool = False) -> bool:
    """Whether the bytes are UTF-8; with `cut`, the last character may be incomplete, as where a cap struck.

    That counts only after another character of UTF-8: a last é in latin-1 looks like a cut one, too.
    """
    if body.isascii():
        return True
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return cut and error.reason == "unexpected end of data" and not body[: error.start].isascii()
    return True
