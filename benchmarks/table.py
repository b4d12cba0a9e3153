"""Tables of figures on standard output."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["show"]


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others are figures."""
    widths = [max(len(str(line[i])) for line in (columns, *rows)) for i in range(len(columns))]
    print(f"\n{title}\n")
    for line in (columns, tuple("-" * width for width in widths), *rows):
        first, *rest = (
            str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join((first, *rest)).rstrip())
    print(flush=True)
