"""What one process computes with the instruction set and BLAS threads its environment asks for.

The parent starts `python -m helpers.portability.child FILE` and reads the JSON left in FILE.
"""

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
from helpers.portability.data import PENALTIES, draw_exact, pool, split
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from fedlasso import InProcess, Site, fit, open_evidence
from fedlasso.numerics import L1, LeastSquares, dual_steps, lasso_path, local_sweeps
from fedlasso.numerics.machine import dot
from fedlasso.procedures import Secant
from fedlasso.study import PaperStudy, Scenario
from fedlasso.study.manifest import describe_machine
from fedlasso.study.outcomes import Record

# A product of so many columns is shared by the threads of BLAS, unless it is told not to.
WIDE = 12_000
# Sites with rows enough for every instruction set's widest loop.
SHORT = Scenario("short", sizes=(60, 50, 40), p=80, nonzeros=6, validation=30, test=60)
# Quantities near zero are compared on the scale of what they are a difference or a share of.
SCALES = {
    "gap": "objective",
    "relative_gap": None,
    "stationarity": "lam",
    "duality_gap": None,
    "worst_gap": None,
}
# Whole numbers in disguise: a ratio of counts, or a setting.
RATIOS = ("precision", "recall", "f1", "candidate")


class Results:
    """Discrete outcomes, numbers with their scales, and certificates, by name."""

    def __init__(self) -> None:
        self.discrete: dict[str, Any] = {}
        self.numbers: dict[str, tuple[list[float], list[float]]] = {}
        self.certificates: list[dict[str, Any]] = []

    def add(self, name: str, values: NDArray[np.float64] | float) -> None:
        """Numbers that are compared on the scale of the largest of them."""
        flat = np.ravel(values)
        size = float(np.abs(flat).max())
        self.numbers[name] = flat.tolist(), [size] * flat.size

    def add_model(self, name: str, b: NDArray[np.float64]) -> None:
        """Coefficients, and which of them are there."""
        self.add(name, b)
        self.discrete[f"{name} support"] = np.flatnonzero(b).tolist()

    def certify(self, name: str, lam: float, b: NDArray[np.float64], gap: float) -> None:
        """A claim: F(b) is at most `gap` above the smallest possible value."""
        self.certificates.append({"name": name, "lam": lam, "b": b.tolist(), "gap": gap})


def kernels(results: Results) -> None:
    """Every kind of inner loop, in both of its forms."""
    f = LeastSquares(*draw_exact(200, 120, seed=1))
    results.add("dot", dot(f.y, f.columns[0]))
    results.add("gram", f.gram)
    results.add("largest eigenvalue", f.largest_curvature)
    start = np.zeros((f.p, 2))
    start[::3, 1] = 0.5
    rates = np.array([0.5, 2.0]) / 16
    for form in ("gram", "residual"):
        own = LeastSquares(f.design, f.y, gram=form == "gram")
        results.add_model(f"{form} sweeps", local_sweeps(own, start, 0.05, 5))
        results.add(f"{form} dual steps", dual_steps(own, start, rates, L1(0.05), 3, 5))


def paths(results: Results) -> None:
    """The exact path, the path from gradients, and Secant, each with its certificates."""
    f = LeastSquares(*pool())
    path = lasso_path(f, np.array(PENALTIES))
    results.discrete["path knots"] = [path.knots, path.fallbacks, path.met.tolist()]
    scale = f.y_ss / (2 * f.m)
    for lam, b, gap in zip(PENALTIES, path.coefficients.T, path.gaps, strict=True):
        results.add_model(f"path {lam}", b)
        results.certify("path", lam, b, gap * scale)
    sites = InProcess([Site(name, X, y) for name, X, y in split()])
    evidence = open_evidence(sites, uploads=60)
    points = evidence.path([L1(lam) for lam in PENALTIES], tol=1e-3)
    results.discrete["session"] = [evidence.budget.spent, [point.active for point in points]]
    for point in points:
        results.add_model(f"session {point.lam}", point.coefficients)
        results.add(f"session objective {point.lam}", point.certificate.objective)
        results.certify("session", point.lam, point.coefficients, point.certificate.gap)
    lam = PENALTIES[3]
    secant = fit(sites, Secant(), penalty=lam, rounds=60)
    assert secant.certificate is not None
    results.discrete["Secant"] = [secant.rounds, secant.status.name]
    results.add_model("Secant", secant.coefficients)
    results.add("Secant objective", secant.certificate.objective)
    results.certify("Secant", lam, secant.coefficients, secant.certificate.gap)


def wide(results: Results) -> None:
    """Secant with so many columns that BLAS would use its threads even for x'y."""
    X, y = draw_exact(24, WIDE, seed=2)
    secant = fit(InProcess([Site("a", X, y)]), Secant(tol=1e-4), penalty=0.25, rounds=8)
    results.discrete["wide Secant"] = [secant.rounds, secant.status.name]
    results.add_model("wide Secant", secant.coefficients)


def replicate(results: Results) -> None:
    """One short replicate of the paper's study, column by column."""
    study = PaperStudy(seed=7, epochs=(1, 5), budgets=(30,))
    rows = study.replicate(SHORT, 0)
    results.discrete["replicate rows"] = len(rows)
    columns = dict.fromkeys(name for row in rows for name in row if "seconds" not in name)
    for name in columns:
        cells = [row for row in rows if row.get(name) is not None]
        values = [row[name] for row in cells]
        if name.startswith(RATIOS) or not isinstance(values[0], float):
            results.discrete[f"replicate {name}"] = values
        else:
            numbers = [float(row[name] or 0) for row in cells]
            results.numbers[f"replicate {name}"] = numbers, [_scale(row, name) for row in cells]


def _scale(row: Record, name: str) -> float:
    of = SCALES.get(name, name)
    return 1.0 if of is None else abs(float(row[of] or 0))


def in_effect() -> dict[str, Any]:
    """Which machine code ran, as the libraries themselves tell."""
    # Code from the cache cannot be inspected, so the same loop is compiled once more.
    fresh = numba.njit("float64(float64[::1], float64[::1])", fastmath={"reassoc", "contract"})
    code = "".join(fresh(dot.py_func).inspect_asm().values())  # type: ignore[attr-defined]
    # Names and addresses change from process to process; operations and registers do not.
    operations = re.findall(r"^\t([a-z]\w+)|\b([xyz]mm\d+)\b", code, re.MULTILINE)
    return {
        "machine": vars(describe_machine()),
        "threads": sorted({p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}),
        "code": hashlib.sha256(repr(operations).encode()).hexdigest(),
    }


def main(file: Path) -> None:
    """Compute everything and write it down."""
    results = Results()
    kernels(results)
    paths(results)
    wide(results)
    replicate(results)
    reported = vars(results) | {"in_effect": in_effect()}
    file.write_text(json.dumps(reported))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
