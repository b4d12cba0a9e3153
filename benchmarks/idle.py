"""A round with nothing to do over a million known URLs, every table filled: seconds from start to end.

Such a round starts no cluster, so the whole command counts, imports included; the start of a cluster is shown
beside it, for what a round with work adds.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.filled import NOW, fill
from benchmarks.meter import CLUSTER, cycles_command, run
from benchmarks.table import show

__all__ = ["main"]

_BAR_S: Final = 3.0


def main(*, known: int = 1_000_000, repetitions: int = 5) -> bool:
    """Measure and print; is the bar reached?"""
    with tempfile.TemporaryDirectory(prefix="crawl-bench-") as folder:
        lake = Path(folder) / "lake"
        fill(str(lake), known)
        (lake / "crawl.toml").write_text("", encoding="utf-8")
        program = Path(folder) / "cluster.py"  # a file: workers import the main module
        program.write_text(CLUSTER, encoding="utf-8")
        rounds, starts = [], []
        for i in range(repetitions):
            starts.append(run([sys.executable, str(program)]))
            now = NOW.replace(hour=i)
            rounds.append(run(cycles_command("run", str(lake), "--now", now.isoformat())))
    lines = []
    for name, usages in (("crawl run, nothing due", rounds), ("a cluster up and down", starts)):
        walls = [usage.wall_s for usage in usages]
        lines.append(
            (
                name,
                f"{statistics.median(walls):.2f}",
                f"{min(walls):.2f}-{max(walls):.2f}",
                f"{statistics.median(usage.cpu_s for usage in usages):.2f}",
                f"{max(usage.peak_bytes for usage in usages) / 2**20:.0f}",
            )
        )
    show(
        f"A round with nothing to do over {known:,} known URLs, median of {repetitions}",
        ("", "wall s", "least-most", "CPU s", "peak MiB"),
        lines,
    )
    reached = statistics.median(usage.wall_s for usage in rounds) < _BAR_S
    print(
        f"Bar: under {_BAR_S:.0f} s, the start of the command included: {'reached' if reached else 'MISSED'}."
    )
    return reached
