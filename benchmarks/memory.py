"""Peak memory of every process while one host group brings two gigabytes of bodies.

Fifty hosts of one domain, so that one task fetches them all, at fifty at a time: half pages that are
parsed, half PDFs that are stored and none; nothing of it compresses.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.bodies import SIZE
from benchmarks.meter import ROOT, cycles_command, run
from benchmarks.table import show

__all__ = ["main"]

_BAR_BYTES: Final = 1 << 30
_HOSTS: Final = 50


@contextmanager
def _serving() -> Iterator[int]:
    command = [sys.executable, "-m", "benchmarks.bodies"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        server.stdin.close()
        server.wait()


def main(*, total: int = 2_000_000_000) -> bool:
    """Measure and print; is the bar reached?"""
    with tempfile.TemporaryDirectory(prefix="crawl-bench-") as folder, _serving() as port:
        lake = Path(folder) / "lake"
        run(cycles_command("init", str(lake)))
        (lake / "crawl.toml").write_text(
            '[agent]\nname = "benchmark"\ncontact = "mailto:crawl@example.org"\n'
            '[egress]\nallow = ["127.0.0.0/8"]\n[dns]\nhosts = { "*.test" = "127.0.0.1" }\n'
            '[politeness]\nmin_delay = "0ms"\nfactor = 0.0\n'
            '[content]\ntypes = ["text/html", "application/pdf"]\n',
            encoding="utf-8",
        )
        seeds = Path(folder) / "seeds.txt"
        urls = [
            f"http://h{i % _HOSTS}.bodies.test:{port}/{'page' if i // _HOSTS % 2 else 'file'}/{i}"
            for i in range(total // SIZE)
        ]
        seeds.write_text("\n".join(urls) + "\n", encoding="utf-8")
        run(cycles_command("seed", str(lake), "--file", str(seeds)))
        usage = run(cycles_command("run", str(lake)))
        question = (
            'SELECT count(*) AS requests, sum(bytes) AS bytes, count(DISTINCT "group") AS groups FROM fetches'
            " WHERE kind = 'page' AND status = 200"
        )
        fetched = json.loads(run(cycles_command("sql", str(lake), question, "--format", "json")).output)[0]
    show(
        f"{fetched['requests']:,} bodies, {int(fetched['bytes']):,} bytes in {fetched['groups']} host group:"
        f" {usage.wall_s:.0f} s, {usage.cpu_s:.0f} s of CPU",
        ("process", "peak MiB (VmHWM)"),
        [
            (f"{process.name} ({process.pid})", f"{process.peak_bytes / 2**20:.0f}")
            for process in sorted(usage.processes, key=lambda p: -p.peak_bytes)
        ],
    )
    complete = int(fetched["bytes"]) == SIZE * len(urls) and fetched["groups"] == 1
    reached = complete and usage.peak_bytes <= _BAR_BYTES
    print(f"Bar: every process at most 1 GiB: {'reached' if reached else 'MISSED'}.")
    return reached
