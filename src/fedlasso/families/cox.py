"""Survival times, by Cox regression with a baseline hazard per site."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.families.family import Family
from fedlasso.numerics import Array, Loss, find_loss

# Fraction of the study's times that are censored.
CENSORED = 0.3


class Cox(Family):
    """Times until an event; a censored time is encoded with a minus sign."""

    name = "cox"
    prefix = "Cox "
    summary = "survival times, every site with a baseline of its own"
    responses = "survival times"
    loss = find_loss("cox")
    variants = (find_loss("cox with Breslow ties"),)
    roles = ("time", "event")
    asks_for = (
        "--family cox takes two columns: --time NAME, and --event NAME, which is 1 for an event "
        "and 0 for a censored time"
    )
    options = ("ties",)
    ratio = "hazard ratio"
    effect = "How much the logarithm of the hazard changes with a column."
    assumption = "Hazards are proportional: a hazard ratio is the same at all times."
    measures = ("concordance", "survival curves")
    no_site_effects = (
        "survival times have a baseline hazard per site already; leave site effects out"
    )
    constant = "has no event at all"
    # The standard deviation of the logarithm of an exponential time.
    unit = float(np.pi / np.sqrt(6))

    def choose_loss(self, **options: str) -> Loss:
        return self.variants[0] if options.get("ties") == "breslow" else self.loss

    def find_problems(self, role: str, numbers: Array) -> Iterator[tuple[Any, str]]:
        if role == "time":
            yield numbers < 0, "is negative in {rows}; times begin at zero: correct them"
        else:
            what = "is neither 0 nor 1 in {rows}; code it as 1 (event) and 0 (censored)"
            yield (numbers != 0) & (numbers != 1), what

    def encode(self, columns: Mapping[str, Array]) -> Array:
        return np.copysign(columns["time"], np.where(columns["event"] == 1, 1.0, -1.0))

    def check_sites(self, responses: Mapping[str, Array], names: Mapping[str, str]) -> list[str]:
        without = [site for site, y in responses.items() if np.signbit(y).all()]
        event = names["event"]
        if len(without) == len(responses):
            raise FedLassoError(
                f"the event column {event!r} is 0 in every row of every site, so there is nothing "
                "to fit; is 1 an event there?"
            )
        return [
            f"notice: site {site!r} has no event in {event!r}; it does not inform the coefficients"
            for site in without
        ]

    def draw(self, eta: Array, rng: np.random.Generator) -> Array:
        # Censoring times have 3/7 of the hazard, so that 30% come first.
        hazard = np.exp(eta)
        event = rng.exponential(1 / hazard)
        censoring = rng.exponential((1 - CENSORED) / CENSORED / hazard)
        return np.where(event <= censoring, event, -censoring)
