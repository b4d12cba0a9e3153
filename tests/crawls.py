"""Real crawls by the command line, for tests that need a lake with something in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.web.grow import Web
from tests.web.model import Features
from tests.web.serve import running, toml

__all__ = ["crawl", "crawl_small_web"]

ROOT = Path(__file__).resolve().parent.parent


def crawl(
    *words: str, environ: Mapping[str, str] | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run one command in a process of its own; its output is captured, its exit code not judged."""
    return subprocess.run(
        [sys.executable, "-m", "cycles", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def crawl_small_web(root: Path) -> str:
    """Crawl a small grown web: two rounds from its home pages, one nine days later. The lake's root."""
    web = Web(7, hosts=12, pages=120, features=Features().without("trap"))
    with running(web) as served:
        steps = [("init", str(root)), ("seed", str(root), *served.web.seed_urls)]
        steps += [
            ("run", str(root), "--rounds", "2", "--now", "2026-01-01"),
            ("run", str(root), "--now", "2026-01-10"),
        ]
        for step in steps:
            if step[0] == "seed":
                settings = {**served.settings, "politeness": {"min_delay": "5ms"}}
                (root / "crawl.toml").write_text(toml(settings))
            if step[-1] == "2026-01-10":
                served.control(now="2026-01-10T00:00:00Z")
            done = crawl(*step)
            assert done.returncode == 0, done.stderr
    return str(root)
