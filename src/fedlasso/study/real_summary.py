"""Conclusions of the study of real data: every fit against its judge, paired by replicate."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.study.datasets import EXPORT, ORIGINS, TUNED
from fedlasso.study.judges import GLMNET, LASSO_CV
from fedlasso.study.means import mean_and_error
from fedlasso.study.record_columns import OBJECTIVE, PREDICTION, SELECTION, display_name

if TYPE_CHECKING:
    import pandas as pd

MIN, ONE_SE, RELAXED = GLMNET
# The judge of each method: the first that is in the records.
AGAINST = {
    PREDICTION: (MIN, LASSO_CV),
    SELECTION: (ONE_SE, LASSO_CV),
    OBJECTIVE: (MIN, LASSO_CV),
    RELAXED: (MIN,),
    LASSO_CV: (MIN,),
}
WORDS = {
    MIN: "pooled cv.glmnet at lambda.min",
    ONE_SE: "pooled cv.glmnet at lambda.1se",
    RELAXED: "pooled relaxed cv.glmnet",
    LASSO_CV: "pooled LassoCV",
}

NAMED = 5  # data sets at most that a sentence names
HEADINGS = {
    "scenario": "data", "split": "sites", "percent": "worse %", "percent_se": "SE",
    "active": "columns", "judge_active": "judge's", "jaccard": "Jaccard",
    "judge_jaccard": "judge's",
}  # fmt: skip


def jaccard(supports: Iterable[str]) -> float:
    """Return the mean Jaccard index over pairs of supports, each a list such as "0,3,7".

    Two empty supports agree. One support alone has no pair: nan.
    """
    sets = [{k for k in text.split(",") if k} for text in supports]
    if len(sets) < 2:
        return float("nan")
    pairs = [(a & b, a | b) for a, b in combinations(sets, 2)]
    return float(np.mean([len(both) / len(either) if either else 1.0 for both, either in pairs]))


def compare_with_judges(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per data set, assignment of rows to sites and method, with its judge.

    ``percent`` is the mean paired difference of the test errors in per cent of the judge's mean
    error, ``percent_se`` its standard error. ``active`` is the mean number of columns used and
    ``jaccard`` their mean Jaccard index over pairs of replicates, each with the judge's own.
    """
    import pandas as pd

    table = []
    present = set(rows["method"])
    for scenario, here in rows.groupby("scenario", sort=False):
        judges = dict(list(here[here["split"] == "pooled"].groupby("method")))
        stable = {name: jaccard(own["support"]) for name, own in judges.items()}
        for (method, way), own in here.groupby(["method", "split"], sort=False):
            judge = next((name for name in AGAINST.get(method, ()) if name in present), None)
            if judge not in judges:
                continue
            both = own.merge(judges[judge], on="replicate", suffixes=("", "_judge"))
            scale = 100 / both["test_mse_judge"].mean()
            mean, error = mean_and_error(both["test_mse"] - both["test_mse_judge"])
            row = {"scenario": scenario, "split": way, "method": method, "judge": judge}
            row |= {"n": len(both), "percent": scale * mean, "percent_se": scale * error}
            row |= {"active": both["active"].mean(), "judge_active": both["active_judge"].mean()}
            row |= {"jaccard": jaccard(own["support"]), "judge_jaccard": stable[judge]}
            table.append(row | {"tuned": scenario in TUNED})
    return pd.DataFrame(table)


def real_lines(rows: pd.DataFrame) -> list[str]:
    """Return a table per method, the conclusions, and the data sets that are missing."""
    table = compare_with_judges(rows)
    if table.empty:
        return ["These records contain no judge.", *missing_sets(rows)]
    lines = []
    for method, own in table.groupby("method", sort=False):
        shown = own.drop(columns=["method", "judge", "tuned"]).rename(columns=HEADINGS)
        lines += [
            f"{WORDS.get(method, method)}: test error in per cent above "
            f"{WORDS[own['judge'].iloc[0]]}, with standard error; columns used and "
            "mean Jaccard index, each with the judge's",
            *shown.to_string(index=False, float_format="{:.2f}".format).splitlines(),
            "",
        ]
    return [*lines, *real_conclusions(rows), *missing_sets(rows)]


def real_conclusions(rows: pd.DataFrame) -> list[str]:
    """Return sentences on prediction, on the judges among themselves, and on selection."""
    table = compare_with_judges(rows)
    lines = []
    for method in (PREDICTION, OBJECTIVE, RELAXED, LASSO_CV, SELECTION) if len(table) else ():
        for _, own in table[table["method"] == method].groupby("split", sort=False):
            lines += _sentences(own)
    return lines


def missing_sets(rows: pd.DataFrame) -> list[str]:
    """Return a line that names known data sets not in the records, and how to export them."""
    absent = [name for name in ORIGINS if name not in set(rows["scenario"])]
    if not absent or rows["scenario"].nunique() < 2:
        return []
    return [
        f"Not in these records: {', '.join(absent)}. Export those of installed R packages with "
        f"{EXPORT}; then run with --data FOLDER."
    ]


def _sentences(own: pd.DataFrame) -> list[str]:
    """Sentences on one method and assignment of rows: its errors and, of selection, its columns."""
    method, split, judge = own[["method", "split", "judge"]].iloc[0]
    name = WORDS.get(method, f"the fit for {'the objective' if method == OBJECTIVE else method}")
    subject = name[:1].upper() + name[1:]
    if split != "pooled":
        subject += f", with rows assigned to sites {display_name('split', split)},"
    count = len(own)
    text = (
        f"{subject} has a test error {_percent(own['percent'].mean())} than {WORDS[judge]} on "
        f"average over {count} data set{'s' * (count != 1)}."
    )
    others = own[~own["tuned"]]
    untuned = ""
    if 0 < len(others) < count:
        mean = _percent(others["percent"].mean())
        untuned = f" On the {len(others)} not used to develop defaults it is {mean} on average."
    if method != SELECTION:
        worst = own.loc[own["percent"].idxmax()]
        se = "" if np.isnan(worst["percent_se"]) else f", SE {worst['percent_se']:.2f}"
        lower = f"It is lower on {int((own['percent'] < 0).sum())} of {count}"
        highest = f"{_percent(worst['percent'])} ({worst['scenario']}{se})"
        return [f"{text} {lower}, and at worst {highest}.{untuned}"]
    # One replicate has no standard error: then any difference counts.
    close = own["percent"] <= 2 * own["percent_se"].fillna(0)
    worse = list(own.loc[~close, "scenario"])
    more = f" and {len(worse) - NAMED} more" if len(worse) > NAMED else ""
    named = f" (worse on {', '.join(worse[:NAMED])}{more})" if worse else ""
    if untuned:
        untuned = f"{untuned[:-1]}, and no worse on {int(close[others.index].sum())}."
    text += f" It is no worse, within 2 standard errors, on {int(close.sum())} of {count}{named}."
    return [text + untuned, f"{subject} {_columns_text(own, WORDS[judge])}"]


def _percent(percent: float) -> str:
    return f"{abs(percent):.2f}% {'lower' if percent < 0 else 'higher'}"


def _columns_text(own: pd.DataFrame, judge: str) -> str:
    fewer = own["active"] <= own["judge_active"]
    text = (
        f"uses {own['active'].mean():.1f} columns on average, {judge} "
        f"{own['judge_active'].mean():.1f}; it uses no more on {int(fewer.sum())} of {len(own)}."
    )
    known = own.dropna(subset=["jaccard", "judge_jaccard"])
    if known.empty:
        return text
    stable = known["jaccard"] > known["judge_jaccard"]
    return (
        f"{text} Its columns are more stable across replicates on {int(stable.sum())} of "
        f"{len(known)} (mean Jaccard index {known['jaccard'].mean():.2f} against "
        f"{known['judge_jaccard'].mean():.2f})."
    )
