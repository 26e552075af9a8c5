"""Fits: the one round loop, tuning, the session that shares gradients, and goals."""

from fedlasso.fitting.goals import GOALS, Goal
from fedlasso.fitting.run import Fit, Status, begin, certify, fit, iterate, prepare
from fedlasso.fitting.session import Explorer, PathPoint
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
    rounds_within,
    validate,
)

__all__ = [
    "ACTIVE",
    "GOALS",
    "PANELS",
    "RULES",
    "ChoosePenalty",
    "Explorer",
    "Fit",
    "Goal",
    "Panel",
    "PathPoint",
    "Rule",
    "Status",
    "Validation",
    "begin",
    "certify",
    "choose_penalty",
    "fit",
    "fix_penalty",
    "iterate",
    "local_search",
    "prepare",
    "rounds_within",
    "validate",
]
