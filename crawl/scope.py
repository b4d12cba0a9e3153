"""Which URLs belong to the crawl, and which are too odd to follow.

What always holds: a URL that is left out has a reason code, the first that applies in the order of `allowed`:
url_credentials (it carries user info, and this crawler logs in nowhere), scope_host, scope_excluded, depth,
url_too_long, too_many_segments, too_many_parameters, repeated_segment. `admit` gives for each URL what
`allowed` gives.
What it does not do: it asks no robots.txt and no server, and knows no opt-outs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from crawl.policy import Limits, Scope

__all__ = ["admit", "allowed"]


def allowed(url: str, host: str, domain: str, depth: int, scope: Scope, limits: Limits) -> str | None:
    """Reason code why a canonical URL is left out, or None. `depth`: links from a seed."""
    if _has_credentials(url):
        return "url_credentials"
    if not _host_in(host, domain, scope):
        return "scope_host"
    excluded = _excluded(scope.exclude)
    if excluded is not None and excluded.match(url):
        return "scope_excluded"
    if depth > limits.depth:
        return "depth"
    return _shape(url, limits)


def admit(
    urls: Sequence[str],
    hosts: Sequence[str],
    domains: Sequence[str],
    depth: int,
    scope: Scope,
    limits: Limits,
) -> tuple[npt.NDArray[np.bool_], list[str | None]]:
    """`allowed` for many URLs found at one depth: a mask of those admitted, and reason codes (None where
    admitted).

    Columns of the same length, in the same order. Costs next to nothing where nothing is amiss.
    """
    mask = np.ones(len(urls), dtype=np.bool_)
    reasons: list[str | None] = [None] * len(urls)
    for i in _suspects(urls, hosts, domains, depth, scope, limits):
        reason = allowed(urls[i], hosts[i], domains[i], depth, scope, limits)
        if reason is not None:
            mask[i] = False
            reasons[i] = reason
    return mask, reasons


def _suspects(
    urls: Sequence[str],
    hosts: Sequence[str],
    domains: Sequence[str],
    depth: int,
    scope: Scope,
    limits: Limits,
) -> Sequence[int]:
    """Positions that need a closer look: never fewer than those refused."""
    everything = range(len(urls))
    if depth > limits.depth or scope.exclude:
        return everything
    found: set[int] = set()
    if scope.domains or scope.hosts:
        outside = {h for h, d in set(zip(hosts, domains, strict=True)) if not _host_in(h, d, scope)}
        if outside:
            found.update(i for i, h in enumerate(hosts) if h in outside)
    text = "\n".join(urls)
    if "@" in text:
        found.update(i for i, url in enumerate(urls) if "@" in url)
    if text.count("&") >= limits.parameters:
        found.update(i for i, url in enumerate(urls) if url.count("&") >= limits.parameters)
    slashes = 2 + min(limits.segments, limits.repeated_segment)
    longest = limits.url_chars
    found.update([i for i, url in enumerate(urls) if url.count("/") > slashes or len(url) > longest])
    return sorted(found)


def _has_credentials(url: str) -> bool:
    return "@" in url and "@" in url.split("/", 3)[2]


def _host_in(host: str, domain: str, scope: Scope) -> bool:
    if not scope.domains and not scope.hosts:
        return True
    if host in scope.hosts or domain in scope.domains or host in scope.domains:
        return True
    return any(host.endswith("." + name) for name in scope.domains)


@lru_cache(maxsize=64)
def _excluded(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """One expression over whole URLs that matches where a pattern matches the path, query aside."""
    if not patterns:
        return None
    paths = "|".join(
        "".join({"*": "[^?]*", "?": "[^?]"}.get(char, re.escape(char)) for char in pattern)
        for pattern in patterns
    )
    return re.compile(rf"https?://[^/]*(?:{paths})(?:\?|$)")


_TRAILING: Final = re.compile("/$")


def _shape(url: str, limits: Limits) -> str | None:
    if len(url) > limits.url_chars:
        return "url_too_long"
    slashes = 2 + min(limits.segments, limits.repeated_segment)
    if url.count("/") <= slashes and url.count("&") < limits.parameters:
        return None
    rest = url.split("/", 3)
    path, _, query = (rest[3] if len(rest) > 3 else "").partition("?")
    segments = _TRAILING.sub("", path).split("/")
    if len(segments) > limits.segments:
        return "too_many_segments"
    if query and query.count("&") >= limits.parameters:
        return "too_many_parameters"
    if len(segments) > limits.repeated_segment:
        count = Counter(s for s in segments if s)
        if count and max(count.values()) > limits.repeated_segment:
            return "repeated_segment"
    return None
