"""The truth is what a small client of another make finds over real HTTP."""

from __future__ import annotations

import http.client
import re
from collections import deque
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote, unquote, urljoin, urlsplit

import pytest

from tests.web.grow import Web
from tests.web.model import DAY, EPOCH, Features, Robots
from tests.web.serve import Running, running
from tests.web.truth import Fate, Recheck, Rules, Truth, rechecks

_SOURCES = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}


class Links(HTMLParser):
    """The links, base and refresh of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.base, self.found, self.next = "", list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in _SOURCES:
            self.found.append(given[_SOURCES[tag]])
        elif tag == "base":
            self.base = given["href"]
        elif tag == "meta" and given.get("http-equiv") == "refresh":
            self.found.append(given["content"].split("url=")[1])
        elif tag == "link" and given["rel"] == "next":
            self.next.append(given["href"])


def identity(url: str) -> str:
    """By the standard library: no fragment, no utm_*, escapes as RFC 3986, 6.2.2 has them, host in lower
    case.
    """
    parts = urlsplit(url)
    query = "&".join(each for each in parts.query.split("&") if each and not each.startswith("utm_"))
    path = quote(unquote(parts.path), safe="/%:@!$&'()*+,;=~")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}" + (f"?{query}" if query else "")


class Client:
    """A breadth-first crawler over http.client with robots rules of its own; it knows only the hosts'
    addresses.
    """

    def __init__(self, site: Running) -> None:
        self.site = site
        self.open: dict[str, http.client.HTTPConnection] = {}
        self.rules: dict[str, list[tuple[int, bool, re.Pattern[str]]] | None] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.open.values():
            connection.close()

    def get(self, url: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        parts = urlsplit(url)
        if parts.netloc not in self.open:
            address = self.site.web.address(parts.hostname or "")
            self.open[parts.netloc] = http.client.HTTPConnection(address, self.site.port, timeout=10)
        connection = self.open[parts.netloc]
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request("GET", target, headers={"Host": parts.netloc})
        except ConnectionRefusedError:
            connection.close()
            raise
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def allowed(self, url: str) -> bool | None:
        """None: robots.txt cannot be had."""
        parts = urlsplit(url)
        if parts.netloc not in self.rules:
            self.rules[parts.netloc] = self.read_robots(f"http://{parts.netloc}/robots.txt")
        rules = self.rules[parts.netloc]
        path = url.split(parts.netloc, 1)[1]
        if rules is None:
            return None
        return max(((size, yes) for size, yes, pattern in rules if pattern.match(path)), default=(0, True))[1]

    def read_robots(self, url: str) -> list[tuple[int, bool, re.Pattern[str]]] | None:
        status, headers, body = self.get(url)
        if status in (301, 302):
            return self.read_robots(urljoin(url, headers["Location"]))
        if status >= 400:
            return None if status >= 500 else []
        groups: dict[str, list[tuple[int, bool, re.Pattern[str]]]] = {}
        agent = ""
        for line in body.decode().splitlines():
            name, _, value = (part.strip() for part in line.partition(":"))
            if name == "User-agent":
                agent = value
                groups[agent] = []
            elif name in ("Allow", "Disallow") and value:
                regex = re.escape(value).replace(r"\*", ".*").replace(r"\$", "$")
                groups[agent].append((len(value), name == "Allow", re.compile(regex)))
        return groups.get(self.site.web.agent, groups.get("*", []))

    def crawl(self, seeds: list[str], *, follow_next: bool = True) -> dict[str, tuple[int | str, int]]:
        """By identity: the status, or why there is none, and the depth."""
        found: dict[str, tuple[int | str, int]] = {}
        queue = deque((url, 0) for url in seeds)
        while queue:
            url, depth = queue.popleft()
            if identity(url) in found:
                continue
            if len(identity(url)) > 2048:
                found[identity(url)] = ("out_of_scope", depth)
                continue
            if (urlsplit(url).hostname or "").endswith(".invalid"):
                found[identity(url)] = ("no_address", depth)
                continue
            try:
                allowed = self.allowed(identity(url))
                if not allowed:
                    reason = "robots_unreachable" if allowed is None else "robots_denied"
                    found[identity(url)] = (reason, depth)
                    continue
                status, headers, body = self.get(url.split("#")[0])
            except ConnectionRefusedError:
                found[identity(url)] = ("refused", depth)
                continue
            found[identity(url)] = (status, depth)
            if 300 <= status < 400:
                queue.appendleft((urljoin(url, headers["Location"]), depth))
            elif status == 200 and headers.get_content_type() == "text/html" and depth < 20:
                queue.extend((target, depth + 1) for target in self.targets(url, headers, body, follow_next))
        return found

    @staticmethod
    def targets(url: str, headers: http.client.HTTPMessage, body: bytes, follow_next: bool) -> Iterator[str]:
        charset = headers.get_content_charset() or (
            "utf-16" if body[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
        )
        page = Links()
        page.feed(body.decode(charset))
        for href in page.found + (page.next if follow_next else []):
            target = urljoin(page.base or url, href)
            split = urlsplit(target)
            # once more by the path alone: urljoin leaves dot segments in where the reference names a host
            path = urlsplit(urljoin("http://h/", split.path)).path
            yield split._replace(path=quote(path, safe="/%:@!$&'()*+,;=~")).geturl()


@pytest.fixture(scope="module")
def site() -> Iterator[Running]:
    with running(
        Web(5, hosts=32, pages=320, features=Features(latency_ms=5, frames=0.02), mean_bytes=4000)
    ) as served:
        yield served


@pytest.mark.parametrize("now", [EPOCH, EPOCH + 45 * DAY])
def test_another_crawler_finds_exactly_what_the_truth_says(site: Running, now: int) -> None:
    site.control(now=now)
    seeds = site.web.seed_urls[:1]
    told = Truth(site.web, now).reach(seeds)
    with Client(site) as client:
        found = client.crawl(seeds)
    assert {url: (fact.status or fact.fate.value, fact.depth) for url, fact in told.items()} == found
    assert {fact.fate for fact in told.values()} == set(Fate)


def test_link_elements_count_only_if_the_rules_say_so(site: Running) -> None:
    site.control(now=EPOCH)
    plain = Truth(site.web, EPOCH).reach()
    fewer = Truth(site.web, EPOCH, Rules(via=Rules().via - {"link"})).reach()
    more = Truth(site.web, EPOCH, Rules(rels=frozenset({"next", "stylesheet"}))).reach()
    with Client(site) as client:
        found = client.crawl(site.web.seed_urls, follow_next=False)
    assert set(found) == set(fewer)
    assert {fact.via for url, fact in plain.items() if url not in fewer} == {"link"}
    assert {url.rpartition(".")[2] for url in set(more) - set(plain)} == {"css"}


def test_sitemaps_bring_pages_that_nothing_links_to(site: Running) -> None:
    plain = Truth(site.web, EPOCH).reach()
    told = Truth(site.web, EPOCH, Rules(via=Rules().via | {"sitemap"})).reach()
    new = set(told) - set(plain)
    assert new
    assert all("/unlinked/" in url or url.endswith(("/sitemap.xml", "/feed.xml")) for url in new)
    assert {told[url].via for url in new} == {"robots", "sitemap", "alternate", "feed"}


def test_scope_shuts_out_whole_domains_and_paths(site: Running) -> None:
    web = site.web
    domain = web.hosts[0].domain
    told = Truth(web, EPOCH, Rules(domains=(domain,), exclude=("/blog/*",))).reach(web.seed_urls[:1])
    for url, fact in told.items():
        host = urlsplit(url).hostname or ""
        outside = not host.endswith(domain) or urlsplit(url).path.startswith("/blog/")
        assert (fact.fate is Fate.OUT_OF_SCOPE) is (outside or len(url) > 2048)


def test_nofollow_links_can_be_left_alone(site: Running) -> None:
    plain = Truth(site.web, EPOCH).reach()
    told = Truth(site.web, EPOCH, Rules(nofollow=False)).reach()
    assert {re.sub(r".*(/\w+/).*", r"\1", url) for url in set(plain) - set(told)} == {"/sponsored/"}


def test_rechecks_are_what_conditional_requests_get(site: Running) -> None:
    before, after = Truth(site.web, EPOCH), Truth(site.web, EPOCH + 20 * DAY)
    facts = before.reach()
    told = rechecks(before, after, facts)
    with Client(site) as client:
        site.control(now=EPOCH)
        first = {url: client.get(url) for url in told}
        site.control(now=EPOCH + 20 * DAY)
        found = {}
        for url, (_, headers, body) in first.items():
            parts = urlsplit(url)
            connection = client.open[parts.netloc]
            conditions = {
                name: headers[given]
                for name, given in (("If-None-Match", "ETag"), ("If-Modified-Since", "Last-Modified"))
                if headers[given]
            }
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", target, headers={"Host": parts.netloc, **conditions})
            answer = connection.getresponse()
            content = answer.read()
            by_status = {
                304: Recheck.NOT_MODIFIED,
                200: Recheck.EQUAL if content == body else Recheck.CHANGED,
            }
            found[url] = by_status.get(answer.status, Recheck.LOST)
    assert found == told
    assert set(told.values()) == set(Recheck)


def test_documents_are_classed_by_text(site: Running) -> None:
    truth = Truth(site.web, EPOCH)
    facts = truth.reach()
    classes = truth.documents(facts)
    pages = [url for url, fact in facts.items() if fact.is_document and not truth.withheld(fact)]
    assert sorted(url for urls in classes.values() for url in urls) == sorted(pages)
    for urls in classes.values():
        kin = {(facts[url].resource.twin or facts[url].resource).url for url in urls}  # type: ignore[union-attr]
        assert len(kin) == 1
    assert len(classes) < len(pages)
    assert truth.near_duplicates(facts)


def test_counts_and_robots_cover_what_was_met(site: Running) -> None:
    truth = Truth(site.web, EPOCH)
    facts = truth.reach()
    assert sum(truth.counts(facts).values()) == len(facts)
    assert truth.robots_asked(facts) == {host.name for host in site.web.hosts}


def test_a_folder_opens_when_its_time_has_come(site: Running) -> None:
    web = site.web
    host = next(each for each in web.hosts if each.robots.kind is Robots.OPENING)
    url = web.url(host.name, "/private/any.html")
    assert not Truth(web, EPOCH).allowed(url)
    assert Truth(web, EPOCH + 10 * DAY).allowed(url)


def test_a_page_that_is_no_document_has_no_text(site: Running) -> None:
    truth = Truth(site.web, EPOCH)
    fact = truth.fact(site.web.url(site.web.hosts[0].name, "/no/such/page"))
    assert fact.fate is Fate.NOT_FOUND
    with pytest.raises(ValueError, match="no document but not_found"):
        truth.text(fact)
