"""The examples run as they stand."""

import runpy
from pathlib import Path

import nbformat
import pytest
from helpers.pages import check_output

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.stem)
def test_scripts_run(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    text = capsys.readouterr().out
    promised = {
        "breast_cancer": "predictions in",
        "diabetes": "pooled and federated coefficients differ by at most",
        "genes": "of which 6 of 6 drivers",
        "survival": "a year's survival at hospital 12",
    }
    assert promised[script.stem] in text


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_and_says_what_it_shows() -> None:
    tool = runpy.run_path(str(EXAMPLES.parent / "tools" / "write_notebook.py"))
    shown = nbformat.read(tool["NOTEBOOK"], as_version=4)
    for was, now in zip(shown.cells, tool["run_notebook"]().cells, strict=True):
        check_output(_text(now), _text(was))


def _text(cell: nbformat.NotebookNode) -> str:
    outputs = [o for o in cell.get("outputs", []) if o.get("name") == "stdout"]
    return "".join(o["text"] for o in outputs)
