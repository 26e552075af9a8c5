"""Keys made at the site, certificates, and who may read what a project and a kit write."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare")

from nets import open_to_others, run

from fedlasso import FedLassoError
from fedlasso.deploy.nvflare.authority import Authority, read_certificate
from fedlasso.deploy.nvflare.kit import accept, check_certificate, read_kit, request
from fedlasso.deploy.nvflare.local import enrol
from fedlasso.deploy.nvflare.project import create_project, read_project, renew, sign_request, warn


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project and the kits of its sites, made by the commands, as everybody's mask has it."""
    base = tmp_path_factory.mktemp("made")
    sites = ("--site", "north", "--site", "south")
    assert run("federation", "init", base / "trial", "--server", "localhost:8443", *sites) == 0
    return base


@pytest.fixture
def base(made: Path, tmp_path: Path) -> Path:
    """A copy, to spoil."""
    return Path(shutil.copytree(made, tmp_path / "base"))


def unpack(base: Path, site: str = "north", to: str = "sites") -> Path:
    shutil.unpack_archive(base / "trial" / "kits" / f"{site}.zip", base / to)
    return base / to / site


def private_keys(folder: Path) -> set[str]:
    """Names of the files that hold a private key, in archives too."""
    found = set()
    for path in folder.rglob("*.zip"):
        shutil.unpack_archive(path, path.with_suffix(".unpacked"))
    for path in folder.rglob("*"):
        if path.is_file() and b"PRIVATE KEY" in path.read_bytes():
            found.add(str(path.relative_to(folder)))
    return found


def test_from_request_to_certificate_and_the_coordinator_never_has_the_key(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kit = unpack(base)
    project = base / "trial"
    assert run("site", "request", kit) == 0
    asked = capsys.readouterr().out
    assert run("federation", "sign", project, kit / "north.csr") == 0
    signed = capsys.readouterr().out
    # Both see the same fingerprint.
    (print_here,) = [line for line in asked.splitlines() if line.startswith("  ")]
    assert print_here in signed.splitlines()
    assert len(print_here.split()) == 16
    assert run("site", "check", kit, base / "none.csv") == 2
    assert "has no certificate yet" in capsys.readouterr().err
    assert run("site", "accept", kit, project / "kits" / "north.crt") == 0
    assert "it ends on 20" in capsys.readouterr().out
    assert check_certificate(kit, read_kit(kit)) == []
    assert open_to_others(project) == []
    assert open_to_others(kit) == []
    assert private_keys(kit) == {"startup/client.key"}
    assert private_keys(project) == {
        "authority/root.key", "server/startup/server.key", "coordinator/startup/client.key",
    }  # fmt: skip
    key = (kit / "startup" / "client.key").read_bytes()
    assert not [p for p in project.rglob("*") if p.is_file() and key in p.read_bytes()]


def test_a_certificate_must_fit_key_site_and_project(base: Path) -> None:
    project = base / "trial"
    north, south = unpack(base, "north"), unpack(base, "south")
    with pytest.raises(FedLassoError, match=r"has no key yet; begin with `fedlasso site request"):
        accept(north, project / "authority" / "rootCA.pem")
    signed, _ = sign_request(project, request(north)[0])
    request(south)
    with pytest.raises(FedLassoError, match=r"is not for site 'south'"):
        accept(south, signed)
    other = base / "other"
    create_project(other, "localhost:8443", ["north"])
    with pytest.raises(FedLassoError, match=r"is a request of another project than 'other'"):
        sign_request(other, north / "north.csr")
    twin = base / "elsewhere" / "north"
    enrol(other, "north", twin)
    with pytest.raises(FedLassoError, match=r"is not signed by project 'trial'"):
        accept(north, twin / "startup" / "client.crt")
    csr = (north / "north.csr").read_text().replace("M", "N", 1)
    (base / "bent.csr").write_text(csr)
    with pytest.raises(FedLassoError, match=r"bent.csr"):
        sign_request(project, base / "bent.csr")
    accept(north, signed)


def test_a_second_key_takes_the_place_of_the_first_only_if_told(base: Path) -> None:
    project = base / "trial"
    north = unpack(base)
    first, _ = sign_request(project, request(north)[0])
    accept(north, first)
    # The same key is renewed at any time.
    again, _ = sign_request(project, request(north)[0])
    accept(north, again)
    thief = unpack(base, to="thief")
    asked, _ = request(thief)
    with pytest.raises(FedLassoError, match=r"site 'north' has another key already.*--replace"):
        sign_request(project, asked)
    before = read_certificate(north / "startup" / "client.crt").serial_number
    replaced, _ = sign_request(project, asked, replace_key=True)
    with pytest.raises(FedLassoError, match=r"is for another key than the one here"):
        accept(north, replaced)
    assert is_revoked(project, before)
    # The server's own copy says so too, under its seal.
    read_kit(project / "server", "server")
    assert (project / "server" / "startup" / "revoked.pem").read_bytes() == (
        project / "authority" / "revoked.pem"
    ).read_bytes()


def is_revoked(project: Path, serial: int) -> bool:
    from cryptography import x509

    listed = x509.load_pem_x509_crl(Authority(project / "authority").revoked.read_bytes())
    return listed.get_revoked_certificate_by_serial_number(serial) is not None


def test_sites_are_added_and_revoked(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = base / "trial"
    assert run("federation", "add", project, "--site", "east") == 0
    assert "east.zip" in capsys.readouterr().out
    east = unpack(base, "east")
    signed, _ = sign_request(project, request(east)[0])
    accept(east, signed)
    serial = read_certificate(signed).serial_number
    assert run("federation", "revoke", project, "east") == 0
    assert read_project(project).sites == ("north", "south")
    assert is_revoked(project, serial)
    assert not signed.exists()
    with pytest.raises(FedLassoError, match=r"no site is called 'east'"):
        sign_request(project, east / "east.csr")
    # A site that never had a certificate can be revoked too, and the name be used again.
    assert run("federation", "revoke", project, "south") == 0
    assert run("federation", "add", project, "--site", "east") == 0
    assert read_project(project).sites == ("north", "east")
    assert open_to_others(project) == []


def test_everybody_is_warned_in_time_and_renews(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = base / "trial"
    north = unpack(base)
    accept(north, sign_request(project, request(north)[0])[0])
    shift = timedelta(days=340)

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Later":
            return cls.fromtimestamp((datetime.now(UTC) + shift).timestamp(), tz)

    monkeypatch.setattr("fedlasso.deploy.nvflare.authority.datetime", Later)
    (warning,) = check_certificate(north, read_kit(north))
    assert "the certificate client.crt of 'north' ends on" in warning
    assert "`fedlasso site request" in warning
    server = project / "server"
    (warning,) = check_certificate(server, read_kit(server, "server"))
    assert "`fedlasso federation renew`" in warning
    # The coordinator knows of everybody's.
    assert ["'localhost'" in line for line in warn(project)] == [True, False]
    assert "the certificate north.crt of 'north' ends on" in warn(project)[1]
    renew(project)
    for role in ("server", "coordinator"):
        assert check_certificate(project / role, read_kit(project / role, role)) == []
    accept(north, sign_request(project, request(north)[0])[0])
    assert check_certificate(north, read_kit(north)) == []
    assert warn(project) == []
    assert open_to_others(project) == []
