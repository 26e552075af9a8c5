"""A site's disclosure policy: which questions it answers, about what, and how many.

Read from a TOML file by the site that owns the records; the coordinator cannot change it. Every
default is safe; docs/privacy.md says what each question reveals and which rule guards it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Request
from fedlasso.federation.messages import layout
from fedlasso.sites import Site
from fedlasso.sites.splits import divide


@dataclass(frozen=True)
class Question:
    """What a policy must know of a question: is it answered by default, and where is its model?

    `dims` are the dimensions of its arrays over the columns: one vector, or several side by side.
    """

    allowed: bool = True
    model: str = ""
    dims: tuple[int, ...] = (1,)


# A question that is not listed is refused: whoever adds one says here how it is guarded.
QUESTIONS: dict[str, Question] = {
    "Rows": Question(),
    "LargestEigenvalue": Question(),
    "MeanEigenvalue": Question(),
    "ResponseSquares": Question(),
    "ChoosePenalty": Question(),
    "ColumnSums": Question(),
    "CentredSquares": Question(),
    "Standardise": Question(),
    # Directions of a gradient are no models; the budget of vectors guards them.
    "GradientAt": Question(dims=(1, 2)),
    "FitAt": Question(model="b"),
    "ValidationErrors": Question(model="candidates", dims=(2,)),
    "LocalSweeps": Question(model="start", dims=(2,)),
    "ProximalSteps": Question(model="x", dims=(2,)),
    "SurrogateFit": Question(model="b", dims=(2,)),
    "DualSteps": Question(dims=(2,)),
    "CompositeSteps": Question(dims=(2,)),
    "DualProximal": Question(dims=(2,)),
    "Reflect": Question(dims=(2,)),
    "CorrectedSteps": Question(dims=(2,)),
    "LocalFit": Question(),
    "DebiasedFit": Question(),
    "AllMoments": Question(allowed=False),
    "MomentsOf": Question(allowed=False),
    "GradientOutside": Question(),
    "ProductsAt": Question(allowed=False, dims=(2,)),
    "OwnSweeps": Question(allowed=False, model="start", dims=(2,)),
    "OwnFit": Question(allowed=False),
}
# Arrays that are not vectors over the columns: a rate for each, and lists of columns.
RATES, PLACES = ("rates", "gamma", "rho", "eta", "tau"), ("new", "known", "A", "N")
# Vectors side by side, and characters of a text.
WIDEST, LONGEST = 256, 1 << 16


@dataclass(frozen=True)
class Policy:
    """Rules of one site.

    Attributes
    ----------
    min_rows : nothing is answered about fewer training rows
    min_validation_rows : no validation error is answered on fewer held-out rows
    min_sites : no fit is joined with fewer sites
    allow, deny : questions answered besides, and questions not answered, by name
    columns : columns that exist for the coordinator; empty means all
    max_active_per_row : active coefficients a broadcast model may have, per training row
    max_vectors : numbers that one fit may be sent, in vectors over the columns; enough of them
        determine all second moments, however they are cut
    max_splits : different splits of the rows that one fit may ask about
    max_steps : local steps (epochs times vectors) or grid points of one question
    max_bytes : longest question that is read
    dry_run : log what would leave, and refuse it
    approval : ask somebody at the site before each reply leaves
    keep_payloads : keep every reply in full beside the audit
    """

    min_rows: int = 20
    min_validation_rows: int = 10
    min_sites: int = 3
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    max_active_per_row: float = 5.0
    max_vectors: int = 400
    max_splits: int = 30
    max_steps: int = 1000
    max_bytes: int = 64 << 20
    dry_run: bool = False
    approval: bool = False
    keep_payloads: bool = False

    def __post_init__(self) -> None:
        for name in (*self.allow, *self.deny):
            if name not in QUESTIONS:
                raise FedLassoError(f"policy: no question is called {name!r}")

    def answers(self, question: str) -> bool:
        """Whether a question of that name is answered at all."""
        known = QUESTIONS.get(question)
        if known is None or question in self.deny:
            return False
        return known.allowed or question in self.allow

    def shows(self, column: str) -> bool:
        """Whether a column exists for the coordinator."""
        return not self.columns or column in self.columns

    def check(self, request: Request[Any], site: Site) -> None:
        """Refuse a question that the rules do not allow; say which rule, and no data."""
        name = type(request).__name__
        if not self.answers(name):
            raise FedLassoError(f"the policy here does not answer {name}; allow it in policy.toml")
        if site.rows < self.min_rows:
            raise FedLassoError(
                f"{site.rows} training rows here, and the policy answers about {self.min_rows} "
                "or more"
            )
        _check_shape(request, len(site.columns), self.max_steps)
        if split := str(getattr(request, "split", "")):
            self.check_split(split, site)
        if request.on:
            site = site.view(request.on)
            if site.rows < self.min_rows:
                raise FedLassoError(
                    f"{site.rows} training rows in this split, and the policy answers about "
                    f"{self.min_rows} or more"
                )
        if name == "ValidationErrors":
            rows = site.validation(str(getattr(request, "purpose", ""))).m
            if rows < self.min_validation_rows:
                raise FedLassoError(
                    f"{rows} validation rows here, and the policy validates on "
                    f"{self.min_validation_rows} or more"
                )
        if QUESTIONS[name].model:
            self.check_model(getattr(request, QUESTIONS[name].model), site)

    def check_split(self, split: str, site: Site) -> None:
        """Refuse splits whose sums, or the difference to those of all rows, tell of few rows."""
        rows = len(divide(split, site.name, site.table.n)["training"])
        left_out = site.table.n - rows
        if rows < self.min_rows:
            raise FedLassoError(
                f"{rows} training rows in this split, and the policy answers about "
                f"{self.min_rows} or more"
            )
        if 0 < left_out < self.min_validation_rows:
            raise FedLassoError(
                f"{left_out} rows held out by this split, and the policy holds out "
                f"{self.min_validation_rows} or more"
            )

    def check_model(self, model: np.ndarray[Any, Any], site: Site) -> None:
        """Refuse models with many active coefficients for few rows."""
        active = int(np.count_nonzero(model.reshape(len(model), -1), axis=0).max(initial=0))
        limit = int(self.max_active_per_row * site.rows)
        if active > limit:
            raise FedLassoError(
                f"a model with {active} active coefficients, and the policy allows {limit} for "
                f"{site.rows} rows; use a larger penalty"
            )


def _check_shape(request: Request[Any], p: int, max_steps: int) -> None:
    # Kernels trust their shapes, so a question that does not fit the columns never reaches them.
    name = type(request).__name__
    values = vars(request)
    widths = set()
    for field, kind in layout(type(request)):
        value = values[field]
        if kind == "array" and field in PLACES:
            listed = value.ravel().tolist()
            fits = value.ndim == 1 and len(set(listed)) == len(listed)
            fits &= set(listed) <= set(range(p))
        elif kind == "array" and field in RATES:
            fits = value.ndim == 1 and bool((value >= 0).all())
            widths.add(value.size)
        elif kind == "array":
            # Products are asked for on some columns only, listed in A.
            rows = values["A"].size if field == "v" else p
            fits = value.ndim in QUESTIONS[name].dims and len(value) == rows
            widths.add(value.shape[1] if value.ndim == 2 else 1)
        elif kind == "int":
            fits = 0 <= value <= 1 << 40
        elif kind == "float":
            # A mean may be negative; penalties, rates and shares may not.
            fits = field == "y_mean" or value >= 0
        else:
            fits = kind != "text" or (len(value) <= LONGEST and value.isprintable())
        if not (fits and len(widths) <= 1 and 1 <= max(widths, default=1) <= WIDEST):
            raise FedLassoError(f"{name}: {field} does not fit the {p} columns and rules here")
    steps = values.get("epochs", 0) * max(widths, default=1) + values.get("count", 0)
    if steps > max_steps:
        raise FedLassoError(f"{name}: {steps} steps, and the policy here takes {max_steps} at once")


def read_policy(path: Path | None) -> Policy:
    """The policy in a TOML file; the defaults without one."""
    if path is None:
        return Policy()
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FedLassoError(f"{path}: {error}") from error
    known, values = get_type_hints(Policy), {}
    for name, value in given.items():
        if name not in known:
            raise FedLassoError(f"{path}: no rule is called {name!r}; known: {', '.join(known)}")
        values[name] = _typed(path, name, value, known[name])
    return Policy(**values)


def _typed(path: Path, name: str, value: object, kind: object) -> Any:
    if kind == tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(value)
    elif kind is float and type(value) in (int, float):
        return float(value)  # type: ignore[arg-type]
    elif type(value) is kind and (kind is bool or value >= 0):  # type: ignore[operator]
        return value
    words = {tuple[str, ...]: "a list of names", bool: "true or false"}
    raise FedLassoError(f"{path}: {name} must be {words.get(kind, 'a number, zero or more')}")  # type: ignore[call-overload]


def describe(policy: Policy) -> str:
    """The rules in force, one a line."""
    lines = [f"{f.name} = {getattr(policy, f.name)}" for f in fields(policy)]
    refused = [name for name in QUESTIONS if not policy.answers(name)]
    return "\n".join([*lines, f"not answered: {', '.join(refused) or 'nothing'}"])
