"""What the next round would do, in words: pages, hosts, time, what caps it, what is left out and why.

What always holds: it only tells what `cycles.rounds.round.preview` worked out, by the very plan a round would
make.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cycles.words.output import grid, safe, shown
from cycles.words.wording import LEFT_OUT, counted, said

__all__ = ["told"]

#: what holds a round up (crawl.planning.forecast), in words
_CAP = {
    "nothing": "nothing: no URL is due",
    "host": "the slowest host's clock",
    "address": "what a public address that many hosts share may be asked",
    "work": "the speed of one worker: more workers would help",
}


def told(found: Mapping[str, Any]) -> str:
    """The preview for the eye."""
    seconds = float(found["seconds"])
    lines = [
        f"round {found['round']}, planned for {shown(found['now'])}, window {found['window_s']:,.0f} s"
        + (" (open: its plan is fixed)" if found.get("open") else ""),
        f"  pages     {found['pages']:,}, and {found.get('robots', 0):,} robots.txt",
        f"  hosts     {found['hosts']:,} in {counted(len(found.get('groups', ())), 'group')}",
        f"  time      {seconds:,.1f} s of fetching"
        + (f", {found['pages'] / seconds:,.1f} pages/s" if seconds else ""),
        f"  capped by {_CAP.get(found['cap'], found['cap'])}",
    ]
    caps = found.get("caps") or ()
    if caps:
        rows = [(c["host"], c["requests"], round(c["seconds"], 1), round(c["per_second"], 2)) for c in caps]
        names = ["slowest hosts", "requests", "seconds", "per second"]
        lines += ["", *("  " + line for line in grid(names, rows, names[1:]).rstrip().splitlines())]
    cuts = found.get("cuts") or {}
    lines += ["", f"left out    {counted(sum(cuts.values()), 'due URL')}"]
    lines += [
        f"  {count:>9,}  {said(reason, LEFT_OUT)}"
        for reason, count in sorted(cuts.items(), key=lambda cut: (-cut[1], cut[0]))
    ]
    if found.get("unasked"):
        lines.append(f"not asked   {found['unasked']:,} of the pages: egress refuses their address or port")
    if found.get("refused"):
        lines += ["", f"warning: `crawl run` will refuse this: {safe(found['refused'])}"]
    return "\n".join(lines)
