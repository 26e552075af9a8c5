"""What a fit prints about its outcome: the class that ratios are of, and a column that leaks."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedlasso.cli import main
from fedlasso.models import read_document


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for k, name in enumerate("ab"):
        rng = np.random.default_rng(k)
        frame = pd.DataFrame(rng.standard_normal((60, 3)), columns=["x", "z", "w"])
        frame["y"] = frame["x"] + 0.5 * rng.standard_normal(60)
        frame["copy"] = 3 * frame["y"] + 1
        frame["ill"] = np.where(frame["y"] + rng.standard_normal(60) > 0, "Yes", "no")
        frame.to_csv(f"{name}.csv", index=False)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("more", "one"), [([], "Yes"), (["--positive", "no"], "no")])
def test_ratios_are_printed_with_the_class_that_is_1(
    more: list[str], one: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--family", "binomial", "--target", "ill", "--drop", "y,copy", "--penalty", "0.05"]
    assert main(["fit", "a.csv", "b.csv", *options, *more, "--no-compare", "--out", "m"]) == 0
    printed = capsys.readouterr()
    zero = "no" if one == "Yes" else "Yes"
    assert f"odds ratios of ill = {one}, against {zero}" in printed.out.splitlines()
    assert f"notice: in the target 'ill', {one!r} is 1 and {zero!r} is 0" in printed.err
    document = read_document(Path("m/model.json"))
    assert document.positive == one
    (x,) = [row.value for row in document.coefficients if row.name == "x"]
    assert (x > 0) == (one == "Yes")


@pytest.mark.usefixtures("here")
def test_a_column_that_contains_the_outcome_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--target", "y", "--drop", "ill", "--cv", "3", "--no-compare"]
    assert main(["fit", "a.csv", "b.csv", *options, "--out", "m"]) == 0
    text = "warning: R^2 is 1.000: 'copy' may contain 'y'; --drop it unless it is known before"
    assert text in capsys.readouterr().err
    assert main(["fit", "a.csv", "b.csv", "--target", "y", "--drop", "ill,copy", "--cv", "3",
                 "--no-compare", "--out", "n"]) == 0  # fmt: skip
    assert "may contain" not in capsys.readouterr().err
