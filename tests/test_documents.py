"""The examples in the documents run as they stand, and their links lead somewhere."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites

from fedlasso import REGISTRY, fit
from fedlasso.numerics import LeastSquares, solve_reference

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(document: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)


def test_the_procedure_in_contributing_is_a_procedure() -> None:
    (block,) = python_blocks(ROOT / "CONTRIBUTING.md")
    assert len(block.splitlines()) < 45
    names: dict[str, Any] = {}
    exec(compile(block, "CONTRIBUTING.md", "exec"), names)
    result = fit(draw_federation(), names["ProximalGradient"](), penalty=0.1, rounds=400)
    X = np.vstack([s.training.X for s in draw_sites()])
    y = np.concatenate([s.training.y for s in draw_sites()])
    reference = solve_reference(LeastSquares(X, y), 0.1)
    np.testing.assert_allclose(result.coefficients, reference.coefficients, atol=1e-6)


def test_the_page_on_procedures_has_them_all() -> None:
    page = (ROOT / "docs" / "procedures.md").read_text(encoding="utf-8")
    assert [name for name in REGISTRY if f"`{name}`" not in page] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if "://" not in link:
            assert (document.parent / link).exists(), f"{document.name} links to {link}"
