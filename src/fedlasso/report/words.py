"""One plain sentence for every term on the page: on hover, and under "How to read this"."""

from __future__ import annotations

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
    "goal:prediction": "What `fedlasso fit --goal prediction` does: Lasso, adaptive Lasso and "
    "refits within the budget, chosen by validation error.",
    "goal:selection": "What `fedlasso fit --goal selection` does: refitted adaptive Lasso supports "
    "within the budget, chosen by validation error.",
    "goal:objective": "What `fedlasso fit --goal objective` does: the pooled Lasso at the common "
    "penalty, by Secant.",
    "discoveries": "What `fedlasso fit --goal discoveries` does: columns of which at most a given "
    "share is false on average.",
    "one split": "The rows are split once: one half proposes columns, the other half tests them.",
    "20 splits": "The rows are split twenty times, and the tests of all splits are put together.",
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
    return {method: words[method] for method in methods if method in words} | OTHERS


def _tell_procedures() -> dict[str, str]:
    """The first line of what every procedure says of itself."""
    # Few reports need it, and all the others would wait for it.
    from fedlasso.procedures import REGISTRY

    return {
        name: (procedure.__doc__ or "").strip().splitlines()[0].replace("``", "")
        for name, procedure in REGISTRY.items()
    }
