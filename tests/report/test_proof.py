"""The algebra of the written-out proof, with exact symbols."""

from typing import Any

import sympy as sp

from fedlasso.report.supplement import proof_html, proof_latex, read_proof

a, d, lam, u, E = sp.symbols("a d lam u E", positive=True)
r = sp.symbols("r", positive=True)  # below 1 where it matters
s = r ** (2 * E)
t = s / (2 - s)
ONE = sp.Matrix([1, 1])
H1, H2 = sp.eye(2), sp.Matrix([[1, r], [r, 1]])
THETA1, THETA2 = a * ONE, sp.Matrix([a, a + d])
Z1, Z2 = H1 * THETA1 + lam * ONE, H2 * THETA2 + lam * ONE
H = (H1 + H2) / 2
LIMIT = sp.Matrix([a + r ** (2 * E - 1) * d / (2 * (2 - s)), a + (1 - s) * d / (2 - s)])
POOLED = sp.Matrix([a + r * d / (4 - r**2), a + (2 - r**2) * d / (4 - r**2)])


def zero(expression: Any) -> bool:
    return bool(sp.simplify(expression) == 0)


def test_site_1_returns_the_same_whatever_comes_in() -> None:
    assert zero(Z1[0] - lam - a)
    assert zero(Z1[1] - lam - a)


def test_one_sweep_at_site_2() -> None:
    assert zero(Z2[0] - (a + r * (a + d) + lam))
    assert zero(Z2[1] - (r * a + a + d + lam))
    v = Z2[0] - r * u - lam
    assert zero(v - (a + r * (a + d - u)))
    after = Z2[1] - r * v - lam
    assert zero(after - ((a + d) - r**2 * (a + d - u)))
    assert zero(after - ((1 - r**2) * (a + d) + r**2 * u))


def test_all_sweeps_by_induction() -> None:
    n, e = sp.symbols("n e", positive=True)
    distance = r ** (2 * n) * e
    assert zero(r**2 * distance - distance.subs(n, n + 1))
    first = r * distance.subs(n, n - 1)
    assert zero(first - r ** (2 * n - 1) * e)


def test_the_servers_fixed_point() -> None:
    def after(v: Any) -> Any:
        return a / 2 + (a + d - s * (a + d - v)) / 2

    fixed = a + (1 - s) * d / (2 - s)
    assert zero(after(fixed) - fixed)
    assert zero(after(u) - fixed - s / 2 * (u - fixed))
    assert zero(a + d - fixed - d / (2 - s))
    assert zero(fixed - LIMIT[1])
    assert zero(a / 2 + (a + r ** (2 * E - 1) * (a + d - fixed)) / 2 - LIMIT[0])


def test_the_pooled_solution() -> None:
    gradient = H * POOLED - (Z1 + Z2) / 2 + lam * ONE
    assert all(zero(g) for g in gradient)
    b = sp.Matrix(sp.symbols("b1 b2"))
    claimed = H * (b - a * ONE) - d / 2 * sp.Matrix([r, 1])
    assert all(zero(g) for g in H * b - (Z1 + Z2) / 2 + lam * ONE - claimed)
    assert zero(H.det() - (4 - r**2) / 4)


def test_the_objective_gap() -> None:
    along = d / 2 * sp.Matrix([t / r, 1 - t])
    assert all(zero(g) for g in LIMIT - a * ONE - along)
    x = sp.symbols("x")
    away = a * ONE + d / 2 * sp.Matrix([x / r, 1 - x]) - POOLED
    gap = sp.expand((away.T * H * away)[0] / 2)
    assert zero(gap.coeff(x, 2) - d**2 / (8 * r**2))
    assert zero(sp.diff(gap, x).subs(x, r**2 / 2))
    assert zero(gap.subs(x, r**2 / 2) - d**2 * r**4 / (32 * (4 - r**2)))


def test_the_best_epoch_count() -> None:
    best = 1 + sp.log(1 + r**2 / 2) / -sp.log(r**2)
    level = r**2 / (1 + r**2 / 2)
    assert zero(level / (2 - level) - r**2 / 2)
    assert zero(sp.expand_log(2 * best * sp.log(r) - sp.log(level), force=True))


def test_the_proof_is_printed_whole_in_both_forms() -> None:
    steps = read_proof()
    assert len(steps) == 1 + 7
    latex, page = proof_latex(), proof_html()
    for title, _ in steps:
        assert title in latex
        assert title in page
    assert latex.count(r"\[") == latex.count(r"\]") == page.count('display="block"')
    assert "$" not in page
