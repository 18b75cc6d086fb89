"""The page on notebooks is run as one, by a real kernel."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

import heedful
from tests.tiny_transformers import WORDS, save

SKETCHED = "import heedful.report.page as p; p.draw = lambda *given: '<svg></svg>'\n"
"""Charts take half of an audit's time, and others test them."""
PAGE = Path(__file__).parents[2] / "docs" / "notebook.md"


@pytest.mark.slow
def test_the_cells_of_the_page_run_and_show_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "my-model", "bert", ("LABEL_0", "LABEL_1"))
    words = [word for word in WORDS if word.isalpha()]
    rows = [{"text": " ".join(words[n : n + 4]), "label": ("neg", "pos")[n % 2]} for n in range(6)]
    pd.DataFrame(rows).to_csv(tmp_path / "reviews.csv", index=False)
    cells = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    cells[0] = SKETCHED + cells[0]
    book: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    monkeypatch.setenv("PYTHONPATH", str(Path(heedful.__file__).parents[1]))
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ["OMP_NUM_THREADS"])
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    NotebookClient(book, timeout=180, resources={"metadata": {"path": str(tmp_path)}}).execute()
    first, frame, card = (
        next(one["data"] for one in cell.outputs if one.output_type == "execute_result")
        for cell in book.cells
    )
    assert 'class="heedful"' in first["text/html"]
    assert first["text/plain"].startswith("Explanation(LABEL_")
    assert "<script" not in first["text/html"] + card["text/html"]
    assert "occlusion" in frame["text/plain"]
    assert "Cannot tell" in card["text/html"]
    assert card["text/plain"] == "Audited('cannot tell', 6 documents, 'runs/mine/report.html')"
    assert (tmp_path / "runs" / "mine" / "report.html").is_file()
