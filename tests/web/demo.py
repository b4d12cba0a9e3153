"""`make demo`: three rounds over the grown web, at three times, with the commands a user would type.

The web is served by a process of its own; the lake is made anew in a folder (`demo-lake`) and stays there to
be looked at. Each command is shown before it runs. It uses nothing of the crawler but its commands.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.web.grow import Web
from tests.web.model import EPOCH, when
from tests.web.serve import Running, running, toml
from tests.web.truth import Fate, Rules, Truth

__all__ = ["main"]

TIMES = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-09T12:00:00Z")
_STATES = (
    "SELECT state, count(*) AS urls, count(DISTINCT domain) AS domains FROM urls"
    " GROUP BY ALL ORDER BY urls DESC"
)
_ROUNDS = (
    "SELECT round, outcome, count(*) AS requests, sum(bytes) AS bytes FROM fetches"
    " WHERE kind = 'page' GROUP BY ALL ORDER BY round, requests DESC"
)


def quoted(argument: str) -> str:
    """A word as one types it: SQL in double quotes, since it has single ones inside."""
    plain = shlex.quote(argument)
    return plain if plain == argument or set('"$`\\!') & set(argument) else f'"{argument}"'


def crawl(*arguments: str) -> None:
    """Run one `crawl` command with this Python, shown first. Raises SystemExit if it fails."""
    print(f"\n$ crawl {' '.join(map(quoted, arguments))}", flush=True)
    command = [sys.executable, "-c", "from cycles.cli import main; main()", *arguments]
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(f"`crawl {arguments[0]}` ended with {done.returncode}")


def fresh(lake: Path) -> None:
    """Make room for the lake. Raises SystemExit if the folder holds anything but a lake."""
    if lake.exists() and any(lake.iterdir()) and not (lake / "identity.json").exists():
        raise SystemExit(f"{lake} is no lake: name another folder with --lake")
    shutil.rmtree(lake, ignore_errors=True)


def settings(served: Running) -> str:
    """What `crawl.toml` says in the demo: the web's own names and range, and short gaps between requests."""
    politeness = {"politeness": {"min_delay": "20ms"}, "round": {"window": "2m"}}
    return toml({**served.settings, **politeness})


def rounds(served: Running, lake: Path) -> None:
    """Seed the lake with every host's home page and run a round at each of the times."""
    seeds = lake.with_name(lake.name + "-seeds.txt")
    seeds.write_text("\n".join(served.web.seed_urls) + "\n", encoding="utf-8")
    crawl("init", str(lake))
    (lake / "crawl.toml").write_text(settings(served), encoding="utf-8")
    crawl("seed", str(lake), "--file", str(seeds))
    seeds.unlink()
    for now in TIMES:
        served.control(now=now)
        crawl("run", str(lake), "--now", now)


def told(web: Web) -> str:
    """What there is to be found, from the web's own description."""
    facts = Truth(web, TIMES[0], Rules(via=Rules().via | {"sitemap"})).reach()
    pages = [fact for fact in facts.values() if fact.is_document]
    lists = sum(fact.is_list for fact in facts.values())
    linked = Truth(web, TIMES[0]).reach().values()
    near = sum(fact.is_document and fact.depth <= len(TIMES) - 1 for fact in linked)
    refused = sum(fact.fate in (Fate.ROBOTS_DENIED, Fate.ROBOTS_UNREACHABLE) for fact in facts.values())
    return (
        f"{len(web.hosts)} hosts in {len({host.domain for host in web.hosts})} domains, {len(facts):,} URLs:"
        f" {len(pages):,} pages ({near:,} within {len(TIMES) - 1} links of a home page),"
        f" {refused} closed by robots.txt, {lists} sitemaps and feeds"
    )


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.web.demo", description="Three rounds over a grown web."
    )
    parser.add_argument("--lake", type=Path, default=Path("demo-lake"))
    parser.add_argument("--seed", type=int, default=1, help="of the web")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    fresh(given.lake)
    with running(Web(given.seed)) as served:
        print(f"A web grown from seed {given.seed}, on 127.1.0.0/16, port {served.port}: {told(served.web)}.")
        print(f"Its time begins on {when(EPOCH):%Y-%m-%d}; there is a round at {', '.join(TIMES)}.")
        rounds(served, given.lake)
        crawl("report", str(given.lake))
        for question in (_STATES, _ROUNDS):
            crawl("sql", str(given.lake), question)
    print(f"\nDone in {time.monotonic() - started:.0f} s. The lake is in {given.lake}/.")
    print(f'Ask it more: crawl sql {given.lake} "SELECT title, url FROM pages LIMIT 5"')


if __name__ == "__main__":
    main()
