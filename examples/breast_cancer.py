"""Benign or malignant, at three hospitals that do not share records.

The breast cancer data that come with scikit-learn: 569 tumours, thirty measurements. Run it:

    python examples/breast_cancer.py
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from fedlasso import FederatedLogisticLasso
from fedlasso.cli import main

data = load_breast_cancer(as_frame=True)
tumours = data.frame.drop(columns="target")
tumours["diagnosis"] = np.where(data.target == 0, "malignant", "benign")
rng = np.random.default_rng(0)
hospital = rng.choice(["north", "south", "west"], len(tumours), p=[0.5, 0.3, 0.2])
new = rng.uniform(size=len(tumours)) < 0.3

# 1. One model of all hospitals, its penalty chosen on rows held out there; radius stays in.
X, y = tumours.drop(columns="diagnosis"), tumours["diagnosis"]
model = FederatedLogisticLasso(keep=["mean radius"])
model.fit(X[~new], y[~new], sites=hospital[~new])
chance = model.predict_proba(X[new])[:, 1]
print(model.model_.fit.why)
used = int((model.coef_ != 0).sum())
print(f"{used} of {X.shape[1]} measurements tell {model.classes_[1]} from {model.classes_[0]}: "
      f"AUROC {roc_auc_score(y[new], chance):.3f} on {new.sum()} new tumours")  # fmt: skip
print(f"the fit is {model.certificate_}")

# 2. The same from files; inspect tells odds ratios, predict writes probabilities.
with tempfile.TemporaryDirectory() as folder:
    files = []
    for name in ("north", "south", "west"):
        files.append(str(Path(folder) / f"{name}.csv"))
        tumours[~new & (hospital == name)].to_csv(files[-1], index=False)
    tumours[new].to_csv(f"{folder}/new.csv", index=False)
    what = ["--family", "binomial", "--target", "diagnosis", "--keep", "mean radius"]
    main(["fit", *files, *what, "--no-compare", "--out", f"{folder}/model"])
    main(["predict", f"{folder}/model", f"{folder}/new.csv", "--out", f"{folder}/told.csv"])
