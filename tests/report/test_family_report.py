"""The page of the study of families."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedlasso.report.write import write_report
from fedlasso.study import Scenario, Store, run_study
from fedlasso.study.families import FamilyStudy

FEW = Scenario("few", sizes=(40, 30), p=15, nonzeros=3, validation=40, test=50)
STUDY = FamilyStudy(seed=5, families=("binomial", "cox"), epochs=(1, 5))


@pytest.mark.usefixtures("svg_only")
def test_families_are_told_apart_in_every_table_and_on_the_page(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    run_study(STUDY, [FEW], 2, store, workers=1)
    out = tmp_path / "report"
    results = write_report(store.folder, out)
    assert results.axes == ["scenario", "family", "method", "epochs", "budget"]
    page = (out / "index.html").read_text()
    assert "Binomial: within 30 uploads, a relative gap of 1e−8 to the pooled optimum" in page
    for file in (out / "tables").glob("*.csv"):
        if file.stem not in ("scenarios",):
            assert set(pd.read_csv(file)["family"]) == {"binomial", "cox"}, file.name
    table = pd.read_csv(out / "tables" / "families.csv").set_index(["family", "method"])
    rows = results.at(family="cox", method="Newton", budget=100)
    assert table.loc[("cox", "Newton"), "worst"] == rows["uploads_needed"].max()
    assert table.loc[("cox", "Newton"), "reached"] == 2
    main = pd.read_csv(out / "tables" / "main.csv")
    cell = main.query("family == 'cox' and method == 'Newton' and budget == 100")
    expected = rows["test_deviance"].mean()
    np.testing.assert_allclose(cell["test_deviance"], expected, rtol=1e-12)
    figure = (out / "figures" / "families.svg").read_text()
    for word in ("Binomial", "Cox", "Newton", "FISTA", "few"):
        assert word in figure
