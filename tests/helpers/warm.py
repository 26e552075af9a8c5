"""Compile the kernels once, before tests run side by side: make calls this in set-up.

Without it every test process of a fresh checkout compiles the same kernels at the same time.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from helpers.draws import draw_federation

from fedlasso import REGISTRY, FederatedLasso, fit, fit_for
from fedlasso.study import PaperStudy, Scenario

SMALL = Scenario("small", sizes=(20, 16), p=30, nonzeros=3, validation=10, test=20)


def compile_kernels() -> None:
    """Use every kernel on something small."""
    PaperStudy(epochs=(1,), budgets=(30,)).replicate(SMALL, 0)
    for name in REGISTRY:
        fit(draw_federation(), name, penalty=0.1, rounds=2)
    fit_for(draw_federation(), "selection", uploads=30)
    # Far more columns than rows: the kernels that work on X instead of X'X.
    for name in ("CD", "DA", "Debiased"):
        fit(draw_federation((5, 4, 6), p=120), name, penalty=0.5, rounds=2)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = X[:, 0] + rng.standard_normal(60)
    FederatedLasso().fit(X, y, sites=["a", "b"] * 30)
    FederatedLasso(penalty=0.1).fit(sp.csc_array(X), y)


def main() -> None:
    """Compile for this processor and for those that tests pretend to be on."""
    from helpers.portability.processors import SETS, run_child

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside:
        others = [
            beside.submit(run_child, kind, 1, Path(folder)) for kind in SETS if kind != "host"
        ]
        compile_kernels()
        for other in others:
            other.result()


if __name__ == "__main__":
    main()
