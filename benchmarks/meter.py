"""What a command costs: CPU of every process it started, wall time, and the peak memory of each process.

Theory. The command runs below a process of ours that is a subreaper: whoever loses its parent becomes a
child of that process, so when it has waited for all of its children, the kernel's RUSAGE_CHILDREN holds
the CPU of every process that ever lived below it: scheduler, nannies, workers, parsers. What else runs on
the machine (the web server, ourselves) is not in it. Peak memory is VmHWM of /proc/PID/status, read over
and over while the processes live: it only ever rises, so that what is missed is at most the growth of a
process's last tenth of a second.

It does not average, and it does not interpret: see the benchmarks.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["CLUSTER", "ROOT", "CommandFailed", "Process", "Usage", "cycles_command", "run"]

ROOT: Final = Path(__file__).resolve().parent.parent
#: a program that starts the product's cluster and ends it: what starting costs
CLUSTER: Final = (
    "if __name__ == '__main__':\n"  # workers import the main module too
    "    from cycles import cli, round\n"
    "    from cycles.dask.cluster import cluster, slots\n"
    "    with cluster(None, None) as client:\n"
    "        slots(client)\n"
)
_PR_SET_CHILD_SUBREAPER: Final = 36  # <linux/prctl.h>
_LOOK_S: Final = 0.1


class CommandFailed(RuntimeError):
    """A measured command ended with an error: its figures would mean nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process, as it was last seen: peak memory, and CPU up to then."""

    pid: int
    name: str
    peak_bytes: int
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one run of a command took. Seconds; `output` is what it printed."""

    cpu_s: float
    wall_s: float
    processes: tuple[Process, ...]
    output: str

    @property
    def peak_bytes(self) -> int:
        """The largest process's peak."""
        return max((process.peak_bytes for process in self.processes), default=0)


def cycles_command(*arguments: str) -> list[str]:
    """`crawl …` with this interpreter."""
    return [sys.executable, "-c", "from cycles.cli import main; main()", *arguments]


def run(command: Sequence[str], environ: Mapping[str, str] | None = None) -> Usage:
    """Run a command to its end, and to the end of everything it left behind. Raises CommandFailed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
    # compiling one's own source at every start is nobody's normal case
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    wrapper = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.meter", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=env,
    )
    peaks: dict[int, Process] = {}
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(wrapper.pid, peaks, done.wait), daemon=True)
    watcher.start()
    output, errors = wrapper.communicate()
    done.set()
    watcher.join()
    # the wrapper's own line is the last one of its standard error
    *said, figures = errors.rstrip("\n").split("\n")
    if wrapper.returncode:
        raise CommandFailed(
            f"{' '.join(command)[-300:]} ended with {wrapper.returncode}\n" + "\n".join(said[-40:])
        )
    cost = json.loads(figures)
    return Usage(cpu_s=cost["cpu_s"], wall_s=cost["wall_s"], processes=tuple(peaks.values()), output=output)


def _watch(root: int, peaks: dict[int, Process], wait: Callable[[float], bool]) -> None:
    tick = os.sysconf("SC_CLK_TCK")
    while not wait(_LOOK_S):
        for pid in _below(root):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            except OSError:
                continue  # it ended between two looks
            line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
            if line is not None:
                peaks[pid] = Process(
                    pid=pid,
                    name=_name(words),
                    peak_bytes=int(line.split()[1]) * 1024,
                    cpu_s=(int(stat[11]) + int(stat[12])) / tick,  # user and system (proc(5))
                )


def _name(words: Sequence[str]) -> str:
    """What a process is, from its command line."""
    text = " ".join(words)
    for mark, name in (
        ("child_main", "parser"),
        ("spawn_main", "worker"),
        ("resource_tracker", "resource tracker"),
        ("cycles.cli", "driver"),
        ("scrapy", "scrapy"),
    ):
        if mark in text:
            return name
    return text[:40]


def _below(root: int) -> list[int]:
    """Every living process below `root`, itself left out."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            parents[int(entry)] = int(text.rpartition(")")[2].split()[1])
    found: set[int] = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return sorted(found - {root})
        found |= more


def main() -> None:
    """The wrapper: run the rest of the command line, wait for all that comes below, print the cost."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise SystemExit(f"cannot become a subreaper: {os.strerror(ctypes.get_errno())}")
    started = time.monotonic()
    child = subprocess.Popen(sys.argv[1:])
    code = child.wait()
    wall = time.monotonic() - started
    while True:
        try:
            os.wait()  # whoever lost its parent
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"cpu_s": used.ru_utime + used.ru_stime, "wall_s": wall}), file=sys.stderr)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
