"""Notebooks are readers: no outputs kept, no long cells, and each runs on a lake that a crawl made."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_keeps_no_outputs_and_short_cells(path: Path) -> None:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert cells
    assert all(not c.outputs and c.execution_count is None for c in cells)
    assert max(len(c.source.splitlines()) for c in cells) <= 10


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_on_a_crawled_lake(path: Path, crawled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWL_LAKE", crawled)
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel draws into the notebook
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    ran = nbformat.read(path, as_version=4)
    NotebookClient(ran, timeout=60, resources={"metadata": {"path": str(path.parent)}}).execute()
    outputs = [o for c in ran.cells if c.cell_type == "code" for o in c.outputs]
    assert sum("image/png" in o.get("data", {}) for o in outputs) == 3
