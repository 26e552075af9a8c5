"""A site's disclosure policy: which questions it answers, about what, and how many.

The site that owns the records writes it in a TOML file; the coordinator cannot change it. Every
default is safe. A policy knows no question by itself: it goes by what each question says that it
discloses, and by the roles of its fields. docs/privacy.md explains the rules.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
import numpy as np
from msgspec import Meta

from fedlasso.errors import FedLassoError
from fedlasso.federation import Request
from fedlasso.federation.messages import questions, roles
from fedlasso.governance.shapes import check_fields, values_of
from fedlasso.numerics import Array
from fedlasso.sites import Site, View
from fedlasso.sites.rows import divide

Count = Annotated[int, Meta(ge=0, description="a whole number, zero or more")]
Share = Annotated[float, Meta(ge=0, description="a number, zero or more")]
Names = Annotated[tuple[str, ...], Meta(description="a list of names")]
Switch = Annotated[bool, Meta(description="true or false")]


@dataclass(frozen=True)
class Policy:
    """Rules of one site.

    Attributes
    ----------
    min_rows : nothing is answered about fewer training rows
    min_validation_rows : no validation error is answered on fewer held-out rows
    min_sites : no fit is joined with fewer sites
    allow, deny : questions answered beside the default ones, and questions not answered, by name
    columns : columns that exist for the coordinator; empty means all
    max_active_per_row : active coefficients a broadcast model may have, per training row
    max_vectors : numbers that one fit may be sent, in vectors over the columns; enough of them
        determine all second moments, however they are cut
    max_splits : different splits of the rows that one fit may ask about
    max_steps : local steps (times the vectors side by side) or grid points of one question
    max_bytes : longest question that is read
    dry_run : log what would leave, and refuse it
    approval : ask somebody at the site before each reply leaves
    keep_payloads : keep every reply in full beside the audit
    """

    min_rows: Count = 20
    min_validation_rows: Count = 10
    min_sites: Count = 3
    allow: Names = ()
    deny: Names = ()
    columns: Names = ()
    max_active_per_row: Share = 5.0
    max_vectors: Count = 400
    max_splits: Count = 30
    max_steps: Count = 1000
    max_bytes: Count = 64 << 20
    dry_run: Switch = False
    approval: Switch = False
    keep_payloads: Switch = False

    def __post_init__(self) -> None:
        for rule, names in (("allow", self.allow), ("deny", self.deny)):
            for name in names:
                if name not in questions():
                    raise FedLassoError(f"{rule}: no question is called {name!r}")

    def answers(self, name: str) -> bool:
        """Whether a question of that name is answered at all."""
        question = questions().get(name)
        if question is None or name in self.deny:
            return False
        return question.discloses.allowed or name in self.allow

    def shows(self, column: str) -> bool:
        """Whether a column exists for the coordinator."""
        return not self.columns or column in self.columns

    def check(self, request: Request[Any], site: Site) -> None:
        """Refuse a question that the rules do not allow; say which rule, and no data."""
        name = type(request).__name__
        if not self.answers(name):
            raise FedLassoError(f"the policy here does not answer {name}; allow it in policy.toml")
        self._check_rows(site.rows, "here")
        check_fields(request, len(site.columns), self.max_steps)
        for split in values_of(request, "split"):
            if split:
                self._check_split(split, site)
        view = site.view(request.on) if request.on else site
        self._check_rows(view.rows, "in this split")
        if request.discloses.held_out:
            for purpose in values_of(request, "purpose"):
                rows = view.validation(purpose).m
                if rows < self.min_validation_rows:
                    raise FedLassoError(
                        f"{rows} validation rows here, and the policy validates on "
                        f"{self.min_validation_rows} or more"
                    )
        for model in values_of(request, "model"):
            self._check_model(model, view)

    def _check_rows(self, rows: int, where: str) -> None:
        if rows < self.min_rows:
            raise FedLassoError(
                f"{rows} training rows {where}, and the policy answers about {self.min_rows} "
                "or more"
            )

    def _check_split(self, split: str, site: Site) -> None:
        """Refuse splits whose sums, or the difference to those of all rows, tell of few rows."""
        n = site.table.n
        rows = len(divide(split, site.name, n)["training"])
        self._check_rows(rows, "in this split")
        if 0 < n - rows < self.min_validation_rows:
            raise FedLassoError(
                f"{n - rows} rows held out by this split, and the policy holds out "
                f"{self.min_validation_rows} or more"
            )

    def _check_model(self, model: Array, view: View) -> None:
        """Refuse models with many active coefficients for few rows."""
        active = int(np.count_nonzero(model.reshape(len(model), -1), axis=0).max(initial=0))
        limit = self.max_active_per_row * view.rows
        if active > limit:
            raise FedLassoError(
                f"a model with {active} active coefficients, and the policy allows {int(limit)} "
                f"for {view.rows} rows; use a larger penalty"
            )


def read_policy(path: Path | None) -> Policy:
    """Return the policy in a TOML file, or the defaults without one."""
    if path is None:
        return Policy()
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FedLassoError(f"{path}: {error}") from error
    rules = get_type_hints(Policy, include_extras=True)
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in rules:
            raise FedLassoError(f"{path}: no rule is called {name!r}; known: {', '.join(rules)}")
        try:
            values[name] = msgspec.convert(value, rules[name])
        except msgspec.ValidationError as error:
            words = get_args(rules[name])[1].description
            raise FedLassoError(f"{path}: {name} must be {words}") from error
    try:
        return Policy(**values)
    except FedLassoError as error:
        raise FedLassoError(f"{path}: {error}") from error


def describe(policy: Policy) -> str:
    """Return the rules in force, one per line, and last the questions that are not answered."""
    lines = [f"{f.name} = {getattr(policy, f.name)}" for f in fields(policy)]
    refused = [name for name in questions() if not policy.answers(name)]
    return "\n".join([*lines, f"not answered: {', '.join(refused) or 'nothing'}"])


def disclosure_table(asked: Mapping[str, type[Request[Any]]]) -> str:
    """Return what questions disclose as the privacy page tells it, from their own words."""
    rules = {
        "model": "`max_active_per_row`",
        "steps": "`max_steps`",
        "split": "`max_splits`, `min_validation_rows`",
        "purpose": "`min_validation_rows`",
    }
    lines = [
        "| question | what a reply reveals | answered by default | why a total will not do | "
        "rules beside `min_rows` and `max_vectors` |",
        "|---|---|---|---|---|",
    ]
    for name, question in asked.items():
        kinds = {role.kind for role in roles(question).values()}
        guards = ", ".join(rule for kind, rule in rules.items() if kind in kinds)
        said = question.discloses
        answered = "yes" if said.allowed else "**no**"
        lines.append(f"| `{name}` | {said.reveals} | {answered} | {said.single} | {guards} |")
    single = [f"`{name}`" for name, question in asked.items() if question.discloses.single]
    return "\n".join([*lines, "", f"Replies are needed one by one for: {', '.join(single)}."])
