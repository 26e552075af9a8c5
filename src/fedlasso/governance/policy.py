"""A site's disclosure policy: which questions it answers, about what, and how many.

The site that owns the records writes it in a TOML file; the coordinator cannot change it. Every
default is safe. A policy names no questions: it uses what each question declares that it discloses,
and the roles of its fields. docs/privacy.md explains the rules.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import msgspec
import numpy as np
from msgspec import Meta

from fedlasso.errors import FedLassoError, RefusalCode, Refused
from fedlasso.federation import Request, Role
from fedlasso.federation.messages import RoleKind, layout, questions, roles
from fedlasso.governance.lifetime import BUDGETS, BudgetName
from fedlasso.numerics import Array
from fedlasso.sites import Site
from fedlasso.sites.rows import folds_in

WholeNumber = Annotated[int, Meta(ge=0, description="a whole number, zero or more")]
Ratio = Annotated[float, Meta(ge=0, description="a number, zero or more")]
Names = Annotated[tuple[str, ...], Meta(description="a list of names")]
Switch = Annotated[bool, Meta(description="true or false")]
Sums = Annotated[Literal["masked", "clear"], Meta(description='"masked" or "clear"')]
# Limits of a question's fields: vectors side by side, characters of a text, the largest integer.
WIDEST = 256
LONGEST_TEXT = 1 << 16
LARGEST_INT = 1 << 40
# Products of smaller numbers would underflow to so few values that sums over rows become counts;
# larger numbers would overflow where a record is large, and so disclose it.
SMALLEST_FLOAT = 1e-140
LARGEST_FLOAT = 1e50
# Common codes for missing values; a value of few rows is not among them.
NA_CODES = (
    *("", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "none"),
    *(".", "?", "-", "--", "*", "unknown", "Unknown", "missing", "Missing"),
    *("-9", "-99", "-999", "-9999"),
)


class Rare(NamedTuple):
    """Minimum numbers of rows that may be distinguished.

    Text levels with fewer than `level` rows are pooled. A column is refused that differs from its
    commonest value in some rows, but in fewer than `cell`, or `part` in an atom. An atom and a
    batch have at least `atom` rows.
    """

    level: int = 0
    cell: int = 0
    part: int = 0
    atom: int = 0


@dataclass(frozen=True)
class Policy:
    """Rules of one site.

    Attributes
    ----------
    min_rows : minimum training rows of an answer, rows of an atom and rows of a batch
    min_effective_rows : minimum rows that the curvature of a curved loss rests on at any model,
        (sum w)^2 / sum w^2, or half of all
    min_validation_rows : minimum held-out rows of a validation error
    min_cell_rows : minimum rows in which a column differs from its commonest value, unless it does
        not differ at all
    min_part_cell_rows : the same in every atom, and so in every part of a split
    min_sites : minimum sites of a fit, each of which signs a key where sums are masked
    sums : whether sums leave masked, so that only totals over all sites can be read, or clear
    single : questions answered alone where sums are masked: they disclose counts and magnitudes
    peers : sites that may take part where sums are masked; empty means all with accepted keys
    allow, deny : questions answered beside the default ones, and questions not answered, by name
    columns : columns that the coordinator can see; empty means all
    min_level_rows : minimum rows of a text level that is disclosed
    pool_rare_levels : whether rarer levels are pooled here, also if other sites disclose them
    na_codes : texts that a fit may count as missing values
    max_active_per_row : maximum active coefficients of a model, per training row
    max_numbers : numbers that a data file may send in its lifetime, over all fits, as a fraction of
        rows times columns of the fit; where sums are masked, of all sites' rows, so that one of k
        equal sites may send up to k times this fraction of its own entries
    max_splits : cuts of a data file's rows into atoms in its lifetime; every cluster column makes
        another
    max_candidates : models evaluated on one set of held-out rows in a data file's lifetime
    max_comparisons : numbers that a data file's noise may be compared with in its lifetime
    max_refusals : refusals that depend on the records, after which a data file is closed
    max_fit_refusals : the same in one fit, after which that fit is closed
    max_steps : local steps (times the vectors side by side) or grid points of one question
    max_bytes : maximum length of a question
    dry_run : audit what would leave, and refuse it
    approval : require approval at the site before each reply leaves
    keep_payloads : keep every reply in full beside the audit
    """

    min_rows: WholeNumber = 20
    min_effective_rows: WholeNumber = 10
    min_validation_rows: WholeNumber = 10
    min_cell_rows: WholeNumber = 5
    min_part_cell_rows: WholeNumber = 2
    min_sites: WholeNumber = 3
    sums: Sums = "masked"
    single: Names = ("ColumnSizes", "Rows", "Standardise")
    peers: Names = ()
    allow: Names = ()
    deny: Names = ()
    columns: Names = ()
    min_level_rows: WholeNumber = 10
    pool_rare_levels: Switch = True
    na_codes: Names = NA_CODES
    max_active_per_row: Ratio = 5.0
    max_numbers: Ratio = 0.9
    max_splits: WholeNumber = 2
    max_candidates: WholeNumber = 500
    max_comparisons: WholeNumber = 20
    max_refusals: WholeNumber = 20
    max_fit_refusals: WholeNumber = 10
    max_steps: WholeNumber = 1000
    max_bytes: WholeNumber = 64 << 20
    dry_run: Switch = False
    approval: Switch = False
    keep_payloads: Switch = False

    def __post_init__(self) -> None:
        for rule, names in (("allow", self.allow), ("deny", self.deny), ("single", self.single)):
            for name in names:
                if name not in questions():
                    raise FedLassoError(f"{rule}: no question is called {name!r}")

    def answers(self, name: str) -> bool:
        question = questions().get(name)
        if question is None or name in self.deny:
            return False
        return question.discloses.allowed or name in self.allow

    def shows(self, column: str) -> bool:
        return not self.columns or column in self.columns

    def limits(self) -> dict[BudgetName, float]:
        """Return the lifetime budgets of a data file.

        Columns with second moments are a fraction of those that the rows suffice for.
        """
        return {budget: getattr(self, f"max_{budget}", 1.0) for budget in BUDGETS}

    def check(self, request: Request[Any], site: Site) -> None:
        """Refuse a question against the rules; the text depends only on it and numbers of rows."""
        name = type(request).__name__
        if not self.answers(name):
            raise FedLassoError(f"the policy here does not answer {name}; allow it in policy.toml")
        self.check_rows(site.rows, "here")
        check_fields(request, len(site.columns), self.max_steps)
        for split in filter(None, values_of(request, "split")):
            # Neither sums over a split nor their difference to all rows may be over few rows.
            training = len(site.draw.divide(split, site.table.n)["training"])
            self.check_rows(training, "in this split")
            if held_out := site.table.n - training:
                self._check_held_out(held_out, "rows held out by this split")
        view = site.view(request.on)
        self.check_rows(view.rows, "in this split")
        for split in filter(None, values_of(request, "split")):
            if view.rows < site.table.n:
                raise FedLassoError("a view of a split cannot be split again; use all rows")
            parts = site.draw.fold_rows(split, view.rows) if folds_in(split) > 1 else []
            rows = min((len(part) for part in parts if len(part)), default=view.rows)
            if rows < self.min_validation_rows:
                required = f"the policy requires at least {self.min_validation_rows}"
                text = f"{rows} rows in a fold here, but {required}; request fewer folds"
                raise Refused(text, code=RefusalCode.FEWER_FOLDS)
        purposes = values_of(request, "purpose") or view.held_out
        for purpose in purposes if request.discloses.held_out else ():
            if held_out := view.validation(purpose).m:
                self._check_held_out(held_out, "validation rows here")
        limit = self.max_active_per_row * view.rows
        for model in values_of(request, "model"):
            active = int(np.count_nonzero(model.reshape(len(model), -1), axis=0).max(initial=0))
            if active > limit:
                found = f"the model has {active} active coefficients, but the policy allows"
                remedy = "use a larger penalty"
                raise FedLassoError(f"{found} {int(limit)} for {view.rows} rows; {remedy}")

    @property
    def rare(self) -> Rare:
        level = self.min_level_rows if self.pool_rare_levels else 0
        return Rare(level, self.min_cell_rows, self.min_part_cell_rows, self.min_rows)

    def check_rows(self, rows: int, where: str) -> None:
        if rows < self.min_rows:
            required = f"but the policy requires at least {self.min_rows}"
            raise FedLassoError(f"{rows} training rows {where}, {required}")

    def _check_held_out(self, rows: int, what: str) -> None:
        if rows < self.min_validation_rows:
            required = f"but the policy requires at least {self.min_validation_rows}"
            raise FedLassoError(f"{rows} {what}, {required}")


def values_of(request: Request[Any], kind: RoleKind) -> list[Any]:
    declared = roles(type(request))
    return [getattr(request, field) for field, role in declared.items() if role.kind == kind]


def check_fields(request: Request[Any], p: int, max_steps: int) -> None:
    """Refuse too many steps, and fields that do not fit p columns: kernels do not check shapes."""
    name = type(request).__name__
    widths: set[int] = set()
    for field, kind in layout(type(request)):
        value = getattr(request, field)
        role = roles(type(request)).get(field)
        fits = True
        if kind == "int":
            fits = 0 <= value <= LARGEST_INT
        elif kind == "float":
            signed = role in (Role("signed"), Role("centre of response"))
            fits = (value >= 0 or signed) and _sized(np.array(value))
        elif kind == "text":
            fits = len(value) <= LONGEST_TEXT and value.isprintable()
        elif "array" in kind and value is not None:
            # An array without a role is refused: no rule covers it.
            fits = role is not None and _array_fits(value, role, request, p) and _sized(value)
            one_each = role is not None and role.kind in ("per candidate", "shifts")
            if fits and role and (one_each or role.kind in ("points", "model", "accumulated")):
                side_by_side = value.ndim == 2 or one_each
                widths.add(value.shape[-1] if side_by_side else 1)
        if not (fits and len(widths) <= 1 and 1 <= max(widths, default=1) <= WIDEST):
            raise FedLassoError(f"{name}: {field} does not fit the {p} columns and rules here")
    steps = sum(values_of(request, "steps")) * max(widths, default=1)
    if steps > max_steps:
        raise FedLassoError(f"{name}: {steps} steps, but the policy here allows {max_steps}")


def _sized(value: Array) -> bool:
    """Return whether all numbers are zero, or of a size whose products are floats."""
    size = np.abs(value[value != 0])
    return bool(size.size == 0 or (size.min() >= SMALLEST_FLOAT and size.max() <= LARGEST_FLOAT))


def _array_fits(value: Array, role: Role, request: Request[Any], p: int) -> bool:
    if value.ndim not in role.dims:
        return False
    if role.kind == "columns":
        listed = value.tolist()
        return len(set(listed)) == len(listed) and set(listed) <= set(range(p))
    if role.kind in ("weights", "per candidate", "times") and not (value >= 0).all():
        return False
    if role.kind == "directions" and not 1 <= value.shape[1] <= WIDEST:
        return False
    rows = getattr(request, role.within).size if role.within else p
    return role.kind in ("per candidate", "shifts", "times") or len(value) == rows


def read_policy(path: Path | None) -> Policy:
    """Return the policy in a TOML file, or the defaults without one."""
    if path is None:
        return Policy()
    rules = get_type_hints(Policy, include_extras=True)
    values: dict[str, Any] = {}
    try:
        for name, value in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if name not in rules:
                raise FedLassoError(f"no rule is called {name!r}; known: {', '.join(rules)}")
            try:
                values[name] = msgspec.convert(value, rules[name])
            except msgspec.ValidationError:
                expected = get_args(rules[name])[1].description
                raise FedLassoError(f"{name} must be {expected}") from None
        return Policy(**values)
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise FedLassoError(f"{path}: {error}") from error
