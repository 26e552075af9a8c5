"""A project: a server, a coordinator and sites; its authority signs the keys that they make."""

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
from fedlasso.atomic_files import write_atomically
from fedlasso.deploy.authority import (
    Authority,
    check_dates,
    make_key,
    read_key,
    read_request,
    spell,
    write_certificates,
)
from fedlasso.deploy.kit import NAME, Kit, read_kit, seal
from fedlasso.deploy.nvflare.engine_settings import write_settings
from fedlasso.errors import FedLassoError

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
        init = f"`fedlasso federation init {folder}`"
        raise FedLassoError(f"{folder} holds no project; begin with {init}") from None


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
    for who, role in ((host, "server"), (COORDINATOR, "coordinator")):
        kit = Kit(name, who, role, host, project.port, {})
        write_settings(folder / role, kit)
        if role == "server":
            shutil.copy(authority.revoked, folder / role / "startup")
        _admit(folder / role, kit, authority)
    (folder / "kits").mkdir(mode=0o700)
    for site in sites:
        _pack(folder, project, site)
    _write(folder, project)
    _instruct(folder / "server", "server", project, host)
    _instruct(folder, "coordinator", project, str(folder))
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


def _pack(folder: Path, project: Project, site: str) -> None:
    """Write a site's kit, without a key, as an archive."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / site
        kit = Kit(project.name, site, "site", project.host, project.port, {})
        write_settings(place, kit)
        shutil.copy(Authority(folder / "authority").root, place / "startup")
        _instruct(place, "site", project, site)
        seal(place, kit)
        packed = Path(shutil.make_archive(str(folder / "kits" / site), "zip", scratch, site))
    packed.chmod(0o600)


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
    # A site that only waits does not need this room.
    from fedlasso.governance.identity import fingerprint_of

    project = read_project(folder)
    name, key = read_request(path, project.name)
    check_site(project, name)
    authority = Authority(folder / "authority")
    before = authority.issued(name)
    if before is not None and before.public_key() != key and not replace_key:
        remedy = "if it has lost that one, ask it by telephone and say --replace"
        raise FedLassoError(f"site {name!r} has another key already; {remedy}")
    certificate = authority.sign(name, key)
    _tell(folder, project, authority)
    return folder / "kits" / f"{name}.crt", spell(fingerprint_of(certificate))


def revoke_site(folder: Path, name: str) -> Project:
    """Let a site take part no longer: fits do not name it, and the server refuses it."""
    project = read_project(folder)
    check_site(project, name)
    project = replace(project, sites=tuple(site for site in project.sites if site != name))
    _write(folder, project)
    authority = Authority(folder / "authority")
    authority.revoke(name)
    for suffix in ("zip", "crt"):
        (folder / "kits" / f"{name}.{suffix}").unlink(missing_ok=True)
    _tell(folder, project, authority)
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
            told += check_dates(path, path.stem, "it must be renewed")
        except FedLassoError as error:
            told.append(str(error))
    return [warning for warning in told if COORDINATOR not in warning]


def check_site(project: Project, name: str) -> None:
    """Refuse a name that no site of the project has."""
    if name not in project.sites:
        known = ", ".join(project.sites) or "none"
        raise FedLassoError(f"no site is called {name!r}; the sites are {known}")


def list_unsigned(folder: Path) -> list[str]:
    """Return the sites that have no certificate yet."""
    authority = Authority(folder / "authority")
    return [site for site in read_project(folder).sites if authority.issued(site) is None]


def _tell(folder: Path, project: Project, authority: Authority) -> None:
    """Write what each site is sent, its own certificate and those of all others after it.

    The server gets the list of revoked ones, which it reads when it starts.
    """
    issued = {site: authority.issued(site) for site in project.sites}
    signed = {site: each for site, each in issued.items() if each is not None}
    for site, own in signed.items():
        others = [each for name, each in signed.items() if name != site]
        write_certificates(folder / "kits" / f"{site}.crt", own, *others)
    server = folder / "server"
    kit = read_kit(server, "server")
    shutil.copy(authority.revoked, server / "startup")
    seal(server, kit)


def _instruct(place: Path, role: str, project: Project, name: str) -> None:
    text = (files("fedlasso.deploy.nvflare") / "instructions" / f"{role}.md").read_text()
    values = asdict(project) | {"who": name, "sites": ", ".join(project.sites)}
    write_atomically(place / "INSTRUCTIONS.md", text.format(**values).encode(), private=True)
