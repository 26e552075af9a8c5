"""Fits: the one round loop, tuning, the session that shares gradients, and goals."""

from fedlasso.fitting.by_procedure import Fit, Status, certify, fit
from fedlasso.fitting.curved_session import CurvedSession, open_session
from fedlasso.fitting.goals import GOALS, Goal, GoalFit, fit_for
from fedlasso.fitting.rounds import Prepared, Run, after_rounds, prepare, when_still, within_uploads
from fedlasso.fitting.session import PathPoint, Session
from fedlasso.fitting.tuning import (
    ACTIVE,
    PANELS,
    RULES,
    ChoosePenalty,
    Panel,
    Rule,
    choose_penalty,
    fix_penalty,
    local_search,
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
    "CurvedSession",
    "Fit",
    "Goal",
    "GoalFit",
    "Panel",
    "PathPoint",
    "Prepared",
    "Rule",
    "Run",
    "Session",
    "Status",
    "after_rounds",
    "certify",
    "choose_penalty",
    "fit",
    "fit_for",
    "fix_penalty",
    "local_search",
    "open_session",
    "prepare",
    "rounds_within",
    "search_penalty",
    "validate",
    "when_still",
    "within_uploads",
]
