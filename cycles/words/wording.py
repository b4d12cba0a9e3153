"""What a code means, in words, for every command that tells one; and how a number and its noun agree.

What always holds: the code itself stays what tables and JSON say; here it is only told. A code that has no
words here is told as it stands. It imports nothing, since every command pays for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "CARRIED",
    "LEFT_OUT",
    "LISTED",
    "SCOPE",
    "SEED",
    "SKIPPED",
    "UNFOLLOWED",
    "UNKEPT",
    "UNPARSED",
    "UNREAD",
    "WITHHELD",
    "counted",
    "said",
]

#: why a URL was left out of a plan
LEFT_OUT: Final[Mapping[str, str]] = {
    "host_capacity": "its host's clock allows no more requests in the window",
    "host_budget": "its host's budget for the day is used up",
    "group_capacity": "the one clock of its politeness group allows no more requests in the window",
    "long_crawl_delay": "its host asks for a long Crawl-delay, and no round waits for it",
    "address_capacity": "the address it shares with other hosts allows no more requests in the window",
    "round_cap": "the round had as many URLs as planning.urls allows",
    "blocked": "what blocked it still stands",
    "host_delay": "its host may not be asked again within the window",
    "host_backoff": "its host is left alone after errors",
    "circuit_open": "its host is shut off after errors, and one URL a round tries whether it answers",
    "paused": "its host is paused",
}
#: why a planned URL was carried over
CARRIED: Final[Mapping[str, str]] = {
    "window": "the window closed first",
    "circuit_open": "its host was shut off after errors",
    "backoff": "its host was left alone after errors",
    "retry_after": "its host asked to be left alone",
    "crawl_delay": "its host's Crawl-delay reaches beyond the window",
    "address": "the address it shares with other hosts had no room for it",
    "paused": "its host was paused meanwhile",
    "robots_elsewhere": "its robots.txt lies in another domain, which is asked for it from the next round on",
}
#: why no request went out for a planned URL
SKIPPED: Final[Mapping[str, str]] = {
    "ROBOTS_DENIED": "robots.txt forbids it",
    "ROBOTS_UNREACHABLE": "robots.txt could not be read",
    "EGRESS_DENIED": "its address may not be asked",
    "SCOPE_DENIED": "out of scope by now",
    "SUPPRESSED": "held back by the operator",
}
#: why a page's text is neither kept nor published
WITHHELD: Final[Mapping[str, str]] = {
    "noindex": "the page asks not to be indexed",
    "unavailable_after": "the page asked not to be indexed after a day that has come",
}
#: why a page that was read is kept or told only in part: it asks so
UNKEPT: Final[Mapping[str, str]] = {
    **WITHHELD,
    "noarchive": "the page asks that no copy of it is kept: its text is, its body is not",
}
#: why a link was not followed, where scope does not say it
UNFOLLOWED: Final[Mapping[str, str]] = {
    "nofollow": "page or link asks not to follow it",
    "via": "its kind of link is none of parsing.via",
    "link_scheme": "its scheme is neither http nor https, like mailto: and javascript:",
    "link_invalid": "it is no URL",
}
#: what the parser could not read, or not all of
UNREAD: Final[Mapping[str, str]] = {
    "reader_failed": "the reader of its type could make nothing of it",
    "too_many_links": "a page has more links than are taken of one",
    "page_too_long": "a page is longer than the part that is read",
}
#: why an answer was not parsed
UNPARSED: Final[Mapping[str, str]] = {
    "not_modified": "unchanged by answer 304",
    "same_content": "the same content as before",
    "not_html": "of a type that is not read",
    "no_content": "an answer without content",
    "parse_failed": "the parser gave up",
}
#: why a URL is out of scope
SCOPE: Final[Mapping[str, str]] = {
    "scope_host": "its host is outside [scope] domains and hosts",
    "scope_excluded": "it matches a pattern of [scope] exclude",
    "depth": "it is more links away from a seed than limits.depth",
    "url_too_long": "it is longer than limits.url_chars",
    "too_many_segments": "its path has more segments than limits.segments",
    "too_many_parameters": "its query has more parameters than limits.parameters",
    "repeated_segment": "a path segment repeats more often than limits.repeated_segment",
    "url_credentials": "it carries user name or password",
}
#: why an entry of a sitemap was not taken, or what is missing of a sitemap
LISTED: Final[Mapping[str, str]] = {
    "sitemap_cross_site": "a sitemap named it that may not speak for its host or folder",
    "sitemap_nesting": "an index lies deeper in others than sitemaps.nesting",
    "sitemap_hosts": "an index names sitemaps of more hosts than sitemaps.hosts",
    "sitemap_loop": "an index names itself",
    "sitemap_too_many_urls": "a sitemap has more entries than sitemaps.urls",
    "sitemap_too_large": "a sitemap is larger than sitemaps.bytes; its entries up to there count",
    "sitemap_xml_cut": "a sitemap ends early; its entries up to there count",
    "sitemap_xml_entities": "a sitemap declares entities, which are left out",
    "sitemap_encoding_truncated": "a compressed sitemap ends early; its entries up to there count",
    "sitemap_encoding_corrupt": "a compressed sitemap is broken; its entries up to there count",
    "not_a_sitemap": "neither a sitemap nor a feed",
    "no_location": "an entry without an address",
    "no_scheme": "an entry whose address lacks its scheme",
    "bad_characters": "an entry whose address cannot be decoded",
}
#: why a line is no seed, where scope does not say it
SEED: Final[Mapping[str, str]] = {
    "url_scheme": "an address begins with http:// or https://",
    "url_invalid": "an address is written in full, like https://www.example.org/",
    "url_empty": "there is nothing",
    "url_too_long": "it is too long",
    "not_utf8": "it is not UTF-8",
    "csv_broken": "this is no CSV",
    "quote_open": "a quote is opened and not closed on the line",
    "line_break": "a line break inside an address",
    "kind_unknown": "kind is page, sitemap or feed",
    "priority_unknown": "priority is critical, high, medium or low",
}


def said(code: str, words: Mapping[str, str]) -> str:
    """The words of a code, and the code, by which tables have it."""
    return f"{words[code]} ({code})" if code in words else code


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 seed`, `2 seeds`; `many` where it does not end in s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
