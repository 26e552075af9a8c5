"""The interface of a goal: what a model is for, and how it is fitted for that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from fedlasso.fitting.validation import Rule

if TYPE_CHECKING:
    from fedlasso.fitting.context import Context
    from fedlasso.fitting.evidence.moment_evidence import Folded
    from fedlasso.fitting.result import Fit
    from fedlasso.fitting.tuning import Chosen


class Goal(ABC):
    """What a model is for. A new goal is one file with a subclass, and an entry in `GOALS`.

    Attributes
    ----------
    name, help : its name, and the help text of the command line
    rule : how held-out rows choose by default
    is_lasso : whether it is the Lasso at one penalty, which may be given
    infers : whether it includes inference about every column
    more_folds : whether it needs more folds than others, where uploads allow
    """

    name: ClassVar[str]
    help: ClassVar[str]
    rule: ClassVar[Rule] = "min"
    is_lasso: ClassVar[bool] = False
    infers: ClassVar[bool] = False
    more_folds: ClassVar[bool] = False

    @abstractmethod
    def run(self, context: Context) -> Fit:
        """Fit across the sites, within the budget."""

    def choose(self, folded: Folded, rule: Rule) -> Chosen:
        """Choose a candidate from second moments of folds; by default the pooled Lasso."""
        return lasso_goal().choose(folded, rule)

    def conclude(self, context: Context, fit: Fit) -> Fit:
        """Return the model, once inference about the columns of a fit is known."""
        return fit


# Goals by name; the first one is the default.
GOALS: dict[str, Goal] = {}


def default_goal() -> Goal:
    """Return the goal of a fit that names none."""
    return next(iter(GOALS.values()))


def lasso_goal() -> Goal:
    """Return the goal of a fit whose penalty, procedure or loss allows only the Lasso."""
    return next(goal for goal in GOALS.values() if goal.is_lasso)
