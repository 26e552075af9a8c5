"""Keys made at the site, certificates, and who may read what a project and a kit write."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare")

from helpers.nets import open_to_others, run

from fedlasso import FedLassoError
from fedlasso.deploy.authority import (
    Authority,
    make_key,
    read_certificate,
    write_pem,
)
from fedlasso.deploy.kit import PEERS, accept, check_certificate, read_kit, request
from fedlasso.deploy.nvflare.local import enrol
from fedlasso.deploy.nvflare.project import create_project, read_project, renew, sign_request, warn
from fedlasso.governance.identity import read_peers


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


def anybody(name: str, fingerprint: str, changed: bool) -> bool:
    """Whoever compares nothing."""
    return True


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
    accepted = capsys.readouterr().out
    assert "it expires on 20" in accepted
    assert "Takes part with no other site yet" in accepted
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
    with pytest.raises(FedLassoError, match=r"has no key yet; run `fedlasso site request"):
        accept(north, project / "authority" / "rootCA.pem", anybody)
    signed, _ = sign_request(project, request(north)[0])
    request(south)
    with pytest.raises(FedLassoError, match=r"is not for site 'south'"):
        accept(south, signed, anybody)
    other = base / "other"
    create_project(other, "localhost:8443", ["north"])
    with pytest.raises(FedLassoError, match=r"is a request for another project, not 'other'"):
        sign_request(other, north / "north.csr")
    twin = base / "elsewhere" / "north"
    enrol(other, {"north": twin})
    with pytest.raises(FedLassoError, match=r"is not signed by project 'trial'"):
        accept(north, twin / "startup" / "client.crt", anybody)
    csr = (north / "north.csr").read_text().replace("M", "N", 1)
    (base / "bent.csr").write_text(csr)
    with pytest.raises(FedLassoError, match=r"bent.csr"):
        sign_request(project, base / "bent.csr")
    accept(north, signed, anybody)


def test_a_second_key_takes_the_place_of_the_first_only_if_told(base: Path) -> None:
    project = base / "trial"
    north = unpack(base)
    first, _ = sign_request(project, request(north)[0])
    accept(north, first, anybody)
    # The same key is renewed at any time.
    again, _ = sign_request(project, request(north, renew=True)[0])
    accept(north, again, anybody)
    thief = unpack(base, to="thief")
    asked, _ = request(thief)
    with pytest.raises(FedLassoError, match=r"site 'north' already has another key.*--replace"):
        sign_request(project, asked)
    before = read_certificate(north / "startup" / "client.crt").serial_number
    replaced, _ = sign_request(project, asked, replace_key=True)
    with pytest.raises(FedLassoError, match=r"is for another key than this kit's"):
        accept(north, replaced, anybody)
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
    accept(east, signed, anybody)
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
    accept(north, sign_request(project, request(north)[0])[0], anybody)
    shift = timedelta(days=340)

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Later":
            return cls.fromtimestamp((datetime.now(UTC) + shift).timestamp(), tz)

    monkeypatch.setattr("fedlasso.deploy.authority.datetime", Later)
    (warning,) = check_certificate(north, read_kit(north))
    assert "the certificate client.crt of 'north' expires on" in warning
    assert "`fedlasso site request" in warning
    server = project / "server"
    (warning,) = check_certificate(server, read_kit(server, "server"))
    assert "`fedlasso federation renew`" in warning
    # The coordinator knows of everybody's.
    assert ["'localhost'" in line for line in warn(project)] == [True, False]
    assert "the certificate north.crt of 'north' expires on" in warn(project)[1]
    renew(project)
    for role in ("server", "coordinator"):
        assert check_certificate(project / role, read_kit(project / role, role)) == []
    accept(north, sign_request(project, request(north, renew=True)[0])[0], anybody)
    assert check_certificate(north, read_kit(north)) == []
    assert warn(project) == []
    assert open_to_others(project) == []


class Operator:
    """Whoever accepts at a site, says yes to some, and notes what was asked."""

    def __init__(self, *trusted: str) -> None:
        self.trusted = trusted
        self.asked: list[str] = []

    def __call__(self, text: str) -> str:
        name = text.split("'")[1]
        self.asked.append(name)
        return "y" if name in self.trusted else "n"


def fingerprint_in(text: str, name: str) -> str:
    """The fingerprint that a command has printed for a site."""
    lines = text.splitlines()
    (at,) = [k for k, line in enumerate(lines) if f"ey of '{name}'" in line]
    return lines[at + 1]


def test_keys_of_other_sites_are_shown_and_accepted_one_by_one(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = base / "trial"
    assert run("federation", "add", project, "--site", "west") == 0
    kits = {name: unpack(base, name) for name in ("north", "south", "west")}
    own = {}
    for name, kit in kits.items():
        capsys.readouterr()
        assert run("site", "request", kit) == 0
        own[name] = fingerprint_in(capsys.readouterr().out, name)
    north = kits["north"]
    requests = [kit / f"{name}.csr" for name, kit in kits.items()]
    assert run("federation", "sign", project, *requests[:2]) == 0
    assert "Not signed yet: west" in capsys.readouterr().out
    assert run("federation", "sign", project, requests[2]) == 0
    assert "Not signed yet" not in capsys.readouterr().out
    north_file = project / "kits" / "north.crt"

    def accept_with(operator: Operator) -> str:
        monkeypatch.setattr("builtins.input", operator)
        capsys.readouterr()
        assert run("site", "accept", north, north_file) == 0
        return capsys.readouterr().out

    operator = Operator("south")
    said = accept_with(operator)
    # What is shown is what those sites themselves have seen.
    assert operator.asked == ["south", "west"]
    assert [fingerprint_in(said, name) for name in operator.asked] == [own["south"], own["west"]]
    assert "Takes part with south\n" in said
    # Only those that are not known here are asked about again.
    operator = Operator("west")
    assert "Takes part with south, west\n" in accept_with(operator)
    assert operator.asked == ["west"]
    # A site that joins is asked about at each, and a new key of a known one is said to be another.
    assert run("federation", "add", project, "--site", "east") == 0
    newer = unpack(base, "south", "newer")
    for kit in (unpack(base, "east"), newer):
        sign_request(project, request(kit)[0], replace_key=True)
    operator = Operator("east")
    said = accept_with(operator)
    assert operator.asked == ["south", "east"]
    assert "CHANGED key of 'south'" in said
    assert "Takes part with east, south, west\n" in said
    kept = read_peers(north / PEERS)
    assert kept["south"] == own["south"].replace(" ", "")
    assert open_to_others(north) == []
    # A site that was revoked is not listed any more.
    assert run("federation", "revoke", project, "west") == 0
    assert "Takes part with east, south\n" in accept_with(Operator())


def test_nobody_at_the_terminal_is_no_yes(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = base / "trial"
    kits = {name: unpack(base, name) for name in ("north", "south")}
    for kit in kits.values():
        sign_request(project, request(kit)[0])

    def nobody(text: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    given = ("site", "accept", kits["north"], project / "kits" / "north.crt")
    assert run(*given) == 2
    assert "use --yes if you compared them" in capsys.readouterr().err
    assert read_peers(kits["north"] / PEERS) == {}
    assert run(*given, "--yes") == 0
    assert "Takes part with south\n" in capsys.readouterr().out


def test_a_name_that_would_steer_the_terminal_is_not_shown(base: Path) -> None:
    project = base / "trial"
    north = unpack(base)
    signed, _ = sign_request(project, request(north)[0])
    authority = Authority(project / "authority")
    sham = "south\x1b[2J"
    certificate = authority.sign(sham, make_key(base / "sham.key").public_key())
    write_pem(signed, read_certificate(signed), certificate)
    with pytest.raises(
        FedLassoError, match=r"'south\\x1b\[2J' in a certificate is not a name of a site"
    ):
        accept(north, signed, anybody)
    # Nor is a key accepted that somebody else has certified.
    other = Authority.create(base / "elsewhere", "trial")
    certificate = other.sign("south", make_key(base / "sham.key").public_key())
    write_pem(signed, read_certificate(signed), certificate)
    with pytest.raises(FedLassoError, match=r"is not signed by project 'trial'"):
        accept(north, signed, anybody)
