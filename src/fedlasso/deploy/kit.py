"""A kit: the folder with which one participant takes part, and what a site keeps in it."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from cryptography.exceptions import InvalidSignature

from fedlasso.atomic_files import write_atomically
from fedlasso.deploy import authority
from fedlasso.errors import FedLassoError

if TYPE_CHECKING:
    from cryptography import x509

    from fedlasso.governance import Audit
    from fedlasso.governance.identity import Identity

# What a site keeps in its kit; the engine has a folder of its own.
PRIVATE = ("books", "memory", "pending")
# How sites may be called: such names are shown, and are names of files.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}")
# The keys of the other sites with which a site takes part.
PEERS = "books/peers.json"
# Is asked of a site's name and its key's fingerprint, and whether it had another key before.
Agree = Callable[[str, str, bool], bool]


@dataclass(frozen=True)
class Kit:
    """Who a kit is for, and the hashes of the files that must not change."""

    project: str
    name: str
    role: str
    host: str
    port: int
    files: dict[str, str]

    @property
    def certificate(self) -> str:
        """The file with the certificate."""
        return f"startup/{'server' if self.role == 'server' else 'client'}.crt"

    @property
    def key(self) -> str:
        """The file with the private key."""
        return self.certificate.replace(".crt", ".key")


def seal(folder: Path, kit: Kit) -> None:
    """Write a kit's identity with the hashes of its files; only its owner may read it."""
    sealed = replace(kit, files=_hashes(folder))
    write_atomically(folder / "kit.json", json.dumps(asdict(sealed), indent=1).encode())
    # The engine's own folder keeps its modes.
    for path in (folder, *folder.glob("*"), *folder.glob("startup/*"), *folder.glob("local/*")):
        path.chmod(0o700 if path.is_dir() else 0o600)


def _hashes(folder: Path) -> dict[str, str]:
    paths = sorted([*folder.glob("startup/*"), *folder.glob("local/*")])
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def read_kit(folder: Path, role: str = "site") -> Kit:
    """Return who a kit is for, once its seal is checked."""
    try:
        kit = msgspec.json.decode((folder / "kit.json").read_bytes(), type=Kit)
    except (OSError, ValueError):
        raise FedLassoError(f"{folder} is no kit; unpack the one you were sent") from None
    if kit.role != role:
        raise FedLassoError(f"{folder} is a kit for a {kit.role}, not for a {role}")
    if _hashes(folder) != kit.files:
        raise FedLassoError(f"{folder}: the seal is broken, files were changed; ask for a new kit")
    return kit


def request(folder: Path) -> tuple[Path, str]:
    """Make a site's private key, if it has none, and write the request to have it signed.

    Returns the request's file and the fingerprint of the public key.
    """
    from fedlasso.governance.identity import fingerprint_of

    kit = read_kit(folder)
    place = folder / kit.key
    key = authority.read_key(place) if place.exists() else authority.make_key(place)
    seal(folder, kit)
    asked = folder / f"{kit.name}.csr"
    authority.write_request(asked, key, kit.name, kit.project)
    return asked, authority.spell(fingerprint_of(key))


def accept(folder: Path, path: Path, agree: Agree) -> tuple[str, list[str]]:
    """Put a signed certificate into a site's kit, once key, certificate and root belong together.

    After it the file has the certificates of the other sites. Their keys are kept too, and this
    site takes part with no others. Of each that is not known here `agree` is asked first, because
    whoever signs certificates could invent sites; without a yes all is as it was for that site.

    Returns the day on which the certificate ends, and the names of the other sites.
    """
    kit = read_kit(folder)
    certificate, *others = authority.read_certificates(path)
    if not (folder / kit.key).exists():
        raise FedLassoError(f"{folder} has no key yet; begin with `fedlasso site request {folder}`")
    if authority.common_name(certificate.subject) != kit.name:
        raise FedLassoError(f"{path} is not for site {kit.name!r}; ask for the right one")
    root = authority.read_certificate(folder / "startup" / "rootCA.pem")
    try:
        for each in (certificate, *others):
            each.verify_directly_issued_by(root)
    except (InvalidSignature, TypeError, ValueError):
        raise FedLassoError(f"{path} is not signed by project {kit.project!r}") from None
    if certificate.public_key() != authority.read_key(folder / kit.key).public_key():
        raise FedLassoError(f"{path} is for another key than the one here; send a new request")
    peers = _accept_peers(folder, others, agree)
    authority.write_certificates(folder / kit.certificate, certificate)
    seal(folder, kit)
    return f"{certificate.not_valid_after_utc:%Y-%m-%d}", peers


def _accept_peers(folder: Path, others: Sequence[x509.Certificate], agree: Agree) -> list[str]:
    """Keep the keys of the sites that are listed; `agree` is asked of those not known here."""
    from fedlasso.governance.identity import fingerprint_of, read_peers

    make_places(folder)
    before = read_peers(folder / PEERS)
    peers = {}
    for each in others:
        name = authority.common_name(each.subject)
        if not NAME.fullmatch(name):
            raise FedLassoError(f"a certificate for {name!r} is listed, and no site is called so")
        told = fingerprint_of(each)
        if before.get(name) == told or agree(name, authority.spell(told), name in before):
            peers[name] = told
        elif name in before:
            peers[name] = before[name]
    write_atomically(folder / PEERS, json.dumps(peers, indent=1).encode(), private=True)
    return sorted(peers)


def check_certificate(folder: Path, kit: Kit) -> list[str]:
    """Refuse certificates that are not valid now; return warnings of those that end soon."""
    if not (folder / kit.certificate).exists():
        raise FedLassoError(
            f"{folder} has no certificate yet; `fedlasso site request {folder}`, have the request "
            f"signed, then `fedlasso site accept {folder} {kit.name}.crt`"
        )
    renew = "`fedlasso federation renew`"
    if kit.role == "site":
        renew = f"`fedlasso site request {folder}` and have it signed again"
    own = authority.check_dates(folder / kit.certificate, kit.name, renew)
    root = folder / "startup" / "rootCA.pem"
    return [*own, *authority.check_dates(root, kit.project, "make a new project")]


def make_places(folder: Path) -> None:
    """Make the folders that a site keeps to itself."""
    for name in PRIVATE:
        (folder / name).mkdir(mode=0o700, exist_ok=True)
        (folder / name).chmod(0o700)


def open_audit(folder: Path) -> Audit:
    """Open the books of a site."""
    # A site that only waits does not need this room.
    from fedlasso.governance import Audit

    return Audit(folder / "books" / "audit.jsonl", folder / "audit.anchor")


def read_key(folder: Path) -> bytes:
    """Return the site's secret for fingerprints, which is drawn once."""
    path = folder / "books" / "key"
    if not path.exists():
        write_atomically(path, secrets.token_bytes(32), private=True)
    return path.read_bytes()


def identify(folder: Path) -> Identity:
    """Return what a site signs with, and what it knows the other sites by."""
    from fedlasso.governance.identity import Identity

    own = folder / "startup" / "client.crt"
    return Identity(own, own.with_suffix(".key"), own.with_name("rootCA.pem"), folder / PEERS)
