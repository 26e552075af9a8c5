"""A site: its private records, and answers to questions about them."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fedlasso.errors import FedLassoError
from fedlasso.federation import Request, decode, encode
from fedlasso.federation.codec import decode_question
from fedlasso.federation.fixed_point import grid_of, to_words
from fedlasso.federation.magnitudes import Magnitudes
from fedlasso.federation.messages import R
from fedlasso.numerics import DEFAULT_LOSS, Array, Loss, Response, find_loss, one_thread
from fedlasso.numerics.response import Places
from fedlasso.numerics.sample import LeastSquares, Sample, make_sample
from fedlasso.numerics.table import Standardised, Table
from fedlasso.sites.atoms import ATOM_ROWS
from fedlasso.sites.fold_assignment import BATCH_ROWS, FoldDraw
from fedlasso.sites.memory import Memory
from fedlasso.sites.moment_rules import check_moments
from fedlasso.sites.rows import INTERCEPT as INTERCEPT
from fedlasso.sites.rows import PURPOSES, check_clusters, check_response, check_sample
from fedlasso.sites.site_weights import read_site_weight

T = TypeVar("T")
_VECTOR_BYTES = 4 << 20
_OBJECTS = 8
_VIEWS = 64


@dataclass(eq=False, repr=False)
class View:
    """A site's records as questions see them: training and held-out samples, memory, and splits."""

    name: str
    columns: tuple[str, ...]
    training: Sample
    held_out: Mapping[str, Sample]
    memory: Memory
    draw: FoldDraw

    def __post_init__(self) -> None:
        self.loss = self.training.loss.name
        # Bounds on the original records travel with the question.
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
        """The training sample, for questions that require least squares."""
        if not isinstance(self.training, LeastSquares):
            found = f"this question requires least squares, but the loss here is {self.loss}"
            remedy = "use a procedure for any smooth loss"
            raise FedLassoError(f"site {self.name!r}: {found}; {remedy}")
        return self.training

    def validation(self, purpose: str) -> Sample:
        if purpose not in self.held_out:
            remedy = f"give the site validation={{{purpose!r}: (X, y)}}"
            raise FedLassoError(f"site {self.name!r}: no rows to validate the {purpose}; {remedy}")
        return self.held_out[purpose]

    @cached_property
    def batches(self) -> Places:
        """The batch of each training row, for robust standard errors."""
        if self.draw.rows != self.rows:
            raise FedLassoError("batches are of all rows; ask on a view without a split")
        return self.draw.batches(self.rows)

    def operations(self, steps: int) -> int:
        """Return the leading operations of some sweeps or gradients: 4 m_j p each."""
        return 4 * self.training.m * self.training.p * steps

    def remember(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        """Return a vector that is computed once, so that a repeated question is free."""
        if key in self._vectors:
            self._vectors.move_to_end(key)
            return self._vectors[key]
        value = self._vectors[key] = compute()
        self._vector_bytes += 2 * value.nbytes
        while self._vector_bytes > _VECTOR_BYTES and self._vectors:
            self._vector_bytes -= 2 * self._vectors.popitem(last=False)[1].nbytes
        return value

    def keep(self, key: tuple[object, ...], compute: Callable[[], T]) -> T:
        """Return an object that is computed once (a factor, a path), kept a while, never sent."""
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
    name : name of the site in messages, ledger and errors
    X, y : training records, m rows by p columns, and responses
    validation : held-out records by purpose: ``"penalty"`` and ``"candidate"``
    columns : names of the columns; ``x0, x1, ...`` by default
    loss : name of the loss; censored survival times have a minus sign
    weights, offset : weight of each row, one by default, and the offset of its linear predictor,
        zero by default
    intercept : whether a loss that cannot be centred has an intercept: a last column of ones, which
        should not be penalised
    effects : whether the site has an intercept of its own, always the best one, which it never
        sends
    copy : whether to copy X and y, so that later changes to them have no effect here
    raw : whether all questions are asked on standardised views: then X may be sparse, have missing
        values and columns of zeros
    memory : state between rounds; with a folder it outlives the process
    secret, part : with a secret all splits are unions of atoms, into which the rows are cut once:
        beside each column's commonest value an atom has none or `part` rows
    atom_rows : minimum rows of an atom
    turn : place of the site among those of a fit
    batch : minimum rows of a batch, for robust standard errors
    draws : text that seeds the splits of a site without a secret; by default its name
    clusters : a label per row, such as the patient: rows with the same label may depend on each
        other, and are never separated

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
        loss: str = DEFAULT_LOSS,
        weights: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        intercept: bool = False,
        effects: bool = False,
        raw: bool = False,
        copy: bool = True,
        memory: Memory | None = None,
        secret: bytes = b"",
        part: int = 0,
        atom_rows: int = ATOM_ROWS,
        turn: int = 0,
        batch: int = BATCH_ROWS,
        draws: str = "",
        clusters: ArrayLike | None = None,
    ) -> None:
        raw = raw or sp.issparse(X)
        law = find_loss(loss)
        names, checked = check_sample(name, "training", X, y, columns, copy=copy, missing=raw)
        response = check_response(name, law, checked[1], weights, offset)
        effects = effects and law.intercept
        intercept = adds_intercept(law, intercept, effects)
        if intercept:
            names = (*names, INTERCEPT)
        records = with_ones(checked[0]) if intercept else checked[0]
        if raw:
            table = _with_holes(records)
            ones = np.ones(table.p)
            design = Standardised(table, None, 0 * ones, ones)
            training = make_sample(design, response, law, effects)
        else:
            training = make_sample(records, response, law, effects)
            table = Table(records)
            for k in np.flatnonzero(training.design.norms == 0.0)[:1]:
                found = f"site {name!r}: column {names[k]!r} is zero in every training row"
                raise FedLassoError(f"{found}; drop the column at every site")
        held_out = {}
        for purpose, sample in (validation or {}).items():
            own = names[:-1] if intercept else names
            what = f"{purpose} validation"
            _, (rows, answers) = check_sample(name, what, *sample, own, copy=copy)
            held = check_response(name, law, answers)
            held_rows = with_ones(rows) if intercept else rows
            held_out[purpose] = make_sample(held_rows, held, law, training if effects else False)
        answered = law.disclosed_response(response.y)
        outcomes = np.column_stack([answered, law.disclosed(response)])
        # One class of two, an event, or a count above zero.
        strata = None if law.quadratic else answered > 0
        members = None if clusters is None else check_clusters(name, clusters, table.n)
        tables = (table, Table(outcomes))
        draw = FoldDraw(
            draws or name,
            secret,
            tables,
            part,
            strata,
            batch,
            members,
            atom_rows,
            table.p if law.quadratic else 0,
            turn,
        )
        super().__init__(name, names, training, held_out, memory or Memory(), draw)
        self.table = table
        self.response = response
        self.effects = effects
        self._views: OrderedDict[str, View] = OrderedDict()
        self._last = (b"", b"")

    @property
    def atoms(self) -> int:
        """Number of parts of which splits are unions; zero if rows are drawn one by one."""
        return int(self.draw.atoms.max()) + 1 if self.draw.secret else 0

    def keep_view(self, name: str, request: Request[Any]) -> None:
        self.memory.store(f"view {name}", 1, {"request": np.frombuffer(encode(request), np.uint8)})
        self._views.pop(name, None)

    def recall_view(self, name: str) -> Any:
        return decode(self.memory.recall(f"view {name}", 1)["request"].tobytes())

    @contextmanager
    def draft(self) -> Iterator[None]:
        """Answer without lasting effects: views and states stored inside are forgotten."""
        memory, views = self.memory, self._views
        self.memory, self._views = memory.draft(), OrderedDict()
        try:
            yield
        finally:
            self.memory, self._views = memory, views

    def view(self, name: str) -> View:
        """Return a view of the records; without a name, the records as they are."""
        if not name:
            return self
        if name not in self._views:
            self._views[name] = self._build_view(name, self.recall_view(name))
            while len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        return self._views[name]

    def _build_view(self, name: str, defined: Any) -> View:
        parts = self.draw.divide(defined.split, self.table.n) if defined.split else {}
        weight = defined.weight_scale * read_site_weight(defined.site_weights, self.name)

        def part(table: Table, rows: Any, response: Response, effect: bool | Sample) -> Sample:
            design = Standardised(table, rows, defined.means, defined.factors)
            taken = response.take(rows, weight, defined.y_mean)
            return make_sample(design, taken, self.training.loss, effect)

        effects = self.effects or (defined.effects and self.training.loss.intercept)
        training = part(self.table, parts.get("training"), self.response, effects)
        # Held-out rows have the intercept of the training rows.
        effect = training if effects else False
        held_out = {
            purpose: part(self.table, parts[purpose], self.response, effect)
            for purpose in PURPOSES
            if purpose in parts
        }
        for purpose, sample in {} if defined.split else self.held_out.items():
            held_out[purpose] = part(Table(sample.X), None, sample.response, effect)
        room = self.memory.room(name)
        view = View(self.name, self.columns, training, held_out, room, self.draw)
        if defined.powers:
            view.magnitudes = defined.magnitudes.of_loss(self.loss)
        return view

    def weights(self, split: str) -> Array:
        """Return the weights of a split's training rows, and zero for the others."""
        if not split:
            return self.response.weights
        weights = np.zeros(self.table.n)
        rows = self.draw.divide(split, self.table.n)["training"]
        weights[rows] = self.response.weights[rows]
        return weights

    @property
    def disclosed(self) -> Array:
        """The responses that sums disclose: less the offset where the loss is centred."""
        return self.training.loss.disclosed(self.response)

    def answer(self, request: Request[R]) -> R:
        """Answer one question from this site's records, signed with the site's name."""
        if self.draw.secret:
            check_moments(request, self)
        view = self.view(request.on)
        # Not every processor reports an overflow; what is not finite is refused or clipped below.
        with one_thread(), np.errstate(over="ignore", invalid="ignore"):
            reply = replace(request.answer(view), site=self.name)
        grid = grid_of(request, view.magnitudes, len(self.columns))
        if grid is None:
            return reply
        # A trial model of a curved loss may be beyond all bounds: its loss then rejects it.
        clip = bool(self.draw.secret) or not find_loss(self.loss).quadratic
        return cast(R, to_words(reply, request, grid, clip))

    def answer_bytes(self, data: bytes) -> bytes:
        """Answer an encoded question; the last one, repeated, has the same answer."""
        if data != self._last[0]:
            self._last = (data, encode(self.answer(decode_question(data))))
        return self._last[1]


def adds_intercept(loss: Loss, intercept: bool, effects: bool) -> bool:
    """Return whether the intercept is a column: it is if centring is not equivalent."""
    return intercept and loss.intercept and not loss.centres and not effects


def with_ones(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    if sp.issparse(X):
        return sp.hstack([X, sp.csc_array(ones)], format="csc")
    return np.asfortranarray(np.hstack([X, ones]))


def _with_holes(X: Array) -> Table:
    """Return a table whose missing values are holes; X is changed in place."""
    if sp.issparse(X) or not np.isnan(X).any():
        return Table(X)
    holes = sp.csc_array(np.isnan(X), dtype=np.float64)
    X[holes.nonzero()] = 0.0
    return Table(X, holes)
