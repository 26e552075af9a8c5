"""A site: private records, and the questions it answers about them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply, Request, decode, encode
from fedlasso.numerics import Array, LeastSquares, Standardised, Table
from fedlasso.sites.checks import check_sample
from fedlasso.sites.memory import Memory
from fedlasso.sites.splits import PURPOSES, divide

R = TypeVar("R", bound=Reply)
_MEMO_BYTES = 4 << 20
_VIEWS = 64


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
    raw : the records are asked about through standardised views only: then X may be sparse, have
        missing values and columns of zeros
    memory : what the site keeps between rounds; give one with a folder to outlive the process

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
        raw: bool = False,
        copy: bool = True,
        memory: Memory | None = None,
    ) -> None:
        raw = raw or sp.issparse(X)
        names, checked = check_sample(name, "training", X, y, columns, copy=copy, missing=raw)
        if raw:
            table = _with_holes(checked[0])
            ones = np.ones(table.p)
            training: LeastSquares = Standardised(table, checked[1], None, 0 * ones, ones)
        else:
            training = LeastSquares(*checked)
            table = Table(training.X)
        self._assemble(name, names, training, memory or Memory())
        self.table = table
        for k in () if raw else np.flatnonzero(training.column_norms == 0.0)[:1]:
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

    _validation: dict[str, LeastSquares]

    def _assemble(
        self, name: str, columns: tuple[str, ...], training: LeastSquares, memory: Memory
    ) -> None:
        self.name = name
        self.columns = columns
        self.training = training
        self.memory = memory
        self._validation = {}
        self._views: OrderedDict[str, Site] = OrderedDict()
        # What a site learns about its own fits, for its own eyes: never part of a reply.
        self.diagnostics: dict[str, object] = {}
        self._memo: OrderedDict[tuple[object, ...], Array] = OrderedDict()
        self._memo_bytes = 0
        self._last = b"", b""

    @cached_property
    def table(self) -> Table:
        """The training records as they are stored."""
        raise FedLassoError(f"site {self.name!r}: a view has no views; ask the site itself")

    @property
    def response(self) -> Array:
        """The training responses as they are stored."""
        return self.training.y

    def weights(self, split: str) -> Array:
        """One for the rows that train under a split, zero for the others."""
        w = np.ones(self.table.n)
        if split:
            w[:] = 0.0
            w[divide(split, self.name, self.table.n)["training"]] = 1.0
        return w

    def keep_view(self, name: str, split: str, means: Array, factors: Array, y_mean: float) -> None:
        """Remember what defines a view."""
        text = np.frombuffer(split.encode(), np.uint8).astype(np.float64)
        values = {"means": means, "factors": factors, "y_mean": np.array(y_mean), "split": text}
        self.memory.store(f"view {name}", 1, values)
        self._views.pop(name, None)

    def view(self, name: str) -> Site:
        """The records as one view shows them, as a site of its own."""
        if name not in self._views:
            self._views[name] = self._build_view(name, self.memory.recall(f"view {name}", 1))
            while len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        return self._views[name]

    def _build_view(self, name: str, values: Mapping[str, Array]) -> Site:
        means, factors, y_mean = values["means"], values["factors"], float(values["y_mean"])
        split = values["split"].astype(np.uint8).tobytes().decode()
        parts = divide(split, self.name, self.table.n) if split else {}
        y = self.response - y_mean
        rows = parts.get("training")
        training = Standardised(self.table, y if rows is None else y[rows], rows, means, factors)
        view = Site.__new__(Site)
        view._assemble(self.name, self.columns, training, self.memory.room(name))
        for purpose in PURPOSES:
            if purpose in parts:
                rows = parts[purpose]
                held_out = Standardised(self.table, y[rows], rows, means, factors)
            elif not split and purpose in self._validation:
                sample = self._validation[purpose]
                table = Table(sample.X)
                held_out = Standardised(table, sample.y - y_mean, None, means, factors)
            else:
                continue
            view._validation[purpose] = held_out
        return view

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows for training, for the penalty and for the candidates."""
        held = (self._validation[p].m if p in self._validation else 0 for p in PURPOSES)
        return self.rows, next(held), next(held)

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
        reply = request.answer(self.view(request.on) if request.on else self)
        object.__setattr__(reply, "site", self.name)
        return reply

    def answer_bytes(self, data: bytes) -> bytes:
        """The same over a wire. The last question, asked again, has the same answer."""
        if data != self._last[0]:
            request = decode(data)
            if not isinstance(request, Request):
                raise FedLassoError(f"{type(request).__name__} is not a question")
            self._last = data, encode(self.answer(request))
        return self._last[1]


def _with_holes(X: Array) -> Table:
    """A table whose missing values are holes; X is the site's own by now, so it is written to."""
    if sp.issparse(X) or not np.isnan(X).any():
        return Table(X)
    holes = sp.csc_array(np.isnan(X), dtype=np.float64)
    X[holes.nonzero()] = 0.0
    return Table(X, holes)
