"""The report as a whole: what is written, what is missing, and what is refused."""

import json
import shutil
import subprocess
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from helpers.programs import needs, program, tex_command
from helpers.study.small import OTHER, SMALL, Broken
from matplotlib import pyplot as plt

from fedlasso.cli import main
from fedlasso.report.figures import Figure, label_powers, look, spread
from fedlasso.report.records import Results, read_results
from fedlasso.report.supplement import compile_tex
from fedlasso.report.write import write_report
from fedlasso.study import STUDIES, Store, run_study
from fedlasso.study.manifest import Manifest, StudyRun, describe_machine
from fedlasso.study.outcomes import Record
from fedlasso.study.store import to_parquet


def test_everything_is_written(results: Results, report: Path) -> None:
    for name in ("main", "grid", "paired-method", "paired-epochs", "paired-rule", "cutoffs",
                 "empty", "resources", "diagnostics", "scenarios", "reference",
                 "candidates"):  # fmt: skip
        for kind in ("csv", "md", "tex"):
            assert (report / "tables" / f"{name}.{kind}").stat().st_size > 0
    for name in ("theory", "baseline", "contrasts", "uploads"):
        assert (report / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (report / "figures" / f"{name}.png").stat().st_size > 0
        assert "<text" in (report / "figures" / f"{name}.svg").read_text()
    assert (report / "supplement" / "index.html").exists()
    assert (report / "index.html").stat().st_size < 6e6


def test_one_colour_a_method_everywhere(results: Results, report: Path) -> None:
    for file in ("index.html", "supplement/index.html", "figures/baseline.svg"):
        text = (report / file).read_text().lower()
        assert all(colour in text for colour in ("#4477aa", "#ee6677", "#228833", "#aa3377"))
    assert "4477AA" in (report / "tables" / "main.tex").read_text()


def test_the_same_records_give_the_same_bytes(
    folder: Path, results: Results, report: Path, tmp_path: Path
) -> None:
    write_report(folder, tmp_path)
    for file in ("index.html", "figures/baseline.svg", "figures/contrasts.pdf", "tables/grid.tex"):
        assert (tmp_path / file).read_bytes() == (report / file).read_bytes()


@pytest.mark.usefixtures("svg_only")
def test_an_incomplete_study_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Broken(seed=7, epochs=(1, 20), budgets=(30,))
    third = replace(OTHER, name="third")
    store = Store(tmp_path)
    run_study(broken, [SMALL, OTHER, third], 2, store, workers=1)
    for number in range(2):
        store.parts()["third", number].unlink()
    assert main(["report", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Incomplete: 3 of 6 replicates" in said
    missing = ["small: 1 of 2 replicates, 1 failed", "third: 0 of 2 replicates"]
    assert read_results(tmp_path).missing == missing
    for text in missing:
        assert text in said
        for file in ("index.html", "supplement/index.html", "supplement/supplement.tex"):
            assert text in (tmp_path / "report" / file).read_text()
    assert "ZeroDivisionError" in (tmp_path / "report" / "supplement" / "index.html").read_text()
    # One replicate has a mean and no standard error; it is not given one.
    main_table = (tmp_path / "report" / "tables" / "main.md").read_text()
    assert "(—)" in main_table
    assert "nan" not in main_table


@pytest.mark.usefixtures("svg_only")
def test_studies_with_other_axes_are_reported_as_far_as_they_go(tmp_path: Path) -> None:
    """No budgets, panels or rules, and one method more: as the earlier experiment has."""
    store = Store(tmp_path)
    run = StudyRun("today", "processes", 1, "abc", describe_machine(), "A, then B")
    manifest = Manifest({"name": "earlier", "seed": 1}, {"small": SMALL}, 2, {}, (run,))
    store.manifest_file.write_text(manifest.text())
    for number in range(2):
        rows: list[Record] = [
            {"record": "outcome", "scenario": "small", "replicate": number, "method": method,
             "epochs": epochs, "f1": 0.1 * epochs + number, "active": 3, "upload_bytes": 800}
            for method in ("CD", "ADMM") for epochs in (1, 2)
        ]  # fmt: skip
        store.write_part(("small", number), to_parquet(rows))
    results = write_report(tmp_path, tmp_path / "report")
    assert results.axes == ["scenario", "method", "epochs"]
    assert not (tmp_path / "report" / "tables" / "paired-rule.csv").exists()
    assert "ADMM" in (tmp_path / "report" / "tables" / "main.md").read_text()
    supplement = (tmp_path / "report" / "supplement" / "supplement.tex").read_text()
    assert "on another kind of processor: A, then B" in supplement


def test_empty_and_foreign_folders_are_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> str:
        assert main(["report", str(tmp_path)]) == 2
        text = capsys.readouterr().err
        assert text.count("\n") == 1
        assert not (tmp_path / "report").exists()
        return text

    assert "holds no study" in said()
    (tmp_path / "manifest.json").write_text('{"study": {}}')
    assert "is not the manifest of a study" in said()
    machine = {"system": "s", "processor": "p", "cores": 1}
    run = {"started": "s", "engine": "e", "workers": 1, "code": "c", "machine": machine}
    manifest = {"study": {"name": "paper", "seed": 1}, "scenarios": {"a": {"name": "a"}},
                "replicates": 1, "code": {}, "runs": [run]}  # fmt: skip
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert "no finished replicate yet" in said()
    (tmp_path / "parts" / "a").mkdir(parents=True)
    (tmp_path / "parts" / "a" / "0000-00.parquet").write_bytes(b"not Parquet")
    assert "cannot read" in said()


def test_a_file_in_the_way_is_one_clear_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["report", str(folder), "--out", str(tmp_path / "file")]) == 2
    assert "cannot write the report" in capsys.readouterr().err


def test_records_are_read_and_never_changed(folder: Path, results: Results) -> None:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    before = [p.read_bytes() for p in files]
    read_results(folder)
    assert [p.read_bytes() for p in files] == before


def test_figures_have_their_font_in_them_and_other_characters_too(tmp_path: Path) -> None:
    with look():
        canvas, axes = plt.subplots()
    axes.set_title("E = 20 − 1, ∑ of Ж", fontweight="bold")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Matplotlib warns of characters that no font has
        Figure("one", "One", "A figure.", canvas).write(tmp_path)
    plt.close(canvas)
    document = (tmp_path / "one.pdf").read_bytes()
    assert b"DejaVuSans-Bold" in document
    assert b"/FontFile2" in document  # TrueType, which publishers take
    assert b"/Type3" not in document


def test_powers_of_ten_are_plain_characters() -> None:
    with look():
        _, axes = plt.subplots()
    axes.set_yscale("log")
    axes.set_ylim(1e-16, 1e3)
    label_powers(axes.yaxis)
    assert axes.yaxis.get_major_formatter()(1e-16) == "10⁻¹⁶"
    assert axes.yaxis.get_major_formatter()(1000) == "10³"
    axes.set_ylim(1e-3, 5e-3)
    assert axes.yaxis.get_minor_formatter()(2e-3) == "2×10⁻³"
    plt.close("all")


def test_labels_are_moved_apart() -> None:
    places = spread([0.1, 0.11, 0.12, 0.9], 0.1)
    assert all(b - a > 0.0999 for a, b in pairwise(places))
    assert spread([0.1, 0.5], 0.1) == [0.1, 0.5]


@needs("TeX")
def test_the_supplement_compiles(results: Results, report: Path, tmp_path: Path) -> None:
    engine = program("TeX")
    assert engine is not None
    shutil.copytree(report, tmp_path / "report")
    run = subprocess.run(
        tex_command(engine, "supplement.tex"), cwd=tmp_path / "report" / "supplement",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]
    assert (tmp_path / "report" / "supplement" / "supplement.pdf").stat().st_size > 10_000


@needs("TeX")
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a TeX on the path")
def test_a_draft_without_figures_changes_nothing(
    results: Results, report: Path, tmp_path: Path
) -> None:
    shutil.copytree(report, tmp_path / "report")
    folder = tmp_path / "report" / "supplement"
    (folder / "supplement.pdf").unlink()
    assert compile_tex(folder) is not None
    again = (folder / "supplement.pdf").read_bytes()
    assert again == (report / "supplement" / "supplement.pdf").read_bytes()


@needs("TeX")
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a TeX on the path")
def test_a_report_brings_the_supplement_as_pdf(results: Results, report: Path) -> None:
    folder = report / "supplement"
    assert (folder / "supplement.pdf").read_bytes().startswith(b"%PDF")
    assert sorted(path.name for path in folder.iterdir()) == [
        "index.html",
        "supplement.pdf",
        "supplement.tex",
    ]


@pytest.mark.usefixtures("svg_only")
@pytest.mark.parametrize("name", ["literature", "tuned"])
def test_studies_whose_methods_do_not_share_every_axis_are_reported(
    name: str, tmp_path: Path
) -> None:
    """Real records: some methods have no epochs, some no rule, some far more company."""
    folder = tmp_path / name
    run_study(STUDIES[name](), [SMALL], 2, Store(folder), workers=1)
    write_report(folder, tmp_path)
    check_grid(folder, tmp_path)


def check_grid(folder: Path, report: Path) -> None:
    """Every cell of the records is in the grid once, and there is a page."""
    grid = pd.read_csv(report / "tables" / "grid.csv")
    assert len(grid) == len(read_results(folder).outcome) / 2
    assert (report / "index.html").stat().st_size > 0


@pytest.mark.usefixtures("svg_only")
def test_the_supplement_takes_in_another_study(folder: Path, tmp_path: Path) -> None:
    """And the other study, whose methods have no epochs or no rule, is reported by itself."""
    earlier = tmp_path / "earlier"
    run_study(STUDIES["earlier"](), [SMALL], 2, Store(earlier), workers=1)
    assert main(["report", str(folder), "--also", str(earlier), "--out", str(tmp_path)]) == 0
    supplement = (tmp_path / "supplement" / "index.html").read_text()
    assert "averaging + ST" in supplement
    grid = pd.read_csv(tmp_path / "tables" / "earlier-grid.csv")
    assert set(grid["method"]) >= {"pooled", "one-shot", "ADMM", "averaging + P"}
    assert "earlier-grid" in (tmp_path / "supplement" / "supplement.tex").read_text()
    write_report(earlier, earlier / "report")
    check_grid(earlier, earlier / "report")
