"""Symmetric matrices travel as one triangle."""

import numpy as np
import pytest

from fedlasso.numerics.triangles import are_products, count_packed, pack, unpack


@pytest.mark.parametrize("lower", [False, True])
def test_a_triangle_is_packed_and_unpacked(lower: bool) -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 3, 9):
        A = rng.standard_normal((size, size))
        packed = pack(A + A.T, lower=lower)
        assert packed.shape == (count_packed(size),) == (size * (size + 1) // 2,)
        assert np.array_equal(unpack(packed, size, lower=lower), A + A.T)
        assert are_products(pack(A.T @ A, lower=lower), lower=lower)


def test_a_triangle_is_packed_row_by_row() -> None:
    M = np.array([[0.0, 1.0, 2.0], [1.0, 3.0, 4.0], [2.0, 4.0, 5.0]])
    assert pack(M).tolist() == [0, 1, 2, 3, 4, 5]
    assert pack(M, lower=True).tolist() == [0, 1, 3, 2, 4, 5]
