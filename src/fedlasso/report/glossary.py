"""One sentence for every term on the page: on hover, and under "How to read this"."""

from fedlasso.report.records import Results
from fedlasso.study.record_columns import TRAINING_ROWS

_GOAL = "Command “fedlasso fit --goal"
_ALL = "fitted to training and validation rows, as a user's model is."
_TRAINING = "but the model is fitted to the training rows only, as those of CD, ST, P and DA are."
METHODS = {
    "CD": "E sweeps of coordinate descent per site, then coefficients are averaged; every round.",
    "ST": "CD, then one soft-threshold of the coefficients; validation chooses among five.",
    "P": "CD with a soft-threshold after every average; five thresholds are run and charged.",
    "DA": "Dual averaging: E gradient steps per site, averaged before the penalty is applied; five "
    "step sizes are run and charged.",
    "Secant": "One gradient per site and round; the server learns the curvature from their "
    "differences. No step size, no epochs, one candidate.",
    "SecantWS": "Secant restricted to coefficients that may become nonzero, which uploads less.",
    "goal:prediction": f"{_GOAL} prediction” within the budget: expected effects, or the best of "
    f"Lasso, adaptive Lasso and refits; {_ALL}",
    f"goal:prediction{TRAINING_ROWS}": f"The same choice, {_TRAINING}",
    "goal:selection": f"{_GOAL} selection” within the budget: the columns with the largest "
    f"expected F1, or a refitted adaptive Lasso; {_ALL}",
    f"goal:selection{TRAINING_ROWS}": f"The same choice, {_TRAINING}",
    "goal:objective": f"{_GOAL} objective”: the pooled Lasso at the common penalty, by Secant, "
    "fitted to the training rows.",
    "discoveries": f"{_GOAL} discoveries”: columns selected at a false discovery rate of q.",
    "prediction": f"{_GOAL} prediction”: the Lasso or a related model with small held-out error.",
    "selection": f"{_GOAL} selection”: few columns, chosen to be stable across samples.",
    "objective": f"{_GOAL} objective”: the pooled Lasso with the smallest held-out error.",
    "glmnet min": "R package glmnet on the pooled rows, at lambda.min of its cross-validation.",
    "glmnet 1se": "R package glmnet on the pooled rows, at lambda.1se of its cross-validation.",
    "glmnet relaxed": "R package glmnet on the pooled rows: the relaxed Lasso.",
    "LassoCV": "LassoCV of scikit-learn on the pooled rows.",
    "pooled": "The Lasso on the pooled rows: a reference that no site could compute.",
    "largest site": "The Lasso on the rows of the largest site alone.",
    "one-shot": "Every site fits its own Lasso, and the coefficients are averaged once.",
    "averaging": "CD with a separate penalty per site, chosen by that site.",
    "averaging + ST": "Averaging, with a soft-threshold of the averaged coefficients at the end.",
    "averaging + P": "Averaging, with a soft-threshold after every average.",
    "Newton": "Newton steps from pooled second derivatives of columns that may become nonzero.",
    "FedMid": "E proximal gradient steps per site, then averaged coefficients; five step sizes.",
    "Fast-FedDA": "Dual averaging with memory of gradients and models; two vectors per round.",
    "C-FedDA": "Dual averaging with memory at the server; one vector per round.",
    "CSL": "The first site fits its own rows, corrected by the pooled gradient; every round.",
    "DANE": "Every site fits its own rows, corrected by the pooled gradient; fits are averaged.",
    "Debiased": "Every site debiases its own Lasso; the average is thresholded at the end.",
    "ADMM": "Consensus ADMM: every site solves its own problem exactly, close to the consensus.",
    "FedDR": "Douglas-Rachford splitting: every site solves its own problem exactly.",
    "FISTA": "Accelerated proximal gradient: one pooled gradient per round.",
    "ProxSkip": "E gradient steps per round, corrected for site differences; three step sizes.",
    "OneShot": "Every site fits its own Lasso exactly, and the coefficients are averaged once.",
    "OneShotGram": "Every site uploads its second moments; the server solves the pooled Lasso.",
    "WorkingSetGram": "Second moments of a growing set of columns, up to the pooled Lasso's.",
    "Voting": "Sites vote with the columns of their own Lasso; majority columns are averaged.",
    "one split": "One data split: one half of the rows proposes columns, the other tests them.",
    "20 splits": "Twenty data splits, combined by how often each selects a column.",
    "Fed-FDR": "Every site tests the columns that others select; pairs of sites are compared (Li "
    "and others 2025).",
    "debiased BH": "P-values of the debiased Lasso for all columns, then Benjamini-Hochberg.",
    "best possible": "The oracle, which knows how the data were drawn, but not the effects.",
}
AXES = {
    "scenario": "How the data were drawn; all methods fit the same data sets.",
    "epochs": "Sweeps or gradient steps of a site before it uploads (“none” if not applicable).",
    "budget": "Maximum uploads per site, in vectors of p numbers, all candidates together.",
    "panel": "What is limited: uploads only, or both uploads and local work (5B steps per site).",
    "rule": "How a candidate is chosen: minimum validation error, or the sparsest within one "
    "standard error of it.",
    "tuning": "Whether the common penalty is inherited from the sites or tuned with the rest.",
    "family": "The family of the response.",
    "split": "How the rows of a data set were assigned to the sites.",
    "rate": "The nominal false discovery rate.",
    "method": "The procedure that fits one model across the sites.",
}
OTHERS = {
    "pooled Lasso": "The exact Lasso on the pooled rows at the common penalty: a reference that no "
    "site could compute, not a competitor.",
    "gap": "The common objective minus the pooled Lasso's; zero means that it was reached.",
    "SE": "Monte Carlo standard error: the precision of a mean, not the spread of data sets.",
}


def term_texts(results: Results) -> dict[str, str]:
    """Return the terms of these records, each with its sentence."""
    methods = results.values("method")
    texts = METHODS
    if not set(methods) <= set(METHODS):
        # Imported here: few reports need it, and it is slow.
        from fedlasso.procedures import REGISTRY

        docs = {name: (kind.__doc__ or "").strip() for name, kind in REGISTRY.items()}
        texts = {name: doc.split("\n")[0].replace("``", "") for name, doc in docs.items()} | METHODS
    terms = {method: texts[method] for method in methods if method in texts} | OTHERS
    if not len(results.reference):
        terms.pop("pooled Lasso")
    if not any(metric.endswith("gap") for metric in results.metrics):
        terms.pop("gap")
    return terms


def axis_texts(results: Results) -> dict[str, str]:
    """Return the axes of these records, each with its sentence."""
    texts = {axis: AXES[axis] for axis in results.axes if axis in AXES}
    if results.on_real_data:
        texts["scenario"] = "The data set; all methods fit the same splits of it."
    return texts
