"""Totals of whole numbers: exact, the same in any order, and as fine as doubles are."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from helpers.draws import draw_sites
from helpers.governance.hostile import ask_properly
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import FedLassoError, InProcess, Ledger, Site
from fedlasso.federation.fixed_point import Words, from_words, parts_of_reply, reaching, to_words
from fedlasso.federation.magnitudes import (
    ONE_WORD_BITS,
    TWO_WORD_BITS,
    Bound,
    Magnitudes,
    power_above,
)
from fedlasso.federation.messages import add_up, reply_to, roles
from fedlasso.sites import FitAt, GradientAt, LargestEigenvalue, holdout, standardise
from fedlasso.sites.views import Standardise

SPLIT = holdout(0.4, 0)
numbers = st.floats(-1.0, 1.0, allow_subnormal=False)


class Bounded(GradientAt):
    """A gradient whose bound a test sets."""

    discloses = GradientAt.discloses
    exponent: int = 0
    words: int = 1

    def answer(self, site: Any) -> Any:
        raise AssertionError("nobody is asked")

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"gradient": Bound(self.exponent, words=2 if self.words == 2 else 1)}


def add(parts: list[Any], exponent: int, words: int) -> Any:
    request = Bounded(np.zeros(len(parts[0])), exponent=exponent, words=words)
    magnitudes = Magnitudes.unknown(len(parts[0]))
    cls: Any = reply_to(GradientAt)
    replies = [to_words(cls(np.array(part), site="a"), request, magnitudes) for part in parts]
    return from_words(add_up(tuple(replies)), request, magnitudes)


@settings(deadline=None)
@given(
    st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=9),
    st.integers(-300, 300),
    st.sampled_from([1, 2]),
)
def test_a_total_is_the_exact_sum_to_the_grid(
    parts: list[list[float]], power: int, words: int
) -> None:
    # Bounded as a whole, as Cauchy and Schwarz bound the questions of views.
    scaled = [[math.ldexp(v / len(parts), power) for v in part] for part in parts]
    total = add(scaled, power, words).gradient
    fine = Fraction(math.ldexp(1.0, power - (ONE_WORD_BITS if words == 1 else TWO_WORD_BITS)))
    for k, found in enumerate(total):
        exact = sum((Fraction(part[k]) for part in scaled), Fraction(0))
        # Half a step of the grid per site, and the rounding of the total to a double.
        allowed = len(parts) * fine / 2 + abs(exact) / 2**52
        assert abs(Fraction(float(found)) - exact) <= allowed


def test_no_order_of_the_sites_changes_a_bit() -> None:
    rng = np.random.default_rng(0)
    parts = [list(rng.standard_normal(5) * 10.0**k / 1e4) for k in range(4)]
    for words in (1, 2):
        totals = {add(list(order), 4, words).gradient.tobytes() for order in permutations(parts)}
        assert len(totals) == 1


def test_what_is_larger_than_agreed_is_refused() -> None:
    for words in (1, 2):
        with pytest.raises(FedLassoError, match="larger than the bound"):
            add([[4.5]], 1, words)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("scale", [True, False])
def test_every_total_over_a_view_is_that_of_the_records(unit: float, scale: bool) -> None:
    p = 6
    sites = [
        Site(s.name, unit * s.table.columns.T * 10.0 ** np.arange(p), unit * s.training.y)
        for s in draw_sites((60, 45, 50), p)
    ]
    federation = InProcess(sites)
    view, _ = standardise(federation, SPLIT, scale=scale)
    asked = [r for r in ask_properly(p, view.name, SPLIT, 3, 4) if r.on == view.name]
    assert len(asked) > 20
    for request in asked:
        # The largest is no sum, and steps at any rate may diverge where columns are not scaled.
        diverges = not scale and "steps" in {role.kind for role in roles(type(request)).values()}
        if diverges or reply_to(type(request)).adds == "max":
            continue
        found = view.total(replace(request, on=""))
        exact = add_up(federation.replies(request))
        for part in parts_of_reply(request, reaching(view.view.magnitudes, request)):
            # Half a step of the grid per site, and the rounding of doubles.
            step = np.ldexp(1.0, part.bound.over(part.shape) - part.bound.bits)
            value = getattr(exact, part.name)
            off = np.abs(getattr(found, part.name) - value)
            assert (off <= 2 * step + 1e-10 * np.abs(value).max()).all(), (part.name, request)


def test_gradients_are_as_fine_as_doubles_are_even_at_large_models() -> None:
    rng = np.random.default_rng(1)
    sites = draw_sites((60, 45, 50), 8)
    view, _ = standardise(InProcess(sites))
    for size in (1e-3, 1.0, 1e6):
        b = size * rng.standard_normal(8)
        found = view.total(GradientAt(b)).gradient
        plain = add_up(view.replies(GradientAt(b))).gradient
        np.testing.assert_allclose(found, plain, rtol=1e-11, atol=1e-12 * np.abs(plain).max())


def test_a_vector_costs_a_vector_and_a_scalar_two_words() -> None:
    ledger = Ledger(InProcess(draw_sites((60, 45, 50), 8)))
    view, _ = standardise(ledger)
    before = ledger.costs
    view.total(GradientAt(np.ones(8)))
    after = ledger.costs
    view.total(FitAt(np.ones(8)))
    site = ledger.sites[0]
    assert (after - before).total(None, site).upload == 8 * 8
    assert (ledger.costs - after).total(None, site).upload == 8 * (8 + 3 * 2)


def test_the_largest_of_several_numbers_is_no_sum() -> None:
    view, _ = standardise(InProcess(draw_sites((60, 45, 50), 4)))
    largest = max(reply.value for reply in view.ask(LargestEigenvalue()))
    assert view.total(LargestEigenvalue()).value == largest


def test_a_site_that_answers_another_question_is_noticed() -> None:
    magnitudes = Magnitudes.unknown(4)
    other = Words(np.zeros(4, np.uint64), "Spread")
    with pytest.raises(FedLassoError, match="did not answer GradientAt as it was asked"):
        from_words(other, GradientAt(np.zeros(4)), magnitudes)
    short = Words(np.zeros(3, np.uint64), "GradientSum")
    with pytest.raises(FedLassoError, match="did not answer"):
        from_words(short, GradientAt(np.zeros(4)), magnitudes)


def test_a_view_that_does_not_say_how_large_its_numbers_are_is_refused() -> None:
    view = Standardise(np.zeros(2), np.ones(2), 0.0, powers=("1", "two", "3"))
    with pytest.raises(FedLassoError, match="must bound its numbers"):
        view.magnitudes  # noqa: B018


def test_a_reach_covers_the_residuals_of_every_model_in_a_question() -> None:
    rng = np.random.default_rng(2)
    sites = draw_sites((60, 45, 50), 5)
    view, _ = standardise(InProcess(sites))
    for _ in range(20):
        b = rng.standard_normal(5) * 10.0 ** rng.integers(-3, 4)
        fit = view.total(FitAt(b))
        reach = reaching(view.view.magnitudes, FitAt(b)).reach
        assert fit.residual_ss <= 4.0**reach
        assert power_above(fit.residual_ss) <= 2 * reach + 1
