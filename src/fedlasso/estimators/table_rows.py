"""An estimator's rows, in an array or a data frame, as the sites of a federation."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from fedlasso.errors import FedLassoError
from fedlasso.families import Family
from fedlasso.federation.ledger import Notify
from fedlasso.fitting import Settings
from fedlasso.models import FileSource
from fedlasso.models.inputs import OpenedSites, open_parts, open_tables
from fedlasso.numerics import Array
from fedlasso.sites import check_two_rows
from fedlasso.tables import Encoded, Frame, Outcome, Responses, Schema

# What the command line calls differently.
_SPELLED = {
    "missing values (": "X contains NaN (",
    "--missing mean": "missing='mean'",
    "--cluster": "clusters",
    "--family binomial": "FederatedLogisticLasso",
}


def in_python(text: str) -> str:
    """Return a message of the command line with parameters for its options."""
    for option, parameter in _SPELLED.items():
        text = text.replace(option, parameter)
    text = re.sub(r"--na (?!if )'?([^ ']+)'?", r"na=['\1']", text)
    return re.sub(r"--([a-z][a-z-]*)", lambda found: found[1].replace("-", "_"), text)


def read_codes(na: Any) -> tuple[str, ...]:
    """Return codes of missing values as texts."""
    if isinstance(na, str):
        raise FedLassoError(f"na is {na!r}; give a list of codes, as ['.', -999]")
    return tuple(map(str, na))


def read_orders(names: Sequence[str], categorical: Any) -> dict[str, tuple[str, ...]]:
    """Return the levels of categorical columns in their order, as far as they are given."""
    if not isinstance(categorical, Mapping):
        return {}
    for levels in categorical.values():
        if isinstance(levels, str) or not isinstance(levels, Iterable):
            raise FedLassoError(
                f"categorical is {dict(categorical)!r}; give each column a list of its levels, the "
                "reference first"
            )
    orders = [tuple(map(str, levels)) for levels in categorical.values()]
    return dict(zip(names, orders, strict=True))


def is_one(column: Any) -> bool:
    return isinstance(column, str | Integral)


def names_of(what: str, given: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of columns that are given by name or number; none if none are known."""
    if isinstance(given, str):
        raise FedLassoError(f"{what} is {given!r}; give a list of columns, by names or numbers")
    wanted = [int(c) if isinstance(c, Integral) else str(c) for c in given] if columns else []
    for column in wanted:
        if isinstance(column, int) and not 0 <= column < len(columns):
            raise FedLassoError(f"{what}: there is no column {column}; X has {len(columns)}")
    return tuple(columns[own] if isinstance(own, int) else own for own in wanted)


@dataclass(frozen=True, eq=False)
class TableRows:
    """A table, its columns that are no predictors by role, and the rows of each site."""

    X: Any
    family: Family
    roles: Mapping[str, Any]
    groups: Mapping[str, NDArray[np.int64]]

    @classmethod
    def of(
        cls,
        X: Any,
        response: Mapping[str, Array],
        family: Family,
        sites: Any,
        extra: Mapping[str, Any],
        describe_constant: Callable[[Array], str],
    ) -> Self:
        """Return records without rows of weight zero; refuse too few or constant ones."""
        rows = X.shape[0]
        roles: dict[str, Any] = dict(response)
        for role, what in (("weights", "sample_weight"), ("offset", "offset")):
            if extra[role] is not None:
                roles[role] = one_per_row(what, extra[role], rows)
        for what, given in (("sites", sites), ("clusters", extra["cluster"])):
            _refuse_name(what, given)
        if extra["cluster"] is not None:
            roles["cluster"] = _labels("clusters", np.asarray(extra["cluster"]), rows)
        if sites is not None:
            sites = _labels("sites", check_array(sites, ensure_2d=False, dtype=None), rows)
        # As elsewhere in scikit-learn, rows with weight zero are ignored.
        if "weights" in roles and (roles["weights"] == 0).any():
            present = np.flatnonzero(roles["weights"] != 0)
            if not len(present):
                raise FedLassoError("every weight is zero; give positive weights")
            X = _take(X, present)
            roles = {role: values[present] for role, values in roles.items()}
            sites = None if sites is None else sites[present]
            rows = len(present)
        y = family.encode(roles)
        if not family.varies(y):
            raise FedLassoError(f"y {describe_constant(y)}, so there is nothing to fit")
        if rows < 2:
            raise ValueError(f"{rows} sample is too few; give at least 2 rows (n_samples={rows})")
        groups = {"all": np.arange(rows)}
        if sites is not None:
            names, place = np.unique(sites.astype(str), return_inverse=True)
            groups = {str(name): np.flatnonzero(place == j) for j, name in enumerate(names)}
        for name, own in groups.items():
            check_two_rows(name, len(own))
        return cls(X, family, roles, groups)

    def open(
        self, names: Sequence[str] | None, settings: Settings, missing: Any, notify: Notify
    ) -> OpenedSites:
        """Return an array's rows as sites."""
        X = self.X.tocsr() if hasattr(self.X, "tocsr") else self.X
        other = [self.roles.get(role) for role in ("weights", "offset", "cluster")]
        responses = Responses(self.family.encode(self.roles), *other)
        called = names if names is not None else [f"x{k}" for k in range(X.shape[1])]

        def part(site: str, rows: NDArray[np.int64]) -> Encoded:
            own = _take(X, rows)
            gaps = np.isnan(own).sum(axis=0) if isinstance(own, np.ndarray) else np.zeros(0, int)
            missing = {str(called[k]): int(gaps[k]) for k in np.flatnonzero(gaps).tolist()}
            return Encoded(site, own, responses.take(rows), missing)

        named = {role: _name(role) for role in self.roles}
        parts = (part(site, rows) for site, rows in self.groups.items())
        outcome = _outcome(self.family, named)
        try:
            return open_parts(parts, names, outcome, settings, missing, notify=notify)
        except FedLassoError as error:
            raise FedLassoError(in_python(str(error))) from None

    def open_frame(
        self, settings: Settings, how: Mapping[str, Any], notify: Notify
    ) -> tuple[OpenedSites, Schema]:
        """Return an Arrow table's rows as sites, by the code that reads files."""
        table = self.X
        named: dict[str, Any] = {}
        for role, values in self.roles.items():
            name = _name(role)
            while name in table.schema.names:
                name += "_"
            table = table.append_column(name, [values])
            named[role] = name
        source = FileSource(files=("X",), **named, **how)
        try:
            frame = Frame(table, self.groups, source.na, source.categorical)
            return open_tables([frame], source, settings, None, notify)
        except FedLassoError as error:
            raise FedLassoError(in_python(str(error))) from None


def _outcome(family: Family, named: Mapping[str, Any]) -> Outcome:
    roles = {role: name for role, name in named.items() if role != family.roles[0]}
    return Outcome(named[family.roles[0]], family=family.name, **roles)


def _name(role: str) -> str:
    return "y" if role == "target" else role


def one_per_row(what: str, values: Any, rows: int) -> Array:
    _refuse_name(what, values)
    numbers: Array = check_array(
        values, ensure_2d=False, dtype=np.float64, input_name=what, ensure_min_samples=0
    )
    if numbers.shape != (rows,):
        raise ValueError(
            f"{what} has shape {numbers.shape} but X has {rows} rows; give one number per row"
        )
    return numbers


def _refuse_name(what: str, values: Any) -> None:
    if isinstance(values, str):
        remedy = "give one value per row; names of columns are for fits with a formula"
        raise FedLassoError(f"{what} is {values!r}; {remedy}")


def _labels(what: str, labels: Any, rows: int) -> Any:
    if labels.shape != (rows,):
        raise FedLassoError(
            f"{what} has shape {labels.shape} but X has {rows} rows; give one label per row"
        )
    return labels


def _take(X: Any, rows: Any) -> Any:
    """Return rows of a table; of an array in the storage order of a site, with one copy."""
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows].tocsc()
    if not isinstance(X, np.ndarray):
        return X.take(rows)
    part = np.empty((len(rows), X.shape[1]), order="F")
    np.take(X, rows, axis=0, out=part)
    return part
