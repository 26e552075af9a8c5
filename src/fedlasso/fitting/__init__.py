"""Fits: the one round loop, tuning, the session that shares gradients, and goals."""

from fedlasso.fitting.by_procedure import fit
from fedlasso.fitting.certify import certify
from fedlasso.fitting.goals import GOALS, Goal, fit_for
from fedlasso.fitting.own_penalties import OwnFit, OwnSweeps
from fedlasso.fitting.results import Fit, GoalFit, Status
from fedlasso.fitting.rounds import (
    Prepared,
    Run,
    after_rounds,
    any_of,
    prepare,
    when_still,
    within_uploads,
)
from fedlasso.fitting.session import PathPoint, Session
from fedlasso.fitting.tuning import (
    ACTIVE,
    PANELS,
    RULES,
    ChoosePenalty,
    Panel,
    Rule,
    Validation,
    choose_penalty,
    fix_penalty,
    local_search,
    pool_errors,
    rounds_within,
    search_penalty,
    validate,
)

__all__ = [
    "ACTIVE",
    "GOALS",
    "PANELS",
    "RULES",
    "ChoosePenalty",
    "Fit",
    "Goal",
    "GoalFit",
    "OwnFit",
    "OwnSweeps",
    "Panel",
    "PathPoint",
    "Prepared",
    "Rule",
    "Run",
    "Session",
    "Status",
    "Validation",
    "after_rounds",
    "any_of",
    "certify",
    "choose_penalty",
    "fit",
    "fit_for",
    "fix_penalty",
    "local_search",
    "pool_errors",
    "prepare",
    "rounds_within",
    "search_penalty",
    "validate",
    "when_still",
    "within_uploads",
]
