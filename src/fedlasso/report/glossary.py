"""One plain sentence for every term on the page: on hover, and under "How to read this"."""

from fedlasso.report.records import Results

METHODS = {
    "CD": "Every site makes E sweeps of coordinate descent on its own rows and the server averages "
    "the coefficients, round after round.",
    "ST": "CD, and at the very end small averaged coefficients are set to zero by one of five "
    "thresholds that validation chooses.",
    "P": "CD with a threshold after every average; each of five thresholds is a run of its own, "
    "and all five are charged.",
    "DA": "Dual averaging: sites make E gradient steps and the server averages gradients' sums "
    "before it applies the penalty; five step sizes are run and charged.",
    "Secant": "The server asks every site for one gradient per round and learns the curvature from "
    "their differences; it has no step size, no epochs and one candidate.",
    "SecantWS": "Secant that asks only for coefficients that may become nonzero, and so uploads "
    "less.",
    "goal:prediction": "What the command “fedlasso fit --goal prediction” does: Lasso, adaptive "
    "Lasso and refits within the budget, chosen by validation error.",
    "goal:selection": "What the command “fedlasso fit --goal selection” does: refitted adaptive "
    "Lasso supports within the budget, chosen by validation error.",
    "goal:objective": "What the command “fedlasso fit --goal objective” does: the pooled Lasso at "
    "the common penalty, by Secant.",
    "discoveries": "What the command “fedlasso fit --goal discoveries” does: columns of which at "
    "most a given share is false on average.",
    "prediction": "What the command “fedlasso fit --goal prediction” does: the Lasso or a relative "
    "of it, chosen for small error on held-out rows.",
    "selection": "What the command “fedlasso fit --goal selection” does: few columns, chosen to be "
    "about the same ones on other rows.",
    "objective": "What the command “fedlasso fit --goal objective” does: the pooled Lasso at the "
    "penalty that predicts held-out rows best.",
    "glmnet min": "The R package glmnet on all rows in one place, at the penalty of smallest error "
    "in cross-validation (lambda.min).",
    "glmnet 1se": "The R package glmnet on all rows in one place, at the largest penalty within "
    "one standard error of that (lambda.1se).",
    "glmnet relaxed": "The R package glmnet on all rows in one place, with coefficients that are "
    "partly refitted without penalty.",
    "LassoCV": "LassoCV of the Python package scikit-learn on all rows in one place.",
    "pooled": "The Lasso on all rows in one place: a reference that no site could compute.",
    "largest site": "The Lasso on the rows of the largest site alone.",
    "one-shot": "Every site fits its own Lasso, and the coefficients are averaged once.",
    "averaging": "CD where every site keeps the penalty that it selected itself.",
    "averaging + ST": "Averaging, with small averaged coefficients set to zero at the very end.",
    "averaging + P": "Averaging, with a threshold after every average.",
    "Newton": "Newton steps on the columns that may become nonzero, from gradients and second "
    "derivatives of all sites.",
    "FedMid": "Every site makes E proximal gradient steps on its own rows, and the coefficients "
    "are averaged; five step sizes.",
    "Fast-FedDA": "Dual averaging with memory: sums of gradients and of models are averaged, which "
    "is two vectors per round.",
    "C-FedDA": "Dual averaging with memory at the server, where one vector per round is averaged.",
    "CSL": "The first site fits its own rows, corrected by the gradient of all sites, round after "
    "round.",
    "DANE": "Every site fits its own rows, corrected by the gradient of all sites, and the fits "
    "are averaged.",
    "Debiased": "Every site removes the bias of its own Lasso; the average is thresholded at the "
    "end.",
    "ADMM": "Every site solves its own problem exactly and is drawn towards the common "
    "coefficients (consensus).",
    "FedDR": "Every site solves its own problem exactly, joined by Douglas-Rachford splitting.",
    "FISTA": "Accelerated proximal gradient: one gradient of all sites per round.",
    "ProxSkip": "E local gradient steps per round, corrected for how sites differ; three step "
    "sizes.",
    "OneShot": "Every site fits its own Lasso exactly, and the coefficients are averaged once.",
    "OneShotGram": "Every site uploads all its second moments once, and the server solves the "
    "pooled Lasso.",
    "WorkingSetGram": "Sites upload second moments of a growing set of columns, until it holds the "
    "pooled Lasso's.",
    "Voting": "Sites vote with the columns of their own Lasso; what most of them select is fitted "
    "and averaged.",
    "one split": "The rows are split once: one half proposes columns, the other half tests them.",
    "20 splits": "The rows are split twenty times, and the tests of all splits are put together.",
    "best possible": "What somebody would find who knows what share of the columns has an effect, "
    "how large effects may be and how noisy sites are.",
}
AXES = {
    "scenario": "How the data were drawn; every method fits the same data sets of it.",
    "epochs": "Local epochs: how many sweeps or gradient steps a site makes before it uploads "
    "(“none” where a method has no such choice).",
    "budget": "The budget: how many vectors of p numbers every site may upload, all candidates "
    "together.",
    "panel": "What is limited: uploads alone, or jointly uploads and local work (5B steps per "
    "site).",
    "rule": "How a candidate is chosen: smallest validation error, or the sparsest within one "
    "standard error of it.",
    "tuning": "Whether the common penalty is inherited from the sites or chosen with the rest.",
    "family": "What kind of response is modelled.",
    "split": "How the rows of a data set were dealt out to the sites.",
    "rate": "The share of false columns, on average, that was asked for.",
    "method": "The procedure that fits one model across the sites.",
}
OTHERS = {
    "pooled Lasso": "The exact Lasso on all rows in one place at the common penalty: a reference "
    "that no site could compute, not a competitor.",
    "gap": "How far the common objective is above the pooled Lasso's; zero means it was reached.",
    "SE": "Monte Carlo standard error: how well the simulation knows a mean, not how much data "
    "sets differ.",
}


def tell_words(results: Results) -> dict[str, str]:
    """The terms of these records, each with its sentence."""
    methods = results.values("method")
    words = METHODS if set(methods) <= set(METHODS) else _tell_procedures() | METHODS
    told = {method: words[method] for method in methods if method in words} | OTHERS
    if not len(results.reference):
        told.pop("pooled Lasso")
    if not any(metric.endswith("gap") for metric in results.metrics):
        told.pop("gap")
    return told


def _tell_procedures() -> dict[str, str]:
    """The first line of what every procedure says of itself."""
    # Few reports need it, and all the others would wait for it.
    from fedlasso.procedures import REGISTRY

    return {
        name: (procedure.__doc__ or "").strip().splitlines()[0].replace("``", "")
        for name, procedure in REGISTRY.items()
    }


def tell_axes(results: Results) -> dict[str, str]:
    """The choices of these records, each with its sentence."""
    told = {axis: AXES[axis] for axis in results.axes if axis in AXES}
    if results.on_real_data:
        told["scenario"] = "Which data were fitted; every method fits the same splits of them."
    return told
