"""`python -m benchmarks [NAME…] [--quick]`: measure and print tables; ends with 1 when a bar is missed."""

from __future__ import annotations

import argparse

from benchmarks import fetch_loop, hostile, idle, memory, pipeline

_ALL = ("pipeline", "fetch_loop", "idle", "memory", "hostile")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure whole programs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(_ALL)}; none: all")
    parser.add_argument("--quick", action="store_true", help="small and once: does it run?")
    given = parser.parse_args()
    if unknown := set(given.names) - set(_ALL):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(_ALL)}")
    quick: bool = given.quick
    reached = []
    for name in given.names or _ALL:
        print(f"{name}: {'a small trial' if quick else 'this takes minutes'}", flush=True)
        if name == "pipeline":
            reached.append(pipeline.main(copies=1, repetitions=1) if quick else pipeline.main())
        elif name == "fetch_loop":
            reached.append(fetch_loop.main(requests=2_000, repetitions=1) if quick else fetch_loop.main())
        elif name == "idle":
            reached.append(idle.main(known=50_000, repetitions=1) if quick else idle.main())
        elif name == "hostile":
            reached.append(hostile.main(pages=5, repetitions=1) if quick else hostile.main())
        else:
            reached.append(memory.main(total=100_000_000) if quick else memory.main())
    if quick:
        print("(A trial is too small for the bars: what every run costs weighs more than its pages.)")
        return 0
    return 0 if all(reached) else 1


if __name__ == "__main__":
    raise SystemExit(main())
