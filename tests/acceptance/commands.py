"""The `crawl` commands, as a user types them: a process of their own each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["configure", "crawl", "sql"]

ROOT = Path(__file__).resolve().parent.parent.parent


def crawl(*arguments: str, timeout: float = 600) -> str:
    """Run one command; its standard output. Raises AssertionError, with all it said, if it fails."""
    command = [sys.executable, "-c", "from cycles.cli import main; main()", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=timeout)
    said = (
        f"{done.returncode} from `crawl {' '.join(arguments)}`\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    )
    assert done.returncode == 0, said
    return done.stdout


def configure(lake: Path, **settings: object) -> None:
    """Set keys, written with two underscores for the dot, to values that JSON and TOML write alike."""
    for key, value in settings.items():
        crawl("config", str(lake), "set", key.replace("__", "."), _toml(value))


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items()) + " }"
    return value if isinstance(value, str) else json.dumps(value)


def sql(lake: Path, question: str) -> list[dict[str, Any]]:
    """Rows of an answer, as JSON has them."""
    rows: list[dict[str, Any]] = json.loads(crawl("sql", str(lake), question, "--format", "json"))
    return rows
