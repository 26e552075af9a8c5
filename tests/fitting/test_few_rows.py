"""Whether a few rows far from the others decide an inference, and where that is printed."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.loops import loop

from fedlasso import InProcess, Site
from fedlasso.fitting import Model, fit_model
from fedlasso.fitting.settings import Settings
from fedlasso.models.inference_document import to_trust_document
from fedlasso.models.text import _trust_lines

PROMISE = "cannot promise the false discovery rate or the level of intervals here: a few rows far"
SETTINGS = Settings(goal="objective", intervals=("x0",), penalty=0.1)


def draw_model(seed: int, factor: float, error: float, settings: Settings = SETTINGS) -> Model:
    """Fit 600 rows, in 1% of which columns are multiplied by a factor and an error is added."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 20))
    X[:, 10:] = X[:, 10:] > 1.6
    X[:6] *= factor
    y = X[:, 0] + rng.standard_normal(600)
    y[:6] += error
    sites = [Site(str(k), X[k::3], y[k::3], raw=True) for k in range(3)]
    return fit_model(InProcess(sites), settings)


def is_marked(model: Model) -> bool:
    assert model.trust is not None
    return any(note.startswith(PROMISE) for note in model.trust.notes)


@loop("seed", range(8))
def test_rows_that_follow_the_model_are_not_marked(seed: int) -> None:
    assert not is_marked(draw_model(seed, 1.0, 0.0))


@loop("seed", range(8))
def test_a_few_far_rows_with_large_errors_are_marked(seed: int) -> None:
    assert is_marked(draw_model(seed, 4.0, 5.0))


def test_rows_so_far_that_the_fit_follows_them_are_marked() -> None:
    model = draw_model(0, 30.0, 0.0)
    assert model.trust is not None
    assert any("decide the estimates" in note for note in model.trust.notes)


def test_far_rows_are_not_looked_for_where_clusters_are_known() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    X[:6] *= 30.0
    y = X[:, 0] + rng.standard_normal(600)
    visits = np.arange(200) // 2
    sites = [Site(str(k), X[k::3], y[k::3], raw=True, clusters=visits) for k in range(3)]
    assert not is_marked(fit_model(InProcess(sites), SETTINGS))


@pytest.mark.parametrize("goal", ["discoveries", "objective"])
def test_terminal_and_model_document_have_the_sentence(goal: str) -> None:
    settings = replace(SETTINGS, goal=goal, penalty=None, cv=5)
    document = to_trust_document(draw_model(1, 4.0, 5.0, settings))
    assert document is not None
    assert [note for note in document.notes if note.startswith(PROMISE)]
    assert any(line.startswith(PROMISE) for line in _trust_lines(document))
