"""A goal from outside: one file, and `fedlasso fit --goal` runs it to the card."""

from pathlib import Path

import numpy as np
import pytest
from helpers.goal_outside import ALLOWED, Parsimony, registered

from fedlasso import FederatedLasso
from fedlasso.cli import main
from fedlasso.models import read_document


def write_sites(folder: Path) -> list[str]:
    rng = np.random.default_rng(0)
    files = []
    for name in ("north", "south", "west"):
        X = rng.standard_normal((60, 8))
        y = X @ np.array([3.0, 2.0, 0.4, 0.3, 0.2, 0, 0, 0]) + rng.standard_normal(60)
        head = ",".join([*(f"x{k}" for k in range(8)), "y"])
        path = folder / f"{name}.csv"
        np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=head, comments="")
        files.append(str(path))
    return files


@pytest.mark.standard
def test_a_goal_from_outside_is_fitted_and_has_a_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_sites(tmp_path)
    with registered():
        command = ["fit", *files, "--target", "y", "--goal", "parsimony"]
        assert main([*command, "--out", str(tmp_path / "few")]) == 0
    assert main(["fit", *files, "--target", "y", "--goal", "objective",
                 "--out", str(tmp_path / "all")]) == 0  # fmt: skip
    capsys.readouterr()
    with registered():
        few = read_document(tmp_path / "few" / "model.json")
    everything = read_document(tmp_path / "all" / "model.json")
    assert few.settings.goal == "parsimony"
    assert "goal 'parsimony'" in few.why
    assert few.error is not None
    assert everything.curve is not None
    assert len(few.coefficients) < len(everything.coefficients)
    assert few.curve is not None
    chosen = few.curve.mse[few.curve.chosen]
    assert chosen <= (1 + ALLOWED) * min(few.curve.mse)
    assert "parsimony" in (tmp_path / "few" / "card.html").read_text()


def test_estimators_know_it_too() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 6))
    y = X[:, 0] + 0.1 * X[:, 1] + rng.standard_normal(90)
    with registered():
        model = FederatedLasso(Parsimony.name).fit(X, y, sites=np.arange(90) % 3)
    assert (model.coef_ != 0).sum() <= 2
