"""For which URLs a sitemap may speak.

What always holds: a sitemap speaks for the URLs of its own host at or below its own directory, and for every
URL of a host whose robots.txt names it (sitemaps.org, "Sitemap file location" and "Sitemaps & cross
submits"): anybody can write a list of somebody else's pages. Scheme and port do not matter, only the host's
name; the sitemap's query is no part of its directory.
What an index names speaks for the hosts that the index speaks for: robots.txt need not repeat each part.
Whether robots.txt names a sitemap is the caller's to know.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from crawl import url

__all__ = ["OUTSIDE", "admitted"]

#: reason of an entry that its sitemap may not name
OUTSIDE = "sitemap_cross_site"


def admitted(sitemap: str, locs: Sequence[str], vouching: Collection[str] = ()) -> list[bool]:
    """Which of the URLs (canonical) a sitemap may name. `vouching`: hosts whose robots.txt names it."""
    own, directory = url.host(sitemap), _path(sitemap).rpartition("/")[0] + "/"
    whole = frozenset(vouching)
    _, hosts, _ = url.split_many(locs)
    return [
        host in whole or (host == own and _path(loc).startswith(directory))
        for loc, host in zip(locs, hosts, strict=True)
    ]


def _path(text: str) -> str:
    """Path of a canonical URL."""
    return "/" + text.split("/", 3)[3].partition("?")[0]
