"""Notebooks that no longer run, show nothing, or were saved with what one machine found."""

import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.versions

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
TRAINS = {"a_new_environment"}  # and so takes a minute
RUN = [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in TRAINS), id=path.stem) for path in NOTEBOOKS]


def cells(path: Path, kind: str) -> list[dict]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_saved_without_outputs(path):
    code = cells(path, "code")
    assert len(code) > 4 and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "".join(cells(path, "markdown")[0]["source"]).startswith("# ")


@pytest.mark.parametrize("path", RUN)
def test_a_notebook_runs_from_its_first_cell_to_its_last(path, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is missing: pip install 'manyturn[test]'")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert "image/png" in kinds
    if path.stem in TRAINS:
        pages = [output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})]
        bars = [page for page in pages if "<progress" in page]
        assert len(pages) == 5 and sum("95 % interval" in page for page in pages) == 3
        assert len(bars) == 2 and all(re.search(r'value="(\d+)" max="\1"', bar) for bar in bars), "drawn in place"
        assert not any("\r" in output.get("text", "") for output in shown), "a bar for terminals is drawn too"
