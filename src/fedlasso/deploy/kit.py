"""A kit: the folder of one participant, and what a site keeps in it.

A site's kit comes from the coordinator. The site takes from it the project's root certificate, the
server's address and the names of project and site, and nothing else.
"""

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

# A site's folders: audit, ledger and keys; state of procedures; replies that await approval.
PRIVATE_FOLDERS = ("books", "memory", "pending")
# Valid names of sites, which are printed and are names of files.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}")
# Valid names of hosts, which a certificate limits to 64 characters.
HOST = re.compile(r"[A-Za-z0-9.-]{1,64}")
# What a coordinator sends to a site.
SENT = ("kit.json", "INSTRUCTIONS.md", "startup/rootCA.pem")
# What kits of earlier versions had too: settings of the engine, which are not used.
_UNUSED = ("local", "startup/fed_client.json")
# What the site and its engine add.
_ADDED = (
    "startup/client.key", "startup/client.crt", "books", "memory", "pending", "door", "engine",
    "engine.log", "engine-before.log", "lock", "courier", "state.txt", "audit.anchor",
    "what-left.html",
)  # fmt: skip
# The accepted keys of the other sites.
PEERS = "books/peers.json"
# Whether to accept a key, given the site's name, the fingerprint and whether the key replaces one.
Agree = Callable[[str, str, bool], bool]


@dataclass(frozen=True)
class Kit:
    """The participant of a kit, and the hashes of files that must not change."""

    project: str
    name: str
    role: str
    host: str
    port: int
    files: dict[str, str]

    @property
    def certificate(self) -> str:
        return f"startup/{'server' if self.role == 'server' else 'client'}.crt"

    @property
    def key(self) -> str:
        return self.certificate.replace(".crt", ".key")


def seal_kit(folder: Path, kit: Kit) -> None:
    """Write `kit.json` with the hashes of a kit's files; only its owner may read them."""
    sealed = replace(kit, files=_hashes(folder))
    write_atomically(folder / "kit.json", json.dumps(asdict(sealed), indent=1).encode())
    # The engine's own folder keeps its modes.
    for path in (folder, *folder.glob("*"), *folder.glob("startup/*"), *folder.glob("local/*")):
        path.chmod(0o700 if path.is_dir() else 0o600)


def _hashes(folder: Path) -> dict[str, str]:
    paths = sorted([*folder.glob("startup/*"), *folder.glob("local/*")])
    return {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths
    }


def read_kit(folder: Path, role: str = "site") -> Kit:
    """Return a kit whose role and files are as expected."""
    try:
        kit = msgspec.json.decode((folder / "kit.json").read_bytes(), type=Kit)
    except (OSError, ValueError):
        raise FedLassoError(f"{folder} is not a kit; unpack the one you were sent") from None
    if role == "site":
        _check_site_kit(folder, kit)
    if kit.role != role:
        raise FedLassoError(f"{folder} is a kit for a {kit.role}, not for a {role}")
    if _hashes(folder) != kit.files:
        raise FedLassoError(f"{folder}: files of this kit were changed; ask for a new kit")
    return kit


def _check_site_kit(folder: Path, kit: Kit) -> None:
    """Refuse names that could be more than names, and links out of the kit."""
    named = all(map(NAME.fullmatch, (kit.name, kit.project)))
    # A kit for fits by files has no address.
    addressed = HOST.fullmatch(kit.host) and 0 < kit.port < 65536
    if not named or not (addressed or (kit.host, kit.port) == ("", 0)):
        raise FedLassoError(f"{folder}: names or address in kit.json are not valid; do not use it")
    for place in ("", "startup", "books", "memory", "pending", "door"):
        for path in (folder / place, *(folder / place).glob("*")):
            if path.is_symlink():
                raise FedLassoError(f"{path} is a symbolic link, which no kit has; do not use it")


def find_unexpected(folder: Path, name: str, sent: bool = False) -> list[str]:
    """Return what is in a site's kit and should not be, or in a kit as it was `sent`."""
    known = {*SENT} if sent else {*SENT, *_ADDED, f"{name}.csr", f"{name}.crt"}
    paths = [path for path in folder.glob("*") if path.name != "startup"]
    found = [*paths, *folder.glob("startup/*")]
    return sorted({p.relative_to(folder).as_posix() for p in found} - known)


def request(folder: Path, renew: bool = False) -> tuple[Path, str]:
    """Write a signing request for a new key; return its file and fingerprint.

    To `renew` a certificate, the request is for the key made here before. A key or books that came
    with a kit are refused: whoever packed them knows the key, the secret that splits the rows, or
    has accepted keys in the site's name.
    """
    from fedlasso.governance.identity import fingerprint_of

    kit = read_kit(folder)
    path = folder / kit.key
    if renew and path.exists():
        key = authority.read_key(path)
    else:
        if odd := set(find_unexpected(folder, kit.name, sent=True)).difference(_UNUSED):
            listed = f"{folder} has more than a kit that is sent: {', '.join(sorted(odd))}"
            remedy = "move your own files elsewhere; if it came with the others, do not use it"
            again = "to renew a certificate, use --renew"
            raise FedLassoError(f"{listed}; {remedy}; {again}")
        key = authority.make_key(path)
    seal_kit(folder, kit)
    out = folder / f"{kit.name}.csr"
    authority.write_request(out, key, kit.name, kit.project)
    return out, authority.format_fingerprint(fingerprint_of(key))


def accept(folder: Path, path: Path, agree: Agree) -> tuple[str, list[str]]:
    """Install a signed certificate in a site's kit, and the keys of the other sites.

    The certificate must match the kit's key and root. The file lists the other sites' certificates
    after it; the site takes part with these only. `agree` confirms each new key, because a
    dishonest coordinator could invent sites; a rejected key changes nothing.

    Returns the date on which the certificate expires, and the names of the other sites.
    """
    kit = read_kit(folder)
    certificate, *others = authority.read_certificates(path)
    if not (folder / kit.key).exists():
        raise FedLassoError(f"{folder} has no key yet; run `fedlasso site request {folder}`")
    if authority.common_name(certificate.subject) != kit.name:
        raise FedLassoError(f"{path} is not for site {kit.name!r}; ask for {kit.name}.crt")
    root = authority.read_certificate(folder / "startup" / "rootCA.pem")
    try:
        for each in (certificate, *others):
            each.verify_directly_issued_by(root)
    except (InvalidSignature, TypeError, ValueError):
        raise FedLassoError(f"{path} is not signed by project {kit.project!r}") from None
    if certificate.public_key() != authority.read_key(folder / kit.key).public_key():
        raise FedLassoError(f"{path} is for another key than this kit's; send a new request")
    peers = _accept_peers(folder, others, agree)
    authority.write_pem(folder / kit.certificate, certificate)
    seal_kit(folder, kit)
    return f"{certificate.not_valid_after_utc:%Y-%m-%d}", peers


def _accept_peers(folder: Path, others: Sequence[x509.Certificate], agree: Agree) -> list[str]:
    from fedlasso.governance.identity import fingerprint_of, read_peers

    make_private_folders(folder)
    before = read_peers(folder / PEERS)
    peers = {}
    for each in others:
        name = authority.common_name(each.subject)
        if not NAME.fullmatch(name):
            raise FedLassoError(f"{name!r} in a certificate is not a name of a site")
        own = fingerprint_of(each)
        shown = authority.format_fingerprint(own)
        if before.get(name) == own or agree(name, shown, name in before):
            peers[name] = own
        elif name in before:
            peers[name] = before[name]
    write_atomically(folder / PEERS, json.dumps(peers, indent=1).encode(), private=True)
    return sorted(peers)


def check_certificate(folder: Path, kit: Kit) -> list[str]:
    """Refuse certificates that are not valid now; return warnings about those that expire soon."""
    if not (folder / kit.certificate).exists():
        raise FedLassoError(
            f"{folder} has no certificate yet; run `fedlasso site request {folder}`, have the "
            f"request signed, then run `fedlasso site accept {folder} {kit.name}.crt`"
        )
    renew = "run `fedlasso federation renew`"
    if kit.role == "site":
        renew = f"run `fedlasso site request {folder} --renew` and have the request signed"
    own = authority.check_dates(folder / kit.certificate, kit.name, renew)
    root = folder / "startup" / "rootCA.pem"
    return [*own, *authority.check_dates(root, kit.project, "make a new project")]


def make_private_folders(folder: Path) -> None:
    """Make the folders that only the site itself may read."""
    for name in PRIVATE_FOLDERS:
        (folder / name).mkdir(mode=0o700, exist_ok=True)
        (folder / name).chmod(0o700)


def open_audit(folder: Path) -> Audit:
    """Open a site's audit."""
    # Imported late: a site that only waits does not need this room.
    from fedlasso.governance import Audit

    return Audit(folder / "books" / "audit.jsonl", folder / "audit.anchor")


def read_secret(folder: Path) -> bytes:
    """Return the site's secret for fingerprints and splits, drawn at first use."""
    path = folder / "books" / "key"
    if not path.exists():
        write_atomically(path, secrets.token_bytes(32), private=True)
    return path.read_bytes()


def identify(folder: Path) -> Identity:
    """Return the site's own key and certificate, and the accepted keys of the other sites."""
    from fedlasso.governance.identity import Identity

    own = folder / "startup" / "client.crt"
    return Identity(own, own.with_suffix(".key"), own.with_name("rootCA.pem"), folder / PEERS)
