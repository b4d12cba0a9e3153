"""What a hundred hostile servers cost fifty healthy hosts beside them in one round.

The same healthy hosts are crawled with and without the hostile ones, in turns; all hosts' pages are seeds, so
one round asks for everything. Healthy servers, hostile servers and the crawler are processes of their own, so
that one server does not make the other slow. A run's figure is the time from the first request to a healthy
host to the end of the last one (from the table `fetches`, robots.txt included); the bar is the ratio of the
medians. Beside it: outcomes, processes that were lost, and the peak memory of each.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.meter import ROOT, Usage, cycles_command, run
from benchmarks.table import show

__all__ = ["main"]

_BAR: Final = 1.2
_BAR_BYTES: Final = 1 << 30
_ADDRESS: Final = "127.0.0.2"
_HOSTS: Final = 50
_WORKERS: Final = 2
_PAGE: Final = b"<title>page</title>" + b"<p>words of a healthy page, <a href=/>home</a>" * 400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One crawl. Seconds."""

    span: float  # of the healthy hosts' requests
    slowest_host: float
    usage: Usage
    outcomes: Mapping[str, int]
    healthy: int  # answers OK of healthy hosts


async def _serve(kind: str) -> None:
    """Serve until standard input ends: the port, or JSON of the hostile seeds, on the first line."""
    from tests.crawl.rawserver import RawServer, response

    servers: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="crawl-bench-") as folder:
        if kind == "healthy":
            page = response(200, _PAGE, "Content-Type: text/html")
            one = RawServer(dict.fromkeys((f"/p{n}" for n in range(1_000)), page), address=_ADDRESS)
            servers.append(await one.__aenter__())
            told: Any = {"port": one.port}
        else:
            from tests.acceptance.hostileweb import publish
            from tests.acceptance.securewiles import BY_NAME, HTTP2, secure
            from tests.acceptance.wiles import WILES, inwards

            plain = RawServer(address=_ADDRESS)
            closed = secure(_ADDRESS, Path(folder))
            servers += [await server.__aenter__() for server in (plain, closed.one, closed.two)]
            publish(plain, healthy_too=False)
            names = [f"{name}.test" for name in (*WILES, *inwards(plain.port))]
            seeds = [plain.url("/", name) for name in names]
            told = {"seeds": seeds + [closed.url(name) for name in (*BY_NAME, *HTTP2)]}
            told["ca_file"] = str(closed.ca_file)
        print(json.dumps(told), flush=True)
        await asyncio.to_thread(sys.stdin.read)
        for server in servers:
            await server.__aexit__(None, None, None)


@contextmanager
def _serving(kind: str) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.hostile", kind]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield json.loads(server.stdout.readline())
    finally:
        server.stdin.close()
        server.wait()


def _settings(ca_file: str) -> str:
    return (
        '[agent]\nname = "benchmark"\ncontact = "mailto:crawl@example.org"\n'
        f'[egress]\nallow = ["{_ADDRESS}/32"]\n'
        f'[tls]\nca_file = "{ca_file}"\n'
        f'[dns]\nhosts = {{ "*.test" = "{_ADDRESS}" }}\nservers = ["{_ADDRESS}:9"]\ntimeout = "1s"\n'
        '[politeness]\nmin_delay = "200ms"\nfactor = 0.0\n'
        '[limits]\nrequest_deadline = "5s"\nidle = "2s"\nconnect_timeout = "2s"\n'
        '[parsing]\ndeadline = "2s"\nlinks = 500\n'
        "[retry]\nattempts = 1\n"  # no round waits for second tries
        "[storage]\nupkeep = false\n"
    )


def _crawl(healthy: list[str], hostile: dict[str, Any] | None) -> _Run:
    with tempfile.TemporaryDirectory(prefix="crawl-bench-") as folder:
        lake, seeds = Path(folder) / "lake", Path(folder) / "seeds.txt"
        run(cycles_command("init", str(lake)))
        (lake / "crawl.toml").write_text(_settings(hostile["ca_file"] if hostile else ""), encoding="utf-8")
        seeds.write_text(
            "\n".join([*healthy, *(hostile["seeds"] if hostile else ())]) + "\n", encoding="utf-8"
        )
        run(cycles_command("seed", str(lake), "--file", str(seeds)))
        usage = run(cycles_command("run", str(lake), "--workers", str(_WORKERS), "--window", "90s"))
        spans = _ask(
            lake,
            "SELECT host, epoch(min(started_at)) AS began, epoch(max(finished_at)) AS ended,"
            " count(*) FILTER (outcome = 'OK' AND kind = 'page') AS pages"
            " FROM fetches WHERE host LIKE 'well%' GROUP BY host",
        )
        outcomes = _ask(lake, "SELECT last_outcome AS outcome, count(*) AS n FROM urls GROUP BY 1 ORDER BY 1")
    return _Run(
        span=max(row["ended"] for row in spans) - min(row["began"] for row in spans),
        slowest_host=max(row["ended"] - row["began"] for row in spans),
        usage=usage,
        outcomes={str(row["outcome"]): int(row["n"]) for row in outcomes},
        healthy=sum(int(row["pages"]) for row in spans),
    )


def _ask(lake: Path, question: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(
        run(cycles_command("sql", str(lake), question, "--format", "json")).output
    )
    return rows


def _workers(one: _Run) -> int:
    return sum(process.name == "worker" for process in one.usage.processes)


def main(*, pages: int = 25, repetitions: int = 5) -> bool:
    """Measure and print; is the bar reached?"""
    alone: list[_Run] = []
    beside: list[_Run] = []
    with ExitStack() as stack:
        port = stack.enter_context(_serving("healthy"))["port"]
        hostile = stack.enter_context(_serving("hostile"))
        healthy = [f"http://well{n % _HOSTS}.test:{port}/p{n // _HOSTS}" for n in range(_HOSTS * pages)]
        for _ in range(repetitions):
            alone.append(_crawl(healthy, None))
            beside.append(_crawl(healthy, hostile))
    show(
        f"{_HOSTS} healthy hosts of {pages} pages, alone and beside {len(hostile['seeds'])} hostile hosts"
        f" (medians of {repetitions})",
        ("", "fetch time s", "slowest host s", "round s", "CPU s", "peak MiB"),
        [
            (
                name,
                f"{median(one.span for one in runs):.2f}",
                f"{median(one.slowest_host for one in runs):.2f}",
                f"{median(one.usage.wall_s for one in runs):.1f}",
                f"{median(one.usage.cpu_s for one in runs):.1f}",
                f"{max(one.usage.peak_bytes for one in runs) / 2**20:.0f}",
            )
            for name, runs in (("alone", alone), ("beside", beside))
        ],
    )
    print("outcomes beside:", ", ".join(f"{k} {v}" for k, v in sorted(beside[-1].outcomes.items())))
    ratio = median(one.span for one in beside) / median(one.span for one in alone)
    spread = ", ".join(f"{two.span / one.span:.2f}" for one, two in zip(alone, beside, strict=True))
    whole = all(one.healthy == len(healthy) for one in (*alone, *beside))
    peak = max(one.usage.peak_bytes for one in beside)
    # two workers were started: whoever dies is replaced, so that there were more
    lost = sum(max(0, _workers(one) - _WORKERS) for one in (*alone, *beside))
    reached = ratio <= _BAR and whole and peak <= _BAR_BYTES and not lost
    print(f"Ratio of the medians: {ratio:.2f} (pairs: {spread}); at most {_BAR}.")
    print(
        f"Healthy pages all fetched: {whole}. Largest process: {peak / 2**20:.0f} MiB. Workers lost: {lost}."
    )
    print(f"Bar: {'reached' if reached else 'MISSED'}.")
    return reached


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
