"""How a URL was found and what sitemaps and feeds say of it, in words for the eye."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cycles.output import safe, shown

__all__ = ["origin"]

_FOUND: Final[Mapping[str, str]] = {
    "seed": "given as a seed",
    "sitemap": "found in sitemap",
    "feed": "found in feed",
    "robots": "named by a robots.txt",
    "well_known": "looked for where sitemaps usually lie",
}
#: what names these is no page of the lake
_NAMELESS: Final = frozenset({"robots", "well_known"})


def origin(row: Mapping[str, Any], referrer: str | None, announcer: str | None) -> Iterator[str]:
    """Lines about a row of `urls`; the others are the URLs of its first_referrer_key and announced_by."""
    by = _FOUND.get(row["found_by"], f"found by {row['found_by']} from")
    key = row["first_referrer_key"]
    if row["found_by"] in _NAMELESS or key is None:
        by = by.removesuffix(" from")
    else:
        by += f" {safe(referrer or f'page {key}')}"
    when = f"in round {row['first_seen_round']}, {shown(row['first_seen_at'])}"
    yield f"{by} {when}, depth {row['depth']}"
    if row.get("kind") not in (None, "page"):
        yield f"read as a {row['kind']}, not as a page"
    if row.get("announced_by") is not None:
        said = [
            f"lastmod {shown(row['lastmod'])}" if row["lastmod"] is not None else "without lastmod",
            f"changefreq {row['changefreq']}" if row["changefreq"] else "",
            f"priority {row['sitemap_priority']:g}" if row["sitemap_priority"] is not None else "",
        ]
        name = safe(announcer or f"page {row['announced_by']}")
        yield f"listed in {name}: {', '.join(word for word in said if word)}"
