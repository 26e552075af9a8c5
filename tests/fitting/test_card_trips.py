"""The questions of a card: few round trips and numbers, and what they ask about."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from helpers.natural_units import connect, divide, draw

from fedlasso import InProcess, Ledger
from fedlasso.errors import Refused
from fedlasso.federation import Around, Reply, Request
from fedlasso.federation.messages import R
from fedlasso.fitting import Settings, fit_model
from fedlasso.fitting.dialogue import drive, drive_together
from fedlasso.fitting.examination.examine import examine, expect_error
from fedlasso.fitting.examination.subsamples import fit_subsamples
from fedlasso.sites import CurvatureAt, GradientAt, Rows, SiteShift, Viewed, halves

MOST_TRIPS = 15


@pytest.mark.full
@pytest.mark.parametrize("family", ["linear", "binomial", "poisson", "cox"])
@pytest.mark.parametrize("options", [{}, {"keep": ("x4",)}, {"l1_ratio": 0.5}], ids=str)
def test_a_card_takes_few_round_trips_and_no_more_numbers_than_its_fit(
    family: str, options: dict[str, Any]
) -> None:
    X, y = draw("cox" if family == "cox" else family if family != "linear" else "poisson")
    ledger = connect(X, y, "quadratic" if family == "linear" else family)
    model = fit_model(ledger, Settings(family=family, **options))
    fit = ledger.costs
    found = examine(ledger, model, False, expect_error(model))
    card = ledger.costs - fit
    assert card.trips <= MOST_TRIPS
    # Survival curves cost the same after any fit.
    assert card.most_sent <= (1.25 if family == "cox" else 1.0) * fit.most_sent
    assert found.stability
    assert found.assessment is not None
    assert found.table is not None
    assert found.site_errors
    assert (found.comparison is not None) is (model.settings.plain)


@pytest.mark.standard
def test_halves_are_fitted_as_exact_fits_on_the_same_rows() -> None:
    X, y = draw("binomial")
    ledger = connect(X, y, "binomial")
    model = fit_model(ledger, Settings(family="binomial", penalty=0.02))
    view = Viewed(ledger, model.view)
    splits = halves(3, 0)
    points = drive(fit_subsamples(view, model.scaling, model, splits, 0.02))
    for split, own in zip(splits, points.others, strict=True):
        half = view.on_split(split)
        penalty = points.form.at(0.02)
        b = np.zeros(len(view.columns))
        m = own.problem.m
        for _ in range(3_000):
            b = penalty.prox(b - 0.5 * half.total(GradientAt(b)).gradient / m, 0.5)
        found = own.best(penalty).b
        assert np.count_nonzero(found) == pytest.approx(np.count_nonzero(b), abs=1)
        np.testing.assert_allclose(found, b, atol=0.05 * np.abs(b).max())


class Noted(Around):
    """A federation that keeps questions about second derivatives."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.widths: list[int] = []

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if isinstance(request, CurvatureAt):
            self.widths.append(request.columns.size)
        return self.inner.replies(request)


@pytest.mark.standard
def test_second_derivatives_are_of_at_most_half_as_many_columns_as_any_site_has_rows() -> None:
    X, y = draw("binomial", n=120, p=50)
    noted = Noted(InProcess(divide(X, y, "binomial")))
    ledger = Ledger(noted)
    model = fit_model(ledger, Settings(family="binomial"))
    examine(ledger, model, False)
    assert noted.widths
    assert 2 * max(noted.widths) <= 40


class Refusing(Around):
    """A federation whose sites refuse one question, and count exchanges."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.exchanges = 0

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if isinstance(request, SiteShift):
            raise Refused("site 'a': not here")
        return self.inner.replies(request)

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        self.exchanges += 1
        return tuple(self.replies(request) for request in requests)


def test_a_refused_question_leaves_those_beside_it_answered() -> None:
    X, y = draw("poisson", p=8)
    refusing = Refusing(connect(X, y, "poisson"))

    def ask(request: Request[Any], own: bool, rounds: int) -> Any:
        for _ in range(rounds):
            (answer,) = yield [refusing.prepare(request, own)]
        return answer

    zero = np.zeros(9)
    questions: list[tuple[Request[Any], bool, int]]
    questions = [(GradientAt(zero), False, 2), (SiteShift(zero), False, 1), (Rows(), True, 1)]
    gradient, reason, rows = drive_together([ask(*each) for each in questions])
    assert gradient.gradient.shape == (9,)
    assert isinstance(reason, Refused)
    assert sum(reply.rows for reply in rows) == 300
