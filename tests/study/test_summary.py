"""Means, standard errors and paired differences against hand calculation."""

import numpy as np
import pandas as pd
import pytest

from fedlasso import FedLassoError
from fedlasso.study import contrast, summarise

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    [
        {"scenario": s, "replicate": r, "method": m, "epochs": e, "budget": 30, "panel": "joint",
         "rule": "min", "f1": RNG.random(), "test_mse": RNG.random()}
        for s in "ab" for r in range(5) for m in ("CD", "DA") for e in (1, 20)
    ]
)  # fmt: skip


def test_mean_and_monte_carlo_error() -> None:
    table = summarise(ROWS, ["f1"]).query("scenario == 'a' and method == 'DA' and epochs == 20")
    values = ROWS.query("scenario == 'a' and method == 'DA' and epochs == 20")["f1"]
    assert table["mean"].item() == pytest.approx(values.mean())
    assert table["se"].item() == pytest.approx(np.std(values, ddof=1) / np.sqrt(5))
    assert table["n"].item() == 5


def test_contrasts_pair_within_replicate() -> None:
    table = contrast(ROWS, "epochs", 1, 20, ["f1"]).query("scenario == 'b' and method == 'CD'")
    chosen = ROWS.query("scenario == 'b' and method == 'CD'").pivot(
        index="replicate", columns="epochs", values="f1"
    )
    difference = chosen[20] - chosen[1]
    se = difference.std() / np.sqrt(5)
    assert table["mean"].item() == pytest.approx(difference.mean())
    assert table["low"].item() == pytest.approx(difference.mean() - 1.96 * se)
    assert table["high"].item() == pytest.approx(difference.mean() + 1.96 * se)


def test_replicates_without_a_partner_are_left_out() -> None:
    lonely = ROWS.drop(ROWS.query("replicate == 4 and method == 'DA'").index)
    table = contrast(lonely, "method", "CD", "DA", ["f1"])
    assert set(table["n"]) == {4}


def test_an_unknown_axis_is_refused() -> None:
    with pytest.raises(FedLassoError, match="cannot contrast along 'colour'"):
        contrast(ROWS, "colour", 1, 2)
