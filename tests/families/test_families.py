"""What every family promises, and that no other room knows any of them by name."""

import ast
from pathlib import Path

import numpy as np
import pytest

import fedlasso
from fedlasso import FedLassoError
from fedlasso.families import FAMILIES, family_of, family_with, find_family
from fedlasso.numerics import LOSSES, find_loss

PACKAGE = Path(fedlasso.__file__).parent
each_family = pytest.mark.parametrize("name", sorted(FAMILIES))


@each_family
def test_a_family_is_found_by_its_name_and_by_its_losses(name: str) -> None:
    family = find_family(name)
    assert family.name == name
    for loss in (family.loss, *family.variants):
        assert family_of(loss.name) is family
        assert find_loss(loss.name) is loss
    for option in family.options:
        assert family_with(option) is family


def test_every_loss_has_a_family() -> None:
    assert all(family_of(loss) for loss in LOSSES)


@pytest.mark.parametrize("name", sorted(name for name in FAMILIES if FAMILIES[name].intercept))
def test_the_link_is_the_inverse_of_the_mean(name: str) -> None:
    family = find_family(name)
    for eta in (-2.0, 0.3, 1.7):
        mean = float(family.loss.mean(np.array([eta]))[0])
        assert family.link(mean) == pytest.approx(eta)


@each_family
def test_drawn_responses_are_valid_and_vary(name: str) -> None:
    family = find_family(name)
    eta = np.random.default_rng(0).standard_normal(200)
    if family.unit is None:
        with pytest.raises(FedLassoError, match="draws no"):
            family.draw(eta, np.random.default_rng(1))
        return
    y = family.draw(family.unit * eta, np.random.default_rng(1))
    assert not family.loss.find_misfits(y).any()
    assert family.varies(y)
    assert not family.varies(-np.ones(5) if "concordance" in family.measures else np.zeros(5))


def test_effects_on_classes_appear_smaller_than_they_are() -> None:
    assert find_family("binomial").attenuation(8 / np.pi) == pytest.approx(np.sqrt(2))
    assert find_family("poisson").attenuation(1.0) == 1.0


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(FedLassoError, match="no family is called 'tweedie'; use one of linear, "):
        find_family("tweedie")
    with pytest.raises(FedLassoError, match="no family has the hinge loss"):
        family_of("hinge")


def test_no_other_room_knows_a_family_by_name() -> None:
    names = {*FAMILIES, *LOSSES}
    # What a procedure can fit is called after the loss.
    known = {("procedures/procedure.py", "quadratic")}
    found = set()
    for file in PACKAGE.rglob("*.py"):
        path = file.relative_to(PACKAGE).as_posix()
        if path.startswith(("families/", "numerics/losses/")):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and node.value in names:
                found.add((path, node.value))
    assert found <= known
