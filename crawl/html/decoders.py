"""Text of bytes in each encoding of the web, where Python's codecs differ from the Encoding Standard.

What always holds: nothing raises on any bytes; what is none in its encoding becomes U+FFFD and swallows no
octet after it; time is linear in the bytes. It chooses no encoding (crawl.html.charset).

Source: WHATWG Encoding 9 to 12 (legacy decoders) and its indexes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Final

import webencodings

__all__ = ["decode"]

_BAD: Final = "\ufffd"
#: single-byte encodings in which the web has C1 controls where Python has nothing
_WINDOWS: Final = {f"windows-{number}": f"cp{number}" for number in (874, *range(1250, 1259))}
#: JIS characters that the web reads as Windows does
_AS_WINDOWS: Final = str.maketrans("\u301c\u2016\u2212\xa2\xa3\xac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2")
#: KOI8-U of the web is KOI8-RU
_KOI8_U: Final = str.maketrans("\u255d\u256c", "\u045e\u040e")


def decode(body: bytes, name: str) -> str:
    """Text of a body in the encoding of that WHATWG name; of one that is none, its ASCII."""
    if name in _WINDOWS:
        return body.decode(_WINDOWS[name], "crawl.windows")
    if name in {"gbk", "gb18030"}:  # gbk is decoded as its superset
        return body.decode("gb18030", "crawl.gb").replace("\ue5e5", "\u3000")
    if name in {"euc-jp", "iso-2022-jp"}:
        codec = "euc_jp" if name == "euc-jp" else "iso2022_jp"
        return body.decode(codec, "crawl.jis" if name == "euc-jp" else "replace").translate(_AS_WINDOWS)
    try:
        text: str = webencodings.lookup(name).codec_info.decode(body, "replace")[0]
    except (AttributeError, LookupError, UnicodeError):
        # No codec of this name here, or one that does not keep its promise to replace: ASCII markup is still
        # read.
        return body.decode("ascii", "replace")
    return text.translate(_KOI8_U) if name == "koi8-u" else text


def _windows(octets: bytes, start: int) -> tuple[str, int]:
    """Undefined octets of 0x80 to 0x9F as the control characters of the same number."""
    octet = octets[start]
    if octet == 0xCA:  # only windows-1255 leaves it open in Python
        return "\u05ba", start + 1
    return chr(octet) if octet < 0xA0 else _BAD, start + 1


def _gb(octets: bytes, start: int) -> tuple[str, int]:
    """0x80 as the euro sign, as 0xA2 0xE3, its place in the standard's index."""
    if octets[start] == 0x80:
        return "€", start + 1
    return ("€", start + 2) if octets[start : start + 2] == b"\xa2\xe3" else (_BAD, start + 1)


def _jis(octets: bytes, start: int) -> tuple[str, int]:
    """The rows that vendors added, which Python knows in Shift_JIS only."""
    pair = octets[start : start + 2]
    if len(pair) == 2 and 0xA1 <= pair[0] <= 0xFE and 0xA1 <= pair[1] <= 0xFE:
        row, cell = pair[0] - 0xA1, pair[1] - 0xA1
        lead = (0x81 if row < 62 else 0xC1) + row // 2
        trail = cell + (0x9F if row % 2 else 0x40 if cell < 63 else 0x41)
        text = bytes((lead, trail)).decode("cp932", "replace")
        return (text if len(text) == 1 else _BAD), start + 2
    return _BAD, start + 1


def _handler(repair: Callable[[bytes, int], tuple[str, int]]) -> Callable[[UnicodeError], tuple[str, int]]:
    """An error handler of codecs: never the rest of the object, which would be a copy for each error."""

    def handle(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        return repair(error.object, error.start)

    return handle


codecs.register_error("crawl.windows", _handler(_windows))
codecs.register_error("crawl.gb", _handler(_gb))
codecs.register_error("crawl.jis", _handler(_jis))
