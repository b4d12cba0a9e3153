"""What sitemaps, feeds and robots.txt name, as rows of `links`.

What always holds: every entry becomes a row, one that may not be taken with its reason: a URL for which this
sitemap may not speak (crawl.sitemap.submission), an index too deep or naming the sitemaps of too many hosts,
an index that names itself. What a feed names elsewhere is a link like any other: it is followed, and what the
feed says of it is not believed; nor are dates that are all one. An entry counts as no in-link. It reads no
body (crawl.sitemap) and keeps no table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from crawl import policy, url
from crawl.documents.linkrows import Hints, LinkRows
from crawl.rejects import Rejects
from crawl.sitemap import submission
from crawl.sitemap.reader import Sitemap

__all__ = ["ENTRY_DEPTH", "NESTING", "TOO_MANY_HOSTS", "add", "name"]

#: reasons
NESTING: Final = "sitemap_nesting"
TOO_MANY_HOSTS: Final = "sitemap_hosts"
_LOOP: Final = "sitemap_loop"
#: so many entries dated within one minute were not changed then, but written
_MANY: Final = 20
_MOMENT: Final = 60_000_000
#: pages that a sitemap names are as near to the site's own word as what its start page links to
ENTRY_DEPTH: Final = 1


def add(
    rows: LinkRows,
    tally: Rejects,
    found: Sitemap,
    *,
    url_key: int,
    source: str,
    host: str,
    domain: str,
    level: int,
    vouching: Sequence[str],
    settings: policy.Sitemaps,
) -> None:
    """Add the entries of one sitemap or feed. `level`: how many indexes led to it."""
    for reason, count in found.skipped.items():
        tally.add(reason, host, source, count)
    if found.error is not None:
        tally.add(f"sitemap_{found.error}", host, source)
    entries = found.entries
    locs = entries.loc
    index, feed = found.kind == "index", found.kind in ("rss", "atom")
    allowed = submission.admitted(source, locs, vouching)
    refused: list[str | None] = [None] * len(locs)
    if index:
        refused = _children(locs, source, level, settings)
    elif not feed:
        refused = [None if ok else submission.OUTSIDE for ok in allowed]
    own = [not _at_once(entries.lastmod)] * len(locs) if not feed else _inside(locs, domain)
    rows.add(
        locs,
        [None] * len(locs),
        [None] * len(locs),
        ["feed" if feed else "sitemap"] * len(locs),
        source_key=url_key,
        source_domain=domain,
        depth=level + 1 if index else ENTRY_DEPTH,
        first_parse=False,
        hints=Hints(
            kind="sitemap" if index else "page",
            lastmod=[value if ok else None for value, ok in zip(entries.lastmod, own, strict=True)],
            changefreq=entries.changefreq,
            sitemap_priority=entries.priority,
            refused=refused,
            host=host,
        ),
    )


def name(
    rows: LinkRows, urls: Sequence[str], *, kind: str, via: str, url_key: int, domain: str, depth: int
) -> None:
    """Add sitemaps (or feeds) that something else names: a Sitemap line, a page's `link` element."""
    nothing = [None] * len(urls)
    rows.add(
        urls,
        nothing,
        nothing,
        [via] * len(urls),
        source_key=url_key,
        source_domain=domain,
        depth=depth,
        first_parse=False,
        hints=Hints.nothing(kind, len(urls)),
    )


def _children(locs: Sequence[str], source: str, level: int, settings: policy.Sitemaps) -> list[str | None]:
    """Why an index's sitemaps are not taken."""
    if level >= settings.nesting:
        return [NESTING] * len(locs)
    hosts = Counter[str]()
    refused: list[str | None] = []
    for loc, host in zip(locs, url.split_many(locs)[1], strict=True):
        if host not in hosts and len(hosts) >= settings.hosts:
            refused.append(TOO_MANY_HOSTS)
            continue
        hosts[host] += 1
        refused.append(_LOOP if loc == source else None)
    return refused


def _at_once(dates: Sequence[int | None]) -> bool:
    """Whether a list dates everything to one moment, say that of the request."""
    given = [date for date in dates if date is not None]
    return len(given) >= _MANY and max(given) - min(given) <= _MOMENT


def _inside(locs: Sequence[str], domain: str) -> list[bool]:
    return [other == domain for other in url.split_many(locs)[2]]
