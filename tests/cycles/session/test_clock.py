"""The machine's clocks go forward and name their boot."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC

from cycles.session import clock


def test_boottime_never_goes_back_and_counts_seconds() -> None:
    first = clock.boottime()
    time.sleep(0.01)
    assert 0.01 <= clock.boottime() - first < 60


def test_boottime_means_the_same_in_another_process() -> None:
    code = "from cycles.session.clock import boottime; print(boottime())"
    before = clock.boottime()
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = float(other.stdout)
    assert before <= told <= clock.boottime()


def test_real_time_knows_its_zone() -> None:
    assert UTC is clock.utcnow().tzinfo


def test_a_boot_has_one_name() -> None:
    assert clock.boot_id() == clock.boot_id()
