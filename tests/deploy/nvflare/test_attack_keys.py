"""A coordinator who keeps the sites' keys can be these sites; where sites make them it cannot."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from helpers.deploy.doors import make_door
from helpers.deploy.isolating import be_all_others
from helpers.governance.authority import accept_keys
from helpers.nets import SITES, open_to_others

from fedlasso import FedLassoError
from fedlasso.deploy.authority import (
    Authority,
    make_key,
    read_certificate,
    read_key,
    write_pem,
)
from fedlasso.deploy.kit import identify
from fedlasso.deploy.nvflare.local import enrol
from fedlasso.deploy.nvflare.project import create_project
from fedlasso.governance.identity import Identity


@pytest.fixture
def _mask_of_everybody() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def enrol_as_before(project: Path, kits: dict[str, Path]) -> None:
    """The coordinator makes the sites' keys itself, and sends them in the kits, as it once did."""
    made = project / "made"
    enrol(project, {name: made / name for name in kits})
    for name, kit in kits.items():
        (project / "kits" / f"{name}.zip").unlink()
        packed = shutil.make_archive(str(project / "kits" / name), "zip", made, name)
        shutil.unpack_archive(packed, kit.parent)
    shutil.rmtree(made)


def find_key(project: Path, name: str, scratch: Path) -> Path | None:
    """The file with a site's private key that is in the coordinator's folder, in archives too."""
    for path in (project / "kits").glob("*.zip"):
        shutil.unpack_archive(path, scratch / path.stem)
    certificate = read_certificate(project / "authority" / "issued" / f"{name}.crt")
    for path in [*project.rglob("*.key"), *scratch.rglob("*.key")]:
        if read_key(path).public_key() == certificate.public_key():
            return path
    return None


def certify_own_key(project: Path, name: str, folder: Path) -> Path:
    """A key that the coordinator makes and certifies in a site's name."""
    key = make_key(folder / f"{name}.key")
    Authority(project / "authority").sign(name, key.public_key())
    return folder / f"{name}.key"


@pytest.mark.usefixtures("_mask_of_everybody")
@pytest.mark.parametrize("way", ["as before", "now"])
def test_a_coordinator_is_a_site_only_where_it_has_that_sites_key(
    way: str, tables: dict[str, Path], tmp_path: Path
) -> None:
    """It answers as b and c with records of its own, so the total would be site a's gradient.

    Site a has accepted the true keys of b and c: they are the ones that the kits hold.
    """
    project = tmp_path / "project"
    create_project(project, "localhost:8443", SITES)
    kits = {name: tmp_path / "sites" / name for name in SITES}
    (enrol_as_before if way == "as before" else enrol)(project, kits)
    # Whoever has an account on the coordinator's machine could read the kits too.
    readable = {path.name for path in (project / "kits").iterdir() if open_to_others(path)}
    assert readable == ({"a.zip", "b.zip", "c.zip"} if way == "as before" else set())
    found = {name: find_key(project, name, tmp_path / "unpacked") for name in SITES}
    assert all(found.values()) == (way == "as before")
    assert any(found.values()) == (way == "as before")
    taken = {}
    for name in ("b", "c"):
        key = found[name] or certify_own_key(project, name, tmp_path)
        shown = tmp_path / f"{name}.crt"
        write_pem(shown, read_certificate(project / "authority" / "issued" / shown.name))
        root = project / "authority" / "rootCA.pem"
        taken[name] = Identity(shown, key, root, tmp_path / f"{name}.json")
    for own in taken.values():
        accept_keys(own, {"a": identify(kits["a"])} | taken)
    real = make_door(tables["a"], "a", identity=identify(kits["a"]))
    shams = {name: make_door(tables[name], name, identity=own) for name, own in taken.items()}
    if way == "as before":
        assert be_all_others(real, shams, tables) < 1e-11
    else:
        words = "site 'b' has another key than the one accepted here"
        with pytest.raises(FedLassoError, match=words):
            be_all_others(real, shams, tables)
