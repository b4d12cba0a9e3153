"""`docs/map.md`, made from the code's own docstrings. `python -m tests.mappage` writes it anew."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

__all__ = ["PAGE", "page"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "map.md"
#: in the order of a round, from words to commands
PACKAGES: Final = (
    *("crawl", "crawl/stages", "crawl/planning", "crawl/fetching", "crawl/politeness", "crawl/robots"),
    *("crawl/net", "crawl/documents", "crawl/html", "crawl/sitemap", "crawl/dates", "crawl/merging"),
    *("lake", "cycles", "cycles/commands", "cycles/words", "cycles/settings", "cycles/rounds"),
    *("cycles/tasks", "cycles/session", "cycles/dask"),
)
_HEAD: Final = """# Where things are

Every module by package, with the first words of its docstring, which goes on to say what always holds there.
Imports point inward: `cycles` → `lake` → `crawl`; in `crawl`, stages → subjects → words, and no stage imports
another (`.importlinter`). Tests mirror the code: `crawl/net/dns.py` has `tests/crawl/net/test_dns.py`.

<!-- from the code: python -m tests.mappage -->
"""


def _first(path: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return words.split("\n\n")[0].replace("\n", " ")


def page() -> str:
    """The page as it ought to be; a package that is not in PACKAGES is an error."""
    there = {
        path.parent.relative_to(ROOT).as_posix()
        for top in ("crawl", "lake", "cycles")
        for path in (ROOT / top).rglob("*.py")
    }
    if there != set(PACKAGES):
        raise ValueError(f"PACKAGES in tests/mappage.py: {there ^ set(PACKAGES)} is missing or gone")
    text = _HEAD
    for package in PACKAGES:
        text += f"\n## {package}\n\n{_first(ROOT / package / '__init__.py')}\n\n"
        for path in sorted((ROOT / package).glob("*.py")):
            if not path.name.startswith("_"):
                text += f"- [{path.stem}](../{path.relative_to(ROOT)}): {_first(path)}\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
