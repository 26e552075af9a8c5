"""What a family of responses is: one object that every other room reads."""

from abc import ABC
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.numerics import Array, Loss

# What a card can show beside the fraction of the deviance that is explained.
Measure = Literal["auroc", "calibration", "calibration groups", "concordance", "survival curves"]


class Family(ABC):
    """A kind of response: its loss, how it is read and checked, and how a model of it is described.

    A new family is one subclass; `fedlasso.families.register` makes it available to tables, fits,
    cards and the command line. Only `name`, `loss`, `summary` and `effect` have no default.

    Attributes
    ----------
    name : as settings and options call it
    prefix : what precedes the name of a model; empty for the Lasso itself
    summary : what the response is, in a few words
    responses : what the responses are called, in the plural
    loss, variants : the loss, and those that options choose instead
    roles : options that name the response's columns; the first one is the response
    asks_for : what to write where one of them is missing
    options : settings that this family alone has
    takes_classes : whether two texts may stand for 0 and 1
    ratio : name of an exponentiated coefficient; None where a coefficient is a difference
    effect : what coefficients are of, with {target} for the response
    error, error_name, explained_name : what prediction errors are called: in a word, per row, and
        as a fraction that the model explains
    measures : what a card shows of held-out rows
    dispersion : smallest and largest multiple of the loss's own variance that responses may have;
        the same number twice where the model determines it
    no_site_effects : why there are none, in a sentence; empty where there are
    constant : what is wrong with responses that no model can be fitted to
    unit : how far a study's linear predictors spread at a signal-to-noise ratio of one; None where
        the study of families does not draw it
    """

    name: ClassVar[str]
    prefix: ClassVar[str] = ""
    summary: ClassVar[str]
    responses: ClassVar[str] = "responses"
    loss: ClassVar[Loss]
    variants: ClassVar[tuple[Loss, ...]] = ()
    roles: ClassVar[tuple[str, ...]] = ("target",)
    asks_for: ClassVar[str] = "say which column to predict: --target NAME"
    options: ClassVar[tuple[str, ...]] = ()
    takes_classes: ClassVar[bool] = False
    ratio: ClassVar[str | None] = None
    effect: ClassVar[str]
    error: ClassVar[str] = "deviance"
    error_name: ClassVar[str] = "deviance per row"
    explained_name: ClassVar[str] = "deviance explained"
    measures: ClassVar[tuple[Measure, ...]] = ("calibration", "calibration groups")
    dispersion: ClassVar[tuple[float, float]] = (1.0, 1.0)
    no_site_effects: ClassVar[str] = ""
    constant: ClassVar[str] = "is the same in every row"
    unit: ClassVar[float | None] = None

    @property
    def quadratic(self) -> bool:
        """Whether the loss is least squares, whose second moments determine every fit."""
        return self.loss.quadratic

    @property
    def intercept(self) -> bool:
        """Whether models have an intercept."""
        return self.loss.intercept

    def choose_loss(self, **options: str) -> Loss:
        """Return the loss that values of this family's own options choose."""
        return self.loss

    def link(self, mean: float) -> float:
        """Return the linear predictor at which a row is expected to have this response."""
        return mean

    def attenuation(self, variance: float) -> float:
        """Return how many times smaller effects appear where the predictor varies unobserved."""
        return 1.0

    def find_problems(self, role: str, numbers: Array) -> Iterator[tuple[Any, str]]:
        """Yield rows of one of its columns that are invalid, and what to do about {rows}."""
        yield from ()

    def encode(self, columns: Mapping[str, Array]) -> Array:
        """Return the response as the loss takes it, from its columns by role."""
        return columns[self.roles[0]]

    def varies(self, y: Array) -> bool:
        """Return whether a model can be fitted to these responses at all."""
        return self.loss.varies(float(self.loss.disclosed_response(y).sum()), len(y))

    def check_sites(self, responses: Mapping[str, Array], names: Mapping[str, str]) -> list[str]:
        """Refuse responses that are the same at every site, and return notices about the others.

        Encoded `responses` are by site, and missing ones are ignored; `names` of columns by role.
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
