"""Procedures of the literature against plain numpy, against the pooled Lasso, and in extremis."""

from typing import Any

import numpy as np
import pytest
from helpers.draws import draw_sites, objective

from fedlasso import REGISTRY, FedLassoError, InProcess, Ledger, Site, fit
from fedlasso.fitting import Run, after_rounds, fix_penalty
from fedlasso.numerics import Array, LeastSquares, soft_threshold, solve_reference
from fedlasso.procedures import Procedure
from fedlasso.procedures.dual_averaging import CFedDA, FastFedDA
from fedlasso.procedures.local_gradient import FedMid, ProxSkip

LAM = 0.12
RATES = (0.03, 0.1, 0.3, 0.6, 1.0)
# Rounds in which each exact method reaches a relative objective gap of 1e-8 on the easy draw.
EXACT = {
    "FISTA": 120,
    "ADMM": 80,
    "FedDR": 80,
    "DANE": 80,
    "CSL": 160,
    "ProxSkip": 400,
    "OneShotGram": 1,
    "WorkingSetGram": 40,
}
SUMS_ONLY = ("FISTA", "OneShotGram", "WorkingSetGram")
LITERATURE = sorted(set(REGISTRY) - {"CD", "ST", "P", "DA"})
literature = pytest.mark.parametrize("name", LITERATURE)
exact = pytest.mark.parametrize("name", sorted(EXACT))


def easy_sites() -> list[Site]:
    return draw_sites((60, 50, 40), p=20)


def pool(sites: list[Site]) -> LeastSquares:
    X = np.vstack([s.training.X for s in sites])
    return LeastSquares(X, np.concatenate([s.training.y for s in sites]))


def gap(sites: list[Site], b: Array, lam: float) -> float:
    f = pool(sites)
    best = solve_reference(f, lam).objective
    return (objective(f.X, f.y, b, lam) - best) / best


def top(f: LeastSquares) -> float:
    return float(np.linalg.eigvalsh(f.X.T @ f.X / f.m)[-1])


def weights(sites: list[Site]) -> Array:
    sizes = np.array([float(s.rows) for s in sites])
    return sizes / float(sizes.sum())


def grad(f: LeastSquares, b: Array) -> Array:
    return np.asarray(f.X.T @ (f.X @ b - f.y) / f.m)


# Explicit updates


@pytest.mark.parametrize("server_prox", [False, True])
@pytest.mark.parametrize("epochs", [1, 3])
def test_fedmid_is_averaged_proximal_gradient(epochs: int, server_prox: bool) -> None:
    sites = draw_sites()
    procedure = FedMid(epochs=epochs, server_prox=server_prox)
    result = fit(InProcess(sites), procedure, penalty=LAM, rounds=3)
    L = max(top(s.least_squares) for s in sites)
    for j, rate in enumerate(RATES):
        b = np.zeros(40)
        for _ in range(3):
            total = np.zeros(40)
            for w, s in zip(weights(sites), sites, strict=True):
                x = b
                for _ in range(epochs):
                    x = soft_threshold(x - rate / L * grad(s.least_squares, x), rate / L * LAM)
                total += w * x
            b = soft_threshold(total, rate / L * epochs * LAM) if server_prox else total
        np.testing.assert_allclose(result.candidates[:, j], b, atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_fedda_is_the_dual_averaging_written_out(shared: bool) -> None:
    sites, E = draw_sites(), 3
    procedure = (FastFedDA if shared else CFedDA)(epochs=E, convexity=0.1)
    result = fit(InProcess(sites), procedure, penalty=LAM, rounds=3)
    L = max(top(s.least_squares) for s in sites)
    mu = 0.1 * L

    def model(g: Array, x: Array, t: int, seen: int, rate: float) -> Array:
        d = mu * seen / 2 + L / rate
        return soft_threshold((mu / 2 * x - g) / d, LAM * t / d)

    for j, rate in enumerate(RATES):
        g, x = np.zeros(40), np.zeros(40)
        for r in range(3):
            g_new, x_new = np.zeros(40), np.zeros(40)
            for w, s in zip(weights(sites), sites, strict=True):
                g_j, x_j = g, x
                for t in range(r * E, (r + 1) * E):
                    b = model(g_j, x_j, t, t if shared else r * E, rate)
                    g_j = g_j + grad(s.least_squares, b)
                    x_j = x_j + b if shared else x_j
                g_new, x_new = g_new + w * g_j, x_new + w * x_j
            x = x_new if shared else x + E * model(g, x, r * E, r * E, rate)
            g = g_new
        np.testing.assert_allclose(
            result.candidates[:, j], model(g, x, 3 * E, 3 * E, rate), atol=1e-12
        )


@pytest.mark.parametrize("procedure", [FastFedDA, CFedDA])
def test_without_convexity_fedda_is_dual_averaging(procedure: type[FastFedDA]) -> None:
    flat = fit(InProcess(draw_sites()), procedure(epochs=3, convexity=0.0), penalty=LAM, rounds=5)
    da = fit(InProcess(draw_sites()), "DA", epochs=3, penalty=LAM, rounds=5)
    np.testing.assert_allclose(flat.candidates, da.candidates, atol=1e-12)


def mean_curvature(sites: list[Site]) -> float:
    traces = [np.trace(s.training.X.T @ s.training.X / s.rows) for s in sites]
    return float(weights(sites) @ traces) / sites[0].training.p


@pytest.mark.parametrize("k", range(3))
def test_admm_is_the_textbook_recursion(k: int) -> None:
    sites = draw_sites()
    result = fit(InProcess(sites), "ADMM", penalty=LAM, rounds=3)
    W, p = weights(sites), 40
    rho = (0.3, 1.0, 3.0)[k] * mean_curvature(sites)
    z, u = np.zeros(p), [np.zeros(p) for _ in sites]
    for _ in range(3):
        x = []
        for s, u_j in zip(sites, u, strict=True):
            X, y = s.training.X, s.training.y
            A = X.T @ X / s.rows + rho * np.eye(p)
            x.append(1.6 * np.linalg.solve(A, X.T @ y / s.rows + rho * (z - u_j)) - 0.6 * z)
        z = soft_threshold(sum(w * (a + b) for w, a, b in zip(W, x, u, strict=True)), LAM / rho)
        u = [u_j + x_j - z for u_j, x_j in zip(u, x, strict=True)]
    np.testing.assert_allclose(result.candidates[:, k], z, atol=1e-11)


@pytest.mark.parametrize("k", range(3))
def test_feddr_is_the_papers_recursion(k: int) -> None:
    sites = draw_sites()
    result = fit(InProcess(sites), "FedDR", penalty=LAM, rounds=3)
    W, p = weights(sites), 40
    eta = (0.3, 1.0, 3.0)[k] / mean_curvature(sites)
    xbar = np.zeros(p)
    x: list[Any] = [np.zeros(p) for _ in sites]
    y: list[Array] = [np.zeros(p) for _ in sites]
    for _ in range(3):
        y = [y_j + 1.95 * (xbar - x_j) for y_j, x_j in zip(y, x, strict=True)]
        x = [
            np.linalg.solve(
                eta * s.training.X.T @ s.training.X / s.rows + np.eye(p),
                eta * s.training.X.T @ s.training.y / s.rows + y_j,
            )
            for s, y_j in zip(sites, y, strict=True)
        ]
        average = sum(w * (2 * x_j - y_j) for w, x_j, y_j in zip(W, x, y, strict=True))
        xbar = soft_threshold(average, eta * LAM)
    np.testing.assert_allclose(result.candidates[:, k], xbar, atol=1e-11)


def test_proxskip_is_scaffnew_and_at_one_step_the_pooled_proximal_gradient() -> None:
    sites, E = draw_sites(), 3
    result = fit(InProcess(sites), ProxSkip(epochs=E), penalty=LAM, rounds=3)
    once = fit(InProcess(sites), ProxSkip(epochs=1), penalty=LAM, rounds=5)
    f, L = pool(sites), max(top(s.least_squares) for s in sites)
    for j, rate in enumerate((0.1, 0.3, 1.0)):
        gamma = rate / L
        z, h = np.zeros(40), [np.zeros(40) for _ in sites]
        for _ in range(3):
            x = []
            for s, h_j in zip(sites, h, strict=True):
                x_j = z
                for _ in range(E):
                    x_j = x_j - gamma * (grad(s.least_squares, x_j) - h_j)
                x.append(x_j)
            terms = zip(weights(sites), x, h, strict=True)
            z = soft_threshold(sum(w * (a - gamma * E * b) for w, a, b in terms), gamma * E * LAM)
            h = [h_j + (z - x_j) / (gamma * E) for h_j, x_j in zip(h, x, strict=True)]
        np.testing.assert_allclose(result.candidates[:, j], z, atol=1e-11)
        b = np.zeros(40)
        for _ in range(5):
            b = soft_threshold(b - gamma * grad(f, b), gamma * LAM)
        np.testing.assert_allclose(once.candidates[:, j], b, atol=1e-12)


def test_fista_is_the_accelerated_gradient_on_pooled_rows() -> None:
    sites = draw_sites()
    f, L = pool(sites), float(weights(sites) @ [top(s.least_squares) for s in sites])
    x = y = np.zeros(40)
    theta = 1.0
    for _ in range(15):
        new = soft_threshold(y - grad(f, y) / L, LAM / L)
        theta = 1.0 if (y - new) @ (new - x) > 0 else theta
        following = (1 + np.sqrt(1 + 4 * theta**2)) / 2
        y = new + (theta - 1) / following * (new - x)
        x, theta = new, following
    result = fit(InProcess(sites), "FISTA", penalty=LAM, rounds=15)
    np.testing.assert_allclose(result.coefficients, x, atol=1e-11)


@pytest.mark.parametrize("name", ["CSL", "DANE"])
@pytest.mark.parametrize("k", range(3))
def test_surrogate_solves_are_stationary(name: str, k: int) -> None:
    """The first solve is at b = 0, where the pooled gradient is -c."""
    sites = draw_sites()
    f, W = pool(sites), weights(sites)
    tau = (0.1, 0.3, 1.0)[k] * mean_curvature(sites)
    solvers = sites[:1] if name == "CSL" else sites
    augmented = []
    for s in solvers:
        # 1/2 b'(G_j + tau I) b - c'b as a least-squares problem of its own
        G = s.training.X.T @ s.training.X / s.rows + tau * np.eye(40)
        root = np.linalg.cholesky(G).T
        y = np.sqrt(40) * np.linalg.solve(root.T, -grad(f, np.zeros(40)))
        augmented.append(solve_reference(LeastSquares(np.sqrt(40) * root, y), LAM).coefficients)
    expected = (
        augmented[0] if name == "CSL" else sum(w * a for w, a in zip(W, augmented, strict=True))
    )
    result = fit(InProcess(sites), name, penalty=LAM, rounds=2)
    np.testing.assert_allclose(result.candidates[:, k], expected, atol=1e-10)


@pytest.mark.parametrize("name", ["CSL", "DANE"])
def test_surrogate_steps_never_raise_the_objective(name: str) -> None:
    """Almost undamped, on a first site far too small to stand for the rest."""
    sites = draw_sites((6, 40, 40), p=40)
    ledger = Ledger(InProcess(sites))
    procedure: Procedure[Any] = REGISTRY[name](settings=(1e-3, 1e-2))
    f = pool(sites)
    states = Run(ledger, procedure, fix_penalty(ledger, LAM)).rounds(after_rounds(60))
    values = np.array([[objective(f.X, f.y, b, LAM) for b in s.b.T] for s in states])
    assert np.diff(values, axis=0).max() <= 1e-12 * values[0, 0]
    assert (values[-1] < values[0]).all()


def test_csl_asks_every_site_and_then_the_first() -> None:
    costs = fit(InProcess(draw_sites()), "CSL", penalty=LAM, rounds=8, certified=False).costs
    sent = [costs.total("training", s).upload for s in "abc"]
    assert sent == [8 * 40 * 3 * n for n in (8, 4, 4)]


def test_one_shot_is_the_average_of_local_fits() -> None:
    sites = draw_sites()
    result = fit(InProcess(sites), "OneShot", penalty=LAM)
    local = [solve_reference(s.least_squares, LAM).coefficients for s in sites]
    expected = sum(w * b for w, b in zip(weights(sites), local, strict=True))
    np.testing.assert_allclose(result.coefficients, expected, atol=1e-12)
    assert result.rounds == 1


def test_debiased_averages_nodewise_corrections() -> None:
    sites, p = draw_sites((60, 50, 40), p=8), 8
    result = fit(InProcess(sites), "Debiased", penalty=LAM)
    total = np.zeros(p)
    for w, s in zip(weights(sites), sites, strict=True):
        f = s.least_squares
        b = solve_reference(f, LAM).coefficients
        scale = np.sqrt((f.X**2).mean(axis=0))
        Z, nu = f.X / scale, np.sqrt(2 * np.log(p) / f.m) / 2
        M = np.eye(p)
        for k in range(p):
            rest = np.delete(np.arange(p), k)
            gamma = solve_reference(LeastSquares(Z[:, rest], Z[:, k]), nu).coefficients
            M[k, rest] = -gamma
            M[k] /= 1 - Z[:, k] @ Z[:, rest] @ gamma / f.m
        total += w * (b - (M / np.outer(scale, scale)) @ grad(f, b))
    np.testing.assert_allclose(result.candidates[:, 0], total, atol=1e-10)
    # a threshold removes, and changes nothing that it keeps
    kept = result.candidates != 0
    assert (np.diff(kept.sum(axis=0)) <= 0).all()
    dense = np.broadcast_to(result.candidates[:, :1], kept.shape)
    assert np.array_equal(result.candidates[kept], dense[kept])


# The pooled optimum


@exact
def test_exact_methods_reach_the_pooled_lasso(name: str) -> None:
    sites = easy_sites()
    result = fit(InProcess(sites), name, penalty=LAM, rounds=EXACT[name], epochs=2)
    assert abs(gap(sites, result.coefficients, LAM)) <= 1e-8


@exact
def test_one_site_is_its_own_lasso(name: str) -> None:
    sites = draw_sites((60,), p=20)
    result = fit(InProcess(sites), name, penalty=LAM, rounds=EXACT[name], epochs=2)
    assert abs(gap(sites, result.coefficients, LAM)) <= 1e-8


@pytest.mark.parametrize("name", SUMS_ONLY)
def test_resplitting_rows_changes_nothing(name: str) -> None:
    f = pool(easy_sites())

    def split(*at: int) -> InProcess:
        parts = zip(np.split(f.X, at), np.split(f.y, at), strict=True)
        return InProcess([Site(chr(97 + j), X, y) for j, (X, y) in enumerate(parts)])

    results = [
        fit(split(*at), name, penalty=LAM, rounds=400, certified=False).coefficients
        for at in [(50, 100), (20, 30, 90), ()]
    ]
    np.testing.assert_allclose(results[1], results[0], atol=1e-10)
    np.testing.assert_allclose(results[2], results[0], atol=1e-10)


def test_working_set_sends_increments_only_and_less_than_all_moments() -> None:
    sites = draw_sites((60, 50, 40), p=80)
    result = fit(InProcess(sites), "WorkingSetGram", penalty=0.25, rounds=100, certified=False)
    A = result.state.known.size  # type: ignore[union-attr]
    sent = result.costs.total("training", "a").upload // 8
    # one check before each growth, and one more
    assert result.rounds % 2 == 1
    assert A * (A + 1) // 2 < sent <= A * (A + 1) // 2 + (result.rounds // 2 + 1) * 80
    assert A < 80
    assert abs(gap(sites, result.coefficients, 0.25)) <= 1e-12


def test_one_shot_gram_refuses_what_no_network_would_carry() -> None:
    rng = np.random.default_rng(0)
    site = Site("wide", rng.standard_normal((3, 5000)), rng.standard_normal(3))
    with pytest.raises(FedLassoError, match="use WorkingSetGram or FISTA"):
        fit(InProcess([site]), "OneShotGram", penalty=1.0)


@pytest.mark.parametrize("name", ["ADMM", "FedDR", "CSL", "DANE", "FISTA", "WorkingSetGram"])
def test_wide_sites_never_build_a_gram(name: str) -> None:
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((30, 20_000)))
    y = 3 * X[:, 0] + rng.standard_normal(30)
    site = Site("wide", X[:20], y[:20], validation={"candidate": (X[20:], y[20:])})
    result = fit(InProcess([site]), name, penalty=1.5, rounds=4)
    assert "gram" not in vars(site.training.design)
    assert np.isfinite(result.coefficients).all()


# Degenerate cases


def fit_finite(sites: list[Site], name: str, lam: float) -> Array:
    """The chosen coefficients of a fit whose candidates and certificate are all finite."""
    result = fit(InProcess(sites), name, penalty=lam, rounds=30, epochs=2)
    assert np.isfinite(result.candidates).all()
    assert result.certificate is not None
    assert np.isfinite(result.certificate.gap)
    return result.coefficients


@literature
@pytest.mark.parametrize(
    ("sizes", "p"), [((30, 20), 1), ((30,), 12), ((30, 1, 20), 12), ((1,), 1), ((1, 1), 5)]
)
def test_small_federations(name: str, sizes: tuple[int, ...], p: int) -> None:
    fit_finite(draw_sites(sizes, p=p), name, 0.1)


@literature
def test_a_rank_deficient_pooled_design(name: str) -> None:
    rng = np.random.default_rng(1)
    sites = []
    for label in "abc":
        Z = rng.standard_normal((20, 6))
        X = np.hstack([Z, Z, Z @ rng.permutation(np.eye(6))])
        y = Z[:, 0] + rng.standard_normal(20)
        sites.append(Site(label, X, y, validation={"candidate": (X, y)}))
    b = fit_finite(sites, name, 0.1)
    if name in ("OneShotGram", "WorkingSetGram", "FISTA"):
        assert abs(gap(sites, b, 0.1)) <= 1e-4


@pytest.mark.standard
@literature
@pytest.mark.parametrize("of", ["X", "y"])
# Powers of two round nothing, so that a scale can change nothing but the units.
@pytest.mark.parametrize("scale", [2.0**-27, 2.0**27])
def test_scales_change_the_units_and_nothing_else(name: str, of: str, scale: float) -> None:
    plain = draw_sites((30, 25, 20), p=10)
    a, c = (scale, 1.0) if of == "X" else (1.0, scale)
    scaled = [
        Site(
            s.name,
            a * s.training.X,
            c * s.training.y,
            validation={"candidate": (a * held_out.X, c * held_out.y)},
        )
        for s in plain
        for held_out in [s.validation("candidate")]
    ]
    b, b_scaled = fit_finite(plain, name, 0.1), fit_finite(scaled, name, 0.1 * a * c)
    np.testing.assert_allclose(b_scaled * a / c, b, atol=1e-7)
