"""Symmetric matrices packed for transfer as the n(n+1)/2 numbers of one triangle, row by row.

The upper triangle is the default. In the lower one columns that are added later come last.
"""

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.machine import Array

N = TypeVar("N", bound=np.number[Any])
# Sums of products may be inconsistent by this fraction of the largest.
INCONSISTENT = 1e-9


def count_packed(size: int) -> int:
    return size * (size + 1) // 2


def pack(products: NDArray[N], *, lower: bool = False) -> NDArray[N]:
    return products[_places(len(products), lower)]


def unpack(packed: Array, size: int, *, lower: bool = False) -> Array:
    """Return the symmetric matrix that `pack` was given."""
    products = np.empty((size, size))
    places = _places(size, lower)
    products[places] = packed
    products.T[places] = packed
    return products


def are_products(packed: Array, *, lower: bool = False) -> bool:
    """Return whether packed matrices, one per row, can be sums of products, up to rounding.

    If so, no square is negative, and every product satisfies the Cauchy-Schwarz inequality.
    """
    size = (math.isqrt(8 * packed.shape[-1] + 1) - 1) // 2
    for one in np.atleast_2d(packed):
        products = unpack(one, size, lower=lower)
        squares = np.diagonal(products)
        slack = INCONSISTENT * squares.max(initial=0.0)
        most = np.sqrt(np.maximum(squares, 0.0) + slack)
        if (squares < -slack).any():
            return False
        # Row by row, to avoid a copy of a large matrix.
        if any((np.abs(row) > own * most).any() for row, own in zip(products, most, strict=True)):
            return False
    return True


def _places(size: int, lower: bool) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.tril_indices(size) if lower else np.triu_indices(size)
