"""What the study of real data found: every fit against its judge, paired within replicate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.study.columns import say
from fedlasso.study.datasets import EXPORT, ORIGINS, TUNED
from fedlasso.study.judges import GLMNET, LASSO_CV

if TYPE_CHECKING:
    import pandas as pd

MIN, ONE_SE, RELAXED = GLMNET
# Whom each method is compared with: the first that is there.
AGAINST = {
    "prediction": (MIN, LASSO_CV),
    "selection": (ONE_SE, LASSO_CV),
    "objective": (MIN, LASSO_CV),
    RELAXED: (MIN,),
    LASSO_CV: (MIN,),
}
WORDS = {
    MIN: "pooled cv.glmnet at lambda.min",
    ONE_SE: "pooled cv.glmnet at lambda.1se",
    RELAXED: "pooled relaxed cv.glmnet",
    LASSO_CV: "pooled LassoCV of scikit-learn",
}

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
    sets = [{int(k) for k in text.split(",") if k} for text in supports]
    if len(sets) < 2:
        return float("nan")
    columns = 1 + max((k for own in sets for k in own), default=0)
    used = np.zeros((len(sets), columns))
    for row, own in zip(used, sets, strict=True):
        row[list(own)] = 1
    common = used @ used.T
    sizes = used.sum(axis=1)
    union = sizes[:, None] + sizes - common
    index = np.divide(common, union, out=np.ones_like(common), where=union > 0)
    return float(index[np.triu_indices(len(sets), 1)].mean())


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
            yield {
                "scenario": scenario,
                "split": way,
                "method": method,
                "judge": names[0],
                "n": len(both),
                "percent": scale * difference.mean(),
                "percent_se": scale * difference.std(ddof=1) / np.sqrt(len(both)),
                "active": both["active"].mean(),
                "judge_active": both["active_judge"].mean(),
                "jaccard": jaccard(own["support"]),
                "judge_jaccard": stable[names[0]],
                "tuned": scenario in TUNED,
            }


def find_verdict(rows: pd.DataFrame) -> list[str]:
    """Sentences: prediction, selection and the judges among themselves."""
    table = compare_with_judges(rows)
    lines = []
    if not table.empty:
        for method in ("prediction", "objective", RELAXED, LASSO_CV):
            for own, where in _groups(table, method):
                lines.append(_tell_error(own, where))
        for own, where in _groups(table, "selection"):
            lines.append(_tell_selection(own, where))
    return [line.replace(" -", " −") for line in lines]


def tell_absent(rows: pd.DataFrame) -> list[str]:
    """A line with the data sets that were not found, and how to have them."""
    absent = [name for name in ORIGINS if name not in set(rows["scenario"])]
    if not absent or rows["scenario"].nunique() < 2:
        return []
    return [
        f"Not in these records: {', '.join(absent)}. The script exports what installed R "
        f"packages have: {EXPORT}; then run with --data FOLDER."
    ]


def _groups(table: pd.DataFrame, method: str) -> Iterator[tuple[pd.DataFrame, str]]:
    """Rows of one method in each way: all data sets, then those that nothing was tuned on."""
    own = table[table["method"] == method]
    for way in dict.fromkeys(own["split"]):
        here = own[own["split"] == way]
        others = here[~here["tuned"]]
        dealt = "" if way == "pooled" else f", rows to sites {say('split', way)}"
        yield here, f"{len(here)} data sets{dealt}"
        if 0 < len(others) < len(here):
            yield others, f"the {len(others)} that no default was tried on{dealt}"


def _tell_error(own: pd.DataFrame, where: str) -> str:
    worst = own.loc[own["percent"].idxmax()]
    first = own.iloc[0]
    name = WORDS.get(first["method"], first["method"])
    return (
        f"{name[:1].upper()}{name[1:]} against {WORDS[first['judge']]} ({where}): test error "
        f"{own['percent'].mean():+.2f}% on average (median {own['percent'].median():+.2f}%), "
        f"at worst {worst['percent']:+.2f}% "
        f"(SE {worst['percent_se']:.2f}; {worst['scenario']}), lower on "
        f"{int((own['percent'] < 0).sum())} of {len(own)}."
    )


def _tell_selection(own: pd.DataFrame, where: str) -> str:
    # With one replicate there is no standard error, and so no benefit of the doubt.
    close = own["percent"] <= 2 * own["percent_se"].fillna(0)
    fewer = own["active"] <= own["judge_active"]
    steady = own["jaccard"] > own["judge_jaccard"]
    count = len(own)
    worse = ", ".join(own.loc[~close, "scenario"])
    return (
        f"Selection against {WORDS[own['judge'].iloc[0]]} ({where}): test error "
        f"{own['percent'].mean():+.2f}% on average, no worse within 2 standard errors on "
        f"{int(close.sum())} of {count}{f' (worse: {worse})' if worse else ''}; columns used "
        f"{own['active'].mean():.1f} against {own['judge_active'].mean():.1f} on average, no more "
        f"on {int(fewer.sum())}; more stable over replicates on {int(steady.sum())} "
        f"(mean Jaccard {own['jaccard'].mean():.2f} against {own['judge_jaccard'].mean():.2f})."
    )


def tell_table(rows: pd.DataFrame) -> list[str]:
    """Lines of a table per method: one line per data set and way of dealing rows out."""
    table = compare_with_judges(rows)
    if table.empty:
        return ["No judge is in these records."]
    lines = []
    for method, own in table.groupby("method", sort=False):
        judge = own["judge"].iloc[0]
        lines.append(
            f"{WORDS.get(method, method)}: per cent worse than {WORDS[judge]}, with standard "
            "error; columns used and mean Jaccard index over replicates, beside the judge's"
        )
        shown = own.drop(columns=["method", "judge", "tuned"]).rename(columns=HEADINGS)
        lines += shown.to_string(index=False, float_format="{:.2f}".format).splitlines()
        lines.append("")
    return lines
