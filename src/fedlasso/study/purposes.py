"""One sentence per study, readable without importing the code that computes it."""

PURPOSES = {
    "paper": "The paper's comparison: CD, ST, P and DA at every epoch count, budget, limit and "
    "rule.",
    "whole": "The paper's four, Secant, SecantWS and fits by goal on the same data sets.",
    "earlier": "The experiment before the paper: every site keeps its own penalty; seven methods.",
    "literature": "How close every procedure comes to the pooled Lasso within 5, 10, 20, 30 and "
    "100 uploads.",
    "tuned": "Fits by goal (prediction, selection, objective) compared with CD, ST, P and DA.",
    "epochs": "Few rounds with many local epochs, or many with few: eight epoch counts at equal "
    "work.",
    "joint-tuning": "Does tuning the penalty jointly with the threshold or rate help, at equal "
    "uploads?",
    "site-effects": "Coefficients that differ across sites: sparse deviations from a common truth.",
    "real": "Fits by goal on real data at three sites, compared with pooled fits by glmnet and "
    "LassoCV.",
    "families": "Binomial, Poisson and Cox models: uploads until the pooled optimum, selection, "
    "prediction.",
    "trust": "False discoveries, power and coverage of 95% intervals for the goal 'discoveries'.",
}
