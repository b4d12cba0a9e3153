"""Ctrl-C in a terminal reaches every process of it: one of them answers in a line, the rest are quiet."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.crawls import ROOT, crawl
from tests.web.grow import Web
from tests.web.model import Features
from tests.web.serve import running, toml


def test_an_interrupt_in_mid_fetch_is_told_without_tracebacks_and_goes_on_later(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with running(Web(5, hosts=6, pages=60, features=Features.only())) as served:
        crawl("init", str(lake))
        (lake / "crawl.toml").write_text(toml({**served.settings, "politeness": {"min_delay": "20ms"}}))
        crawl("seed", str(lake), *served.web.seed_urls)
        crawl("run", str(lake), "--now", "2026-01-01")
        with (tmp_path / "said").open("w+") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "cycles", "run", str(lake), "--now", "2026-01-01"],
                env={**os.environ, "PYTHONPATH": str(ROOT), "CRAWL_POLITENESS__MIN_DELAY": "1s"},
                cwd=ROOT,
                stderr=said,
                start_new_session=True,  # a terminal's foreground group: the signal goes to all of it
            )
            began, asked = time.monotonic(), len(served.log())
            while len(served.log()) < asked + 6 and time.monotonic() - began < 60:
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGINT)
            assert 130 == process.wait(timeout=60)
            said.seek(0)
            told = said.read()
        assert "Traceback" not in told
        assert "stopping; Ctrl-C again stops at once" in told
        assert told.rstrip().endswith("goes on where this stopped")

        again = crawl("run", str(lake), environ={"CRAWL_POLITENESS__MIN_DELAY": "20ms"})
        assert 0 == again.returncode, again.stderr
