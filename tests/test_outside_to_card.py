"""An MCP penalty and a procedure from outside, from CSV files to the card."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from helpers.mcp_outside import MCP
from test_goal_from_outside import write_sites

from fedlasso import REGISTRY, Fit, fit
from fedlasso.cli import main
from fedlasso.fitting import GOALS, Goal
from fedlasso.fitting.context import Context
from fedlasso.fitting.result import AtPenalty
from fedlasso.models import read_document
from fedlasso.numerics import PENALTIES
from fedlasso.procedures.fista import FISTA


class Unbiased(Goal):
    """Large effects are not shrunk: an MCP penalty at one strength."""

    name = "unbiased"
    help = "coefficients that a large effect does not shrink"
    strength: ClassVar[float] = 0.3

    def run(self, context: Context) -> Fit:
        view, scaling = context.standardise()
        found = fit(view, "FISTA", penalty=MCP(self.strength), rounds=300, tol=1e-9)
        reason = AtPenalty(self.name, "MCP", None, "", "", found.method, found.rounds)
        return replace(found, reason=reason, view=view.view, scaling=scaling)


def run(folder: Path, *options: str) -> Path:
    out = folder / "model"
    assert main(["fit", *write_sites(folder), "--target", "y", *options, "--out", str(out)]) == 0
    return out


@pytest.mark.standard
def test_a_penalty_without_a_gap_has_a_card_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PENALTIES, MCP.name, MCP)
    monkeypatch.setitem(GOALS, Unbiased.name, Unbiased())
    out = run(tmp_path, "--goal", "unbiased")
    document = read_document(out / "model.json")
    assert document.status == "STATIONARY"
    assert document.penalty == Unbiased.strength
    assert document.certificate.stationary is not None
    assert document.certificate.stationary <= 1e-9
    card = (out / "card.html").read_text()
    assert "no bound on the distance to the global optimum" in card
    # Effects of 3 and 2 beyond a noise of 1 are not shrunk; a Lasso takes 0.3 off each.
    values = {row.name: row.standardised for row in document.coefficients}
    assert values["x0"] > 2.7
    assert values["x1"] > 1.7


class Plain(FISTA):
    """FISTA under another name."""

    name = "Plain"


@pytest.mark.standard
def test_a_procedure_has_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "Plain", Plain)
    out = run(tmp_path, "--procedure", "Plain", "--penalty", "0.1", "--uploads", "200")
    document = read_document(out / "model.json")
    assert document.procedure == "Plain"
    assert document.certificate.relative_gap < 1e-6
    assert "by Plain in" in (out / "card.html").read_text()
