"""BLAS in one thread, so that its sums do not depend on the machine's cores."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run BLAS in one thread inside."""
    with _pools().limit(limits=1, user_api="blas"):
        yield
