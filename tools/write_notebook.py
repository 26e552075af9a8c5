"""Run the example notebook and keep what it prints: python tools/write_notebook.py."""

from pathlib import Path

import nbclient
import nbformat

NOTEBOOK = Path(__file__).parent.parent / "examples" / "diabetes.ipynb"


def run_notebook() -> nbformat.NotebookNode:
    """Return the notebook after a run, with its standard output only."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.get("metadata", {}).pop("execution", None)
        if "outputs" in cell:
            cell["outputs"] = [own for own in cell["outputs"] if own.get("name") == "stdout"]
    return notebook


if __name__ == "__main__":
    nbformat.write(run_notebook(), NOTEBOOK)
