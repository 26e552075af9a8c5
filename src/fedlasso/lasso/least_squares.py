"""The smooth half of the Lasso at one site, f(b) = ||y - Xb||^2 / (2m)."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import ThreadpoolController

from fedlasso.lasso.arrays import Array
from fedlasso.lasso.compiled import compiled, dot, subtract_product

# X'X takes m p^2 operations once. At p = 4000 that is hundreds of sweeps over X, more than many
# fits make; up to this it pays within one fit, and takes 32 MiB.
GRAM_COLUMNS = 2048
# With p beyond this many times m, a pass over X costs less than a pass over X'X and its set-up.
GRAM_ASPECT = 16
# Up to this size a dense eigenvalue is cheaper than starting Lanczos.
DENSE_EIGENVALUE = 64


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run BLAS in one thread, so that its sums do not depend on the machine's cores.

    Even x'y is shared out once it has some ten thousand terms. Also a decorator: `@one_thread()`.
    """
    with _pools().limit(limits=1, user_api="blas"):
        yield


@compiled
def inner_products(Xt: Array, r: Array) -> Array:
    """Return X'r, column by column."""
    out = np.empty(Xt.shape[0])
    for k in range(Xt.shape[0]):
        out[k] = dot(Xt[k], r)
    return out


@compiled
def residual_of(Xt: Array, y: Array, b: Array) -> Array:
    """Return y - Xb, reading only the columns where b is nonzero."""
    r = y.copy()
    subtract_product(r, Xt, b)
    return r


class LeastSquares:
    """f(b) = ||y - Xb||^2 / (2m), with what its solvers need computed once.

    Parameters
    ----------
    X : array (m, p)
        The design. Kept as one Fortran-ordered float64 array; not copied when it already is one,
        so do not write to it afterwards.
    y : array (m,)
        The response.
    """

    def __init__(self, X: Array, y: Array) -> None:
        # the transpose of a Fortran-ordered X is C-ordered: row k is the column x_k
        self.columns = np.asfortranarray(X, dtype=np.float64).T.view()
        self.y = np.ascontiguousarray(y, dtype=np.float64).view()
        if self.columns.ndim != 2 or self.y.shape != (self.columns.shape[1],):
            raise ValueError(f"X must be (m, p) and y (m,), not {np.shape(X)} and {np.shape(y)}.")
        if self.y.size == 0:
            raise ValueError("X and y hold no records.")
        if not (np.isfinite(self.columns).all() and np.isfinite(self.y).all()):
            raise ValueError("X and y must be finite.")
        self.columns.flags.writeable = False
        self.y.flags.writeable = False

    @property
    def X(self) -> Array:
        """The design, read-only."""
        return self.columns.T

    @property
    def m(self) -> int:
        """Number of records."""
        return int(self.y.size)

    @property
    def p(self) -> int:
        """Number of predictors."""
        return int(self.columns.shape[0])

    @cached_property
    def y_ss(self) -> float:
        """||y||^2."""
        return dot(self.y, self.y)

    @cached_property
    def score(self) -> Array:
        """X'y / m."""
        return inner_products(self.columns, self.y) / self.m

    @cached_property
    def column_norms(self) -> Array:
        """||x_k||^2 / m for every column."""
        squares: Array = np.einsum("km,km->k", self.columns, self.columns)
        return squares / self.m

    @property
    def prefers_gram(self) -> bool:
        """Whether passes over X'X/m beat passes over X.

        A sweep with a nonzero coefficients reads about a p numbers of X'X/m, or (p + 2a) m of X,
        and a is mostly a fraction of m; once p is many times m the p x p matrix stops paying.
        """
        return self.p <= min(GRAM_COLUMNS, GRAM_ASPECT * self.m)

    @cached_property
    def gram(self) -> Array:
        """X'X / m, one p x p array; ask `prefers_gram` first."""
        with one_thread():
            gram = self.columns @ self.columns.T
        gram /= self.m
        return gram

    @cached_property
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue of X'X / m, to about 1e-12 relative; f's gradient is Lipschitz."""
        m, p = self.m, self.p
        # X'X and XX' share it: work on the shorter side
        A = self.columns if p <= m else self.X
        n = min(m, p)
        with one_thread():
            if n <= DENSE_EIGENVALUE:
                top = scipy.linalg.eigh(A @ A.T, eigvals_only=True, subset_by_index=(n - 1, n - 1))
            else:
                square = LinearOperator((n, n), matvec=lambda v: A @ (A.T @ v), dtype=np.float64)
                # a fixed start with no structure that an eigenvector could be orthogonal to
                v0 = np.random.default_rng(0).standard_normal(n)
                top = eigsh(square, k=1, which="LA", v0=v0, tol=0, return_eigenvectors=False)
        return float(top[0]) / m

    def residual(self, b: Array) -> Array:
        """Return y - Xb."""
        return residual_of(self.columns, self.y, np.ascontiguousarray(b, dtype=np.float64))

    def gradient(self, b: Array) -> Array:
        """Return X'(Xb - y) / m, computed from X."""
        return self.gradient_from(self.residual(b))

    def gradient_from(self, residual: Array) -> Array:
        """Return -X'r / m for a residual r at hand."""
        return inner_products(self.columns, residual) / -self.m

    def value(self, b: Array) -> float:
        """Return f(b)."""
        r = self.residual(b)
        return dot(r, r) / (2 * self.m)
