"""Fuzz one reader for a while: `python -m tests.fuzz TARGET [--minutes 10]`, or `all` for one after another.

Atheris (libFuzzer with Python's branches) mutates; an input that breaks a rule, crashes the interpreter or
takes longer than the parse deadline is left in `tests/fuzz/kept/TARGET-*`, where `make test` replays it from
then on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

KEPT = Path(__file__).parent / "kept"
#: the longest input that random bytes are worth; how readers fare with 5 MB is tested apart
MAX_LENGTH = 16_384
#: seconds one input may take: the parse deadline
LIMIT = 5


def fuzz(target: str, minutes: float) -> NoReturn:
    """Runs libFuzzer in this process, which it ends."""
    import atheris

    with atheris.instrument_imports(include=["crawl"]):
        from tests.fuzz.targets import SEEDS, TARGETS

    corpus = Path(tempfile.mkdtemp(prefix=f"fuzz-{target}-"))
    for number, seed in enumerate(SEEDS[target]):
        (corpus / f"seed-{number}").write_bytes(seed)
    arguments = [
        sys.argv[0],
        f"-max_total_time={round(minutes * 60)}",
        f"-max_len={MAX_LENGTH}",
        f"-timeout={LIMIT}",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        f"-artifact_prefix={KEPT}/{target}-",
        str(corpus),
    ]
    atheris.Setup(arguments, TARGETS[target])
    atheris.Fuzz()
    raise AssertionError("libFuzzer ends the process itself")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", help="url, robots, html, sitemap, headers, bodies, or all")
    parser.add_argument("--minutes", type=float, default=10.0)
    given = parser.parse_args()
    if given.target != "all":
        fuzz(given.target, given.minutes)
    from tests.fuzz.targets import TARGETS

    failed = []
    for target in TARGETS:
        print(f"== {target}", flush=True)
        command = [sys.executable, "-m", "tests.fuzz", target, "--minutes", str(given.minutes)]
        if subprocess.run(command, check=False).returncode:
            failed.append(target)
    print("failed: " + ", ".join(failed) if failed else "nothing found")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
