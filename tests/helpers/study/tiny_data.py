"""A folder of tiny data sets, and a stand-in for R, as the study of real data takes them."""

import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd

ROWS = 40
COLUMNS = 5
# Answers as judges.R does, but with the least squares fit of all rows: three times the same one.
STAND_IN = """\
#!{python}
import sys
from pathlib import Path
import numpy as np
if sys.argv[1] == "-e":
    sys.exit({missing})
folder, n, p = Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
X = np.fromfile(folder / "x.bin", dtype="<f8").reshape(p, n).T
y = np.fromfile(folder / "y.bin", dtype="<f8")
fold = np.fromfile(folder / "fold.bin", dtype="<i4")
if sorted(set(fold)) != list(range(1, 11)) or len(fold) != n:
    sys.exit("folds are not numbered from 1 to 10")
b = np.linalg.lstsq(np.column_stack([np.ones(n), X]), y, rcond=None)[0]
np.tile([*b, 0.25, 1.5], 3).astype("<f8").tofile(folder / "fits.bin")
"""


def write_data(folder: Path) -> Path:
    """Two data sets: a plain one, and one with a column that is constant but in one row."""
    folder.mkdir()
    rng = np.random.default_rng(3)
    for name in ("plain", "nearly"):
        X = rng.standard_normal((ROWS, COLUMNS))
        if name == "nearly":
            X[:, 1] = 0.0
            X[0, 1] = 1.0
        y = 3 * X[:, 0] - 2 * X[:, 2] + 0.1 * rng.standard_normal(ROWS)
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(COLUMNS)])
        frame.assign(y=y).to_csv(folder / f"{name}.csv", index=False)
    return folder


def write_stand_in(folder: Path, missing: int = 0) -> Path:
    """A program called Rscript; with ``missing`` it says that glmnet is not installed."""
    folder.mkdir()
    program = folder / "Rscript"
    program.write_text(STAND_IN.format(python=sys.executable, missing=missing))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder
