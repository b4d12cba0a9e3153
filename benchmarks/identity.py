"""Cost of a link's identity: joining, splitting, key form and key, in microseconds a link.

`python -m benchmarks.identity` prints the median of nine runs over links as documentation pages have them.
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable

import ada_url

from crawl.keys import Keyer
from crawl.policy import Limits, Scope
from crawl.robots import parse
from crawl.scope import admit
from crawl.url import canonical_many, split_many

BASE = "https://docs.python.test/3/library/os.html"
SHAPES = (
    "../tutorial/t{}.html",
    "os.path{}.html#os.path.join",
    "#anchor{}",
    "/3/whatsnew/{}.html",
    "https://docs.python.test/3/library/l{}.html",
    "https://www.python.test/doc/{}/?a=1",
)


def links(count: int) -> list[str]:
    """Links of one page."""
    return [SHAPES[i % len(SHAPES)].format(i) for i in range(count)]


def cost(run: Callable[[], object], items: int, repeat: int = 200) -> float:
    """Microseconds an item."""
    return statistics.median(timeit.repeat(run, number=repeat, repeat=9)) / repeat / items * 1e6


def main() -> None:
    texts = links(175)
    odd = ["./a b/é.html?x=y z" + str(i) for i in range(175)]
    urls = [u for u in canonical_many(texts, BASE) if u is not None]
    queries = [u.partition("?")[0] + "?b=2&utm_source=x&a=1" for u in urls]
    escapes = [u.partition("?")[0] + "%7ex%c3%a9" for u in urls]
    _, hosts, domains = split_many(urls)
    keyer = Keyer(bytes(32))
    rules = parse(b"User-agent: *\nDisallow: /private/\nDisallow: /*.pdf$\nAllow: /private/x\n")
    for name, run in (
        ("canonical_many, links as met", lambda: canonical_many(texts, BASE)),
        ("canonical_many, all need the parser", lambda: canonical_many(odd, BASE)),
        ("ada_url.join_url one by one", lambda: [ada_url.join_url(BASE, t) for t in texts]),
        ("split_many", lambda: split_many(urls)),
        ("admit, all pass", lambda: admit(urls, hosts, domains, 3, Scope(), Limits())),
        ("url_keys, links as met", lambda: keyer.url_keys(urls, domains)),
        ("url_keys, all with queries", lambda: keyer.url_keys(queries, domains)),
        ("url_keys, all with escapes", lambda: keyer.url_keys(escapes, domains)),
        ("robots verdict", lambda: [rules.verdict("bot", u) for u in urls]),
    ):
        print(f"{name:40s} {cost(run, len(urls)):6.2f} us")


if __name__ == "__main__":
    main()
