"""The notebooks of docs/notebooks run from the first cell to the last, and are stored without outputs."""

import pathlib

import nbclient
import nbformat
import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells and all(not cell.outputs and cell.execution_count is None for cell in cells)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output["data"] for cell in cells for output in cell.outputs if "data" in output]
    assert any("<svg" in data.get("text/html", "") for data in shown)
    # What they show is an answer.
    text = "\n".join(data.get("text/plain", "") for data in shown)
    assert "nothing is settled" not in text and "uncertain" not in text, text


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 4
