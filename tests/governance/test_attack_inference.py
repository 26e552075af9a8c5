"""What inference asks, at models and directions of the coordinator's choice, shows no single row.

With batches of one row, squared sums along directions are fourth powers of records, and two models
are a pencil whose eigenvectors are the rows. With batches of many rows, all answers about a linear
model are the same for other rows with the same second moments of batches. Losses of a curved model
count rows if the model is a step, as gradients do.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.rows_of import count_matches, diagonalise, scale_to_ones
from helpers.governance.victims import Victim, distance, draw_records

from fedlasso import FedLassoError, Site
from fedlasso.federation import Request, decode, encode
from fedlasso.federation.codec import size
from fedlasso.governance import Audit, Policy, record_checks
from fedlasso.governance.door_messages import Refusal
from fedlasso.governance.guard import GuardedSite
from fedlasso.numerics import Array
from fedlasso.numerics.response import Places
from fedlasso.sites import BatchSlopes, GradientAt, LossesAt, SiteShift

N, P = 40, 45
LIMITLESS = Policy(max_numbers=1e6, max_active_per_row=1e6)
# Models of a curved loss that are nearly steps.
STEEP = 1e5
CUTS = np.linspace(-3, 3, 1201)


def draw(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P))
    # The first column is the intercept, so that rows are known up to no factor.
    X[:, 0] = 1.0
    return X, X[:, 1] + rng.standard_normal(N)


def guarded(folder: Path, X: Array, y: Array, policy: Policy, **more: Any) -> GuardedSite:
    site = Site("a", X, y, raw=True, **more)
    return GuardedSite(site, policy, Audit(folder / "audit.jsonl"), "ab" * 16)


def ask(door: GuardedSite, request: Request[Any]) -> Any:
    return decode(door.answer_bytes(encode(request)))


def squares_of_batches(door: GuardedSite, b: Array) -> Array:
    """Sum over batches the products of their slopes at b, from squares along many directions."""
    first, second = np.triu_indices(P)
    directions = np.eye(P)[:, first] + np.eye(P)[:, second]
    parts = np.array_split(directions, -(-directions.shape[1] // 200), axis=1)
    replies = [ask(door, BatchSlopes(b, np.ascontiguousarray(part))) for part in parts]
    left = 1 / (1 + 1 / replies[0].degrees)
    total = ask(door, GradientAt(b)).gradient
    # Squares about the mean lack those of the total, if batches have equally many rows.
    along = np.concatenate([reply.variances for reply in replies]) * left
    along += (directions.T @ total) ** 2 * (1 - left)
    own = along[first == second] / 4
    products = np.zeros((P, P))
    products[first, second] = products[second, first] = (along - own[first] - own[second]) / 2
    np.fill_diagonal(products, own)
    return products


def steal(door: GuardedSite) -> Array:
    """Rows from the pencil of two models."""
    rng = np.random.default_rng(9)
    models = 0.1 * rng.standard_normal((2, P))
    return scale_to_ones(diagonalise([squares_of_batches(door, b) for b in models]))


def test_batches_of_one_row_would_give_every_record(tmp_path: Path) -> None:
    X, y = draw(0)
    found = steal(guarded(tmp_path, X, y, LIMITLESS, batch=1))
    assert count_matches(found, X[:, 1:]) == N
    assert count_matches(found, draw(1)[0][:, 1:]) == 0


def test_batches_of_many_rows_give_none_of_them(tmp_path: Path) -> None:
    X, y = draw(0)
    # Not even with the smallest batches, which a site without a policy has.
    door = guarded(tmp_path, X, y, LIMITLESS)
    assert np.bincount(door.site.batches).tolist() == [10] * 4
    found = steal(door)
    assert count_matches(found, X[:, 1:]) == 0


@pytest.mark.parametrize("min_rows", [20, 30])
def test_batches_have_the_rows_that_the_policy_demands(min_rows: int, tmp_path: Path) -> None:
    X, y = draw_records(200, 5, 1)
    victim = Victim(tmp_path, X, y, Policy(min_rows=min_rows)).opened()
    own = victim.door._site.site  # type: ignore[union-attr]
    sizes = np.bincount(own.batches)
    assert sizes.min() >= min_rows
    assert len(sizes) > 1
    # Whoever knows no secret cannot put them together, or draw others.
    again = Victim(tmp_path / "again", X, y, Policy(min_rows=min_rows), b"another").opened()
    other = again.door._site.site  # type: ignore[union-attr]
    assert (own.batches != other.batches).any()


def turn_within(rows: Array, groups: Places) -> Array:
    """Return other rows whose sums and second moments over each group are the same."""
    rng = np.random.default_rng(12)
    turned = np.empty_like(rows)
    for group in np.unique(groups):
        own = rows[groups == group]
        # A rotation of what is orthogonal to a vector of ones.
        frame = np.linalg.qr(np.column_stack([np.ones(len(own)), rng.random((len(own),) * 2)]))[0]
        basis = frame[:, 1 : len(own)]
        rotation = np.linalg.qr(rng.standard_normal((basis.shape[1],) * 2))[0]
        turned[groups == group] = own.mean(axis=0) + basis @ rotation @ basis.T @ own
    return turned


def test_answers_about_a_linear_model_hold_for_other_rows_too(tmp_path: Path) -> None:
    """At any models and directions: so no choice of these can isolate a row, or its slope."""
    X, y = draw_records(200, 5, 2)
    more: dict[str, Any] = {"policy": LIMITLESS, "secret": b"secret", "batch": 20}
    door = guarded(tmp_path / "a", X, y, **more)
    batches = door.site.batches
    assert np.bincount(batches).min() >= 20
    rows = np.column_stack([X, y])
    turned = turn_within(rows, batches)
    # They are other rows, as far from the nearest true one as rows of another draw.
    by_chance = np.median(distance(np.column_stack(draw_records(200, 5, 6)), rows))
    assert np.median(distance(turned, rows)) > 0.8 * by_chance
    doors = [door, guarded(tmp_path / "b", turned[:, :-1], turned[:, -1], **more)]
    np.testing.assert_array_equal(doors[1].site.batches, batches)
    rng = np.random.default_rng(3)
    for scale in (0.1, 1.0, 1e3):
        b = scale * rng.standard_normal(5)
        along = scale * rng.standard_normal((5, 40))
        questions = (
            (BatchSlopes(b, along), ("variances", "curvatures", "degrees")),
            (LossesAt(along), ("losses",)),
            (SiteShift(b), ("value",)),
        )
        for question, fields in questions:
            replies = [ask(door, question) for door in doors]
            for field in fields:
                first, second = (getattr(reply, field) for reply in replies)
                np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", [BatchSlopes, LossesAt, SiteShift])
def test_a_file_sends_no_more_numbers_than_it_has_entries(
    kind: type[Request[Any]], tmp_path: Path
) -> None:
    X, y = draw_records(60, 3, 3)
    victim = Victim(tmp_path, X, y).opened()
    rng = np.random.default_rng(4)
    numbers = 0
    while True:
        b = rng.standard_normal(3)
        given = {BatchSlopes: (b, np.eye(3)), LossesAt: (rng.standard_normal((3, 5)),)}
        reply = victim.ask(kind(*given.get(kind, (b,))))
        if isinstance(reply, Refusal):
            break
        numbers += size(reply)[0] // 8
    assert "max_numbers" in reply.text
    budget = Policy().max_numbers * X.size
    assert budget - 10 < numbers <= budget


def curved(folder: Path, **rules: Any) -> tuple[GuardedSite, Array]:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((80, 3))
    y = (rng.random(80) < 0.5).astype(np.float64)
    policy = Policy(**({"max_numbers": 1e6} | rules))
    return guarded(folder, X, y, policy, loss="binomial", intercept=True), X[:, 0]


def find_kinks(door: GuardedSite) -> Array:
    """Where losses bend of models that are one half where the first column is at a cut."""
    models = np.zeros((4, CUTS.size))
    models[0] = STEEP
    models[-1] = -STEEP * CUTS
    parts = np.array_split(models, 8, axis=1)
    losses = np.hstack([ask(door, LossesAt(np.ascontiguousarray(part))).losses for part in parts])
    bends = np.diff(losses, 2) / (STEEP * (CUTS[1] - CUTS[0]))
    # A row between two cuts divides its bend between them.
    return np.asarray(CUTS[1:-1][np.abs(bends) > 0.01])


def test_losses_of_steps_would_give_every_value_of_a_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_checks, "MAX_STEEPNESS", np.inf)
    door, values = curved(tmp_path, min_effective_rows=0)
    kinks = find_kinks(door)
    assert np.abs(values[:, None] - kinks).min(axis=1).max() < CUTS[1] - CUTS[0]
    assert np.abs(kinks[:, None] - values).min(axis=1).max() < CUTS[1] - CUTS[0]


@pytest.mark.parametrize(
    ("largest", "why"), [(STEEP, "too steep a model"), (100.0, "the site does not answer")]
)
def test_no_question_of_inference_is_answered_at_a_step(
    largest: float, why: str, tmp_path: Path
) -> None:
    """At 100 slopes change at the outermost rows only: the policy demands that more rows count."""
    door, values = curved(tmp_path)
    b = largest * np.array([1.0, 0.0, 0.0, -values.max()])
    several = np.column_stack([np.zeros(4), b])
    for question in (BatchSlopes(b, np.eye(4)), LossesAt(several), SiteShift(b)):
        with pytest.raises(FedLassoError, match=why):
            ask(door, question)
    # Models of ordinary fits are answered.
    b = np.array([1.0, -0.5, 0.2, 0.1])
    for question in (BatchSlopes(b, np.eye(4)), LossesAt(b[:, None]), SiteShift(b)):
        ask(door, question)
