"""What the R package needs from Python: numbers travel as bytes, and refusals as values.

Bytes and plain lists need no NumPy in reticulate, and keep missing values missing.
"""

import functools
import pickle
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import fedlasso
from fedlasso import errors, models
from fedlasso.fitting import Settings
from fedlasso.models.check_page import describe_check
from fedlasso.models.checkup import check_files

FAMILIES = {
    "gaussian": fedlasso.FederatedLasso,
    "binomial": fedlasso.FederatedLogisticLasso,
    "poisson": fedlasso.FederatedPoissonLasso,
    "cox": fedlasso.FederatedCoxLasso,
}
# What R calls differently.
SPELLED = {
    "sample_weight": "weights",
    "l1_ratio": "alpha",
    "penalty=": "lambda = ",
    "`penalty`": "`lambda`",
    "missing='mean'": 'missing = "mean"',
    "`cv` is": "`nfolds` is",
    "penalty is": "`lambda` is",
    "the `lambda` is": "`lambda` is",
    "or None to tune it": "or NULL to choose it",
    "Input X contains NaN: ": "",
    "X contains NaN": "values are missing",
    "use the estimator before it is stored": "use the model in the session that fitted it",
}
# Options of the command line that have another name in R.
OPTIONS = {"cluster": "clusters", "site-column": "site"}


def answer(function: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Return the function with its value, its warnings and the text of a refusal as a dict."""

    @functools.wraps(function)
    def called(*args: Any, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"value": None, "error": None}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", errors.FedLassoWarning)
            try:
                found["value"] = function(*args, **more)
            except (errors.FedLassoError, ValueError, TypeError) as error:
                found["error"] = _in_r(str(error))
        found["warnings"] = [_in_r(str(own.message)) for own in caught]
        return found

    return called


def _in_r(text: str) -> str:
    for name, own in SPELLED.items():
        text = text.replace(name, own)
    return text


def _options_in_r(text: str) -> str:
    """Return text with arguments of R for the options of the command line."""
    text = text.replace("--out writes all", "`page` writes all")
    text = text.replace("Add to fedlasso fit, if you agree:", "Add to fl_fit(), if you agree:")
    text = re.sub(r"--([a-z-]+)=('[^']*'|[^\s;)]+)", _argument, text)
    return re.sub(r'(?<=[")]) (?=[a-z_]+ = ["c])', ", ", text)


def _argument(option: re.Match[str]) -> str:
    name = OPTIONS.get(option[1], option[1].replace("-", "_"))
    values = [f'"{value}"' for value in option[2].strip("'").split(",")]
    return f"{name} = {values[0] if len(values) == 1 else 'c(' + ', '.join(values) + ')'}"


def _numbers(values: Any) -> Any:
    return np.frombuffer(values, "<f8").copy()


def _bytes(values: Any) -> bytearray:
    return bytearray(np.asarray(values, "<f8").tobytes(order="F"))


def _label(codes: Any, levels: Sequence[str]) -> Any:
    """Return texts; None where a code is missing."""
    return np.array([None if k != k else levels[int(k)] for k in _numbers(codes)], dtype=object)


def _matrix(given: Mapping[str, Any]) -> Any:
    """Return a matrix of numbers, as a data frame of named columns if pandas is installed."""
    rows, columns = given["rows"], given["columns"]
    shape = (rows, len(columns))
    if "index" in given:
        parts = [_numbers(given[name]) for name in ("values", "index", "pointers")]
        index, pointers = (part.astype(np.int64) for part in parts[1:])
        return sparse.csc_matrix((parts[0], index, pointers), shape=shape)
    values = _numbers(given["values"]).reshape(shape, order="F")
    try:
        from pandas import DataFrame
    except ImportError:
        return values
    return DataFrame(values, columns=list(columns), copy=False)


def _table(columns: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the columns of a data frame of R as an Arrow table."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        need = "data frames require pyarrow: pip install 'fedlasso[fit]'"
        raise errors.FedLassoError(need) from None
    kinds = {"double": pa.float64(), "integer": pa.int64(), "logical": pa.bool_()}
    arrays = {}
    for name, column in columns.items():
        if column["kind"] == "text":
            arrays[name] = pa.array(_label(column["values"], column["levels"]), pa.string())
        else:
            values = _numbers(column["values"])
            whole = pa.array(values, pa.float64(), mask=np.isnan(values))
            arrays[name] = whole.cast(kinds[column["kind"]])
    return pa.table(arrays)


def _rows(given: Mapping[str, Any]) -> Any:
    return _table(given["table"]) if "table" in given else _matrix(given)


@answer
def fit(
    family: str, X: Mapping[str, Any], y: Any, roles: Mapping[str, Any], options: Mapping[str, Any]
) -> Any:
    """Return a fitted estimator."""
    if family == "cox":
        response = np.column_stack([_numbers(y["event"]), _numbers(y["time"])])
    elif y["classes"] is not None:
        response = _label(y["values"], y["classes"]).astype(str)
        # In R the second level is 1, as in glm.
        options = {**options, "positive": y["classes"][1]}
    else:
        response = _numbers(y["values"])
    own = {name: _numbers(roles[name]) for name in ("sample_weight", "offset") if name in roles}
    own |= {
        name: _label(*roles[name]).astype(str) for name in ("sites", "clusters") if name in roles
    }
    return FAMILIES[family](**options).fit(_rows(X), response, **own)


@answer
def parameters(family: str) -> list[str]:
    """Return the names of an estimator's parameters."""
    return sorted(FAMILIES[family]().get_params())


@answer
def read(folder: str) -> Any:
    """Return the estimator of a model folder."""
    document = models.read_document(Path(folder) / "model.json")
    kind = next(kind for kind in FAMILIES.values() if kind.family.name == document.settings.family)
    return kind.from_folder(folder)


@answer
def describe(model: Any) -> dict[str, Any]:
    """Return the facts about a fitted model that R shows."""
    document = model._to_document()
    total = max((site.sent_in_all for site in document.sites), default=0)
    return {
        "family": next(name for name, kind in FAMILIES.items() if isinstance(model, kind)),
        "columns": list(map(str, model.columns_)),
        "coefficients": _bytes(np.ravel(model.coef_)),
        "intercept": float(np.ravel(model.intercept_)[0]),
        "lambda": float(model.penalty_),
        "kind": document.name,
        "alpha": document.l1_ratio if document.l1_ratio is not None else 1.0,
        "gap": document.certificate.relative_gap,
        "certificate": str(document.certificate),
        "status": document.status_text,
        "sites": [site.name for site in document.sites],
        "rows": [site.rows for site in document.sites],
        "bytes": total,
        "round_trips": document.round_trips or 0,
        "summary": models.describe_model(document),
        "offset": document.schema.offset is not None,
        "classes": list(document.schema.classes),
        "reads": [column.name for column in document.schema.columns],
    }


@answer
def curve(model: Any) -> dict[str, Any]:
    """Return the cross-validation curve and the path of all rows, largest penalty first."""
    found = model.cv_
    if found is None:
        raise errors.FedLassoError("lambda was given, so nothing was cross-validated; use fl_cv")
    order = np.argsort(-found.penalties, kind="stable")
    names = ("penalties", "mean", "se", "nzero")
    return {
        **{name: _bytes(np.asarray(getattr(found, name), float)[order]) for name in names},
        "min": found.lambda_min,
        "1se": found.lambda_1se,
        "error": model.family.error_name,
    }


@answer
def path(model: Any) -> dict[str, Any]:
    """Return the pooled fits to all rows along the penalties, largest penalty first."""
    found = model.path_
    order = np.argsort(-found.penalties, kind="stable")
    return {
        "penalties": _bytes(found.penalties[order]),
        "coefficients": _bytes(found.coefficients[:, order]),
        "intercepts": _bytes(found.intercepts[order]),
        "dev_ratio": _bytes(found.dev_ratio[order]),
        "gaps": _bytes(found.gaps[order]),
    }


@answer
def model_at(model: Any, s: float | str | None) -> dict[str, Any]:
    """Return the model at a penalty."""
    own = model.model_at(s)
    return {
        "lambda": own.penalty,
        "coefficients": _bytes(own.coef),
        "intercept": own.intercept,
        "gap": own.gap,
    }


@answer
def score(model: Any, X: Mapping[str, Any], s: float | str | None, offset: Any) -> bytearray:
    """Return linear predictors of new rows."""
    return _bytes(model._score(_rows(X), None if offset is None else _numbers(offset), s))


@answer
def table(model: Any, s: float | str | None, exponentiate: bool) -> dict[str, Any]:
    """Return the coefficient table by columns."""
    frame = model.coefficient_table(s, exponentiate=exponentiate)
    columns: dict[str, Any] = {"term": list(map(str, frame["term"]))}
    for name in frame.columns:
        if name != "term":
            columns[str(name)] = _bytes(frame[name].to_numpy(float))
    return columns


@answer
def write(model: Any, folder: str, target: str | None) -> None:
    """Write the folder of a model."""
    model.to_folder(folder, target)


@answer
def check(
    files: Sequence[str],
    source: Mapping[str, Any],
    options: Mapping[str, Any],
    page: str | None,
    frame: bool,
) -> dict[str, Any]:
    """Check the tables of sites, and write the page of that if it is named.

    The only file of a data frame is temporary, so messages do not name it.
    """
    from fedlasso.cli.check import check_out, report

    checked = check_files(models.FileSource(files=tuple(files), **source), Settings(**options))
    if page is not None:
        check_out(Path(page))
        with redirect_stdout(StringIO()):
            report(checked, Path(page))

    def worded(text: str) -> str:
        if frame:
            text = text.replace(f"{files[0]}: ", "").replace("is in no file", "is not in the data")
        return _options_in_r(text)

    findings = [
        {
            "mend": finding.mend,
            "sites": ", ".join(finding.sites),
            "column": finding.column,
            "what": worded(finding.what),
            "remedy": worded(finding.remedy),
        }
        for finding in checked.findings
    ]
    return {
        "text": worded(describe_check(checked)),
        "problems": checked.mends,
        "findings": findings,
    }


def store(model: Any) -> bytearray:
    """Return a model as bytes, without records."""
    return bytearray(pickle.dumps(model))


def restore(stored: Any) -> Any:
    """Return a model of `store`."""
    return pickle.loads(bytes(stored))
