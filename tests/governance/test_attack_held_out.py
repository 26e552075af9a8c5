"""Attack 5: the sum of fourth powers of errors is a tensor whose components are the records."""

from itertools import combinations_with_replacement
from math import factorial, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.victims import Victim, draw_records

from fedlasso.governance import Policy
from fedlasso.governance.door_messages import Refusal
from fedlasso.numerics import Array
from fedlasso.sites import HeldOutErrors, ValidationErrors

# Ten held-out rows for each purpose, and ten numbers in a record.
N, P = 100, 9
D = P + 1
SPLIT = "holdout 0.2 0"
TERMS = list(combinations_with_replacement(range(D), 4))


def monomials(W: Array) -> Array:
    """All products of four entries of each row, as often as they occur in a fourth power."""
    times = [24 // prod(factorial(term.count(k)) for k in set(term)) for term in TERMS]
    return np.column_stack(
        [t * W[:, term].prod(axis=1) for t, term in zip(times, TERMS, strict=True)]
    )


def unravel(W: Array, powers: Array) -> Array:
    """Directions of the records, from sums over them of (z'w)^4 at many w: Jennrich's way."""
    found = np.linalg.lstsq(monomials(W), powers, rcond=None)[0]
    tensor = np.zeros((D, D, D, D))
    for term, value in zip(TERMS, found, strict=True):
        for a in range(4):
            for b in range(4):
                for c in range(4):
                    if len({a, b, c}) == 3:
                        d = 6 - a - b - c
                        tensor[term[a], term[b], term[c], term[d]] = value
    rng = np.random.default_rng(7)
    one, other = (np.einsum("abcd,a,b->cd", tensor, *rng.standard_normal((2, D))) for _ in "ab")
    _, vectors = np.linalg.eig(one @ np.linalg.pinv(other))
    return np.real(vectors).T


def away(found: Array, rows: Array) -> Array:
    """One minus the cosine between each record and the nearest direction that was found."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(1 - np.abs(unit @ found.T).max(axis=1))


def candidates(count: int) -> Array:
    return np.random.default_rng(3).standard_normal((count, P))


def attack(victim: Victim, exact: bool, count: int) -> tuple[Array, int]:
    """Ask about many models, and return what comes out, and how many were answered."""
    view = victim.view(SPLIT, victim.X.mean(axis=0))
    B = candidates(count)
    powers: list[float] = []
    step = 200 if exact else 1
    for at in range(0, count, step):
        some = np.ascontiguousarray(B[at : at + step].T)
        if exact:
            reply: Any = victim.ask(ValidationErrors(some, "penalty", on=view))
            if isinstance(reply, Refusal):
                break
            powers += reply.squares.tolist()
        else:
            reply = victim.ask(HeldOutErrors(some, "penalty", on=view))
            if isinstance(reply, Refusal):
                break
            # All that is left of fourth powers: a kurtosis to a quarter power of two.
            powers.append(reply.tail / reply.counts[0] * reply.errors[0] ** 2 / reply.counts[0])
    answered = len(powers)
    W = np.column_stack([np.ones(answered), -B[:answered]])
    return unravel(W, np.array(powers)), answered


def held_out(victim: Victim) -> Array:
    """The records that the attack is after: response first, as the errors see them."""
    site = victim.door._site
    assert site is not None
    rows = site.site.draw.divide(SPLIT, N)["penalty"]
    return np.column_stack([victim.y[rows], victim.X[rows] - victim.X.mean(axis=0)])


@pytest.fixture
def records() -> tuple[Array, Array]:
    X, y = draw_records(N, P, 5)
    return X, y - y.mean()


def test_fourth_powers_would_tell_every_held_out_record(
    records: tuple[Array, Array], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy(allow=("ValidationErrors",), max_candidates=10**6, max_numbers=1e6)
    # With a secret, held-out rows are atoms of more rows than a record has numbers.
    victim = Victim(tmp_path, *records, policy, key=b"").opened()
    found, answered = attack(victim, True, 1000)
    assert answered == 1000
    assert away(found, held_out(victim)).max() < 1e-6


@pytest.mark.standard
def test_what_is_left_of_them_tells_none(records: tuple[Array, Array], tmp_path: Path) -> None:
    victim = Victim(tmp_path, *records, Policy(max_numbers=1e6)).opened()
    refused = victim.ask(ValidationErrors(candidates(3).T.copy(), "penalty"))
    assert "does not answer ValidationErrors" in refused.text
    found, answered = attack(victim, False, 1000)
    assert answered == Policy().max_candidates
    rng = np.random.default_rng(11)
    # No nearer than directions that were drawn by chance would be, to within their luck.
    luck = [np.median(away(rng.standard_normal((D, D)), held_out(victim))) for _ in range(200)]
    assert np.median(away(found, held_out(victim))) > np.quantile(luck, 0.01)


@pytest.mark.standard
def test_rounding_alone_keeps_the_records_too(records: tuple[Array, Array], tmp_path: Path) -> None:
    victim = Victim(tmp_path, *records, Policy(max_candidates=10**6, max_numbers=1e6)).opened()
    found, answered = attack(victim, False, 1000)
    assert answered == 1000
    assert np.median(away(found, held_out(victim))) > 0.01
