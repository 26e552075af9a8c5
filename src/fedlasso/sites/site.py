"""A site: private records, and the questions it answers about them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fedlasso.errors import FedLassoError
from fedlasso.federation import Request, decode, encode
from fedlasso.federation.codec import decode_question
from fedlasso.federation.magnitudes import Magnitudes
from fedlasso.federation.messages import R
from fedlasso.federation.words import answer_in_words
from fedlasso.numerics import (
    Array,
    LeastSquares,
    Sample,
    Standardised,
    Table,
    find_loss,
    make_sample,
    one_thread,
)
from fedlasso.sites.draws import Draw
from fedlasso.sites.memory import Memory
from fedlasso.sites.rows import PURPOSES, check_sample

T = TypeVar("T")
_VECTOR_BYTES = 4 << 20
_OBJECTS = 8
_VIEWS = 64


@dataclass(eq=False, repr=False)
class View:
    """A site's records as questions see them.

    They are the sample that trains, the samples held out by purpose, a memory of what procedures
    keep between rounds, and how rows are drawn.
    """

    name: str
    columns: tuple[str, ...]
    training: Sample
    held_out: Mapping[str, Sample]
    memory: Memory
    draw: Draw

    def __post_init__(self) -> None:
        self.loss = self.training.loss.name
        # What bounds the records as they are travels with the question.
        self.magnitudes = Magnitudes.unknown(len(self.columns))
        self._vectors: OrderedDict[tuple[object, ...], Array] = OrderedDict()
        self._vector_bytes = 0
        self._objects: OrderedDict[tuple[object, ...], Any] = OrderedDict()

    @property
    def rows(self) -> int:
        """Number of training rows m_j."""
        return self.training.m

    @property
    def least_squares(self) -> LeastSquares:
        """The training sample, for questions that only least squares can answer."""
        if not isinstance(self.training, LeastSquares):
            raise FedLassoError(
                f"site {self.name!r}: this question is about least squares, and the loss here is "
                f"{self.loss}; use a procedure for any smooth loss"
            )
        return self.training

    def validation(self, purpose: str) -> Sample:
        """Return the held-out records for one purpose."""
        if purpose not in self.held_out:
            raise FedLassoError(
                f"site {self.name!r}: no rows to validate the {purpose}; "
                f"give the site validation={{{purpose!r}: (X, y)}}"
            )
        return self.held_out[purpose]

    def operations(self, steps: int) -> int:
        """Return the leading operations of some sweeps or gradients: 4 m_j p each."""
        return 4 * self.training.m * self.training.p * steps

    def remember(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        """Return a vector that is worked out once: the same question costs nothing twice."""
        if key in self._vectors:
            self._vectors.move_to_end(key)
            return self._vectors[key]
        value = self._vectors[key] = compute()
        self._vector_bytes += 2 * value.nbytes
        while self._vector_bytes > _VECTOR_BYTES and self._vectors:
            self._vector_bytes -= 2 * self._vectors.popitem(last=False)[1].nbytes
        return value

    def keep(self, key: tuple[object, ...], compute: Callable[[], T]) -> T:
        """Return what a site works out once for itself (a factor, a path): the last few are kept.

        None of it is ever part of a reply.
        """
        if key not in self._objects:
            self._objects[key] = compute()
        self._objects.move_to_end(key)
        while len(self._objects) > _OBJECTS:
            self._objects.popitem(last=False)
        kept: T = self._objects[key]
        return kept


class Site(View):
    """Private data of one site.

    Parameters
    ----------
    name : how the site is called in every message, ledger and error
    X, y : training records, m rows by p columns, and responses
    validation : held-out records by purpose: ``"penalty"`` and ``"candidate"``
    columns : names of the columns; ``x0, x1, ...`` by default
    loss : how responses meet a linear predictor
    copy : keep a copy, so that writing to X or y later changes nothing here; without it the arrays
        are taken over as they are, where their layout allows
    raw : the records are asked about through standardised views only: then X may be sparse, have
        missing values and columns of zeros
    memory : what the site keeps between rounds; give one with a folder to outlive the process
    secret, cell, part : with a secret nobody else can tell which rows a split draws, and it draws
        none, or `cell` that train and `part` held out, beside each column's commonest value

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import Site
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
        loss: str = "quadratic",
        raw: bool = False,
        copy: bool = True,
        memory: Memory | None = None,
        secret: bytes = b"",
        cell: int = 0,
        part: int = 0,
    ) -> None:
        raw = raw or sp.issparse(X)
        law = find_loss(loss)
        names, checked = check_sample(name, "training", X, y, columns, copy=copy, missing=raw)
        if raw:
            table = _with_holes(checked[0])
            ones = np.ones(table.p)
            training = make_sample(Standardised(table, None, 0 * ones, ones), checked[1], law)
        else:
            training = make_sample(*checked, law)
            table = Table(training.X)
            for k in np.flatnonzero(training.design.norms == 0.0)[:1]:
                raise FedLassoError(
                    f"site {name!r}: column {names[k]!r} is zero in every training row; "
                    "drop the column at every site"
                )
        held_out = {
            purpose: make_sample(
                *check_sample(name, f"{purpose} validation", *sample, names, copy=copy)[1], law
            )
            for purpose, sample in (validation or {}).items()
        }
        draw = Draw(name, secret, (table, Table(training.y[:, None])), cell, part)
        super().__init__(name, names, training, held_out, memory or Memory(), draw)
        self.table = table
        self._views: OrderedDict[str, View] = OrderedDict()
        self._last = (b"", b"")

    def keep_view(self, name: str, request: Request[Any]) -> None:
        """Remember the question that defines a view."""
        self.memory.store(f"view {name}", 1, {"request": np.frombuffer(encode(request), np.uint8)})
        self._views.pop(name, None)

    def forget_view(self, name: str) -> None:
        """Forget a view as it was built; what defines it may be remembered still."""
        self._views.pop(name, None)

    def view(self, name: str) -> View:
        """Return the records as one view shows them."""
        if name not in self._views:
            kept = self.memory.recall(f"view {name}", 1)
            self._views[name] = self._build_view(name, decode(kept["request"].tobytes()))
            while len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        return self._views[name]

    def _build_view(self, name: str, defined: Any) -> View:
        law = self.training.loss
        means = defined.means
        factors = defined.factors
        parts = self.draw.divide(defined.split, self.table.n) if defined.split else {}
        y = self.training.y - defined.y_mean

        def part(rows: Any) -> Sample:
            response = y if rows is None else y[rows]
            return make_sample(Standardised(self.table, rows, means, factors), response, law)

        held_out = {purpose: part(parts[purpose]) for purpose in PURPOSES if purpose in parts}
        for purpose, sample in {} if defined.split else self.held_out.items():
            design = Standardised(Table(sample.X), None, means, factors)
            held_out[purpose] = make_sample(design, sample.y - defined.y_mean, law)
        training = part(parts.get("training"))
        room = self.memory.room(name)
        view = View(self.name, self.columns, training, held_out, room, self.draw)
        if defined.powers:
            view.magnitudes = defined.magnitudes
        return view

    def weights(self, split: str) -> Array:
        """Return one for the rows that train under a split, zero for the others."""
        if not split:
            return np.ones(self.table.n)
        weights = np.zeros(self.table.n)
        weights[self.draw.divide(split, self.table.n)["training"]] = 1.0
        return weights

    def answer(self, request: Request[R]) -> R:
        """Answer one question from this site's records, signed with the site's name."""
        view = self.view(request.on) if request.on else self
        with one_thread():
            reply = replace(request.answer(view), site=self.name)
        if request.reach:
            clip = bool(self.draw.secret)
            return cast(R, answer_in_words(reply, request, view.magnitudes, clip))
        return reply

    def answer_bytes(self, data: bytes) -> bytes:
        """Answer over a wire. The last question, asked again, has the same answer."""
        if data != self._last[0]:
            self._last = (data, encode(self.answer(decode_question(data))))
        return self._last[1]


def _with_holes(X: Array) -> Table:
    """Return a table whose missing values are holes; X is the site's own by now, and written to."""
    if sp.issparse(X) or not np.isnan(X).any():
        return Table(X)
    holes = sp.csc_array(np.isnan(X), dtype=np.float64)
    X[holes.nonzero()] = 0.0
    return Table(X, holes)
