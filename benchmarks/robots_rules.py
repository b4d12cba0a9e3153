"""robots.txt: our matcher beside Protego, on real files and on hostile ones.

    python -m benchmarks.robots_rules CASES

CASES is the folder of outside cases (its `robots/corpus` holds thousands of real files). Prints how many
decisions differ on URLs made of the files' own rules, and the time each takes; then the seconds that files of
500 KiB made to be slow cost.
"""

from __future__ import annotations

import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

from protego import Protego

from crawl.robots import Rules, parse
from crawl.robots.grammar import Reader, decode

_LIMIT = 500 * 1024
_AGENT = "benchmark"


def files(cases: Path) -> Iterator[bytes]:
    with tarfile.open(cases / "robots" / "corpus" / "robots_files.tar.gz") as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)) is not None:
                yield file.read()


def urls(text: str) -> set[str]:
    """URLs that the file's rules are about, nearly."""
    reader = Reader(None)
    reader.read(text)
    made = {"/", "/index.html", "/a"}
    for line in reader.rules("*")[:60]:
        path = line.path.rstrip("$")
        made |= {path.replace("*", ""), path.replace("*", "xx/y") + "z", path.replace("*", "x") + "?q=1&b=2"}
    return {f"http://a.test{path}" for path in made if path.startswith("/") and "#" not in path}


def real(cases: Path) -> None:
    ours = theirs = 0.0
    decisions = differ = 0
    for body in files(cases):
        text = decode(body, _LIMIT)
        began = time.process_time()
        mine = parse(body)
        ours += time.process_time() - began
        began = time.process_time()
        other = Protego.parse(text)
        theirs += time.process_time() - began
        for url in urls(text):
            decisions += 1
            began = time.process_time()
            answer = mine.verdict(_AGENT, url).allowed
            middle = time.process_time()
            peer = bool(other.can_fetch(url, _AGENT))
            theirs += time.process_time() - middle
            ours += middle - began
            differ += answer != peer
    print(
        f"real files: {decisions:,} decisions, {differ:,} differ; ours {ours:.2f} s, Protego {theirs:.2f} s"
    )


def hostile() -> Iterator[tuple[str, str]]:
    """Files of 500 KiB, by what they try."""

    def filled(template: str) -> str:
        lines, size = ["User-agent: *"], 0
        while size < _LIMIT:
            lines.append(template.format(n=len(lines)))
            size += len(lines[-1]) + 1
        return "\n".join(lines)

    yield "many stars", filled("Disallow: /" + "*a" * 16 + "b{n}")
    yield "one rule of stars", "User-agent: *\nDisallow: /" + "*a" * 250_000 + "b"
    yield "short rules with a star", filled("Disallow:*ab{n}")
    yield "plain rules", filled("Disallow:/x{n}")
    agents = "\n".join(f"User-agent: b{n}" for n in range(12_000)) + "\nUser-agent: *\n"
    yield "agents times rules", agents + "\n".join(f"Disallow: /{n}" for n in range(14_000))
    yield "agents times delays", agents + "\n".join(f"Crawl-delay: {n}" for n in range(14_000))


def _seconds(rules: Rules, url: str) -> float:
    began = time.process_time()
    rules.verdict(_AGENT, url)
    return time.process_time() - began


def main() -> None:
    if len(sys.argv) > 1:
        real(Path(sys.argv[1]))
    for name, text in hostile():
        began = time.process_time()
        rules = parse(text.encode())
        parsed = time.process_time() - began
        path = "http://a.test/" + "a" * 2_000
        first, then = _seconds(rules, path), _seconds(rules, path)
        print(f"{name}: read {parsed:.3f} s, first verdict {first:.3f} s, then {then:.3f} s")


if __name__ == "__main__":
    main()
