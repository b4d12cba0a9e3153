"""Reads pictures: size, format, what EXIF and PNG texts tell. A reader for Crawl Cycles (docs/plugins.md).

No pixel is decoded, so a picture of a billion of them costs no more than another. Where a picture was taken
and by which device exactly (positions, serial numbers) is nobody's business and left out.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final

from PIL import Image, ImageFile

from crawl.documents.readers import Reading

__all__ = ["read"]

_FORMATS: Final = ("GIF", "JPEG", "PNG", "TIFF", "WEBP")
#: EXIF 2.3, tags of the first directory
_EXIF: Final = {
    270: "description",
    271: "camera_make",
    272: "camera_model",
    274: "orientation",
    305: "software",
    306: "changed",
    315: "artist",
    33432: "copyright",
}
#: and one of the second
_EXIF_IFD: Final = 0x8769
_TAKEN: Final = 36867
#: PNG 11.3.3: keywords of texts
_PNG: Final = {"Title": "title", "Description": "description", "Author": "artist", "Copyright": "copyright"}
_CHARS: Final = 1_000

# The check is about decoding, which is not done here.
Image.MAX_IMAGE_PIXELS = None


def read(body: bytes, content_type: str | None, url: str) -> Reading:
    """What a picture tells of itself. Raises what Pillow does for what is no picture, or a broken one."""
    with Image.open(io.BytesIO(body), formats=_FORMATS) as image:
        told = _exif(image) | _texts(image.info)
        told |= {
            "format": image.format,
            "width": image.width,
            "height": image.height,
            "mode": image.mode,
            "animated": bool(getattr(image, "is_animated", False)),
        }
    title = str(told.pop("title", ""))
    return Reading(title=title, text=str(told.get("description", "")), metadata=told)


def _exif(image: ImageFile.ImageFile) -> dict[str, Any]:
    # Pillow decodes a PNG to look for EXIF behind its pixels, where hardly any has it
    found = Image.Exif() if image.format == "PNG" and "exif" not in image.info else image.getexif()
    told = {name: value for tag, name in _EXIF.items() if (value := _said(found.get(tag))) is not None}
    taken = _said(found.get_ifd(_EXIF_IFD).get(_TAKEN)) if found else None
    return told if taken is None else told | {"taken": taken}


def _texts(info: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: value for key, name in _PNG.items() if (value := _said(info.get(key))) is not None}


def _said(value: Any) -> str | int | None:
    """A text or a number; None for what is neither, or says nothing."""
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return (value.strip("\0 ")[:_CHARS] or None) if isinstance(value, str) else None
