"""The query of a link in the encoding of its page (WHATWG URL, percent-encode after encoding).

What always holds: only non-ASCII characters of the query change; an unknown label, UTF-8 and UTF-16 change
nothing.
What it does not do: it parses no URL (crawl.url, which percent-encodes the rest as UTF-8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import webencodings

__all__ = ["encode_query"]

_QUERY_BYTES: Final = frozenset(range(0x21, 0x7F)) - frozenset(b"\"#<>'")  # special-query percent-encode set
_STRIPPED: Final = {ord("\t"): None, ord("\n"): None, ord("\r"): None}
_EDGE: Final = "".join(map(chr, range(0x21)))  # C0 control or space: a parser strips them off a URL's ends


def encode_query(text: str, label: str) -> str:
    """`text` with the query's non-ASCII characters percent-encoded in the encoding of that label."""
    head, mark, fragment = text.partition("#")
    path, question, query = head.partition("?")
    if not question or query.isascii():
        return text
    encoding = webencodings.lookup(label)
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
