"""Far more genes than patients: three laboratories, 40 samples each, 5,000 genes.

Expression comes in modules of correlated genes; six genes drive the response. Generated here, so
nothing is downloaded:

    python examples/genes.py
"""

import numpy as np

from fedlasso import FederatedLasso

rng = np.random.default_rng(0)
rows, genes, module = 120, 5_000, 25
common = np.repeat(rng.standard_normal((rows, genes // module)), module, axis=1)
X = 8 + np.exp(0.25 * (0.6 * common + 0.8 * rng.standard_normal((rows, genes))))
drivers = np.arange(6) * 400
y = ((X - X.mean(axis=0)) / X.std(axis=0))[:, drivers] @ [3, -3, 2.5, 2.5, -2, 2]
y += rng.standard_normal(rows)
laboratory = np.repeat(["A", "B", "C"], 40)
# Each laboratory's machine reads a little differently.
X[laboratory == "B"] += 0.05

for goal in ("selection", "prediction"):
    model = FederatedLasso(goal).fit(X, y, sites=laboratory)
    found = np.flatnonzero(model.coef_)
    print(f"{goal}: {len(found)} genes, of which {len(set(found) & set(drivers))} of 6 drivers; "
          f"{model.n_iter_} uploads of {genes} numbers; {model.certificate_}")  # fmt: skip
