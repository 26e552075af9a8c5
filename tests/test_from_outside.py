"""What CONTRIBUTING promises: a loss, a penalty, a procedure and a question from outside.

Each is one class, and one line in a registry where other processes must find it by name.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites
from helpers.losses_outside import Huber, registered
from scipy.optimize import nnls

from fedlasso import REGISTRY, Disclosure, InProcess, Penalty, Reply, Request, Site, certify, fit
from fedlasso.federation import Shapes
from fedlasso.fitting import fix_penalty
from fedlasso.numerics import PENALTIES, Array
from fedlasso.procedures.fista import FISTA
from fedlasso.sites import View


def test_a_loss_from_outside_is_fitted_by_name() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    y = X[:, 0] + rng.standard_t(1, 80)
    with registered(Huber()):
        robust = fit(InProcess([Site("a", X, y, loss="huber")]), "FISTA", penalty=0.01, rounds=500)
    assert robust.certificate is not None
    assert robust.certificate.relative_gap < 1e-3
    assert robust.problem.loss == "huber"


@dataclass(frozen=True, eq=False, repr=False)
class Positive(Penalty):
    """The Lasso's penalty on coefficients that may not be negative."""

    name: ClassVar[str] = "positive for tests"

    def value(self, b: Array) -> float:
        return self.lam * float(b.sum()) if (b >= 0).all() else np.inf

    def prox(self, v: Array, step: float | Array) -> Array:
        return np.maximum(v - step * self.lam, 0.0)

    def dual_limit(self, gradient: Array) -> float:
        steepest = float((-gradient).max(initial=0.0))
        return self.lam / steepest if steepest > 0 else np.inf


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("FISTA", 400),
        pytest.param("ProxSkip", 2000, marks=pytest.mark.standard),
        ("FedMid", 400),
    ],
)
def test_a_penalty_from_outside_reaches_server_and_sites(
    name: str, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PENALTIES, Positive.name, Positive)
    sites = draw_sites((60, 50, 40), p=6)
    result = fit(InProcess(sites), name, penalty=Positive(0.1), rounds=rounds)
    assert (result.coefficients >= 0).all()
    # With a penalty on positive coefficients only, least squares turns into nonnegative ones.
    X = np.vstack([s.training.X for s in sites])
    y = np.concatenate([s.training.y for s in sites])
    R = np.linalg.cholesky(X.T @ X / len(y)).T
    exact, _ = nnls(R, np.linalg.solve(R.T, X.T @ y / len(y) - 0.1))
    if name != "FedMid":
        np.testing.assert_allclose(result.coefficients, exact, atol=1e-6)
    federation = InProcess(sites)
    best = certify(federation, fix_penalty(federation, Positive(0.1)), exact)
    assert best.relative_gap <= 1e-8


def test_a_procedure_from_outside_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(FISTA):
        name: ClassVar[str] = "Plain"

    monkeypatch.setitem(REGISTRY, "Plain", Plain)
    mine = fit(draw_federation(), "plain", penalty=0.1, rounds=5)
    theirs = fit(draw_federation(), "FISTA", penalty=0.1, rounds=5)
    assert mine.coefficients.tobytes() == theirs.coefficients.tobytes()


class CubesForTests(Reply):
    """Sums of cubes."""

    sums: Array


class AskCubesForTests(Request[CubesForTests]):
    """What do the cubes of the columns add up to?"""

    discloses: ClassVar[Disclosure] = Disclosure("third moments of every column")

    def expects(self, p: int) -> Shapes:
        return {"sums": (p,)}

    def answer(self, site: View) -> CubesForTests:
        return CubesForTests((site.training.X**3).sum(axis=0))


def test_a_question_from_outside_is_answered_and_added_up() -> None:
    sites = draw_sites()
    X = np.vstack([s.training.X for s in sites])
    total = InProcess(sites).total(AskCubesForTests())
    np.testing.assert_allclose(total.sums, (X**3).sum(axis=0), rtol=1e-12)
    with pytest.raises(TypeError, match="AskCubesForTests is answered by a total"):
        InProcess(sites).ask(AskCubesForTests())


def test_a_question_must_say_what_it_discloses() -> None:
    with pytest.raises(TypeError, match="SecretForTests must state what it discloses"):

        class SecretForTests(Request[CubesForTests]):
            def answer(self, site: Any) -> CubesForTests:
                raise AssertionError
