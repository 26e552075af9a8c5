"""What the study of real data found: every fit against its judge, paired within replicate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.study.datasets import EXPORT, ORIGINS, TUNED
from fedlasso.study.judges import GLMNET, LASSO_CV
from fedlasso.study.means import mean_error
from fedlasso.study.record_columns import OBJECTIVE, PREDICTION, SELECTION, display_name

if TYPE_CHECKING:
    import pandas as pd

MIN, ONE_SE, RELAXED = GLMNET
# Whom each method is compared with: the first that is there.
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
    LASSO_CV: "pooled LassoCV of scikit-learn",
}

NAMED = 5  # data sets at most that a sentence names
HEADINGS = {
    "scenario": "data",
    "split": "sites",
    "percent": "worse %",
    "percent_se": "SE",
    "active": "columns",
    "judge_active": "judge's",
    "jaccard": "Jaccard",
    "judge_jaccard": "judge's",
}


def jaccard(supports: Iterable[str]) -> float:
    """Mean Jaccard index over pairs of supports, each a list such as "0,3,7".

    Two empty supports agree; one support alone has no pair.

    Examples
    --------
    >>> jaccard(["0,1", "1,2", "1"])
    0.4444444444444444
    """
    sets = [{k for k in text.split(",") if k} for text in supports]
    if len(sets) < 2:
        return float("nan")
    pairs = [(a & b, a | b) for a, b in combinations(sets, 2)]
    return float(np.mean([len(both) / len(either) if either else 1.0 for both, either in pairs]))


def compare_with_judges(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, way of dealing rows out and method, with the judge beside it.

    ``percent`` is the mean paired difference of the test errors in per cent of the judge's mean
    error, ``percent_se`` its standard error; then mean columns used and mean Jaccard index over
    pairs of replicates, each beside the judge's own.
    """
    import pandas as pd

    return pd.DataFrame(_comparisons(rows))


def _comparisons(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    present = set(rows["method"])
    for scenario, here in rows.groupby("scenario", sort=False):
        judges = dict(list(here[here["split"] == "pooled"].groupby("method")))
        stable = {name: jaccard(own["support"]) for name, own in judges.items()}
        for (method, way), own in here.groupby(["method", "split"], sort=False):
            names = [name for name in AGAINST.get(method, ()) if name in present]
            if not names or names[0] not in judges:
                continue
            both = own.merge(judges[names[0]], on="replicate", suffixes=("", "_judge"))
            difference = both["test_mse"] - both["test_mse_judge"]
            scale = 100 / both["test_mse_judge"].mean()
            mean, error = mean_error(difference)
            yield {
                "scenario": scenario,
                "split": way,
                "method": method,
                "judge": names[0],
                "n": len(both),
                "percent": scale * mean,
                "percent_se": scale * error,
                "active": both["active"].mean(),
                "judge_active": both["active_judge"].mean(),
                "jaccard": jaccard(own["support"]),
                "judge_jaccard": stable[names[0]],
                "tuned": scenario in TUNED,
            }


def tell_real(rows: pd.DataFrame) -> list[str]:
    """Lines: every data set against its judges, and the verdict."""
    return [*tell_table(rows), *find_verdict(rows), *tell_absent(rows)]


def find_verdict(rows: pd.DataFrame) -> list[str]:
    """Sentences: prediction, selection and the judges among themselves."""
    table = compare_with_judges(rows)
    if table.empty:
        return []
    methods = (PREDICTION, OBJECTIVE, RELAXED, LASSO_CV)
    lines = [_tell_error(own) for method in methods for own in _ways(table, method)]
    for own in _ways(table, SELECTION):
        lines += [_tell_selection(own), _tell_columns(own)]
    return lines


def tell_absent(rows: pd.DataFrame) -> list[str]:
    """A line with the data sets that were not found, and how to have them."""
    absent = [name for name in ORIGINS if name not in set(rows["scenario"])]
    if not absent or rows["scenario"].nunique() < 2:
        return []
    return [
        f"Not in these records: {', '.join(absent)}. The script exports what installed R "
        f"packages have: {EXPORT}; then run with --data FOLDER."
    ]


def _ways(table: pd.DataFrame, method: str) -> list[pd.DataFrame]:
    """Rows of one method, one way of dealing rows out to sites after the other."""
    return [own for _, own in table[table["method"] == method].groupby("split", sort=False)]


def _subject(own: pd.DataFrame) -> str:
    """Which fit a sentence is about, and how rows were dealt out to sites for it."""
    first = own.iloc[0]
    method = first["method"]
    goal = "the objective" if method == OBJECTIVE else method
    name = WORDS.get(method, f"the fit for {goal}")
    dealt = f", with rows dealt to sites {display_name('split', first['split'])},"
    return f"{name[:1].upper()}{name[1:]}{'' if first['split'] == 'pooled' else dealt}"


def _tell_mean(own: pd.DataFrame) -> str:
    """The first sentence on errors: how far from the judge's they are on average."""
    count = len(own)
    return (
        f"{_subject(own)} has a test error {_away(own['percent'].mean())} than "
        f"{WORDS[own['judge'].iloc[0]]} on average over {count} data set{'s' * (count != 1)}."
    )


def _away(percent: float) -> str:
    return f"{abs(percent):.2f}% {'lower' if percent < 0 else 'higher'}"


def _tell_untried(own: pd.DataFrame, close: pd.Series[bool] | None = None) -> str:
    """The mean over data sets that no default was tried on, where there are others beside them."""
    others = own[~own["tuned"]]
    if not 0 < len(others) < len(own):
        return ""
    near = "" if close is None else f", and no worse on {int(close[others.index].sum())}"
    return (
        f" Where no default was tried ({len(others)} of them) it is "
        f"{_away(others['percent'].mean())} on average{near}."
    )


def _tell_error(own: pd.DataFrame) -> str:
    worst = own.loc[own["percent"].idxmax()]
    se = "" if np.isnan(worst["percent_se"]) else f", SE {worst['percent_se']:.2f}"
    return (
        f"{_tell_mean(own)} It is lower on {int((own['percent'] < 0).sum())} of {len(own)}, and at "
        f"worst {_away(worst['percent'])} ({worst['scenario']}{se}).{_tell_untried(own)}"
    )


def _tell_selection(own: pd.DataFrame) -> str:
    # With one replicate there is no standard error, and so no benefit of the doubt.
    close = own["percent"] <= 2 * own["percent_se"].fillna(0)
    worse = list(own.loc[~close, "scenario"])
    more = f" and {len(worse) - NAMED} more" if len(worse) > NAMED else ""
    named = f" (worse on {', '.join(worse[:NAMED])}{more})" if worse else ""
    return (
        f"{_tell_mean(own)} It is no worse, within 2 standard errors, on {int(close.sum())} of "
        f"{len(own)}{named}.{_tell_untried(own, close)}"
    )


def _tell_columns(own: pd.DataFrame) -> str:
    fewer = own["active"] <= own["judge_active"]
    told = (
        f"{_subject(own)} uses {own['active'].mean():.1f} columns on average, where "
        f"{WORDS[own['judge'].iloc[0]]} uses {own['judge_active'].mean():.1f}; it uses no more on "
        f"{int(fewer.sum())} of {len(own)}."
    )
    known = own.dropna(subset=["jaccard", "judge_jaccard"])
    if len(known):
        steady = known["jaccard"] > known["judge_jaccard"]
        told += (
            f" Its columns are more alike from replicate to replicate on {int(steady.sum())} of "
            f"{len(known)} (mean Jaccard index {known['jaccard'].mean():.2f} against "
            f"{known['judge_jaccard'].mean():.2f})."
        )
    return told


def tell_table(rows: pd.DataFrame) -> list[str]:
    """Lines of a table per method: one line per data set and way of dealing rows out."""
    table = compare_with_judges(rows)
    if table.empty:
        return ["No judge is in these records."]
    lines = []
    for method, own in table.groupby("method", sort=False):
        judge = own["judge"].iloc[0]
        shown = own.drop(columns=["method", "judge", "tuned"]).rename(columns=HEADINGS)
        lines += [
            f"{WORDS.get(method, method)}: per cent worse than {WORDS[judge]}, with standard "
            "error; columns used and mean Jaccard index over replicates, beside the judge's",
            *shown.to_string(index=False, float_format="{:.2f}".format).splitlines(),
            "",
        ]
    return lines
