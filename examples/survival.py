"""Survival with advanced lung cancer at the hospitals of a real trial.

228 patients of the North Central Cancer Treatment Group, from the package lifelines; the column
``inst`` says which hospital each was treated at. Run it:

    python examples/survival.py
"""

import numpy as np
from lifelines.datasets import load_lung

from fedlasso import FederatedCoxLasso

patients = load_lung().dropna(subset=["inst", "ph.ecog", "ph.karno", "pat.karno", "wt.loss"])
# Hospitals with fewer than ten patients are one site together.
count = patients["inst"].map(patients["inst"].value_counts())
hospital = np.where(count >= 10, patients["inst"].astype(int).astype(str), "small ones")
X = patients[["age", "sex", "ph.ecog", "ph.karno", "pat.karno", "wt.loss"]]
y = patients[["status", "time"]]

# Every hospital has its own baseline hazard; age and sex are always in the model.
model = FederatedCoxLasso(keep=["age", "sex"], fit_baseline_model=True)
model.fit(X, y, sites=hospital)
print(f"{len(X)} patients, {int(y['status'].sum())} deaths at {len(model.ledger_.sites)} sites")
print(model.model_.fit.why)
for name, b, ratio in zip(X.columns, model.coef_, np.exp(model.coef_), strict=True):
    if b != 0:
        print(f"  {name:10} hazard ratio {ratio:6.3f} per unit")
print(f"concordance {model.score(X, y):.3f}; the fit is {model.certificate_}")

# Chances to live for a year, of the same two patients at two hospitals.
year = np.searchsorted(model.event_times_, 365, side="right") - 1
for site in ("1", "12"):
    first, second = model.predict_survival_function(X.iloc[:2], site=site)[:, year]
    print(f"a year's survival at hospital {site}: {first:.2f} and {second:.2f}")
