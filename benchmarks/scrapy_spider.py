"""Scrapy, following links only: no items, no pipelines, no storage.

A fair opponent: everything a user could switch off to save time without changing what is fetched is off
(cookies, referers, retries, meta refresh, telnet, statistics, the log but for warnings), names are
answered from memory, and robots.txt is obeyed with Protego, as ours does. One request at a time per host
and no delay: the same manners as ours in this benchmark (eight at a time cost Scrapy no less CPU).
Scrapy's own duplicate filter decides what was met. Links are found in one of two ways:

link   LinkExtractor with the tags a and area: Scrapy's own way, in its tutorial and its CrawlSpider
xpath  one XPath for their href attributes, joined and made distinct by hand: the fastest we could make it

Run as `python -m benchmarks.scrapy_spider PORT HOST…`; prints one JSON line: responses by status, HTML pages.
Without hosts it starts, finds nothing to do and ends: what its start costs.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.resolver import CachingThreadedResolver
from twisted.internet import defer

__all__ = ["Links", "LoopbackResolver", "main"]


class LoopbackResolver(CachingThreadedResolver):
    """Every name is 127.0.0.1."""

    def getHostByName(self, name: str, timeout: Any = ()) -> Any:  # noqa: N802 - Twisted's name
        return defer.succeed("127.0.0.1")


class Links(scrapy.Spider):
    """Follows every a and area of the given hosts."""

    name = "links"

    def __init__(self, homes: tuple[str, ...], extractor: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.homes = homes
        self.allowed_domains = [home.split("/")[2].partition(":")[0] for home in homes]
        self.statuses: Counter[int] = Counter()
        self.html = 0
        self.urls: list[str] = []
        self.extractor = None
        if extractor == "link":
            self.extractor = LinkExtractor(
                tags=("a", "area"), attrs=("href",), deny_extensions=[], unique=True
            )

    async def start(self) -> AsyncIterator[Any]:
        for home in self.homes:
            yield scrapy.Request(home)

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        self.statuses[response.status] += 1
        if response.status == 200:
            self.urls.append(response.url)
        if not isinstance(response, HtmlResponse) or response.status != 200:
            return
        self.html += 1
        yield from self.follow(response)

    def follow(self, response: HtmlResponse) -> Iterable[Any]:
        if self.extractor is not None:
            return (scrapy.Request(link.url) for link in self.extractor.extract_links(response))
        hrefs = response.xpath("//a/@href | //area/@href").getall()
        return (
            scrapy.Request(url)
            for url in {response.urljoin(href.strip()).partition("#")[0] for href in hrefs}
            if url.startswith(("http://", "https://"))
        )


SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 100,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 0,
    "DNS_RESOLVER": "benchmarks.scrapy_spider.LoopbackResolver",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REFERER_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "AUTOTHROTTLE_ENABLED": False,
    "HTTPERROR_ALLOW_ALL": True,
    "DEPTH_STATS_VERBOSE": False,
    "LOG_LEVEL": "WARNING",
    "EXTENSIONS": {
        "scrapy.extensions.corestats.CoreStats": None,
        "scrapy.extensions.logstats.LogStats": None,
        "scrapy.extensions.memusage.MemoryUsage": None,
        "scrapy.extensions.logcount.LogCount": None,
    },
    "USER_AGENT": "benchmark (+mailto:crawl@example.org)",
}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("hosts", nargs="*")
    parser.add_argument("--extractor", choices=("xpath", "link"), default="link")
    parser.add_argument("--urls", type=Path, help="write the URLs answered with 200 here")
    parser.add_argument("--per-host", type=int, default=1, help="requests at a time")
    given = parser.parse_args()
    homes = tuple(f"http://{host}:{given.port}/" for host in given.hosts)
    process = CrawlerProcess({**SETTINGS, "CONCURRENT_REQUESTS_PER_DOMAIN": given.per_host})
    crawler = process.create_crawler(Links)
    process.crawl(crawler, homes=homes, extractor=given.extractor)
    process.start()
    spider = crawler.spider
    if not isinstance(spider, Links):
        raise SystemExit("Scrapy did not start")
    if given.urls:
        given.urls.write_text("\n".join(sorted(spider.urls)) + "\n", encoding="utf-8")
    print(json.dumps({"statuses": dict(sorted(spider.statuses.items())), "html": spider.html}))


if __name__ == "__main__":
    main()
