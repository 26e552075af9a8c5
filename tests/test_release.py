"""What a release needs: one version, archives that pass twine, a recipe, a crate, a paper."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement
from rocrate.rocrate import ROCrate

import fedlasso
from fedlasso import FederatedLasso
from fedlasso.cli import main
from fedlasso.models import read_document, write_model
from fedlasso.models.crate import CONTENTS
from fedlasso.numerics import Array

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Where the owner of the project fills in addresses before a release.
FOR_THE_OWNER = (
    "CITATION.cff",
    "codemeta.json",
    "paper.md",
    "pyproject.toml",
    "recipe/recipe.yaml",
)


def recipe() -> Any:
    return yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())


def test_the_version_is_the_same_everywhere() -> None:
    version = fedlasso.__version__
    assert PROJECT["dynamic"] == ["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    assert json.loads((ROOT / "codemeta.json").read_text())["version"] == version
    assert recipe()["context"]["version"] == version
    assert f"## {version} (" in (ROOT / "CHANGELOG.md").read_text()
    assert (ROOT / "docs" / "cite.md").read_text().count(version) == 2
    assert f"\nVersion: {version}\n" in (ROOT / "r" / "DESCRIPTION").read_text()
    # How to release names the files that repeat the version, and the next tag.
    release = (ROOT / "CONTRIBUTING.md").read_text().partition("## Release")[2]
    for name in (
        "CITATION.cff",
        "codemeta.json",
        "recipe/recipe.yaml",
        "docs/cite.md",
        "r/DESCRIPTION",
    ):
        assert f"`{name}`" in release
    assert f"git push origin v{version}" in release


def test_what_the_owner_fills_in_is_marked() -> None:
    for name in FOR_THE_OWNER:
        assert "OWNER: " in (ROOT / name).read_text(), name
    # Nothing that is not filled in reaches a package index.
    assert "urls" not in PROJECT


def test_the_recipe_requires_what_the_package_requires() -> None:
    found = recipe()
    # conda has no extras, so its package can fit.
    required = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["fit"]]
    needs = {need.name: need.specifier for need in map(Requirement, required)}
    python, *packages = map(Requirement, _without_templates(found["requirements"]["run"]))
    assert str(python.specifier) == PROJECT["requires-python"]
    assert {need.name: need.specifier for need in packages} == needs
    (entry,) = found["build"]["python"]["entry_points"]
    name, _, where = entry.partition(" = ")
    assert PROJECT["scripts"] == {name: where}
    assert found["about"]["license"] == PROJECT["license"]
    assert found["about"]["license_file"] == PROJECT["license-files"]
    assert set(found) <= {
        "schema_version", "context", "package", "source", "build", "requirements", "tests",
        "about", "extra",
    }  # fmt: skip


def _without_templates(lines: list[str]) -> list[str]:
    least = recipe()["context"]["python_min"]
    return [line.replace("${{ python_min }}", least) for line in lines]


def test_codemeta_lists_the_dependencies_and_the_licence() -> None:
    found = json.loads((ROOT / "codemeta.json").read_text())
    assert found["@type"] == "SoftwareSourceCode"
    names = [Requirement(need).name for need in PROJECT["dependencies"]]
    assert found["softwareRequirements"] == names
    assert found["license"].endswith(PROJECT["license"])
    assert found["description"] == PROJECT["description"]
    assert found["keywords"] == PROJECT["keywords"]


def test_the_paper_cites_what_it_lists_and_its_figures_are_measured() -> None:
    paper = (ROOT / "paper.md").read_text()
    entries = re.findall(r"@\w+\{(\w+),", (ROOT / "paper.bib").read_text())
    assert sorted(set(re.findall(r"@([a-z]+\d{4})", paper))) == sorted(entries)
    body = paper.partition("# Summary")[2]
    assert len(body.split()) < 1000
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    listed = next(line for line in pages.splitlines() if "to compare with the literature" in line)
    assert listed.partition("|")[2].count("`") == 2 * 12
    assert "twelve procedures of the literature" in body
    figures = re.findall(r"\d[\d,]*\.?\d*%|\d,\d{3}\b|\b833\b", body)
    assert len(figures) >= 7
    for figure in figures:
        assert figure in pages, figure


def fit_in_python(folder: Path, X: Array, y: Array) -> None:
    FederatedLasso(cv=3).fit(X, y, sites=np.arange(60) % 2).to_folder(folder)


def fit_on_the_command_line(folder: Path, X: Array, y: Array) -> None:
    for site in range(2):
        rows = np.column_stack([X, y])[np.arange(60) % 2 == site]
        text = "\n".join(",".join(map(str, row)) for row in rows.tolist())
        (folder.parent / f"{site}.csv").write_text(f"a,b,c,y\n{text}\n")
    files = [str(folder.parent / f"{site}.csv") for site in range(2)]
    assert main(["fit", *files, "--target", "y", "--cv", "3", "--out", str(folder)]) == 0
    assert (folder / "plan.json").exists()


def fit_over_a_network(folder: Path, X: Array, y: Array) -> None:
    fit_in_python(folder.parent / "first", X, y)
    folder.mkdir()
    for name in ("plan.json", "audit.json"):
        (folder / name).write_text("{}")
    write_model(folder, read_document(folder.parent / "first" / "model.json"))


WRITERS = [fit_in_python, fit_on_the_command_line, fit_over_a_network]


@pytest.mark.parametrize("write", WRITERS)
def test_a_model_folder_is_an_ro_crate(
    write: Callable[[Path, Array, Array], None], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + rng.standard_normal(60)
    write(tmp_path / "model", X, y)
    crate = ROCrate(tmp_path / "model")
    written = {path.name for path in (tmp_path / "model").iterdir()}
    listed = {entity.id: entity for entity in crate.data_entities}
    assert set(listed) == written - {"ro-crate-metadata.json"}
    for name, entity in listed.items():
        assert entity["description"] == CONTENTS[name]
        assert entity["encodingFormat"]
    assert crate.name == "Model of y"
    assert crate.license
    assert str(crate.datePublished).startswith("2026-01-01")
    software = crate.dereference("#fedlasso")
    assert software is not None
    assert software["softwareVersion"] == fedlasso.__version__
    # Every reference leads to an entity.
    text = (tmp_path / "model" / "ro-crate-metadata.json").read_text()
    graph = json.loads(text)["@graph"]
    known = {entity["@id"] for entity in graph}
    used = set(re.findall(r'\{\s*"@id": "([^"]+)"\s*\}', text))
    assert {name for name in used if not name.startswith("https://w3id.org/")} <= known


@pytest.mark.full
def test_the_archives_pass_twine(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    version = fedlasso.__version__
    wheel = tmp_path / f"fedlasso-{version}-py3-none-any.whl"
    source = tmp_path / f"fedlasso-{version}.tar.gz"
    assert sorted(tmp_path.iterdir()) == sorted([wheel, source])
    check = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "fedlasso/py.typed" in names
    assert not [name for name in names if not name.startswith(("fedlasso/", "fedlasso-"))]
    with tarfile.open(source) as archive:
        held = archive.getnames()
    for name in ("CITATION.cff", "codemeta.json", "paper.md", "recipe/recipe.yaml", "LICENSE"):
        assert f"fedlasso-{version}/{name}" in held
