"""How a URL was found and what sitemaps and feeds say of it, in words for the eye."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cycles.words.output import safe, shown

__all__ = ["origin", "source"]

_FOUND: Final[Mapping[str, str]] = {
    "seed": "given as a seed",
    "sitemap": "found in sitemap",
    "feed": "found in feed",
    "robots": "named by",
    "well_known": "looked for where sitemaps usually lie",
}
#: how a link says what it says, where it is none of a page
_VIA: Final[Mapping[str, str]] = {
    "robots": "names it in a Sitemap line",
    "well_known": "names no sitemap, so it was looked for here",
    "sitemap": "lists it",
    "feed": "lists it",
    "redirect": "redirects to it",
}


def origin(row: Mapping[str, Any], referrer: str | None, announcer: str | None) -> Iterator[str]:
    """Lines about a row of `urls`; the others are the URLs of its first_referrer_key and announced_by."""
    by = _FOUND.get(row["found_by"], f"found by {row['found_by']} from")
    key = row["first_referrer_key"]
    if row["found_by"] == "robots":
        by += f" {safe(referrer or 'a robots.txt')}"
    elif row["found_by"] == "well_known" or key is None:
        by = by.removesuffix(" from")
    else:
        by += f" {safe(referrer or f'page {key}')}"
    when = f"in round {row['first_seen_round']}, {shown(row['first_seen_at'])}"
    yield f"{by} {when}, depth {row['depth']}"
    if row.get("kind") not in (None, "page"):
        was_read = row.get("last_outcome") in ("OK", "NOT_MODIFIED")
        how = ("read as", "as") if was_read else ("taken for", "for")
        yield f"{how[0]} a {row['kind']}, not {how[1]} a page"
    if row.get("announced_by") is not None:
        said = [
            f"lastmod {shown(row['lastmod'])}" if row["lastmod"] is not None else "without lastmod",
            f"changefreq {row['changefreq']}" if row["changefreq"] else "",
            f"priority {row['sitemap_priority']:g}" if row["sitemap_priority"] is not None else "",
        ]
        name = safe(announcer or f"page {row['announced_by']}")
        yield f"listed in {name}: {', '.join(word for word in said if word)}"


def source(link: Mapping[str, Any]) -> str:
    """A sentence about what leads to a URL: a row of `links` with the source's URL."""
    unnamed = f"{'robots.txt' if link['via'] in ('robots', 'well_known') else 'page'} {link['source_key']}"
    anchor = f" as {safe(link['anchor'])!r}" if link["anchor"] else ""
    leads = f"{safe(link['source_url'] or unnamed)} {_VIA.get(link['via'], 'links to it')}{anchor}"
    return f"{leads} (round {link['round']}, by {link['via']}, depth {link['depth']})."
