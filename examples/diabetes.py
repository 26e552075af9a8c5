"""Disease progression at three hospitals that do not share records.

The diabetes data that come with scikit-learn: 442 patients, ten measurements. Run it as it is:

    python examples/diabetes.py
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

from fedlasso import FederatedLasso
from fedlasso.cli import main

patients = load_diabetes(as_frame=True, scaled=False).frame
X, y = patients.drop(columns="target"), patients["target"]
hospital = np.random.default_rng(0).choice(["north", "south", "west"], len(y), p=[0.5, 0.3, 0.2])

# 1. A model for prediction: penalty and candidates are chosen on rows held out at each hospital.
model = FederatedLasso("prediction").fit(X, y, sites=hospital)
print(model.model_.fit.why)
for name, b in zip(X.columns, model.coef_, strict=True):
    if b != 0:
        print(f"  {name:4} {b:9.4f}")
sent = model.ledger_.total(site="north").upload
print(f"north sent {sent} bytes; its {sum(hospital == 'north')} records stayed there")

# 2. At a given penalty it is the Lasso of all records together.
federated = FederatedLasso(penalty=2.0).fit(X, y, sites=hospital)
scaler = StandardScaler().fit(X)
pooled = Lasso(alpha=2.0, tol=1e-12).fit(scaler.transform(X), y)
difference = np.abs(federated.coef_ - pooled.coef_ / scaler.scale_).max()
print(f"pooled and federated coefficients differ by at most {difference:.0e}")

# 3. The same from files, with a model card to read.
with tempfile.TemporaryDirectory() as folder:
    files = []
    for name in ("north", "south", "west"):
        files.append(str(Path(folder) / f"{name}.csv"))
        patients[hospital == name].to_csv(files[-1], index=False)
    main(["fit", *files, "--target", "target", "--out", f"{folder}/model"])
    main(["diagnose", *files, "--target", "target", "--out", f"{folder}/diagnosis.html"])
