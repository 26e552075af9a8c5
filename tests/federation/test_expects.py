"""A question knows the shapes of its replies before any site has answered."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers.draws import draw_sites
from helpers.governance.hostile import ask_properly
from helpers.kinds import own_messages, own_questions

from fedlasso import FedLassoError, InProcess, Site
from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.messages import layout, reply_to
from fedlasso.governance.door_messages import AboutOutcome
from fedlasso.numerics import Array
from fedlasso.sites import GradientAt, Penalised, holdout, standardise
from fedlasso.sites.assessing import AboutFolds
from fedlasso.sites.held_out import AboutErrors
from fedlasso.sites.inference import AboutDirections
from fedlasso.sites.views import ColumnSums

SPLIT = holdout(0.4, 0)
# Questions that only others are made of.
ABSTRACT = (Request, Penalised, AboutOutcome, AboutDirections, AboutErrors, AboutFolds)


def shapes_of(reply: Reply) -> dict[str, tuple[int, ...] | None]:
    arrays = [name for name, kind in layout(type(reply)) if "array" in kind]
    return {name: getattr(getattr(reply, name), "shape", None) for name in arrays}


@pytest.mark.parametrize(("p", "candidates", "folds"), [(4, 1, 2), (7, 3, 5), (12, 2, 3)])
def test_real_replies_have_the_shapes_that_every_question_expects(
    p: int, candidates: int, folds: int
) -> None:
    site = draw_sites((60,), p)[0]
    view, _ = standardise(InProcess([site]), SPLIT)
    asked = ask_properly(p, view.name, SPLIT, candidates, folds)
    assert {type(request).__name__ for request in asked} == set(own_questions())
    for request in asked:
        reply = site.answer(request)
        assert type(reply) is reply_to(type(request))
        assert shapes_of(reply) == request.expects(p), type(request).__name__


@pytest.mark.parametrize("one", [1, 2])
def test_a_gradient_has_the_shape_of_its_points(one: int) -> None:
    site = draw_sites((60,), 5)[0]
    request = GradientAt(np.ones((5, 3)) if one == 2 else np.ones(5))
    assert shapes_of(site.answer(request)) == request.expects(5)


def test_the_question_and_not_the_records_decides_what_is_there() -> None:
    steps: Any = next(r for r in ask_properly(4, "", "") if type(r).__name__ == "CompositeSteps")
    for shared in (0, 1):
        request = replace(steps, shared=shared)
        reply = draw_sites((60,), 4)[0].answer(request)
        assert shapes_of(reply) == request.expects(4)
        assert (reply.x is None) == (not shared)


def test_missing_values_are_counted_when_asked_for_and_else_refused() -> None:
    X = np.arange(12.0).reshape(4, 3) ** 2
    y = np.arange(4.0)
    whole = Site("a", X, y, raw=True)
    holes = Site("a", np.where(X == 9.0, np.nan, X), y, raw=True)
    for site, counts in ((whole, [0.0, 0.0, 0.0]), (holes, [1.0, 0.0, 0.0])):
        reply = site.answer(ColumnSums(missing=True))
        assert shapes_of(reply) == ColumnSums(missing=True).expects(3)
        assert reply.missing is not None
        assert reply.missing.tolist() == counts
    assert whole.answer(ColumnSums()).missing is None
    with pytest.raises(FedLassoError, match="values are missing here"):
        holes.answer(ColumnSums())
    _, scaling = standardise(InProcess([holes]))
    assert scaling.means[0] == pytest.approx((0 + 36 + 81) / 3)


def test_questions_of_the_package_name_their_replies() -> None:
    for name, cls in own_messages().items():
        if issubclass(cls, Request) and cls not in ABSTRACT:
            assert issubclass(reply_to(cls), Reply), name


class UnshapedForTests(Reply):
    """Numbers."""

    values: Array


class AskUnshapedForTests(Request[UnshapedForTests]):
    """A question that does not say what its reply looks like."""

    discloses: ClassVar[Disclosure] = Disclosure("numbers")

    def answer(self, site: Any) -> UnshapedForTests:
        return UnshapedForTests(np.ones(2))


def test_a_question_that_does_not_say_what_its_reply_looks_like_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="define `expects`, the shapes of the reply"):
        AskUnshapedForTests().expects(3)
