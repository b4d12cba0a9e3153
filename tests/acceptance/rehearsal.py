"""A small web without chance, lakes prepared for it, and what its server must have seen.

A lake is prepared once and copied, so that a crawl that was disturbed and one that was not start from the
same bytes: same secret, same seeds, same first round. One server serves all runs, so URLs are the same too.
"""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.processes import Command, crawl, done, until
from tests.lakes import differences
from tests.web.grow import Web
from tests.web.model import Features
from tests.web.serve import Running, running, toml

__all__ = ["FIRST", "SECOND", "THIRD", "Rehearsal", "asked_again", "rehearsing"]

#: planning times of the rounds; the web's clock is set to them
FIRST, SECOND, THIRD = "2026-01-01T00:00:00Z", "2026-01-09T12:00:00Z", "2026-01-30T00:00:00Z"
#: a trap, silence and failures make a crawl depend on its speed
_CHANCE = ("trap", "dead_hosts", "unlisted_hosts", "slow_hosts", "errors")


@dataclass(slots=True, kw_only=True)
class Rehearsal:
    """A web that is served, and a folder of lakes."""

    served: Running
    folder: Path
    lease: str = "4s"
    made: dict[str, Path] = field(default_factory=dict)
    copies: int = 0

    def seeded(self) -> Path:
        """A lake with its settings and seeds, never crawled."""
        return self._once("seeded", self._seed)

    def after(self, rounds: int) -> Path:
        """The lake after so many undisturbed rounds (1 to 3)."""
        if not rounds:
            return self.seeded()
        return self._once(f"after-{rounds}", lambda lake: self._crawled(lake, rounds))

    def copy(self, of: Path) -> Path:
        """A new lake with the same content."""
        self.copies += 1
        made = self.folder / f"copy-{self.copies}"
        shutil.copytree(of, made)
        return made

    @contextmanager
    def run(self, lake: Path | str, now: str = SECOND, *more: str, **options: Any) -> Iterator[Command]:
        """A running round at that time of the web."""
        self.served.control(now=now)
        with crawl(*self.arguments(lake, now, *more), **options) as command:
            yield command

    def finish(
        self, lake: Path | str, now: str = SECOND, *more: str, environ: Mapping[str, str] | None = None
    ) -> str:
        """Run a round to its end. Raises AssertionError if it fails."""
        self.served.control(now=now)
        return done(*self.arguments(lake, now, *more), environ=environ)

    @staticmethod
    def arguments(lake: Path | str, now: str, *more: str) -> list[str]:
        cluster = () if "--scheduler" in more or "--workers" in more else ("--workers", "2")
        return ["run", str(lake), "--now", now, *cluster, *more]

    def mark(self) -> int:
        """How many requests the server has seen."""
        return len(self.served.log())

    def wait_for_requests(self, mark: int, count: int, timeout: float = 60) -> None:
        """Return when so many requests came since `mark`."""
        until(lambda: len(self.served.log(mark)) >= count, timeout, f"{count} requests")

    def wait_for_pages(self, mark: int, count: int, timeout: float = 60) -> None:
        """Return when so many requests for something other than robots.txt came since `mark`."""

        def came() -> bool:
            return sum(one["path"] != "/robots.txt" for one in self.served.log(mark)) >= count

        until(came, timeout, f"{count} pages")

    def _once(self, name: str, make: Any) -> Path:
        if name not in self.made:
            lake = self.folder / name
            make(lake)
            self.made[name] = lake
        return self.made[name]

    def _seed(self, lake: Path) -> None:
        done("init", str(lake))
        (lake / "crawl.toml").write_text(self.settings(), encoding="utf-8")
        seeds = self.folder / "seeds.txt"
        seeds.write_text("\n".join(self.served.web.seed_urls) + "\n", encoding="utf-8")
        done("seed", str(lake), "--file", str(seeds), "--now", FIRST)

    def settings(self) -> str:
        """What `crawl.toml` says."""
        ours = {
            "politeness": {"min_delay": "10ms"},
            "round": {"window": "5m"},
            "fetching": {"lease": self.lease, "part_bytes": 40_000},
            # upkeep runs when a test says so, and finds something to do after three rounds
            "storage": {"upkeep": False, "tier_ratio": 2},
        }
        return toml({**self.served.settings, **ours})

    def _crawled(self, lake: Path, rounds: int) -> None:
        shutil.copytree(self.after(rounds - 1), lake)
        self.finish(lake, (FIRST, SECOND, THIRD)[rounds - 1])


@contextmanager
def rehearsing(folder: Path, *, hosts: int = 12, pages: int = 180) -> Iterator[Rehearsal]:
    """Serve the web while the block runs."""
    features = Features().without(*_CHANCE)
    with running(Web(7, hosts, pages, features=features, mean_bytes=6_000)) as served:
        yield Rehearsal(served=served, folder=folder)


def asked_again(log: Iterable[Mapping[str, Any]], breaks: Sequence[float]) -> list[str]:
    """What a server saw that it should not have: complaints, empty if all is well.

    `log` is that of one round, `breaks` are moments at which all that had been running was dead or stopped
    for good. A URL may be asked again only if a break lies between, and the first time was its host's last
    request before that break (so it was under way then).
    """
    hosts: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in sorted(log, key=lambda one: one["start"]):
        hosts[one["host"]].append(one)
    complaints = []
    for host, requests in hosts.items():
        last: dict[str, int] = {}
        for at, one in enumerate(requests):
            before = last.get(one["path"])
            last[one["path"]] = at
            if before is None:
                continue
            first, following = requests[before]["start"], requests[before + 1]["start"]
            if not any(first <= each <= following for each in breaks):
                complaints.append(
                    f"{host}{one['path']} at {first} and at {one['start']}, next at {following}"
                )
    return complaints


def equal(disturbed: Path | str, undisturbed: Path | str) -> None:
    """Raises AssertionError naming tables and rows that differ."""
    found = differences(str(disturbed), str(undisturbed))
    told = [
        f"{table}: only disturbed {len(one)}, only undisturbed {len(other)}\n  "
        + "\n  ".join([*one[:2], *other[:2]])
        for table, (one, other) in found.items()
    ]
    assert not told, "\n".join(told)


def checked(lake: Path | str, environ: Mapping[str, str] | None = None) -> None:
    """`crawl check` finds nothing wrong."""
    done("check", str(lake), environ=environ)


def gone(command: Command, timeout: float = 30) -> float:
    """Wait until the descendants of a killed command are dead too; the moment."""
    until(lambda: not command.orphans(), timeout, "the workers of a killed driver to end")
    return time.time()
