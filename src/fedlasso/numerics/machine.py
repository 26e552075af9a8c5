"""The array type, the numba decorator, shared inner loops, and BLAS in one thread.

Compiled kernels may not reorder sums, so a column's result never depends on other columns. Only
`dot` may be reassociated: it is one fixed loop, so the same inputs give the same bits.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from fedlasso.errors import FedLassoError

try:
    import numba
    from numba.core import event
except ModuleNotFoundError:
    # A site that answers questions of a default fit calls no kernel.
    numba = None

Array = NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., Any])
EPS = float(np.finfo(np.float64).eps)
# The relative rounding error allowed when two values of an objective are compared.
ROUNDING = 64 * EPS
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
COMPILE = "numba:compile"
NEEDS_NUMBA = "fitting requires numba: pip install 'fedlasso[fit]'"
# Entries of each row that are copied at a time.
PART = 4096
_pools = cache(ThreadpoolController)
_here = threading.local()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run BLAS in one thread, so that its sums do not depend on the number of cores."""
    if getattr(_here, "limited", False):
        yield
        return
    _here.limited = True
    try:
        with _pools().limit(limits=1, user_api="blas"):
            yield
    finally:
        _here.limited = False


def compiled(f: F, **options: Any) -> F:
    """Compile `f` on first call; numba caches the machine code on disk."""
    if numba is None:
        return cast(F, _require_numba)
    return cast(F, numba.njit(cache=True, **OPTIONS, **options)(f))


def inlined(f: F) -> F:
    """Compile `f` as a part of the kernels that call it, which is quicker than apart from them."""
    return compiled(f, inline="always")


def _require_numba(*arguments: object) -> None:
    raise FedLassoError(NEEDS_NUMBA)


class Compilations:
    """The kernels that have been compiled since `with` was entered; cached ones are not."""

    def __enter__(self) -> "Compilations":
        if numba is None:
            raise FedLassoError(NEEDS_NUMBA)
        self._events = event.RecordingListener()
        event.register(COMPILE, self._events)
        return self

    def __exit__(self, *error: object) -> None:
        event.unregister(COMPILE, self._events)

    @property
    def names(self) -> list[str]:
        """The kernels in the order in which they were begun."""
        begun = [e.data["dispatcher"].py_func for _, e in self._events.buffer if e.is_start]
        return [f.__name__ for f in begun if f.__module__.startswith("fedlasso.")]

    @property
    def busy(self) -> bool:
        return sum(1 if e.is_start else -1 for _, e in self._events.buffer) > 0


def frozen(x: Array) -> Array:
    """Return a read-only view: a kernel is compiled anew for arrays that may be written to."""
    view = x.view()
    view.flags.writeable = False
    return view


@partial(compiled, fastmath={"reassoc", "contract"})
def dot(x: Array, y: Array) -> float:
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


def sum_products(x: Array, y: Array) -> float:
    """Return x'y, outside of kernels."""
    return float(np.einsum("i,i->", x, y))


@one_thread()
def inner_products(Xt: Array, r: Array) -> Array:
    """Return X'r, column by column."""
    return np.asarray(np.vecdot(Xt, r))


@inlined
def soft(v: float, a: float) -> float:
    """Return sgn(v) max(|v| - a, 0); a NaN stays a NaN."""
    if v > a:
        return v - a
    if v < -a:
        return v + a
    return v * 0.0 if np.isnan(v) else 0.0


@compiled
def subtract_rows(out: Array, M: Array, rows: NDArray[np.int64], w: Array, count: int) -> None:
    """Subtract w[0] M[rows[0]] + w[1] M[rows[1]] + ... from `out`, in that order.

    Four rows are read in one pass over `out`; each entry still subtracts them in order.
    """
    whole = count - count % 4
    for i in range(0, whole, 4):
        r0, r1, r2, r3 = M[rows[i]], M[rows[i + 1]], M[rows[i + 2]], M[rows[i + 3]]
        w0, w1, w2, w3 = w[i], w[i + 1], w[i + 2], w[i + 3]
        for l in range(out.size):
            out[l] = (((out[l] - w0 * r0[l]) - w1 * r1[l]) - w2 * r2[l]) - w3 * r3[l]
    for i in range(whole, count):
        row = M[rows[i]]
        weight = w[i]
        for l in range(out.size):
            out[l] -= weight * row[l]


@one_thread()
def subtract_product(out: Array, M: Array, b: Array) -> None:
    """Subtract M'b from `out`, reading only the rows of M where b is nonzero."""
    rows = np.flatnonzero(b)
    if rows.size == b.size:
        out -= b @ M
        return
    # The rows are copied, a part at a time.
    for part in (slice(at, at + PART) for at in range(0, out.size, PART)):
        out[part] -= b[rows] @ M[:, part][rows]


@compiled
def subtract_nonzero_rows(out: Array, M: Array, b: Array) -> None:
    """Do what `subtract_product` does, inside a kernel."""
    rows = np.empty(b.size, np.int64)
    weights = np.empty(b.size)
    count = np.int64(0)
    for k in range(b.size):
        if b[k] != 0.0:
            rows[count] = k
            weights[count] = b[k]
            count += 1
    subtract_rows(out, M, rows, weights, count)  # type: ignore[arg-type]
