"""BLAS in one thread, so that its sums do not depend on the machine's cores."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_here = threading.local()


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run BLAS in one thread inside; within another such block there is nothing to do."""
    if getattr(_here, "limited", False):
        yield
        return
    _here.limited = True
    try:
        with _pools().limit(limits=1, user_api="blas"):
            yield
    finally:
        _here.limited = False
