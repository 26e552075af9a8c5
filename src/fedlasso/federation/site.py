"""A site: private records, and the questions it answers about them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fedlasso.errors import FedLassoError
from fedlasso.federation.codec import decode, encode
from fedlasso.federation.memory import Memory
from fedlasso.federation.messages import Reply, Request
from fedlasso.federation.sample import check_sample
from fedlasso.lasso import Array, LeastSquares

R = TypeVar("R", bound=Reply)
_MEMO_BYTES = 4 << 20


class Site:
    """Private data of one site.

    Parameters
    ----------
    name : how the site is called in every message, ledger and error
    X, y : training records, m rows by p columns, and responses
    validation : held-out records by purpose: ``"penalty"`` and ``"candidate"``
    columns : names of the columns; ``x0, x1, ...`` by default
    copy : keep a copy, so that writing to X or y later changes nothing here; without it the arrays
        are taken over as they are, where their layout allows

    Examples
    --------
    >>> import numpy as np
    >>> site = Site("north", np.eye(3), [1.0, 2.0, 3.0])
    >>> site.rows, len(site.columns)
    (3, 3)
    """

    def __init__(
        self,
        name: str,
        X: ArrayLike,
        y: ArrayLike,
        *,
        validation: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
        columns: Sequence[str] | None = None,
        copy: bool = True,
    ) -> None:
        self.name = name
        self.columns, training = check_sample(name, "training", X, y, columns, copy=copy)
        self.training = LeastSquares(*training)
        for k in np.flatnonzero(self.training.column_norms == 0.0)[:1]:
            raise FedLassoError(
                f"site {name!r}: column {self.columns[k]!r} is zero in every training row; "
                "drop the column at every site"
            )
        self._validation = {
            purpose: LeastSquares(
                *check_sample(name, f"{purpose} validation", *sample, self.columns, copy=copy)[1]
            )
            for purpose, sample in (validation or {}).items()
        }
        self.memory = Memory()
        # What a site learns about its own fits, for its own eyes: never part of a reply.
        self.diagnostics: dict[str, object] = {}
        self._memo: OrderedDict[tuple[object, ...], Array] = OrderedDict()
        self._memo_bytes = 0

    @property
    def rows(self) -> int:
        """Number of training rows m_j."""
        return self.training.m

    def validation(self, purpose: str) -> LeastSquares:
        """Held-out records for one purpose."""
        if purpose not in self._validation:
            raise FedLassoError(
                f"site {self.name!r}: no rows to validate the {purpose}; "
                f"give the site validation={{{purpose!r}: (X, y)}}"
            )
        return self._validation[purpose]

    def operations(self, steps: int) -> int:
        """Leading operations of some sweeps or gradients: 4 m_j p each."""
        return 4 * self.training.m * self.training.p * steps

    def remember(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        """Value of a pure computation, kept for a while: the same question costs nothing twice."""
        if key in self._memo:
            self._memo.move_to_end(key)
            return self._memo[key]
        value = self._memo[key] = compute()
        self._memo_bytes += 2 * value.nbytes
        while self._memo_bytes > _MEMO_BYTES and self._memo:
            self._memo_bytes -= 2 * self._memo.popitem(last=False)[1].nbytes
        return value

    def answer(self, request: Request[R]) -> R:
        """Answer one question from this site's records, signed with the site's name."""
        reply = request.answer(self)
        object.__setattr__(reply, "site", self.name)
        return reply

    def answer_bytes(self, data: bytes) -> bytes:
        """The same over a wire."""
        request = decode(data)
        if not isinstance(request, Request):
            raise FedLassoError(f"{type(request).__name__} is not a question")
        return encode(self.answer(request))
