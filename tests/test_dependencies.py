"""No version of a dependency with a known hole is admitted."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
# Published advisories and the first version without them; made by hand in November 2026.
ADVISORIES = {
    "cryptography": {
        "CVE-2024-26130": "42.0.4", "CVE-2024-12797": "44.0.1", "CVE-2026-26007": "46.0.5",
        "CVE-2026-34073": "46.0.6", "CVE-2026-69247": "50.0.0",
    },
    "pyarrow": {"CVE-2023-47248": "14.0.1", "CVE-2026-25087": "23.0.1"},
    "jinja2": {"CVE-2024-56201": "3.1.5", "CVE-2025-27516": "3.1.6"},
    "fonttools": {"CVE-2025-66034": "4.60.2"},
    "distributed": {"CVE-2026-23528": "2026.1.0"},
    "scikit-learn": {"CVE-2024-5206": "1.5.0"},
}  # fmt: skip


def requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [each for given in project["optional-dependencies"].values() for each in given]
    return [*map(Requirement, project["dependencies"]), *map(Requirement, extras)]


def test_no_version_with_a_known_hole_is_admitted() -> None:
    listed = requirements()
    names = {re.sub(r"[-_.]+", "-", each.name).lower() for each in listed}
    assert names >= ADVISORIES.keys()
    for each in listed:
        for advisory, fixed in ADVISORIES.get(each.name.lower(), {}).items():
            (floor,) = [s.version for s in each.specifier if s.operator == ">="]
            assert Version(floor) >= Version(fixed), f"{each} admits {advisory}"


def test_the_versions_tested_here_have_no_known_hole() -> None:
    pinned = [line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines()]
    for name, version in pinned:
        for advisory, fixed in ADVISORIES.get(name.lower(), {}).items():
            assert Version(version) >= Version(fixed), f"{name} {version} has {advisory}"
