"""What honest sites answer passes every check, whatever their records are like."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.governance.hostile import ask_properly

from fedlasso import InProcess, Site
from fedlasso.federation import encode
from fedlasso.federation.checking import check_reply, max_reply_bytes
from fedlasso.numerics import Array
from fedlasso.numerics.triangles import are_products, pack
from fedlasso.sites import holdout, standardise

ROWS = 60
SPLIT = holdout(0.4, 0)


def draw(kind: str, p: int) -> Site:
    rng = np.random.default_rng(p)
    X = rng.standard_normal((ROWS, p))
    y = X[:, 0] + rng.standard_normal(ROWS)
    if kind == "scales far apart":
        X *= np.logspace(-9, 9, p)
    elif kind == "far from zero":
        X += 1e7
    elif kind == "constant":
        X[:, 1] = 3.0
        X[:, 2] = 0.0
    elif kind == "twins":
        X[:, 1] = -X[:, 0]
        y = X[:, 0].copy()
    elif kind == "huge":
        X *= 1e35
        y *= 1e35
    elif kind == "sparse":
        return Site("a", sp.csc_array(np.where(rng.random(X.shape) < 0.9, 0.0, X + 5)), y)
    return Site("a", X, y, raw=True)


@pytest.mark.parametrize("p", [4, 11])
@pytest.mark.parametrize(
    "kind", ["plain", "scales far apart", "far from zero", "constant", "twins", "huge", "sparse"]
)
def test_honest_replies_are_never_refused(kind: str, p: int) -> None:
    site = draw(kind, p)
    view, _ = standardise(InProcess([site]), SPLIT)
    requests = ask_properly(p, view.name, SPLIT)
    answered = 0
    for request in requests:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                reply = site.answer(request)
        except ValueError:
            # Not every procedure can do with columns that are constant.
            continue
        answered += 1
        data = encode(reply)
        assert len(data) <= max_reply_bytes(request, p)
        assert check_reply(request, "a", data, reply, p, ROWS).site == "a"
    assert answered >= len(requests) - 1


def test_sums_of_products_are_told_from_what_is_none() -> None:
    A = np.random.default_rng(0).standard_normal((5, 3))
    products = A.T @ A

    def judge(*matrices: Array) -> bool:
        return are_products(np.vstack([pack(matrix) for matrix in matrices]))

    zero = np.zeros((3, 3))
    assert judge(products, zero, 1e9 * products)
    assert not judge(products, -products)
    # One product at a time, in its place.
    for i, j in combinations(range(3), 2):
        for sign in (-1, 1):
            wrong = products.copy()
            wrong[i, j] = wrong[j, i] = sign * 1.01 * np.sqrt(products[i, i] * products[j, j])
            assert not judge(zero, wrong)
            wrong[i, j] = wrong[j, i] = sign * 0.99 * np.sqrt(products[i, i] * products[j, j])
            assert judge(zero, wrong)
    for k in range(3):
        wrong = products.copy()
        wrong[k, k] *= -1
        assert not judge(products, wrong)
