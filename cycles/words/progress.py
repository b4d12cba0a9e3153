"""What a person sees while a round runs: stage, pages, pages/s, hosts waiting and on what, time left.

On a terminal one line is redrawn; elsewhere (cron, CI) a line is printed when a stage begins and every few
seconds. Everything goes to standard error, so that output stays clean for pipes. It decides nothing and
keeps no truth.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from typing import Any, Final, TextIO

from cycles.words.wording import counted

__all__ = ["Progress"]

#: seconds between two lines where nothing can be redrawn
QUIET: Final = 10.0

#: what a host waits for, by the rule of its gap (crawl.politeness)
_WAITS: Final = {
    "none": "their first turn",
    "floor": "their gap",
    "factor": "their gap",
    "crawl_delay": "their Crawl-delay",
    "backoff": "the end of a back-off",
    "retry_after": "their Retry-After",
    "name": "an answer about their name",
    "address": "room at their address",
}


class Progress:
    """Sums what the groups announce and prints it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._groups: dict[int, Mapping[str, Any]] = {}
        self._stage, self._round = "", 0
        self._began = self._printed = time.monotonic()
        self._expected_s: float | None = None
        self._planned = 0
        self._parsed = 0

    def note(self, text: str) -> None:
        """A line that stays."""
        self._clear()
        print(text, file=self._stream, flush=True)

    def stage(self, round_: int, name: str, *, planned: int = 0, expected_s: float | None = None) -> None:
        """A stage begins."""
        self._round, self._stage, self._groups, self._parsed = round_, name, {}, 0
        self._planned, self._expected_s = planned, expected_s
        self._began = time.monotonic()
        if self._live:
            self._draw()
        else:
            self.note(f"round {round_}: {name}" + (f" ({planned:,} URLs)" if planned else ""))

    def group(self, group: int, seen: Mapping[str, Any]) -> None:
        """A host group tells how far it is (crawl.stages.fetch.Progress)."""
        self._groups[group] = seen

    def parsed(self, pages: int) -> None:
        """So many more pages are parsed."""
        self._parsed += pages

    def steps(self, done: int, total: int) -> None:
        """A stage of countable tasks is that far."""
        self._groups = {0: {"asked": done, "of": total}}
        self.tick()

    def tick(self) -> None:
        """Called often; prints seldom."""
        now = time.monotonic()
        if self._live and now - self._printed > 0.25:
            self._draw()
        elif not self._live and now - self._printed > QUIET:
            self.note(self.line())

    def line(self) -> str:
        """The present state in one line."""
        took = max(1e-3, time.monotonic() - self._began)
        asked = sum(int(g.get("asked", 0)) for g in self._groups.values())
        parts = [f"round {self._round}: {self._stage}"]
        if self._stage == "fetch":
            parts.append(self._pages(asked))
            parts.append(f"{asked / took:,.1f} pages/s")
            if self._parsed:
                parts.append(f"{self._parsed:,} parsed")
            parts += self._waiting()
            if self._expected_s:
                left = self._expected_s - took
                parts.append(
                    f"about {math.ceil(left):,} s left"
                    if left > 0
                    else f"longer than the {self._expected_s:,.0f} s predicted"
                )
        elif asked:
            parts.append(f"{asked} of {self._groups[0]['of']}")
        return " · ".join(parts)

    def _pages(self, asked: int) -> str:
        """How many of the plan; what redirects led to comes on top and is told apart once it is more."""
        if not self._planned:
            return counted(asked, "page")
        more = asked - self._planned
        besides = f" and {more:,} that redirects led to" if more > 0 else ""
        return f"{min(asked, self._planned):,} of {counted(self._planned, 'page')}{besides}"

    def _waiting(self) -> list[str]:
        why: dict[str, int] = {}
        for group in self._groups.values():
            for rule, hosts in dict(group.get("waiting", {})).items():
                said = _WAITS.get(rule) or rule
                why[said] = why.get(said, 0) + int(hosts)
        if not why:
            return []
        ranked = sorted(why.items(), key=lambda item: (-item[1], item[0]))
        detail = ", ".join(f"{n:,} for {what}" for what, n in ranked)
        return [f"{counted(sum(why.values()), 'host')} waiting ({detail})"]

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._clear()

    def _draw(self) -> None:
        self._printed = time.monotonic()
        self._stream.write("\r\x1b[K" + self.line()[:160])
        self._stream.flush()

    def _clear(self) -> None:
        self._printed = time.monotonic()
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
