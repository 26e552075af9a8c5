"""What each study is for, in a sentence; who only reads records does not wait for their code."""

PURPOSES = {
    "paper": "The paper's comparison: CD, ST, P and DA at every epoch count, budget, limit and "
    "rule.",
    "whole": "The whole story: the paper's four, Secant, SecantWS and fits by goal on the same "
    "data sets.",
    "earlier": "The experiment before the paper: every site keeps its own penalty; seven methods.",
    "literature": "How close every procedure comes to the pooled Lasso within 5, 10, 20, 30 and "
    "100 uploads.",
    "tuned": "Fits by goal (prediction, selection, objective) beside CD, ST, P and DA.",
    "epochs": "Few rounds with many local epochs, or many with few: eight counts at the same work.",
    "joint-tuning": "Is it worth while to choose penalty and threshold or rate together, in the "
    "same uploads?",
    "site-effects": "What happens where coefficients differ across sites: sparse deviations from a "
    "common truth.",
    "real": "Fits by goal on real data at three sites, beside pooled fits by others.",
    "families": "Yes or no, counts and survival times: uploads to the pooled optimum, and what is "
    "found.",
    "trust": "False discoveries, power, and how often 95% intervals cover, for the goal "
    "'discoveries'.",
}
