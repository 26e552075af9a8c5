"""The interface of a family of responses: one object that all other modules read."""

from abc import ABC
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.numerics import Array, Loss

# Measures of a card beside the fraction of the deviance that is explained.
MeasureName = Literal[
    "auroc", "calibration", "calibration groups", "concordance", "survival curves"
]


class Family(ABC):
    """A kind of response: its loss, how it is read and checked, and how a model of it is described.

    A new family is one subclass; `fedlasso.families.register` makes it available to tables, fits,
    cards and the command line. Only `name`, `loss`, `summary` and `effect` have no default.

    Attributes
    ----------
    name : in settings and options
    prefix : before the name of a model, such as "Cox " in "Cox Lasso"
    summary : the response, in a few words
    responses : name of the responses, in the plural
    loss, variants : the loss, and those that options choose instead
    roles : options that name the response's columns; the first one is the response
    asks_for : the message where one of them is missing
    options : settings of this family alone
    takes_classes : whether two texts may stand for 0 and 1
    ratio : name of an exponentiated coefficient; None where a coefficient is a difference
    assumption : what inference assumes of this family, as a sentence
    effect : meaning of a coefficient, with {target} for the response
    error, error_name, explained_name : names of the prediction error: in a word, per row, and as a
        fraction that the model explains
    measures : what a card shows of held-out rows
    dispersion : minimum and maximum of the variance of responses over that of the loss; equal if
        the model determines it
    no_site_effects : why there are none, in a sentence; empty if there are
    constant : the problem with responses that no model can be fitted to
    unit : standard deviation of a study's linear predictors at a signal-to-noise ratio of one; None
        if the study of families does not draw it
    """

    name: ClassVar[str]
    prefix: ClassVar[str] = ""
    summary: ClassVar[str]
    responses: ClassVar[str] = "responses"
    loss: ClassVar[Loss]
    variants: ClassVar[tuple[Loss, ...]] = ()
    roles: ClassVar[tuple[str, ...]] = ("target",)
    asks_for: ClassVar[str] = "name the column to predict: --target NAME"
    options: ClassVar[tuple[str, ...]] = ()
    takes_classes: ClassVar[bool] = False
    ratio: ClassVar[str | None] = None
    effect: ClassVar[str]
    assumption: ClassVar[str] = ""
    error: ClassVar[str] = "deviance"
    error_name: ClassVar[str] = "deviance per row"
    explained_name: ClassVar[str] = "deviance explained"
    measures: ClassVar[tuple[MeasureName, ...]] = ("calibration", "calibration groups")
    dispersion: ClassVar[tuple[float, float]] = (1.0, 1.0)
    no_site_effects: ClassVar[str] = ""
    constant: ClassVar[str] = "is the same in every row"
    unit: ClassVar[float | None] = None

    @property
    def quadratic(self) -> bool:
        """Whether the loss is least squares."""
        return self.loss.quadratic

    @property
    def intercept(self) -> bool:
        """Whether models have an intercept."""
        return self.loss.intercept

    def choose_loss(self, **options: str) -> Loss:
        """Return the loss for values of this family's own options."""
        return self.loss

    def link(self, mean: float) -> float:
        """Return the linear predictor of a mean response."""
        return mean

    def attenuation(self, variance: float) -> float:
        """Return how many times smaller effects appear if part of the predictor is unobserved."""
        return 1.0

    def find_problems(self, role: str, numbers: Array) -> Iterator[tuple[Any, str]]:
        """Yield which rows of one of its columns are invalid, and a message about {rows}."""
        yield from ()

    def encode(self, columns: Mapping[str, Array]) -> Array:
        """Return the response as the loss takes it, from its columns by role."""
        return columns[self.roles[0]]

    def varies(self, y: Array) -> bool:
        """Return whether a model can be fitted to these responses at all."""
        return self.loss.varies(float(self.loss.disclosed_response(y).sum()), len(y))

    def check_sites(self, responses: Mapping[str, Array], names: Mapping[str, str]) -> list[str]:
        """Refuse responses that are the same at every site, and return notices about the others.

        `responses` are encoded, by site, and may be missing; `names` are those of columns, by role.
        """
        low = min(float(np.fmin.reduce(y)) for y in responses.values())
        high = max(float(np.fmax.reduce(y)) for y in responses.values())
        if low == high:
            raise FedLassoError(
                f"the target {names[self.roles[0]]!r} is {low:g} in every row of every site, so "
                "there is nothing to fit; choose another target"
            )
        return []

    def draw(self, eta: Array, rng: np.random.Generator) -> Array:
        """Draw one response per linear predictor, for the study of families."""
        raise FedLassoError(f"the study of families draws no {self.name} responses")
