"""MODEL/: a fitted model as files, and an unfinished fit that can go on."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedlasso import __version__
from fedlasso.errors import FedLassoError
from fedlasso.files import write_atomically
from fedlasso.models.fitted import Model, Settings, tell_path
from fedlasso.models.sources import Missing, Source
from fedlasso.numerics import Array
from fedlasso.tables import File, Schema, encode_rows

FORMAT, VERSION = "fedlasso-model", 1


class ModelFolder:
    """The files of one model: settings.json first, model.json last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal"
        self.memory = path / "sites"

    @property
    def finished(self) -> bool:
        """Whether there is a model."""
        return (self.path / "model.json").exists()

    def check(self) -> None:
        """Refuse to overwrite."""
        if self.finished:
            raise FedLassoError(f"{self.path} holds a model already; name another folder")
        if (self.path / "settings.json").exists():
            raise FedLassoError(
                f"{self.path} holds an unfinished fit; go on with --resume {self.path}, "
                "or name another folder"
            )
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise FedLassoError(f"{self.path} is not an empty folder; name another one")

    def begin(self, source: Source, settings: Settings, extra: dict[str, Any]) -> None:
        """Write down what is going to be fitted."""
        absolute = replace(source, files=tuple(str(Path(f).resolve()) for f in source.files))
        values = {"source": asdict(absolute), "settings": asdict(settings), "extra": extra}
        _write_json(self.path / "settings.json", values | {"stamps": source.stamps})

    def recall(self) -> tuple[Source, Settings, dict[str, Any]]:
        """What an unfinished fit was asked to do."""
        if self.finished:
            raise FedLassoError(f"{self.path} is finished; read it with `fedlasso inspect`")
        values = _read_json(self.path / "settings.json", f"{self.path} holds no fit to go on with")
        given = values["source"]
        source = Source(
            tuple(given["files"]), given["target"], given["site_column"], tuple(given["drop"]),
            given["missing"],
        )  # fmt: skip
        for file in source.files:
            if not Path(file).exists():
                raise FedLassoError(f"{file}: no such file; the unfinished fit needs it")
        if source.stamps != values["stamps"]:
            raise FedLassoError(
                f"the files have changed since {self.path} was begun; fit anew into another folder"
            )
        return source, Settings(**values["settings"]), values["extra"]

    def finish(self, model: Model, told: dict[str, Any], card: str) -> None:
        """Write the model, model.json last; then the journal has done its work."""
        write_model(self.path, model, told, card)
        for folder in (self.journal, self.memory):
            shutil.rmtree(folder, ignore_errors=True)

    def discard(self) -> None:
        """Remove a fit that cannot be made."""
        for folder in (self.journal, self.memory):
            shutil.rmtree(folder, ignore_errors=True)
        (self.path / "settings.json").unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()

    def read(self) -> dict[str, Any]:
        """model.json."""
        told = _read_json(self.path / "model.json", f"{self.path} holds no model")
        if told.get("format") != FORMAT or told.get("version") != VERSION:
            raise FedLassoError(f"{self.path}/model.json is of another version; update fedlasso")
        return told


def write_model(path: Path, model: Model, told: dict[str, Any], card: str) -> None:
    """The files of a fitted model, model.json last."""
    write_atomically(path / "coefficients.csv", _coefficients(model).encode())
    write_atomically(path / "card.html", card.encode())
    _write_json(path / "model.json", told)


def predict_file(told: dict[str, Any], path: Path) -> Array:
    """Predictions for the rows of a file."""
    schema = Schema.from_json(told["schema"])
    X = encode_rows(File(path), schema)
    holes = np.isnan(X)
    if holes.any():
        if told["missing"] != "mean":
            name = schema.encoded[int(np.flatnonzero(holes.any(axis=0))[0])]
            raise FedLassoError(
                f"{path}: column {name!r} has {int(holes.any(axis=1).sum())} missing values; fill "
                "them, or fit with --missing mean"
            )
        means = np.array(told["means"])
        X = np.where(holes, means, X)
    b = np.zeros(X.shape[1])
    place = {name: k for k, name in enumerate(schema.encoded)}
    for row in told["coefficients"]:
        b[place[row["name"]]] = row["value"]
    prediction: Array = X @ b + told["intercept"]
    return prediction


def tell(model: Model, schema: Schema, missing: Missing = "refuse") -> dict[str, Any]:
    """The model as plain values: what docs/model.md describes."""
    fit, scaling, costs = model.fit, model.scaling, model.costs
    scale = np.divide(
        1, scaling.factors, out=np.zeros(len(model.columns)), where=scaling.factors > 0
    )
    on = np.flatnonzero(fit.coefficients)
    certificate = fit.certificate
    return {
        "format": FORMAT,
        "version": VERSION,
        "fedlasso": __version__,
        "schema": schema.to_json(),
        "missing": missing,
        "settings": asdict(model.settings) | {"goal": model.settings.aim},
        "procedure": fit.procedure.name,
        "penalty": fit.problem.lam,
        "intercept": model.intercept,
        "coefficients": [
            {
                "name": model.columns[k],
                "value": float(model.coefficients[k]),
                "standardised": float(fit.coefficients[k]),
                "mean": float(scaling.means[k]),
                "scale": float(scale[k]),
            }
            for k in on[np.argsort(-np.abs(fit.coefficients[on]), kind="stable")]
        ],
        "columns": len(model.columns),
        "rows": {"training": scaling.rows, "held_out": list(scaling.held_out)},
        "constant": list(model.constant),
        "certificate": None
        if certificate is None
        else {
            "objective": certificate.objective,
            "gap": certificate.gap,
            "relative_gap": certificate.relative_gap,
            "words": str(certificate),
        },
        "status": fit.status.name,
        "status_text": fit.status.value,
        "why": fit.why,
        "rounds": fit.rounds,
        "sites": [
            {
                "name": site,
                "rows": rows,
                "sent": {k: costs.total(k, site).upload for k in costs.kinds},
                "received": {k: costs.total(k, site).download for k in costs.kinds},
                "messages": costs.total(None, site).messages,
            }
            for site, rows in zip(costs.sites, fit.problem.sizes, strict=True)
        ],
        "curve": _curve(model),
        "path": _path(model),
        **({"means": scaling.means.tolist()} if missing == "mean" else {}),
    }


def _curve(model: Model) -> dict[str, Any] | None:
    if model.curve is None:
        return None
    v = model.curve.validation
    se = [None if np.isnan(s) else float(s) for s in v.se]
    return {
        "penalties": model.curve.penalties.tolist(),
        "mse": v.mse.tolist(),
        "se": se,
        "active": v.active.tolist(),
        "chosen": model.curve.chosen,
    }


def _path(model: Model) -> dict[str, Any] | None:
    if model.curve is None:
        return None
    return tell_path(model.curve.penalties, model.curve.coefficients, model.columns)


def _coefficients(model: Model) -> str:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["name", "coefficient", "standardised"])
    table.writerow(["(intercept)", repr(float(model.intercept)), ""])
    rows = zip(model.columns, model.coefficients, model.fit.coefficients, strict=True)
    table.writerows([name, repr(float(b)), repr(float(z))] for name, b, z in rows)
    return out.getvalue()


def _write_json(path: Path, values: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(values, indent=1, ensure_ascii=False, default=float).encode())


def _read_json(path: Path, absent: str) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise FedLassoError(absent) from None
    except (OSError, ValueError) as error:
        raise FedLassoError(f"cannot read {path}: it is damaged") from error
    return values
