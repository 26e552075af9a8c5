"""A project: a server, a coordinator and sites; its authority signs the keys that they make."""

import contextlib
import io
import json
import logging
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from fedlasso import __version__
from fedlasso.atomic_files import write_atomically
from fedlasso.deploy import authority
from fedlasso.deploy.authority import Authority
from fedlasso.deploy.kit import HOST, NAME, Kit, read_kit, seal_kit
from fedlasso.deploy.nvflare.job import CLASSES
from fedlasso.errors import FedLassoError

COORDINATOR = "coordinator@fedlasso.org"
# The engine's log, in its folder.
LOG = "log.txt"


@dataclass(frozen=True)
class Project:
    """Participants and the server's address."""

    name: str
    host: str
    port: int
    sites: tuple[str, ...]
    version: str


def read_project(folder: Path, group: str = "federation") -> Project:
    """Return the project in a folder; `group` is that of the command that makes one."""
    try:
        return msgspec.json.decode((folder / "project.json").read_bytes(), type=Project)
    except (OSError, ValueError):
        init = f"`fedlasso {group} init {folder}`"
        raise FedLassoError(f"{folder} contains no project; make one with {init}") from None


@contextlib.contextmanager
def keep_quiet() -> Iterator[None]:
    """Suppress what the engine prints and logs."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def create_project(folder: Path, server: str | None, sites: Sequence[str]) -> Project:
    """Make a project: keys for server and coordinator, and a kit without a key for each site.

    Without a server the sites take part by files.
    """
    host, port = ("", "0") if server is None else _read_address(server)
    if not sites:
        raise FedLassoError("a federation needs at least one --site")
    _check_names(sites)
    if folder.exists() and any(folder.iterdir()):
        raise FedLassoError(f"{folder} is not empty; choose a new folder for the project")
    name = re.sub(r"[^A-Za-z0-9_-]", "-", folder.resolve().name)[:40] or "project"
    project = Project(name, host, int(port), tuple(sites), __version__)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    signer = Authority.create(folder / "authority", name)
    roles = [(COORDINATOR, "coordinator"), *([(host, "server")] if host else [])]
    for who, role in roles:
        kit = Kit(name, who, role, host, project.port, {})
        write_settings(folder / role, kit)
        if role == "server":
            shutil.copy(signer.revoked, folder / role / "startup")
        _certify(folder / role, kit, signer)
    (folder / "kits").mkdir(mode=0o700)
    for site in sites:
        _pack_kit(folder, project, site)
    _write_project(folder, project)
    if host:
        _write_instructions(folder / "server", "server", project, host)
    _write_instructions(folder, "coordinator", project, str(folder))
    return project


def _read_address(server: str) -> tuple[str, str]:
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise FedLassoError(f"--server {server!r}: give HOST:PORT, e.g. fed.example.org:8443")
    if not HOST.fullmatch(host):
        raise FedLassoError(f"--server {host!r} is not the name of a host")
    return host, port


def _check_names(sites: Sequence[str], known: Sequence[str] = ()) -> None:
    for site in sites:
        if not NAME.fullmatch(site):
            raise FedLassoError(f"site {site!r}: use letters, digits, - and _")
        if site == "server":
            raise FedLassoError("no site can be called 'server'; choose another name")
        if [*known, *sites].count(site) > 1:
            raise FedLassoError(f"two sites are called {site!r}; give each its own name")


def _write_project(folder: Path, project: Project) -> None:
    data = json.dumps(asdict(project), indent=1).encode()
    write_atomically(folder / "project.json", data, private=True)


def _certify(folder: Path, kit: Kit, signer: Authority) -> None:
    """Give server or coordinator a certificate for its key, which is made at first."""
    path = folder / kit.key
    key = authority.read_key(path) if path.exists() else authority.make_key(path)
    role = "project_admin" if kit.role == "coordinator" else ""
    certificate = signer.sign(kit.name, key.public_key(), role)
    authority.write_pem(folder / kit.certificate, certificate)
    shutil.copy(signer.root, folder / "startup")
    seal_kit(folder, kit)


def _pack_kit(folder: Path, project: Project, site: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / site
        kit = Kit(project.name, site, "site", project.host, project.port, {})
        (place / "startup").mkdir(parents=True)
        shutil.copy(Authority(folder / "authority").root, place / "startup")
        _write_instructions(place, "site", project, site)
        seal_kit(place, kit)
        packed = Path(shutil.make_archive(str(folder / "kits" / site), "zip", scratch, site))
    packed.chmod(0o600)


def add_sites(folder: Path, sites: Sequence[str]) -> None:
    """Add sites to a project, and write a kit without a key for each."""
    project = read_project(folder)
    if not sites:
        raise FedLassoError("name at least one --site to add")
    _check_names(sites, project.sites)
    for site in sites:
        _pack_kit(folder, project, site)
    _write_project(folder, replace(project, sites=(*project.sites, *sites)))


def sign_request(folder: Path, path: Path, replace_key: bool = False) -> tuple[Path, str]:
    """Sign a site's request; return the certificate's file and the key's fingerprint.

    Each site's file also lists the certificates of all other sites. A second key for a site is
    refused unless `replace_key`, which revokes the first.
    """
    # Imported late: a site that only waits does not need this room.
    from fedlasso.governance.identity import fingerprint_of

    project = read_project(folder)
    name, key = authority.read_request(path, project.name)
    check_site(project, name)
    signer = Authority(folder / "authority")
    before = signer.issued(name)
    if before is not None and before.public_key() != key and not replace_key:
        remedy = "if it lost that key, confirm this by telephone and use --replace"
        raise FedLassoError(f"site {name!r} already has another key; {remedy}")
    certificate = signer.sign(name, key)
    _write_certificates(folder, project, signer)
    fingerprint = authority.format_fingerprint(fingerprint_of(certificate))
    return folder / "kits" / f"{name}.crt", fingerprint


def revoke_site(folder: Path, name: str) -> Project:
    """Exclude a site from all fits, and revoke its certificate."""
    project = read_project(folder)
    check_site(project, name)
    project = replace(project, sites=tuple(site for site in project.sites if site != name))
    _write_project(folder, project)
    signer = Authority(folder / "authority")
    signer.revoke(name)
    for suffix in ("zip", "crt"):
        (folder / "kits" / f"{name}.{suffix}").unlink(missing_ok=True)
    _write_certificates(folder, project, signer)
    return project


def renew(folder: Path) -> None:
    """Give server and coordinator new certificates for their keys."""
    project = read_project(folder)
    signer = Authority(folder / "authority")
    for role in ("server", "coordinator") if project.host else ("coordinator",):
        _certify(folder / role, read_kit(folder / role, role), signer)


def warn(folder: Path) -> list[str]:
    """Return warnings about the certificates of server and sites."""
    warnings = []
    for path in sorted((folder / "authority" / "issued").glob("*.crt")):
        try:
            warnings += authority.check_dates(path, path.stem, "renew it")
        except FedLassoError as error:
            warnings.append(str(error))
    return [warning for warning in warnings if COORDINATOR not in warning]


def check_site(project: Project, name: str) -> None:
    """Refuse a name that is not a site of the project."""
    if name not in project.sites:
        known = ", ".join(project.sites) or "none"
        raise FedLassoError(f"no site is called {name!r}; the sites are {known}")


def list_unsigned(folder: Path) -> list[str]:
    """Return the sites without a certificate."""
    signer = Authority(folder / "authority")
    return [site for site in read_project(folder).sites if signer.issued(site) is None]


def _write_certificates(folder: Path, project: Project, signer: Authority) -> None:
    """Write each site's own certificate followed by the others', and the server's revocations."""
    issued = {site: signer.issued(site) for site in project.sites}
    signed = {site: each for site, each in issued.items() if each is not None}
    for site, own in signed.items():
        others = [each for name, each in signed.items() if name != site]
        authority.write_pem(folder / "kits" / f"{site}.crt", own, *others)
    if not project.host:
        return
    server = folder / "server"
    kit = read_kit(server, "server")
    shutil.copy(signer.revoked, server / "startup")
    seal_kit(server, kit)


def _write_instructions(place: Path, role: str, project: Project, name: str) -> None:
    room = "nvflare" if project.host else "courier"
    text = (files(f"fedlasso.deploy.{room}") / "instructions" / f"{role}.md").read_text()
    values = asdict(project) | {"who": name, "sites": ", ".join(project.sites)}
    write_atomically(place / "INSTRUCTIONS.md", text.format(**values).encode(), private=True)


def write_settings(folder: Path, kit: Kit) -> None:
    """Write the engine's settings for a kit: `settings.toml` lists the files of each role.

    A kit for a fit by files has none.
    """
    if not kit.host:
        (folder / "startup").mkdir(parents=True)
        return
    text = (files("fedlasso.deploy.nvflare") / "settings.toml").read_text(encoding="utf-8")
    listed = tomllib.loads(text)
    settings = listed[kit.role]
    if kit.role != "coordinator":
        settings = _merge(listed["engine"], settings)
    values = {"project": kit.project, "name": kit.name, "host": kit.host, "port": kit.port}
    for name, content in _fill(settings, values | {"log": LOG, "classes": CLASSES}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1))
    if kit.role == "coordinator":
        (folder / "transfer").mkdir()


def _merge(common: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Merge nested tables; values of `own` take precedence."""
    merged = common | own
    for name in common.keys() & own.keys():
        if isinstance(common[name], dict):
            merged[name] = _merge(common[name], own[name])
    return merged


def _fill(content: Any, values: dict[str, Any]) -> Any:
    """Replace names in braces; a text that is only such a name becomes its value, of any type."""
    if isinstance(content, dict):
        return {name: _fill(inner, values) for name, inner in content.items()}
    if isinstance(content, list):
        return [_fill(inner, values) for inner in content]
    if not isinstance(content, str):
        return content
    whole = [value for name, value in values.items() if content == f"{{{name}}}"]
    return whole[0] if whole else content.format(**values)
