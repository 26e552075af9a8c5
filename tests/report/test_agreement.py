"""The paper's main table beside records of its own scenarios."""

from pathlib import Path

import numpy as np
import pytest
from helpers.programs import needs
from playwright.sync_api import Browser

from fedlasso.cli import main
from fedlasso.report import read_results, write_report
from fedlasso.report.compare import agree_with_paper, read_main
from fedlasso.study import SCENARIOS, Store
from fedlasso.study.manifest import Manifest, StudyRun, describe_machine
from fedlasso.study.outcomes import Record
from fedlasso.study.store import to_parquet

COUNT = 6


def write_records(folder: Path, shift: float) -> Path:
    """Records whose means are the published ones, DA's F1 on the baseline at E = 5 shifted."""
    folder.mkdir()
    store = Store(folder)
    table = read_main()
    run = StudyRun("2026-01-02T03:04:05Z", "processes", 1, "abc", describe_machine())
    scenarios = {name: SCENARIOS[name] for name in dict.fromkeys(table["scenario"])}
    manifest = Manifest({"name": "paper", "seed": 1}, scenarios, COUNT, {"hash": "abc"}, (run,))
    store.manifest_file.write_text(manifest.text())
    signs = np.linspace(-1, 1, COUNT)
    scale = 1 / (signs.std(ddof=1) / np.sqrt(COUNT))
    by = ["scenario", "method", "epochs"]
    for scenario in scenarios:
        for number in range(COUNT):
            rows: list[Record] = []
            for (_, method, epochs), own in table[table["scenario"] == scenario].groupby(by):
                row: Record = {
                    "record": "outcome", "scenario": scenario, "replicate": number,
                    "method": str(method), "epochs": int(epochs), "budget": 100, "panel": "joint",
                    "rule": "min",
                }  # fmt: skip
                for cell in own.itertuples():
                    row[str(cell.metric)] = float(cell.mean + scale * cell.se * signs[number])
                if (scenario, method, epochs) == ("baseline", "DA", 5):
                    row["f1"] = float(row["f1"] or 0) + shift
                rows.append(row)
            store.write_part((scenario, number), to_parquet(rows))
    return folder


def test_the_published_table_is_whole() -> None:
    table = read_main()
    assert len(table) == 2 * 4 * 3 * 3
    assert set(table["scenario"]) == {"baseline", "different-distributions"}
    (cell,) = table.query(
        "scenario == 'baseline' and method == 'DA' and epochs == 5 and metric == 'gap'"
    ).to_dict("records")
    assert (cell["mean"], cell["se"]) == (0.0067, 0.00099)


def test_every_published_cell_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_records(tmp_path / "same", 0.0)
    comparison = agree_with_paper(read_results(folder))
    assert comparison is not None
    assert comparison.agrees
    assert comparison.cells["z"].abs().max() < 1e-9
    assert main(["compare", str(folder)]) == 0
    assert "Agree: largest |z| 0.00" in capsys.readouterr().out


def test_scenarios_of_the_same_name_are_not_the_papers(folder: Path) -> None:
    """The small study of these tests calls its first scenario baseline too."""
    assert agree_with_paper(read_results(folder)) is None


@needs("browser")
@pytest.mark.usefixtures("svg_only")
def test_the_page_shows_agreement_cell_by_cell(browser: Browser, tmp_path: Path) -> None:
    folder = write_records(tmp_path / "shifted", 0.5)
    write_report(folder, tmp_path / "report")
    page = browser.new_page()
    page.goto((tmp_path / "report" / "index.html").as_uri())
    page.wait_for_selector("#agreement-chart .point")
    assert page.locator("#agreement-chart .point").count() == 72
    assert page.inner_text("#verdict").startswith("Differ: largest |z|")
    assert "1 of 72 means of the paper's main table" in page.inner_text("#findings")
    texts = page.locator("#agreement-table td.far").all_text_contents()
    # The published standard error is 0.013, of 50 replicates, and so is ours, of fewer.
    squares = 0.013**2 * (50 * 49 + COUNT * (COUNT - 1))
    spread = np.sqrt(squares / (50 + COUNT - 2) * (1 / 50 + 1 / COUNT))
    assert texts == [f"+{0.5 / spread:.2f}"]
    published = page.locator("#agreement-table tbody tr").first.locator("td").nth(3).text_content()
    assert published == "0.229 (0.008)"
    assert "paper that defines the procedures" in page.inner_text("#agreement")
    page.close()
