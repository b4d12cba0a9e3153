"""The query of a link in the encoding of its page (WHATWG URL, percent-encode after encoding).

What always holds: only non-ASCII characters of the query change (in ISO-2022-JP also the three controls that
would shift its decoder); an unknown label, UTF-8 and UTF-16 change nothing.
What it does not do: it parses no URL (crawl.url, which percent-encodes the rest as UTF-8).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import webencodings

__all__ = ["concerns", "encode_query"]

_QUERY_BYTES: Final = frozenset(range(0x21, 0x7F)) - frozenset(b"\"#<>'")  # special-query percent-encode set
_STRIPPED: Final = {ord("\t"): None, ord("\n"): None, ord("\r"): None}
#: what the ISO-2022-JP encoder refuses (WHATWG Encoding 12.2.2): it would shift whoever decodes the query
_SHIFTS: Final = re.compile("[\x0e\x0f\x1b]")
_REFUSED: Final = "%26%2365533%3B"  # `&#65533;`
_EDGE: Final = "".join(map(chr, range(0x21)))  # C0 control or space: a parser strips them off a URL's ends


def concerns(text: str, label: str) -> bool:
    """Whether `encode_query` may change this text: cheap, and seldom true."""
    return not text.isascii() or (label != "utf-8" and _SHIFTS.search(text) is not None)


def encode_query(text: str, label: str) -> str:
    """`text` with the query's non-ASCII characters percent-encoded in the encoding of that label."""
    head, mark, fragment = text.partition("#")
    path, question, query = head.partition("?")
    if not question:
        return text
    encoding = webencodings.lookup(label)
    if encoding is not None and encoding.name == "iso-2022-jp":
        query = _SHIFTS.sub(_REFUSED, query)
    if query.isascii():
        return path + question + query + mark + fragment
    # "get an output encoding": UTF-16 and replacement are written as UTF-8
    if encoding is None or encoding.name in ("utf-8", "utf-16le", "utf-16be", "replacement"):
        return text
    encode = encoding.codec_info.encode
    if not mark:
        query = query.rstrip(_EDGE)
    query = query.translate(_STRIPPED)
    try:
        encoded = _percent(encode(query, "strict")[0])
    except UnicodeEncodeError:
        encoded = "".join([_one(char, encode) for char in query])
    return path + question + encoded + mark + fragment


def _one(char: str, encode: Callable[..., tuple[bytes, int]]) -> str:
    if char.isascii():
        return char
    try:
        return _percent(encode(char, "strict")[0])
    except UnicodeEncodeError:
        return f"%26%23{ord(char)}%3B"  # percent-encode after encoding: `&#N;` for what cannot be encoded


def _percent(data: bytes) -> str:
    return "".join([chr(b) if b in _QUERY_BYTES else f"%{b:02X}" for b in data])
