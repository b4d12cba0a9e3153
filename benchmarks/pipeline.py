"""The whole pipeline against Scrapy following links only: the same pages, CPU of every process.

Ours fetches, journals, stores bodies, parses, hashes, stores documents and links, deduplicates, merges,
plans its rounds and commits them; Scrapy keeps nothing. Start-up is measured apart and subtracted: the
cluster up and down again, and a spider without start requests. Both ask one request at a time per host,
without delay. Medians of the repetitions; the web server's CPU counts for nobody.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import sites
from benchmarks.meter import CLUSTER, Usage, cycles_command, run
from benchmarks.table import show

__all__ = ["main", "settings"]

#: the product's bar
_BAR: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """One crawl: its cost and what it found."""

    usage: Usage
    urls: frozenset[str]
    html: int


def settings(served: sites.Sites) -> str:
    """`crawl.toml` for the sites."""
    return f"""\
[agent]
name = "benchmark"
contact = "mailto:crawl@example.org"
[egress]
allow = ["127.0.0.0/8"]
[dns]
hosts = {{ "*.test" = "127.0.0.1" }}
[politeness]
min_delay = "0ms"
factor = 0.0
[scope]
domains = {json.dumps(list(served.hosts))}
[parsing]
via = ["a", "area", "redirect"]
"""


def ours(served: sites.Sites, folder: Path) -> Crawl:
    """Crawl everything into a fresh lake."""
    lake = _lake(served, folder)
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(served.homes) + "\n", encoding="utf-8")
    run(cycles_command("seed", lake, "--file", str(seeds)))
    usage = run(cycles_command("run", lake, "--until-idle"))
    question = "SELECT DISTINCT url, content_type LIKE 'text/html%' AS html FROM fetches" + (
        " WHERE kind = 'page' AND status = 200"
    )
    rows = json.loads(run(cycles_command("sql", lake, question, "--format", "json")).output)
    return Crawl(usage=usage, urls=frozenset(r["url"] for r in rows), html=sum(r["html"] for r in rows))


def ours_start(folder: Path) -> Usage:
    """What starting costs: the product's imports, its cluster up and ready, and down again.

    (A round with nothing to do would not even start a cluster.)
    """
    program = folder / "cluster.py"  # a file: workers import the main module
    program.write_text(CLUSTER, encoding="utf-8")
    return run([sys.executable, str(program)])


def _lake(served: sites.Sites, folder: Path) -> str:
    lake = folder / "lake"
    run(cycles_command("init", str(lake)))
    (lake / "crawl.toml").write_text(settings(served), encoding="utf-8")
    return str(lake)


def scrapys(served: sites.Sites, folder: Path, extractor: str) -> Crawl:
    """The same by Scrapy."""
    found = folder / "urls.txt"
    command = _scrapy(served, *served.hosts, "--extractor", extractor, "--urls", str(found))
    usage = run(command)
    urls = frozenset(found.read_text(encoding="utf-8").split())
    return Crawl(usage=usage, urls=urls, html=json.loads(usage.output)["html"])


def _scrapy(served: sites.Sites, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.scrapy_spider", str(served.port), *arguments]


def main(*, copies: int = 6, repetitions: int = 5, extractors: Sequence[str] = ("link", "xpath")) -> bool:
    """Measure and print; is the bar reached against Scrapy's own way?"""
    costs: dict[str, list[float]] = {name: [] for name in ("ours", *extractors)}
    starts: dict[str, list[float]] = {"ours": [], "scrapy": []}
    peaks: dict[str, int] = {}
    with (
        tempfile.TemporaryDirectory(prefix="crawl-bench-") as folder,
        sites.serving(Path(folder) / "nginx", copies) as served,
    ):
        html = 0
        for _ in range(repetitions):
            found: dict[str, Crawl] = {}
            with tempfile.TemporaryDirectory(dir=folder) as own:
                starts["ours"].append(ours_start(Path(own)).cpu_s)
                found["ours"] = ours(served, Path(own))
            starts["scrapy"].append(run(_scrapy(served)).cpu_s)
            for name in extractors:
                with tempfile.TemporaryDirectory(dir=folder) as own:
                    found[name] = scrapys(served, Path(own), name)
            html = found["ours"].html
            _same(found)
            for name, crawl in found.items():
                costs[name].append(crawl.usage.cpu_s)
                peaks[name] = max(peaks.get(name, 0), crawl.usage.peak_bytes)
            print(f"  {', '.join(f'{n} {c[-1]:.1f} s' for n, c in costs.items())}", flush=True)
    return _report(costs, starts, peaks, html)


def _same(found: dict[str, Crawl]) -> None:
    """Both must have fetched the same pages, or the figures compare nothing. Raises SystemExit."""
    mine = found["ours"]
    for name, crawl in found.items():
        if crawl.urls != mine.urls or crawl.html != mine.html:
            only = [sorted(a - b)[:5] for a, b in ((mine.urls, crawl.urls), (crawl.urls, mine.urls))]
            raise SystemExit(
                f"{name} fetched other URLs than ours: only ours {only[0]}, only {name} {only[1]}"
            )


def _report(
    costs: dict[str, list[float]], starts: dict[str, list[float]], peaks: dict[str, int], html: int
) -> bool:
    start = {name: statistics.median(values) for name, values in starts.items()}
    net = {
        name: statistics.median(values) - start["ours" if name == "ours" else "scrapy"]
        for name, values in costs.items()
    }
    labels = {"ours": "crawl run --until-idle", "link": "Scrapy, LinkExtractor", "xpath": "Scrapy, XPath"}
    show(
        f"Ours, and Scrapy following links only: {html:,} HTML pages, median of {len(costs['ours'])}",
        ("", "CPU s", "start-up s", "net CPU s", "ms a page", "ratio", "least-most CPU s", "peak MiB"),
        [
            (
                labels[name],
                f"{statistics.median(values):.1f}",
                f"{start['ours' if name == 'ours' else 'scrapy']:.1f}",
                f"{net[name]:.1f}",
                f"{net[name] / html * 1000:.2f}",
                f"{net[name] / net['ours']:.2f}",
                f"{min(values):.1f}-{max(values):.1f}",
                f"{peaks[name] / 2**20:.0f}",
            )
            for name, values in costs.items()
        ],
    )
    reached = net["link"] >= _BAR * net["ours"] if "link" in net else True
    print(f"Bar: Scrapy's CPU at least {_BAR:.0f} times ours: {'reached' if reached else 'MISSED'}.")
    return reached
