"""A site with records that an attack is after, behind a real door."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from helpers.nets import FIT, KEY, numbers, opening

from fedlasso import __version__
from fedlasso.deploy.site_data import TableRecords
from fedlasso.federation import Message, Request, decode, encode
from fedlasso.governance import Audit, Door, Policy
from fedlasso.governance.door_messages import Opened
from fedlasso.numerics import Array
from fedlasso.sites.views import Standardise


class Victim:
    """Records of one site, and a coordinator who asks its door whatever is wanted.

    Without a key the site draws its splits by its name, as anybody can.
    """

    def __init__(
        self,
        folder: Path,
        X: Array,
        y: Array,
        policy: Policy | None = None,
        key: bytes = KEY,
        name: str = "a",
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.X, self.y, self.p = X, y, X.shape[1]
        self.columns = tuple(f"x{k}" for k in range(self.p))
        path = folder / f"{name}.csv"
        frame = pd.DataFrame(X, columns=self.columns)
        frame["y"] = y
        frame.to_csv(path, index=False)
        records = TableRecords(path, key)
        audit = Audit(folder / "books" / f"{name}.jsonl")
        self.door = Door(name, records, policy or Policy(), audit, folder / "memory", __version__)

    def ask(self, request: Request[Any]) -> Any:
        """Return the reply, or a refusal."""
        answer: Message = decode(self.door.answer_bytes(encode(request)))
        return answer

    def open(self, columns: Sequence[str] = (), fit: str = FIT, **changes: Any) -> Any:
        """Let the site join a fit, of all columns by default."""
        schema = numbers(tuple(columns) or self.columns)
        return self.ask(opening(schema, fit=fit, **changes))

    def opened(self, *columns: str, fit: str = FIT, **changes: Any) -> "Victim":
        assert isinstance(self.open(columns, fit, **changes), Opened)
        return self

    def view(self, split: str = "", means: Array | None = None, **changes: Any) -> str:
        """Let the site keep a view, of the records as they are by default; return its name."""
        means = np.zeros(self.p) if means is None else means
        request = Standardise(means, np.ones(self.p), 0.0, split)
        self.ask(request)
        return request.name

    @property
    def rows(self) -> Array:
        """Whole records: columns and response."""
        return np.column_stack([self.X, self.y])


def distance(found: Array, rows: Array) -> Array:
    """How far each record that was found is from the nearest true one, in its standard deviations.

    Two records that were drawn independently are about the square root of two apart.
    """
    scale = rows.std(axis=0)
    apart = (found[:, None, :] - rows[None, :, :]) / scale
    nearest: Array = np.sqrt((apart**2).mean(axis=2)).min(axis=1)
    return nearest


def shuffled(rows: Array, rng: Any) -> Array:
    return np.column_stack([rng.permutation(column) for column in rows.T])


def chance(rows: Array, count: int) -> float:
    """The first percentile of the median distance of so many guesses from the nearest record."""
    rng = np.random.default_rng(0)
    guesses = (shuffled(rows, rng)[:count] for _ in range(200))
    return float(np.quantile([np.median(distance(own, rows)) for own in guesses], 0.01))


def draw_records(n: int, p: int, seed: int) -> tuple[Array, Array]:
    """Gaussian records with a response."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(50.0, 10.0, (n, p)), 3)
    return X, np.round(X[:, 0] - X[:, 1] + rng.normal(0.0, 5.0, n), 3)
