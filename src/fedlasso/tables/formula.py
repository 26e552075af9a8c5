"""Formulas: a response and derived columns, which every site computes from its own rows alone.

A derived column is a function of one row, of the levels that the sites have agreed on, and of the
knots that were given. Whatever needs other rows, such as ``scale(age)``, is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import numpy as np

from fedlasso.errors import FedLassoError, QuotesRecords
from fedlasso.numerics import Array

# Functions of one row, by their names in a formula.
ROW_FUNCTIONS = ("log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs")
HELD = "needs the records of all sites, which stay there"
REMEDIES = {
    "scale": "fits standardise columns anyway: omit it",
    "center": "fits centre columns anyway: omit it",
    "poly": "write I(x**2) and the like",
    "bs": "use ns with knots",
    "cr": "use ns with knots",
    "cs": "use ns with knots",
    "cc": "use ns with knots",
}
# A dot of its own, for all other columns.
_DOT = re.compile(r"(?<![\w.)`])\.(?![\w.(`])")
_NODES = (
    ast.Expression, ast.Call, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator,
    ast.unaryop, ast.Load, ast.Attribute, ast.keyword, ast.Tuple, ast.List,
)  # fmt: skip
Knots = Mapping[str, Sequence[float]]


class FormulaTerms(msgspec.Struct, frozen=True, omit_defaults=True):
    """The right side of a formula, with the knots of its splines and the columns of each term."""

    text: str
    terms: dict[str, tuple[str, ...]] = {}
    knots: dict[str, tuple[float, ...]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the derived columns."""
        return tuple(name for own in self.terms.values() for name in own)

    @property
    def by_variable(self) -> dict[str, tuple[str, ...]]:
        """Columns of terms by the variable that they are of, if no other term is of it alone."""
        found: dict[str, list[str]] = {}
        for term in self.terms:
            if (variable := _variable_of(term)) is not None:
                found.setdefault(variable, []).append(term)
        return {name: self.terms[own[0]] for name, own in found.items() if len(own) == 1}


@dataclass(frozen=True)
class ParsedFormula:
    """A formula's response by role, its right side, and the columns that this needs.

    `codes` are those of ``C()``, whose values are levels.
    """

    roles: dict[str, str]
    right: str
    columns: tuple[str, ...]
    codes: tuple[str, ...]


def _formulaic() -> Any:
    try:
        import formulaic
    except ImportError:
        need = "a formula requires formulaic: pip install 'fedlasso[formula]'"
        raise FedLassoError(need) from None
    return formulaic


def expand_dot(text: str, names: Sequence[str]) -> str:
    """Return a formula with a dot on its right side replaced by all columns but the response."""
    left, tilde, right = text.partition("~")
    if not _DOT.search(right):
        return text
    response = _read_left(left.strip()).values()
    others = [f"`{name}`" for name in names if name not in response]
    others = [name if not name[1:-1].isidentifier() else name[1:-1] for name in others]
    return left + tilde + _DOT.sub(f"({' + '.join(others)})", right)


def parse_formula(text: str) -> ParsedFormula:
    """Return the parts of a formula; refuse what sites cannot compute from single rows."""
    formulaic = _formulaic()
    left, tilde, right = text.partition("~")
    if not tilde or not left.strip() or not right.strip():
        raise FedLassoError(f"the formula {text!r} lacks a side; write response ~ columns")
    if _DOT.search(right):
        what = "has a dot, which stands for all other columns of a data frame in Python"
        remedy = "name the columns, or give the response as the target, without a formula"
        raise FedLassoError(f"the formula {text!r} {what}; {remedy}")
    try:
        terms = formulaic.Formula(right)
    except Exception as error:
        # formulaic raises errors of many types.
        first = str(error).splitlines()[0].partition(". ")[0]
        raise FedLassoError(f"the formula {text!r} cannot be read: {first}") from None
    if not hasattr(terms, "required_variables") or "1" not in map(str, terms):
        remedy = "give one right side without 0 or -1, and omit the intercept by its own option"
        raise FedLassoError(f"the formula {text!r} has no intercept or several parts; {remedy}")
    columns: dict[str, None] = {}
    codes: dict[str, None] = {}
    for term in terms:
        for factor in term.factors:
            if factor.eval_method.value == "lookup":
                columns[factor.expr] = None
            elif factor.eval_method.value == "python":
                _check(factor.expr, columns, codes)
    if not columns:
        raise FedLassoError(f"the formula {text!r} names no column on its right side; add some")
    return ParsedFormula(_read_left(left.strip()), right.strip(), tuple(columns), tuple(codes))


def _read_left(left: str) -> dict[str, str]:
    """Return the columns of the response by role."""
    quoted = left.removeprefix("`").removesuffix("`")
    if quoted != left or left.isidentifier():
        return {"target": quoted}
    call = _tree(left)
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Surv":
        names = [own.id for own in call.args if isinstance(own, ast.Name)]
        if len(names) == len(call.args) == 2 and not call.keywords:
            return {"time": names[0], "event": names[1]}
    raise FedLassoError(
        f"the response {left!r} is neither a column nor Surv(time, event); transform it before"
    )


def _tree(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:
        raise FedLassoError(f"{expression!r} in the formula cannot be read") from None


def _check(expression: str, columns: dict[str, None], codes: dict[str, None]) -> None:
    """Note the columns of an expression; refuse what is not a function of one row."""
    tree = _tree(expression)
    called: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            what = f"{expression!r} in the formula is more than functions and arithmetic"
            raise FedLassoError(f"{what}; compute this column before")
        if isinstance(node, ast.Call):
            name = _called(node)
            called |= {id(own) for own in ast.walk(node.func)}
            if name == "offset":
                remedy = "give a column with these values by the option offset"
                raise FedLassoError(f"{expression} in the formula is no term; {remedy}")
            if name not in (*ROW_FUNCTIONS, "I", "C", "ns"):
                remedy = REMEDIES.get(name, f"use {', '.join(ROW_FUNCTIONS)}, I, C or ns")
                why = HELD if name in REMEDIES else "is no function of one row that sites know"
                raise FedLassoError(f"{expression} in the formula {why}; {remedy}")
            if name in ("C", "ns"):
                if node is not tree:
                    raise FedLassoError(f"{expression} in the formula: {name}() stands alone")
                _read_column(node, expression)
            if name == "C":
                codes[_read_column(node, expression)] = None
        elif isinstance(node, ast.Name) and id(node) not in called:
            columns[node.id] = None


def _variable_of(term: str) -> str | None:
    """Return the only variable of a term, such as ward of C(ward); None for an interaction."""
    try:
        tree = ast.parse(term, mode="eval")
    except SyntaxError:
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {id(own) for call in calls for own in ast.walk(call.func)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in names if id(node) not in called}
    return own.pop() if len(own) == 1 else None


def _called(call: ast.Call) -> str:
    """Return the name of a function, without ``np.``."""
    at = call.func
    if isinstance(at, ast.Attribute) and isinstance(at.value, ast.Name) and at.value.id == "np":
        return at.attr
    return at.id if isinstance(at, ast.Name) else "this"


def _read_column(call: ast.Call, expression: str) -> str:
    first = call.args[0] if call.args else None
    more = call.args[1:] or call.keywords
    if not isinstance(first, ast.Name) or (_called(call) == "C" and more):
        raise FedLassoError(f"{expression} in the formula: write C(column) or ns(column, 3)")
    return first.id


def natural_spline(x: Array, knots: Sequence[float]) -> Array:
    """Return a basis of natural cubic splines, one column fewer than knots.

    The first column is x; the others are cubic between the knots and linear outside (Harrell's
    restricted cubic splines).
    """
    k = np.asarray(knots, dtype=np.float64)
    last, second = k[-1], k[-2]
    width = (last - k[0]) ** 2

    def cube(at: float) -> Array:
        return np.asarray(np.maximum(x - at, 0.0) ** 3)

    columns = [x]
    for at in k[:-2]:
        inner = cube(at) - cube(second) * (last - at) / (last - second)
        columns.append((inner + cube(last) * (second - at) / (last - second)) / width)
    return np.column_stack(columns)


def _spline(given: Knots) -> Any:
    """Return ``ns`` as formulas call it, with the knots of each column."""

    def ns(x: Any, df: int | None = None, knots: Sequence[float] | None = None) -> Any:
        name = str(x.name)
        own = knots if knots is not None else given.get(name)
        if own is None:
            remedy = f"give the knots, as knots={{'{name}': (18, 25, 30, 40)}}"
            raise FedLassoError(f"quantiles of {name!r} need the records of all sites; {remedy}")
        if len(own) < 3 or (np.diff(own) <= 0).any():
            raise FedLassoError(f"the knots of {name!r} are {own}; give three or more, increasing")
        if df is not None and df != len(own) - 1:
            raise FedLassoError(
                f"ns({name}, {df}) has {df + 1} knots, both ends included, and {len(own)} are given"
            )
        basis = natural_spline(np.asarray(x, dtype=np.float64), own)
        return {str(k + 1): basis[:, k] for k in range(basis.shape[1])}

    return ns


@cache
def _model_spec(text: str, columns: tuple[tuple[str, tuple[str, ...]], ...], knots: Any) -> Any:
    """Return formulaic's specification, from made-up rows with all levels of all columns."""
    import pandas as pd

    rows = max([2, *(len(levels) for _, levels in columns)])
    made = {}
    for name, levels in columns:
        if levels:
            codes = np.arange(rows) % len(levels)
            made[name] = pd.Series(pd.Categorical.from_codes(codes, levels))
        else:
            made[name] = pd.Series(np.linspace(1.0, 2.0, rows))
    try:
        with np.errstate(all="ignore"):
            matrix = _formulaic().model_matrix(
                text, pd.DataFrame(made), context=_context(dict(knots)), na_action="ignore"
            )
    except FedLassoError:
        raise
    except Exception as error:
        cause = error.__cause__ or error
        if isinstance(cause, FedLassoError):
            raise cause from None
        raise FedLassoError(f"the formula {text!r} cannot be computed: {cause}") from None
    return matrix.model_spec


def _context(knots: Knots) -> dict[str, Any]:
    functions = {name: getattr(np, name) for name in ROW_FUNCTIONS}
    return functions | {"ns": _spline(knots), "np": np}


def resolve_formula(text: str, columns: Sequence[Any], knots: Knots) -> FormulaTerms:
    """Return the terms of a right side over agreed columns."""
    own = {name: tuple(map(float, values)) for name, values in knots.items()}
    known = {column.name for column in columns}
    for name in own:
        if name not in known:
            raise FedLassoError(f"knots are given for {name!r}, which is not in the formula")
    spec = _spec_of(text, columns, own)
    names = list(spec.column_names)
    terms = {
        str(term): tuple(names[k] for k in places)
        for term, places in spec.term_indices.items()
        if str(term) != "1"
    }
    return FormulaTerms(text, terms, own)


def _spec_of(text: str, columns: Sequence[Any], knots: Knots) -> Any:
    described = tuple((column.name, tuple(column.levels)) for column in columns)
    return _model_spec(text, described, tuple(sorted((k, tuple(v)) for k, v in knots.items())))


def apply_formula(formula: FormulaTerms, columns: Sequence[Any], X: Array) -> Array:
    """Return derived columns of rows whose own columns are encoded in X.

    A derived column is missing where a column that it is computed from is.
    """
    import pandas as pd

    spec = _spec_of(formula.text, columns, formula.knots)
    raw = {}
    gaps = {}
    for column, own in _parts(columns, X):
        gaps[column.name] = np.isnan(own).any(axis=1)
        if column.kind == "text":
            codes = np.where(np.nan_to_num(own) > 0, np.arange(1, own.shape[1] + 1), 0).sum(axis=1)
            raw[column.name] = pd.Series(pd.Categorical.from_codes(codes, column.levels))
        else:
            raw[column.name] = pd.Series(own[:, 0])
    with np.errstate(all="ignore"):
        matrix = spec.get_model_matrix(pd.DataFrame(raw), context=_context(formula.knots))
    values = np.asarray(matrix, dtype=np.float64)
    found = []
    for term, places in spec.term_indices.items():
        if str(term) == "1":
            continue
        missing = np.zeros(len(X), bool)
        for variable in spec.term_variables[term]:
            missing |= gaps.get(str(variable), False)
        for place in places:
            own = np.where(missing, np.nan, values[:, place])
            if bad := int((~np.isfinite(own) & ~missing).sum()):
                what = f"{term} in the formula is no number in"
                such = "rows, such as the logarithm of zero; correct them, or change the term"
                raise QuotesRecords(f"{what} {bad} {such}", f"{what} some {such}")
            found.append(own)
    return np.asfortranarray(np.column_stack(found))


def _parts(columns: Sequence[Any], X: Array) -> Iterator[tuple[Any, Array]]:
    at = 0
    for column in columns:
        width = len(column.encoded)
        yield column, X[:, at : at + width]
        at += width
