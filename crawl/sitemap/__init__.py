"""Sitemaps and feeds: which URLs they name, for whom they may speak, and how far they are believed.

`read`, what it gives (`Sitemap`, `Entry`) and its bounds are stable names; all else is in the modules.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawl.sitemap.reader import MOST_BYTES, MOST_URLS, Entry, Sitemap, read

__all__ = ["MOST_BYTES", "MOST_URLS", "Entry", "Sitemap", "read"]


def __getattr__(name: str) -> object:
    """The public names, when first asked for: they bring an XML parser along, which a plan never needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from crawl.sitemap import reader

    return getattr(reader, name)
