"""A project: a server, a coordinator and sites; its authority signs the keys that they make."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path

import msgspec

from fedlasso import __version__
from fedlasso.deploy.nvflare import settings
from fedlasso.deploy.nvflare.authority import (
    Authority,
    check_dates,
    fingerprint,
    make_key,
    read_key,
    read_request,
    write_certificates,
)
from fedlasso.deploy.nvflare.kit import NAME, Kit, read_kit, seal
from fedlasso.errors import FedLassoError
from fedlasso.files import write_atomically

COORDINATOR = "coordinator@fedlasso.org"


@dataclass(frozen=True)
class Project:
    """Who takes part, and where the server listens."""

    name: str
    host: str
    port: int
    sites: tuple[str, ...]
    version: str


def read_project(folder: Path) -> Project:
    """Read the project in a folder."""
    try:
        return msgspec.json.decode((folder / "project.json").read_bytes(), type=Project)
    except (OSError, ValueError):
        raise FedLassoError(
            f"{folder} holds no project; begin with `fedlasso federation init {folder}`"
        ) from None


@contextlib.contextmanager
def keep_quiet() -> Iterator[None]:
    """Neither prints nor logs of the engine reach the terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def create_project(folder: Path, server: str, sites: Sequence[str]) -> Project:
    """Make a project: server and coordinator with their keys, and a kit without key per site."""
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise FedLassoError(f"--server {server!r}: give HOST:PORT, e.g. fed.example.org:8443")
    # A certificate's name has 64 characters at most.
    if not re.fullmatch(r"[A-Za-z0-9.-]{1,64}", host):
        raise FedLassoError(f"--server {host!r} is not the name of a host")
    if not sites:
        raise FedLassoError("a federation needs at least one --site")
    _check_names(sites)
    if folder.exists() and any(folder.iterdir()):
        raise FedLassoError(f"{folder} is not empty; choose a new folder for the project")
    name = re.sub(r"[^A-Za-z0-9_-]", "-", folder.resolve().name)[:40] or "project"
    project = Project(name, host, int(port), tuple(sites), __version__)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    authority = Authority.create(folder / "authority", name)
    settings.write_server(folder / "server", name, host, project.port)
    shutil.copy(authority.revoked, folder / "server" / "startup")
    told = _instructions("server", project, host)
    write_atomically(folder / "server" / "INSTRUCTIONS.md", told, private=True)
    _admit(folder / "server", Kit(name, host, "server", host, project.port, {}), authority)
    settings.write_coordinator(folder / "coordinator", name, COORDINATOR, host, project.port)
    kit = Kit(name, COORDINATOR, "coordinator", host, project.port, {})
    _admit(folder / "coordinator", kit, authority)
    (folder / "kits").mkdir(mode=0o700)
    for site in sites:
        _pack(folder, project, site)
    _write(folder, project)
    write_atomically(
        folder / "INSTRUCTIONS.md", _instructions("coordinator", project, str(folder)), private=True
    )
    return project


def _check_names(sites: Sequence[str], known: Sequence[str] = ()) -> None:
    for site in sites:
        if not NAME.fullmatch(site):
            raise FedLassoError(f"site {site!r}: use letters, digits, - and _")
        if site == "server":
            raise FedLassoError("no site can be called 'server'; choose another name")
        if [*known, *sites].count(site) > 1:
            raise FedLassoError(f"two sites are called {site!r}; give each its own name")


def _write(folder: Path, project: Project) -> None:
    told = json.dumps(asdict(project), indent=1).encode()
    write_atomically(folder / "project.json", told, private=True)


def _admit(folder: Path, kit: Kit, authority: Authority) -> None:
    """Give the server or the coordinator a certificate for the key in its kit, made if need be."""
    place = folder / kit.key
    key = read_key(place) if place.exists() else make_key(place)
    role = "project_admin" if kit.role == "coordinator" else ""
    write_certificates(folder / kit.certificate, authority.sign(kit.name, key.public_key(), role))
    shutil.copy(authority.root, folder / "startup")
    seal(folder, kit)


def _pack(folder: Path, project: Project, site: str) -> Path:
    """Write a site's kit, without a key, as an archive."""
    with tempfile.TemporaryDirectory() as scratch:
        kit = Path(scratch) / site
        settings.write_site(kit, project.name, site, project.host, project.port)
        shutil.copy(Authority(folder / "authority").root, kit / "startup")
        (kit / "INSTRUCTIONS.md").write_bytes(_instructions("site", project, site))
        seal(kit, Kit(project.name, site, "site", project.host, project.port, {}))
        packed = Path(shutil.make_archive(str(folder / "kits" / site), "zip", scratch, site))
    packed.chmod(0o600)
    return packed


def add_sites(folder: Path, sites: Sequence[str]) -> Project:
    """Let more sites take part: each gets a kit without key."""
    project = read_project(folder)
    if not sites:
        raise FedLassoError("name at least one --site to add")
    _check_names(sites, project.sites)
    for site in sites:
        _pack(folder, project, site)
    project = replace(project, sites=(*project.sites, *sites))
    _write(folder, project)
    return project


def sign_request(folder: Path, path: Path, replace_key: bool = False) -> tuple[Path, str]:
    """Sign a site's request; return the certificate's file and the key's fingerprint.

    The file holds the certificates of all other sites too, and theirs hold this one's. A second key
    for a site is refused unless it shall replace the first, which is revoked.
    """
    project = read_project(folder)
    name, key = read_request(path, project.name)
    _check_site(project, name)
    authority = Authority(folder / "authority")
    before = authority.issued(name)
    if before is not None and before.public_key() != key and not replace_key:
        raise FedLassoError(
            f"site {name!r} has another key already; if it has lost that one, ask it by telephone "
            "and say --replace"
        )
    authority.sign(name, key)
    _tell_sites(folder, project, authority)
    _tell_server(folder, authority)
    return folder / "kits" / f"{name}.crt", fingerprint(key)


def revoke_site(folder: Path, name: str) -> Project:
    """Let a site take part no longer: fits do not name it, and the server refuses it."""
    project = read_project(folder)
    _check_site(project, name)
    project = replace(project, sites=tuple(site for site in project.sites if site != name))
    _write(folder, project)
    authority = Authority(folder / "authority")
    authority.revoke(name)
    for suffix in ("zip", "crt"):
        (folder / "kits" / f"{name}.{suffix}").unlink(missing_ok=True)
    _tell_sites(folder, project, authority)
    _tell_server(folder, authority)
    return project


def renew(folder: Path) -> None:
    """Give server and coordinator new certificates for the keys that they have."""
    read_project(folder)
    authority = Authority(folder / "authority")
    for role in ("server", "coordinator"):
        _admit(folder / role, read_kit(folder / role, role), authority)


def warn(folder: Path) -> list[str]:
    """Return warnings of the certificates that the server and the sites have, where known here."""
    told = []
    for path in sorted((folder / "authority" / "issued").glob("*.crt")):
        try:
            told.append(check_dates(path, path.stem, "it must be renewed"))
        except FedLassoError as error:
            told.append(str(error))
    return [warning for warning in told if warning and COORDINATOR not in warning]


def _check_site(project: Project, name: str) -> None:
    if name not in project.sites:
        raise FedLassoError(
            f"no site is called {name!r}; the sites are {', '.join(project.sites) or 'none'}"
        )


def list_unsigned(folder: Path) -> list[str]:
    """Return the sites that have no certificate yet."""
    authority = Authority(folder / "authority")
    return [site for site in read_project(folder).sites if authority.issued(site) is None]


def _tell_sites(folder: Path, project: Project, authority: Authority) -> None:
    """Write what each site is sent: its own certificate, and after it those of all others."""
    issued = {site: authority.issued(site) for site in project.sites}
    signed = {site: each for site, each in issued.items() if each is not None}
    for site, own in signed.items():
        others = [each for name, each in signed.items() if name != site]
        write_certificates(folder / "kits" / f"{site}.crt", own, *others)


def _tell_server(folder: Path, authority: Authority) -> None:
    """Give the server the list of revoked certificates, which it reads when it starts."""
    server = folder / "server"
    kit = read_kit(server, "server")
    shutil.copy(authority.revoked, server / "startup")
    seal(server, kit)


def _instructions(role: str, project: Project, name: str) -> bytes:
    text = (files("fedlasso.deploy.nvflare") / "instructions" / f"{role}.md").read_text()
    values = asdict(project) | {"who": name, "sites": ", ".join(project.sites)}
    return text.format(**values).encode()
